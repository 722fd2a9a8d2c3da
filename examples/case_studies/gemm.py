"""Matrix products near the peak of a GPU (gemm.cu), for studies and tests of power."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simt
from simt.power import power_over_time
from simt.result.timeline import instruction_activity
from simt.spec import load_spec

SOURCE = Path(__file__).with_name("gemm.cu").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Kernel:
    """A kernel of gemm.cu: what a CTA computes, and how many of them an SM holds."""

    name: str
    rows: int = 128
    columns: int = 128
    threads: int = 256
    ctas: int = 2
    shared: int = 0


FP32 = Kernel("fp32")
FP32_TALL = Kernel("fp32_tall", rows=256, ctas=1)
FP16 = Kernel("fp16", columns=256)
TENSOR = Kernel("tensor")
WGMMA = Kernel("wgmma", columns=256, threads=384, ctas=1, shared=4 * 2 * 64 * (128 + 256))


def fp32(name: str) -> Kernel:
    """The FP32 kernel for a GPU."""
    return FP32_TALL if load_spec(name).sm.units.fp32.initiation_interval == 1 else FP32


def tensor(name: str) -> Kernel:
    """The kernel for a GPU's tensor cores."""
    return WGMMA if name == "h100" else TENSOR


@dataclass(frozen=True)
class Product:
    """A simulated product in the middle half of its time, when every SM multiplies, as throughout a long one.

    joules: by component. multiply_adds, seconds: in that time. rate: multiply-adds per cycle and SM.
    uncertainty: relative standard deviation of the energy. error: the largest, relative to the largest value.
    """

    joules: dict[str, float]
    seconds: float
    multiply_adds: float
    rate: float
    uncertainty: float
    error: float

    @property
    def watts(self) -> float:
        return sum(self.joules.values()) / self.seconds

    @property
    def picojoules(self) -> float:
        """Per multiply-add."""
        return 1e12 * sum(self.joules.values()) / self.multiply_adds


def product(name: str, kernel: Kernel, depth: int, threads: int = 1, clock: float | None = None) -> Product:
    """Multiplies matrices of random numbers, large enough that each SM has as many CTAs as it holds.

    depth: their inner dimension. threads: of the host. clock: of the core in MHz; None for the GPU's.
    """
    gpu = simt.GPU(
        name,
        power=True,
        timeline=500,
        threads=threads,
        clock=clock,
        set={"launch.kernel_latency": 0, "launch.overhead": 0},
    )
    sms = gpu.spec.sm.count
    down, across = _grid(sms * kernel.ctas)
    m, n, k = down * kernel.rows, across * kernel.columns, depth
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((k, width), np.float32) for width in (m, n))
    if kernel not in (FP32, FP32_TALL):
        a, b = a.astype(np.float16), b.astype(np.float16)
    c = gpu.zeros((m, n), np.float16 if kernel == FP16 else np.float32)
    given = (_tiled(a, 128), _tiled(b, 256)) if kernel == WGMMA else (a, b)
    module = gpu.compile(f"{_multiply()}\n{SOURCE}", name="gemm.cu")
    launcher = getattr(module, kernel.name)
    launcher[(across, down), kernel.threads, kernel.shared](*map(gpu.array, given), c, m, n, k)
    expected = a.astype(np.float32).T @ b.astype(np.float32)
    energy = gpu.result().energy.launches[0]
    found = power_over_time(energy)
    assert found is not None
    middle = (found.start >= found.end[-1] / 4) & (found.end <= found.end[-1] * 3 / 4)
    multiply_adds = float(_multiply_adds(energy)[middle].sum())
    return Product(
        joules={name: float(row[middle].sum()) for name, row in found.joules.items()},
        seconds=float(found.seconds[middle].sum()),
        multiply_adds=multiply_adds,
        rate=multiply_adds / (sms * int((found.end - found.start)[middle].sum())),
        uncertainty=energy.deviation / energy.joules,
        error=float(abs(c.numpy() - expected).max() / abs(expected).max()),
    )


def _grid(ctas: int) -> tuple[int, int]:
    """The most square one of this many CTAs."""
    down = max(d for d in range(1, ctas + 1) if ctas % d == 0 and d * d <= ctas)
    return down, ctas // down


def _tiled(x: np.ndarray, width: int) -> np.ndarray:
    """Tiles of 64 rows in the order in which wgmma takes them: see gemm.cu."""
    k, m = x.shape
    tiles = x.reshape(k // 64, 4, 2, 8, m // width, width // 8, 8)
    return np.ascontiguousarray(tiles.transpose(4, 0, 1, 5, 2, 6, 3))


def _multiply_adds(energy: simt.power.LaunchEnergy) -> np.ndarray:
    """Of each interval of the timeline."""
    rows = energy.events.instructions
    each = rows.multiply_adds.copy()
    for key, per_lane in (("instructions.fp32_fma", 1), ("instructions.fp16_fma", 2)):
        each[rows.rows.get(key, [])] += per_lane * rows.threads[rows.rows.get(key, [])]
    uses = instruction_activity(energy.launch)
    assert uses is not None
    return uses.issued @ (each / np.maximum(1, rows.issued))


def _multiply() -> str:
    """MULTIPLY(d, a, b): a product of 64 x 256 numbers by a warpgroup, which inline PTX has no short form
    of."""
    vector = ", ".join(f"%{i}" for i in range(128))
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(128))
    text = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{vector}}}, %128, %129, p, 1, 1, 0, 0;"
    text = f"{{ .reg .pred p; setp.eq.u32 p, 0, 0; {text} }}"
    return f'#define MULTIPLY(d, a, b) asm volatile("{text}" : {outputs} : "l"(a), "l"(b))'
