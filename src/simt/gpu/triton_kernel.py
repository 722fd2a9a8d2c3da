"""Kernels written in Triton."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simt import _engine
from simt.errors import LaunchError

from .arguments import Arguments, three
from .module import Launcher, Module
from .stream import stream_of

if TYPE_CHECKING:
    from simt.result import LaunchResult
    from simt.result.launch import MaybeNone

    from .gpu import GPU


class TritonFunction:
    """A `@triton.jit` function: `kernel[grid](arguments, num_warps=4, BLOCK=128)`.

    grid: a number, up to three of them, or a function of the arguments by name that gives them. Compiled once
    for each specialisation of its arguments, by Triton's rules.

    Heuristics decide as under Triton. Of an autotuner's configurations, pruned as under Triton, the first
    that agrees with the arguments of the launch is taken: trying all would simulate each of them. A warning
    names it once; give values of a configuration at the launch to choose another one.
    """

    def __init__(self, gpu: GPU, fn: Any) -> None:
        self.gpu = gpu
        self.fn, self._wrappers = _unwrapped(fn)
        self._compiled: dict[str, tuple[Any, Module]] = {}
        self._told: set[str] = set()

    def __getitem__(self, grid: Any) -> Callable[..., LaunchResult | MaybeNone]:
        def launch(*args: Any, **kwargs: Any) -> LaunchResult | MaybeNone:
            return self._launch(grid, args, kwargs)

        return launch

    def _decided(self, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name with those that heuristics or an autotuner add."""
        named = dict(zip(wrapper.arg_names, args, strict=False))
        if not hasattr(wrapper, "configs"):
            for name, decide in wrapper.values.items():
                kwargs = {**kwargs, name: decide({**named, **kwargs})}
            return kwargs
        options = [config.all_kwargs() for config in wrapper.configs]
        given = {name: value for name, value in kwargs.items() if any(name in option for option in options)}
        wrapper.nargs = named
        try:
            configs = wrapper.prune_configs({k: v for k, v in kwargs.items() if k not in given})
        finally:
            wrapper.nargs = None
        agreeing = [
            config
            for config in configs
            if all(config.all_kwargs().get(name, value) == value for name, value in given.items())
        ]
        if not agreeing:
            raise LaunchError(
                f"kernel `{self.fn.__name__}`: no configuration of its autotuner agrees with {given}; "
                "there are "
                f"{', '.join(str(option) for option in options)}"
            )
        chosen = agreeing[0]
        if len(agreeing) > 1 and str(chosen) not in self._told:
            self._told.add(str(chosen))
            warnings.warn(
                f"kernel `{self.fn.__name__}`: of {len(agreeing)} configurations of its autotuner, the first "
                f"is taken: {chosen}; values given at the launch choose another one",
                stacklevel=4,
            )
        kwargs = {**kwargs, **chosen.all_kwargs()}
        if chosen.pre_hook is not None:
            chosen.pre_hook({**named, **kwargs})
        return kwargs

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LaunchResult | MaybeNone:
        from simt.cuda.triton import compile_triton, scalar, specialise

        names = {p.name for p in self.fn.params}
        stream = kwargs.pop("stream", None)
        for wrapper in self._wrappers:
            kwargs = self._decided(wrapper, args, kwargs)
        options = {key: kwargs.pop(key) for key in list(kwargs) if key not in names}
        spec = specialise(self.fn, args, kwargs)
        key = f"{spec.signature}{spec.constexprs}{spec.attributes}{sorted(options.items())}"
        if key not in self._compiled:
            compiled = compile_triton(self.fn, spec, arch=self.gpu.arch, **options)
            self._compiled[key] = (compiled, Module(self.gpu, compiled.module))
        compiled, module = self._compiled[key]
        if callable(grid):
            grid = grid(self.fn.signature.bind(*args, **kwargs).arguments)
        size = three(grid, f"kernel `{compiled.name}`: the grid")
        size = (size[0] * compiled.num_ctas, size[1], size[2])
        kernel = module[compiled.name]
        stream = stream_of(self.gpu, stream, f"kernel `{compiled.name}`: the stream")

        def values(address_of: Callable[[Any], int]) -> list[Any]:
            found: list[Any] = []
            given, maps = iter(spec.arguments), iter(compiled.tensor_maps)
            while len(found) < len(compiled.parameters):
                parameter = compiled.parameters[len(found)]
                if parameter.name in compiled.scratch:
                    nbytes, _ = compiled.scratch[parameter.name]
                    found.append(self.gpu.empty(nbytes * math.prod(size), np.uint8))
                elif parameter.name in ("global_scratch", "profile_scratch"):
                    found.append(None)
                elif hasattr(value := next(given), "block_shape"):
                    layout = next(maps) if parameter.type == "tensormap" else None
                    found += descriptor_arguments(value, address_of(value.base), layout, compiled.name)
                else:
                    found.append(value if parameter.type.startswith("*") else scalar(value, parameter.type))
            return found

        launcher = Launcher(
            kernel,
            size,
            (32 * compiled.num_warps, 1, 1),
            compiled.shared_bytes,
            stream,
            (compiled.num_ctas, 1, 1),
        )
        return self.gpu.launch(
            launcher, lambda: Arguments(self.gpu, kernel.name, kernel.parameters, spec.arguments, values)
        )


def _unwrapped(fn: Any) -> tuple[Any, list[Any]]:
    """The function within `@triton.autotune` and `@triton.heuristics`, and those, the outermost first."""
    wrappers = []
    while (
        not hasattr(fn, "params") and (hasattr(fn, "configs") or hasattr(fn, "values")) and hasattr(fn, "fn")
    ):
        wrappers.append(fn)
        fn = fn.fn
    return fn, wrappers


# Triton numbers element types as PTX does, the driver as CUtensorMapDataType.
_DRIVER_TYPES = {8: 10, 9: 8, 10: 9}
_TF32 = 11


def descriptor_arguments(
    value: Any, address: int, layout: Mapping[str, Any] | None, kernel: str
) -> list[Any]:
    """The arguments that a tensor descriptor becomes: a tensor map of the given layout, or what replaces one
    before Hopper; then its shape and strides."""
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    nan = getattr(value, "padding", "zero") == "nan"
    rounds = bool(getattr(value, "round_f32_to_tf32", False))
    if layout is None:
        return [address, *shape, *strides, nan, rounds, *shape, *strides]
    steps, corners = [1] * len(shape), None
    if layout.get("is_im2col"):
        steps = [int(n) for n in value.element_strides or steps]
        corners = value.pixel_box_lower_corner[::-1], value.pixel_box_upper_corner[::-1]
    sizes = [*shape[:-1], 2 * shape[-1]] if layout.get("fp4_padded") else shape  # two elements in a byte
    element = _TF32 if rounds else _DRIVER_TYPES.get(layout["elem_type"], layout["elem_type"])
    try:
        raw = _engine.functional.encode_tensor_map(
            element,
            address,
            sizes[::-1],
            [n * layout["elem_size"] for n in strides[-2::-1]],
            [int(n) for n in layout["block_size"][::-1]],
            steps[::-1],
            swizzle=layout["swizzle"],
            fill=int(nan),
            corners=corners,
        )
    except ValueError as error:
        raise LaunchError(f"kernel `{kernel}`: {error}") from None
    return [np.void(raw), *shape, *strides]
