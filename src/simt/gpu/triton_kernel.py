"""Kernels written in Triton."""

from __future__ import annotations

import math
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

    from .gpu import GPU


class TritonFunction:
    """A `@triton.jit` function: `kernel[grid](arguments, num_warps=4, BLOCK=128)`.

    grid: a number, up to three of them, or a function of the arguments by name that gives them. Compiled once
    for each specialisation of its arguments, by Triton's rules.
    """

    def __init__(self, gpu: GPU, fn: Any) -> None:
        self.gpu = gpu
        self.fn = fn
        self._compiled: dict[str, tuple[Any, Module]] = {}

    def __getitem__(self, grid: Any) -> Callable[..., LaunchResult | None]:
        def launch(*args: Any, **kwargs: Any) -> LaunchResult | None:
            return self._launch(grid, args, kwargs)

        return launch

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LaunchResult | None:
        from simt.cuda.triton import compile_triton, scalar, specialise

        names = {p.name for p in self.fn.params}
        stream = kwargs.pop("stream", None)
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
                    found += _descriptor(value, address_of(value.base), layout, compiled.name)
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


# Triton numbers element types as PTX does, the driver as CUtensorMapDataType.
_DRIVER_TYPES = {8: 10, 9: 8, 10: 9}
_TF32 = 11


def _descriptor(value: Any, address: int, layout: Mapping[str, Any] | None, kernel: str) -> list[Any]:
    """The arguments that a tensor descriptor becomes: a tensor map of the given layout, or what replaces one
    before Hopper; then its shape and strides."""
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    nan = getattr(value, "padding", "zero") == "nan"
    rounds = bool(getattr(value, "round_f32_to_tf32", False))
    if layout is None:
        return [address, *shape, *strides, nan, rounds, *shape, *strides]
    if layout.get("fp4_padded") or layout.get("is_im2col"):
        raise LaunchError(f"kernel `{kernel}`: only plain tiles of tensor descriptors are supported")
    element = _TF32 if rounds else _DRIVER_TYPES.get(layout["elem_type"], layout["elem_type"])
    try:
        raw = _engine.functional.encode_tensor_map(
            element,
            address,
            shape[::-1],
            [n * layout["elem_size"] for n in strides[-2::-1]],
            [int(n) for n in layout["block_size"][::-1]],
            [1] * len(shape),
            swizzle=layout["swizzle"],
            fill=int(nan),
        )
    except ValueError as error:
        raise LaunchError(f"kernel `{kernel}`: {error}") from None
    return [np.void(raw), *shape, *strides]
