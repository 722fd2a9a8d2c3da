"""Kernels written in Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simt.cuda.device_runtime import syncs_grids

from .arguments import Arguments
from .module import Module
from .stream import Stream

if TYPE_CHECKING:
    from simt.result import LaunchResult
    from simt.result.launch import MaybeNone

    from .gpu import GPU


class NumbaFunction:
    """A Python function or `@cuda.jit` kernel, compiled by Numba: `kernel[grid, block](arguments)`.

    The block may be followed by shared memory and stream, as for other kernels, or by stream and shared
    memory, as in Numba; the order is recognised by the type Stream. Compiled once for each signature, or only
    for a given one.
    """

    def __init__(self, gpu: GPU, fn: Any, signature: Any, options: dict[str, Any]) -> None:
        from simt.cuda.numba_cuda import options_of

        self.gpu = gpu
        self.fn = fn
        self._signature = signature
        self._options = options_of(fn, options)
        self._compiled: dict[Any, tuple[Any, Module]] = {}

    def __getitem__(self, configuration: Any) -> Callable[..., LaunchResult | MaybeNone]:
        configuration = _in_our_order(configuration)

        def launch(*args: Any, stream: Any = None) -> LaunchResult | MaybeNone:
            from simt.cuda.numba_cuda import parameters

            compiled, module = self._for(args)
            kernel = module[compiled.name]
            launcher = kernel[configuration]
            if syncs_grids(compiled.module.text):
                launcher = launcher.cooperatively()
            return launcher.launch(
                lambda: Arguments(
                    self.gpu,
                    kernel.name,
                    kernel.parameters,
                    args,
                    lambda address_of: parameters(compiled.types, args, address_of),
                ),
                stream,
            )

        return launch

    def _for(self, args: tuple[Any, ...]) -> tuple[Any, Module]:
        from simt.cuda.numba_cuda import compile_numba, signature_of

        types = signature_of(args) if self._signature is None else self._signature
        with self.gpu.exclusive:
            if types not in self._compiled:
                compiled = compile_numba(self.fn, types, arch=self.gpu.arch, **self._options)
                self._compiled[types] = (compiled, Module(self.gpu, compiled.module))
            return self._compiled[types]


def _in_our_order(configuration: Any) -> Any:
    """Grid, block, shared memory, stream. Numba's order is grid, block, stream, shared memory."""
    if not isinstance(configuration, tuple) or len(configuration) < 3:
        return configuration
    grid, block, third, *rest = configuration
    if isinstance(third, Stream) or (rest and isinstance(rest[0], int) and not third):
        return grid, block, rest[0] if rest else 0, third, *rest[1:]
    return configuration
