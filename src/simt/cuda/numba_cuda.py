"""Numba's CUDA kernels: Python functions to PTX, and how their arguments are passed."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from simt.errors import CompileError, SimtError, ToolkitError
from simt.extras import install

from .link import link as link_modules
from .nvrtc import compile_cuda
from .ptx_module import PtxModule, arch_number

Scalar = np.generic


@dataclass(frozen=True)
class NumbaKernel:
    """A compiled kernel. Its module holds it under the Python function's name, too."""

    module: PtxModule
    name: str
    """Mangled, as in the PTX."""
    types: tuple[Any, ...]
    """Numba type of each argument."""


def signature_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """The Numba types of actual arguments: NumPy arrays and scalars, Python numbers and tuples, and device
    arrays that have `shape`, `strides` (bytes) and `dtype` as NumPy's have.

    Raises:
        CompileError: Numba has no type for an argument.
        ToolkitError: numba-cuda is not installed.
    """
    _need_numba()
    from numba import typeof

    found = []
    for index, value in enumerate(args):
        if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "strides"):
            element = np.empty(
                1, value.dtype
            )  # stands for an array of that shape: its type has the layout, too
            value = np.lib.stride_tricks.as_strided(element, value.shape, value.strides)
        try:
            found.append(typeof(value))
        except (ValueError, TypeError, NotImplementedError) as error:
            raise CompileError(
                f"argument {index}: Numba has no type for {type(value).__name__}: {error}"
            ) from None
    return tuple(found)


_OPTIONS = ("fastmath", "debug", "lineinfo", "opt", "max_registers", "link", "launch_bounds")
"""Those of `@cuda.jit` that are taken over from it."""
_lock = threading.RLock()


def options_of(fn: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a kernel is compiled with: the options of its `@cuda.jit`, and in their place those given.

    Raises CompileError for an option that is not known.
    """
    if unknown := given.keys() - set(_OPTIONS):
        raise CompileError(
            f"{getattr(fn, '__name__', fn)}: no option {', '.join(sorted(unknown))} of Numba kernels; "
            f"there are {', '.join(_OPTIONS)}"
        )
    decorated = getattr(fn, "targetoptions", {})
    return {name: decorated[name] for name in _OPTIONS if decorated.get(name)} | dict(given)


def compile_numba(
    fn: Any,
    signature: Any,
    *,
    arch: str,
    fastmath: bool = False,
    debug: bool = False,
    lineinfo: bool = True,
    opt: bool | None = None,
    max_registers: int | None = None,
    link: Sequence[Any] = (),
    launch_bounds: Any = None,
) -> NumbaKernel:
    """Compiles a Python function, or one decorated with `@cuda.jit`, to a PTX kernel.

    Args:
        signature: Numba types of the arguments: a tuple, or text such as "void(float32[:], int64)".
        fastmath, debug, lineinfo, opt, launch_bounds: as in Numba's `cuda.jit`. debug: adds Numba's checks,
            but not those for its debugger.
        max_registers: limit per thread.
        link: `.cu` and `.ptx` files, or Numba's LinkableCode, with functions that the kernel calls.

    Raises:
        CompileError: Numba refuses the function; the message is Numba's.
        ToolkitError: numba-cuda is not installed.
    """
    _need_numba()
    from numba import cuda
    from numba.core import sigutils

    function = getattr(fn, "py_func", fn)
    name = function.__name__
    number, _ = arch_number(arch)
    try:
        types, _ = sigutils.normalize_signature(signature)
        # In a thread: the compiler leaves an exception in a cycle, and with it every frame that called it.
        # What they hold, such as a module in device memory, would stay until Python collects cycles.
        with _as_on_a_gpu(divmod(number, 10), arch), ThreadPoolExecutor(1) as thread:
            compiling = thread.submit(
                cuda.compile_all,
                function,
                types,
                cc=divmod(number, 10),
                device=False,
                abi="numba",
                output="ptx",
                fastmath=fastmath,
                debug=bool(debug),
                lineinfo=lineinfo and not debug,
                opt=not debug if opt is None or debug else opt,
                launch_bounds=launch_bounds,
            )
            codes, _ = compiling.result()
        texts = [code if isinstance(code, str) else _linked(code, arch) for code in codes]
        texts += [_linked(code, arch) for code in link]
    except SimtError:
        raise
    except Exception as error:  # Numba raises errors of many classes, some of them Python's own
        raise CompileError(f"{name}: Numba does not compile it for {arch}\n{error}") from error
    units = [PtxModule.from_text(text.rstrip("\0"), name) for text in texts]
    module = link_modules(units, arch) if len(units) > 1 else units[0]
    kernel, text = units[0].kernels[0], module.text
    if max_registers:
        text = _with_most_registers(text, kernel, max_registers)
    module = replace(module, text=text, name=name, names={name: kernel})
    return NumbaKernel(module, kernel, tuple(types))


@contextmanager
def _as_on_a_gpu(capability: tuple[int, int], arch: str) -> Iterator[None]:
    """Numba asks the current GPU what device functions are compiled for, and has its own NVRTC, which needs a
    driver, compile its helpers in C++. Both are answered here."""
    device = SimpleNamespace(compute_capability=capability)

    def compiled(source: Any, name: str, *rest: Any, **options: Any) -> tuple[str, str]:
        return _from_cuda(source, name, arch), ""

    dispatcher = import_module("numba.cuda.dispatcher")
    nvrtc = import_module("numba.cuda.cudadrv.nvrtc")
    with (
        _lock,
        patch.object(dispatcher, "get_current_device", lambda: device),
        patch.object(nvrtc, "compile", compiled),
    ):
        yield


def _from_cuda(source: Any, name: str, arch: str) -> str:
    text = source.decode() if isinstance(source, bytes) else str(source)
    return compile_cuda(text, name=name, arch=arch, options=["-rdc=true"], debug_lines=False).text


def _linked(code: Any, arch: str) -> str:
    """The PTX of code to be linked."""
    kind, data, name = getattr(code, "kind", None), getattr(code, "data", None), getattr(code, "name", None)
    if kind is None:
        path = Path(code)
        kind, data, name = path.suffix[1:], path.read_text(encoding="utf-8"), path.name
    if kind == "cu":
        return _from_cuda(data, name or "linked.cu", arch)
    if kind == "ptx":
        return data.decode() if isinstance(data, bytes) else str(data)
    raise CompileError(f"{name or code}: {kind} code cannot be linked, expected CUDA C++ (.cu) or PTX (.ptx)")


def _with_most_registers(text: str, kernel: str, most: int) -> str:
    begin = text.index(f".entry {kernel}")
    brace = text.index("{", begin)
    return f"{text[:brace]}.maxnreg {most}\n{text[brace:]}"


def parameters(types: Sequence[Any], args: Sequence[Any], address_of: Callable[[Any], int]) -> list[Scalar]:
    """The parameters of the PTX kernel, in order, each with the width that it has there.

    Numba passes an array as 5 + 2 × dimensions numbers of 64 bits: meminfo and parent (null on a GPU), number
    of items, bytes of an item, address, shape, strides in bytes (numba-cuda's launcher, `_prepare_args`). A
    tuple is its items in turn, a complex number its parts, a boolean a byte, a record its address.

    Args:
        types: Numba type of each argument, as `NumbaKernel.types`.
        address_of: gives the device address of an array or record.

    Raises:
        CompileError: number or types of the arguments are not the kernel's.
    """
    if len(types) != len(args):
        raise CompileError(f"the kernel takes {len(types)} arguments, found {len(args)}")
    flat: list[Scalar] = []
    for index, (kind, value) in enumerate(zip(types, args, strict=True)):
        try:
            flat += _flatten(kind, value, address_of)
        except (AttributeError, OverflowError, TypeError, ValueError) as error:
            found = type(value).__name__
            raise CompileError(f"argument {index}: the kernel takes {kind}, found {found}: {error}") from None
    return flat


def _flatten(kind: Any, value: Any, address_of: Callable[[Any], int]) -> Iterator[Scalar]:
    types = import_module("numba.core.types")
    as_dtype = import_module("numba.np.numpy_support").as_dtype

    if isinstance(kind, types.Array):
        if len(value.shape) != kind.ndim:
            raise ValueError(f"it has {len(value.shape)} dimensions")
        element = np.dtype(value.dtype)
        if element != as_dtype(kind.dtype):
            raise ValueError(f"its elements are {element}")
        yield from (np.uint64(0), np.uint64(0))
        yield from (np.int64(np.prod(value.shape, dtype=np.int64)), np.int64(element.itemsize))
        yield np.uint64(address_of(value))
        yield from map(np.int64, value.shape)
        yield from map(np.int64, value.strides)
    elif isinstance(kind, types.BaseTuple):
        if len(value) != len(kind):
            raise ValueError(f"it has {len(value)} items")
        for item_kind, item in zip(kind, value, strict=True):
            yield from _flatten(item_kind, item, address_of)
    elif isinstance(kind, types.Boolean):
        yield np.uint8(bool(value))
    elif isinstance(kind, (types.Integer, types.Float)):
        yield as_dtype(kind).type(value)
    elif isinstance(kind, types.Complex):
        part = np.float32 if kind.bitwidth == 64 else np.float64
        yield from (part(value.real), part(value.imag))
    elif isinstance(kind, (types.NPDatetime, types.NPTimedelta)):
        yield value.view(np.int64)
    elif isinstance(kind, types.Record):
        yield np.uint64(address_of(value))
    elif isinstance(kind, (types.RawPointer, types.CPointer)):
        yield np.uint64(value)
    elif isinstance(kind, types.EnumMember):
        yield from _flatten(kind.dtype, value.value, address_of)
    else:
        raise TypeError("this type of argument cannot be passed to a kernel")


def _need_numba() -> None:
    if importlib.util.find_spec("numba_cuda") is None:
        raise ToolkitError(f"numba-cuda is not installed: {install('numba-cuda')}")
