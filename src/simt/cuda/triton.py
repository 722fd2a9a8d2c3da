"""Triton kernels, compiled ahead of time: no GPU, driver or PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simt.errors import CompileError, PtxError, ToolkitError
from simt.extras import install

from .ptx_module import PtxModule, arch_number

_ALIGNMENT = 16
"""Bytes, or the number that an integer is a multiple of, that Triton compiles a kernel specially for."""
_TRAILING = ("global_scratch", "profile_scratch")
"""Pointers that newer versions of Triton add after the kernel's own parameters, in this order."""
_POINTEE = {
    "bool": "i1",
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{"float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16"},
    **{"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3b11fnuz": "fp8e4b15"},
    **{"float8_e4m3fnuz": "fp8e4b8", "float8_e5m2fnuz": "fp8e5b16"},
}
"""Triton's names of the element types of NumPy, ml_dtypes and PyTorch."""
_SCALARS: dict[str, type[np.generic]] = {
    **{"i1": np.uint8, "u1": np.uint8, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16},
    **{"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64},
    **{"fp16": np.float16, "fp32": np.float32, "f32": np.float32, "fp64": np.float64},
}
_PARAMETER = re.compile(r"(?<![\w$.%])\.param\b")
_DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[([\d, ]+)\]")


@dataclass(frozen=True)
class Specialisation:
    """The properties of arguments for which a kernel is compiled."""

    signature: dict[str, Any]
    """Type of each parameter by name: "*fp32", "i32", "constexpr", or a tuple of these for a tuple."""
    constexprs: dict[tuple[int, ...], Any]
    """Values known when compiling, by position (and position within tuples)."""
    attributes: dict[tuple[int, ...], list[list[Any]]]
    """What else is known of the other arguments, by position: that they are multiples of 16."""
    arguments: tuple[Any, ...] = ()
    """The arguments that are passed at launch, in order, tuples laid flat."""


@dataclass(frozen=True)
class TritonParameter:
    """A parameter of the PTX kernel."""

    name: str
    type: str
    """As in a signature; "tensormap" is a tensor map of 128 bytes."""


@dataclass(frozen=True)
class TritonKernel:
    """A compiled kernel, and what its launches need."""

    module: PtxModule
    name: str
    shared_bytes: int
    """Dynamic shared memory per CTA."""
    num_warps: int
    """Warps per CTA: a CTA has 32 times as many threads, in x."""
    num_ctas: int
    """CTAs per cluster."""
    parameters: tuple[TritonParameter, ...]
    """In the order of the PTX, scratch pointers last."""
    scratch: Mapping[str, tuple[int, int]]
    """Bytes per CTA and alignment of each scratch buffer that a launch must bring, by parameter name; a
    parameter named in `parameters` but not here takes a null pointer."""
    tensor_maps: tuple[Mapping[str, Any], ...] = field(default=())
    """For each parameter of type "tensormap", in order: `swizzle`, `elem_size`, `elem_type`, `block_size`."""


def specialise(
    fn: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
) -> Specialisation:
    """Types and specialisation of a kernel for actual arguments, by Triton's rules.

    An integer of 1 and None become constants; pointers and integers divisible by 16 are marked so; an integer
    is i32, i64 or u64, whichever holds it first; `do_not_specialize`, `do_not_specialize_on_alignment` and
    type annotations are honoured.

    Args:
        fn: a function decorated with `@triton.jit` or Gluon's `@gluon.jit`.
        args, kwargs: for each parameter a NumPy array (taken as a device array at an aligned address), an
            object with `data_ptr()` and `dtype`, a tensor descriptor, a number, None, or a tuple of these.

    Raises:
        CompileError: the arguments do not fit the kernel's parameters, or have no Triton type.
    """
    _need_jit(fn)
    try:
        bound = fn.signature.bind(*args, **(kwargs or {}))
    except TypeError as error:
        raise CompileError(f"{fn.__name__}: {error}") from None
    bound.apply_defaults()
    signature: dict[str, Any] = {}
    constexprs: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    arguments: list[Any] = []

    def visit(value: Any, param: Any, where: tuple[int, ...]) -> Any:
        if isinstance(value, tuple) and not param.is_constexpr:
            return tuple(visit(item, param, (*where, index)) for index, item in enumerate(value))
        kind, divisible = ("constexpr", False) if param.is_constexpr else _describe(fn, param, value)
        if kind == "constexpr":
            constexprs[where] = value
            return kind
        if divisible:
            attributes[where] = [["tt.divisibility", _ALIGNMENT]]
        arguments.append(value)
        return kind

    for index, param in enumerate(fn.params):
        signature[param.name] = visit(bound.arguments[param.name], param, (index,))
    return Specialisation(signature, constexprs, attributes, tuple(arguments))


def compile_triton(
    fn: Any,
    signature: Mapping[str, Any] | Specialisation,
    constexprs: Mapping[Any, Any] | None = None,
    *,
    arch: str,
    num_warps: int = 4,
    num_stages: int = 3,
    **options: Any,
) -> TritonKernel:
    """Compiles a `@triton.jit` function, or one of Gluon (`@gluon.jit`), to PTX.

    Args:
        signature: type of each parameter by name, as in Triton ("*fp16", "i32", "constexpr"), or what
            `specialise` found. "*fp16:16" and "i32:16" say that the argument is a multiple of 16.
        constexprs: values of the parameters of type "constexpr", by name.
        arch: target, such as "sm_90".
        options: further options of Triton's CUDA back end, such as `num_ctas` and `maxnreg`.

    Raises:
        CompileError: Triton refuses the kernel; the message is Triton's.
        ToolkitError: Triton is not installed.
    """
    _need_jit(fn)
    from triton import compile as triton_compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if not isinstance(signature, Specialisation):
        signature = _declared(fn, signature, constexprs or {})
    name = fn.__name__
    language: Any = ASTSource
    if fn.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        language = GluonASTSource
    source = language(fn, signature.signature, signature.constexprs, signature.attributes)
    try:
        compiled = triton_compile(
            source,
            target=GPUTarget("cuda", arch_number(arch)[0], 32),
            options={"num_warps": num_warps, "num_stages": num_stages, **options},
        )
    except Exception as error:  # Triton raises errors of many classes, some of them its compiler's own
        raise CompileError(f"{name}: Triton does not compile it for {arch}\n{error}") from error
    metadata = compiled.metadata
    module = PtxModule.from_text(compiled.asm["ptx"], name)
    tensor_maps = tuple(getattr(metadata, "tensordesc_meta", None) or ())
    parameters = _parameters(module, metadata.name, signature, bool(tensor_maps))
    scratch = {
        kind: (size, getattr(metadata, f"{kind}_align", 1))
        for kind in _TRAILING
        if (size := getattr(metadata, f"{kind}_size", 0))
    }
    return TritonKernel(
        module=module,
        name=metadata.name,
        shared_bytes=metadata.shared,
        num_warps=metadata.num_warps,
        num_ctas=getattr(metadata, "num_ctas", 1),
        parameters=parameters,
        scratch=scratch,
        tensor_maps=tensor_maps,
    )


def scalar(value: Any, kind: str) -> np.generic:
    """A scalar argument with the width and type that the kernel takes.

    Raises:
        CompileError: the type is no scalar, or does not hold the value.
    """
    result: np.generic
    if kind == "bf16":
        result = np.uint16(int(np.float32(value).view(np.uint32)) >> 16)  # truncated, as by Triton's launcher
        return result
    if kind not in _SCALARS:
        raise CompileError(f"a parameter of type {kind!r} does not accept a number, found {value!r}")
    try:
        result = _SCALARS[kind](value)
    except (OverflowError, TypeError, ValueError):
        raise CompileError(f"a parameter of type {kind!r} cannot take {value!r}") from None
    return result


def _need_jit(fn: Any) -> None:
    try:
        from triton.runtime.jit import JITFunction
    except ImportError:
        raise ToolkitError(f"Triton is not installed: {install('triton')}") from None
    if not isinstance(fn, JITFunction):
        inner = getattr(fn, "fn", None)
        advice = "pass the function inside it, its attribute `fn`, and the values that it chooses"
        if inner is None:
            advice = "decorate it with @triton.jit, and do not set TRITON_INTERPRET"
        raise CompileError(
            f"{getattr(fn, '__name__', fn)}: {type(fn).__name__} is not a Triton kernel: {advice}"
        )


def _describe(fn: Any, param: Any, value: Any) -> tuple[str, bool]:
    """Type of an argument, and whether it is divisible by 16."""
    kind, may_be_constant, divisible = _infer(fn, param, value)
    special = not param.do_not_specialize
    annotated = param.annotation_type
    if annotated:
        # An annotation fixes the type, and floating-point numbers and booleans are then not looked at.
        return annotated, divisible and special and not annotated.startswith(("fp", "bf", "u1"))
    if may_be_constant and special:
        return "constexpr", False
    return kind, divisible and special


def _infer(fn: Any, param: Any, value: Any) -> tuple[str, bool, bool]:
    """Type, whether the value may be a constant, and whether it is divisible by 16 and that may be used."""
    align = not param.do_not_specialize_on_alignment
    if value is None:
        return "constexpr", True, False
    if isinstance(value, (bool, np.bool_)):
        return "u1", False, False
    if isinstance(value, (int, np.integer)):
        number = int(value)
        kind = "i32" if -(1 << 31) <= number < 1 << 31 else "i64" if number < 1 << 63 else "u64"
        return kind, number == 1, align and number % _ALIGNMENT == 0
    if isinstance(value, (float, np.floating)):
        return "fp32", False, False
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        shape = ",".join(str(extent) for extent in value.block_shape)
        return f"tensordesc<{_pointee(fn, param, value.base)}[{shape}]>", False, False
    if hasattr(value, "dtype") and (hasattr(value, "data_ptr") or isinstance(value, np.ndarray)):
        address = value.data_ptr() if hasattr(value, "data_ptr") else 0
        const = "k" if param.is_const else ""
        return f"*{const}{_pointee(fn, param, value)}", False, align and address % _ALIGNMENT == 0
    if isinstance(value, str) or callable(value):
        return "constexpr", True, False
    raise CompileError(
        f"{fn.__name__}: parameter {param.name}: Triton has no type for {type(value).__name__}"
    )


def _pointee(fn: Any, param: Any, array: Any) -> str:
    name = str(array.dtype).rsplit(".", 1)[-1]
    if name not in _POINTEE and name not in _POINTEE.values():
        known = ", ".join(_POINTEE)
        raise CompileError(
            f"{fn.__name__}: parameter {param.name}: no elements of type {name!r}; there are {known}"
        )
    return _POINTEE.get(name, name)


def _declared(fn: Any, signature: Mapping[str, Any], constexprs: Mapping[Any, Any]) -> Specialisation:
    names = list(fn.arg_names)
    if unknown := [name for name in (*signature, *constexprs) if name not in names]:
        raise CompileError(f"{fn.__name__}: no parameters {', '.join(unknown)}; there are {', '.join(names)}")
    types: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for index, name in enumerate(names):
        kind = signature.get(name, "constexpr" if name in constexprs else None)
        if kind is None or (kind == "constexpr") != (name in constexprs):
            raise CompileError(
                f"{fn.__name__}: parameter {name} needs a type, or a value if it is a constexpr"
            )
        kind, _, divisor = kind.partition(":")
        if divisor not in ("", str(_ALIGNMENT)):
            raise CompileError(
                f"{fn.__name__}: parameter {name}: only multiples of 16 are known, found {divisor!r}"
            )
        if divisor:
            attributes[(index,)] = [["tt.divisibility", _ALIGNMENT]]
        types[name] = kind
    return Specialisation(
        types, {(names.index(name),): value for name, value in constexprs.items()}, attributes
    )


def _parameters(
    module: PtxModule, name: str, signature: Specialisation, maps: bool
) -> tuple[TritonParameter, ...]:
    """The kernel's parameters in PTX: without constants, with tuples and descriptors flattened."""
    own = [
        TritonParameter(title, kind)
        for title, declared in signature.signature.items()
        for kind in _flat(declared, maps)
    ]
    found = len(_PARAMETER.findall(module.parameters(name)))
    extra = found - len(own)
    if not 0 <= extra <= len(_TRAILING):
        raise PtxError(
            f"{name}: the PTX has {found} parameters, its arguments make {len(own)}: "
            "this version of Triton passes arguments in a way that is not known"
        )
    return (*own, *(TritonParameter(title, "*i8") for title in _TRAILING[:extra]))


def _flat(kind: Any, maps: bool) -> Iterator[str]:
    if isinstance(kind, tuple):
        for item in kind:
            yield from _flat(item, maps)
    elif match := _DESCRIPTOR.match(kind):
        rank = match[2].count(",") + 1
        # Without tensor maps, before Hopper: pointer, shape, strides, padding and rounding.
        yield from (["tensormap"] if maps else [f"*{match[1]}", *["i64"] * (2 * rank), "i1", "i1"])
        yield from ["i32"] * rank
        yield from ["i64"] * rank
    elif kind != "constexpr":
        yield kind
