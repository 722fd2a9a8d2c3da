"""Kernels written in Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .arguments import Arguments
from .module import Module

if TYPE_CHECKING:
    from simt.result import LaunchResult

    from .gpu import GPU


class NumbaFunction:
    """A Python function or `@cuda.jit` kernel, compiled by Numba: `kernel[grid, block](arguments)`."""

    def __init__(self, gpu: GPU, fn: Any) -> None:
        self.gpu = gpu
        self.fn = fn
        self._compiled: dict[tuple[Any, ...], tuple[Any, Module]] = {}

    def __getitem__(self, configuration: Any) -> Callable[..., LaunchResult | None]:
        def launch(*args: Any, stream: Any = None) -> LaunchResult | None:
            from simt.cuda.numba_cuda import compile_numba, parameters, signature_of

            types = signature_of(args)
            if types not in self._compiled:
                compiled = compile_numba(self.fn, types, arch=self.gpu.arch)
                self._compiled[types] = (compiled, Module(self.gpu, compiled.module))
            compiled, module = self._compiled[types]
            kernel = module[compiled.name]
            return kernel[configuration].launch(
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
