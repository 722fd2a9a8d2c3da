"""Chooses tiles for matrix products and convolutions without timing them.

Inductor times every configuration of a template on the GPU. Here a configuration is chosen by an estimate of
the time that its waves of CTAs take, as timing them all in the simulator would take longer than the model.
A GPU without timing gets what the host executes fastest instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import triton
from torch._inductor.choices import InductorChoices
from torch._inductor.kernel_inputs import MMKernelInputs
from torch._inductor.select_algorithm import TritonTemplateCaller
from torch._inductor.virtualized import V

from simt.spec import Spec

_SMALL_TILE = 64
"""Elements along a side of a tile that loads as much as it computes: sets how much large tiles gain."""
_HOST_TILES = [(64, 64, 2), (64, 32, 1), (32, 64, 1), (64, 16, 1), (16, 64, 1), (32, 32, 1), (16, 16, 1)]
"""BLOCK_M, BLOCK_N and num_warps of convolutions without timing; BLOCK_K is 16, the least of `tl.dot`."""
_STEP_INSTRUCTIONS = 200
"""Of a warp for each step along k, besides products: addresses, masks and copies (measured)."""
_CACHED_REGISTERS = 320
"""Registers of a warp, 128 bytes each, that fit in a host core's first-level cache. A template loads all
operands of a step before the first product, so long steps need many (measured: twice the time with 450)."""


class Choices(InductorChoices):  # type: ignore[misc]
    """Inductor's choices for a GPU, with one configuration of each template.

    functional: the GPU computes values only.
    """

    def __init__(self, spec: Spec, functional: bool) -> None:
        super().__init__()
        self._functional = functional
        self._sms = spec.sm.count
        self._shared = spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta
        self._registers = spec.sm.register_file.registers

    def uuid(self) -> str:
        """Names what the choices depend on, for Inductor's caches."""
        return f"simt {self._sms} {self._shared} {self._registers} {self._functional}"

    def estimate(self, m: int, n: int, k: int, batch: int, itemsize: int, tile: dict[str, int]) -> float:
        """Relative time of `batch` products of m x k and k x n matrices; infinite if the tiles do not fit.

        tile: BLOCK_M, BLOCK_N, BLOCK_K, num_stages, num_warps.
        """
        rows, columns, depth = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
        if self._functional:
            return _host_estimate(m, n, k, batch, tile)
        if (rows + columns) * depth * itemsize * max(1, tile["num_stages"] - 1) > self._shared:
            return math.inf
        # Half of the registers of a thread are left for operands and addresses.
        if rows * columns / (32 * tile["num_warps"]) > 128:
            return math.inf
        ctas = batch * math.ceil(m / rows) * math.ceil(n / columns)
        resident = max(1, min(self._registers // (2 * rows * columns), 32 // tile["num_warps"]))
        waves = math.ceil(ctas / (self._sms * resident))
        busy = min(resident, math.ceil(ctas / self._sms))
        work = rows * columns * math.ceil(k / depth) * depth
        traffic = (rows + columns) * _SMALL_TILE / 2 * math.ceil(k / depth) * depth
        return waves * busy * (work + traffic) / min(1.0, busy * tile["num_warps"] / 8)

    def _finalize_template_configs(
        self,
        template_choices: Any,
        kernel_inputs: Any,
        templates: Any,
        op_name: str,
        kwarg_overrides: Any = None,
    ) -> list[Any]:
        found: list[Any] = super()._finalize_template_configs(
            template_choices, kernel_inputs, templates, op_name, kwarg_overrides
        )
        tiled = [choice for choice in found if "BLOCK_M" in choice.params.to_kwargs()]
        if not tiled or not isinstance(kernel_inputs, MMKernelInputs):
            return found
        m, n, k = (int(size) for size in kernel_inputs.mnk_hinted())
        batch = math.prod(int(size) for size in kernel_inputs.shapes_hinted()[0][:-2])
        itemsize = kernel_inputs.dtype(0).itemsize
        return [
            min(tiled, key=lambda choice: self.estimate(m, n, k, batch, itemsize, choice.params.to_kwargs()))
        ]

    def get_conv_configs(self, device_type: str | None = "cuda") -> Callable[..., Iterator[Any]]:
        configs = super().get_conv_configs(device_type)

        def best(m: Any, n: Any, k: Any, dtype_size: int = 4, **options: Any) -> Iterator[Any]:
            hint = V.graph.sizevars.optimization_hint  # of a size that is not fixed
            sizes = int(hint(m)), int(hint(n)), int(hint(k)), 1, dtype_size
            given = list(configs(m, n, k, dtype_size=dtype_size, **options))
            if self._functional:
                given = [
                    triton.Config(
                        {**given[0].kwargs, "BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": 16}, warps, 1
                    )
                    for rows, columns, warps in _HOST_TILES
                ]
            yield min(
                given,
                key=lambda c: self.estimate(
                    *sizes, {**c.kwargs, "num_stages": c.num_stages, "num_warps": c.num_warps}
                ),
            )

        return best


def _host_estimate(m: int, n: int, k: int, batch: int, tile: dict[str, int]) -> float:
    """Relative time that the host takes to execute products without timing: instructions of all warps."""
    rows, columns, depth = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    threads = 32 * tile["num_warps"]
    steps = batch * math.ceil(m / rows) * math.ceil(n / columns) * math.ceil(k / depth)
    instructions = rows * columns * depth / 32 + _STEP_INSTRUCTIONS * tile["num_warps"]
    registers = rows * columns / threads + (rows + columns) * depth / math.sqrt(threads)
    return steps * instructions * max(1.0, registers / _CACHED_REGISTERS)


def one(choices: list[Any]) -> list[Any]:
    """The first choice that is a Triton template, or the first."""
    return [c for c in choices if isinstance(c, TritonTemplateCaller)][:1] or choices[:1]
