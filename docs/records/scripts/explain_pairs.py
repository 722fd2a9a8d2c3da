"""Whether `simt explain` names the cause that a known step removes, and predicts what the step gains.

Each pair is a kernel before and after one step. `explain` sees the kernel before it only. A pair is named if the
cause that the step removes is among the first two, and predicted if the best of these causes' simulated gain is
within 20 % of the time of the kernel before, divided by that of the kernel after it.

    python docs/records/scripts/explain_pairs.py --gpu gtx1650 --json explain-pairs.json
    python docs/records/scripts/explain_pairs.py --held-out 4802 --json explain-held-out-2.json

`--held-out SEED` takes the steps that were drawn for other GPUs before any of them had run there. The first draw, 48,
has since been used to find causes, so that only 4802 is blind. Parts of these GPUs stand for the whole, so that the same sizes fill them: SMs and memory channels divided by the same number.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simt
from simt.explain import explain
from simt.spec import Spec, load_spec

HELD_OUT = {48: {"a100": 8, "qv100": 8, "h100": 8}, 4802: {"rtx3060": 2, "titanv": 8, "rtx4090": 8}}
"""By seed: GPUs, and by what their SMs and memory channels are divided."""
DRAWN = 12
"""Steps for each."""
SOURCE = Path(__file__).with_name("explain_pairs.cu")
Arguments = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class Launch:
    """A kernel with its configuration. arguments: makes them anew."""

    kernel: str
    grid: Any
    block: Any
    arguments: Arguments
    shared: int = 0
    times: int = 1

    def __call__(self, gpu: simt.GPU) -> None:
        kernel = gpu.load(SOURCE)[self.kernel]
        arguments = [gpu.array(x) if isinstance(x, np.ndarray) else x for x in self.arguments()]
        for _ in range(self.times):
            kernel[self.grid, self.block, self.shared](*arguments)


@dataclass(frozen=True)
class Pair:
    """step: what is changed. causes: those that the step removes, by name."""

    step: str
    causes: tuple[str, ...]
    before: Launch
    after: Launch


def zeros(n: int, dtype: str = "f4") -> np.ndarray:
    return np.zeros(n, dtype)


def ones(n: int, dtype: str = "f4") -> np.ndarray:
    return np.ones(n, dtype)


def permutation(n: int) -> np.ndarray:
    return np.random.default_rng(1).permutation(n).astype("i4")


def pairs() -> list[Pair]:
    n = 512
    transpose = lambda name: Launch(name, (16, 16), (32, 8), lambda: (zeros(n * n), ones(n * n), n))  # noqa: E731
    many = 1 << 18
    reduce = lambda k, ctas: Launch(  # noqa: E731
        f"reduce{k}", ctas, 256, lambda: (ones(many, "i4"), zeros(many // 256, "i4"), many), 1024
    )
    product = lambda name, grid, block, m=128: Launch(  # noqa: E731
        name, grid, block, lambda: (ones(m * m), ones(m * m), zeros(m * m), m)
    )
    k = 1 << 16
    vector = lambda name, *more, size=k: Launch(  # noqa: E731
        name, size // 256, 256, lambda: (ones(size), zeros(size), *more)
    )
    inplace = lambda name, *more: Launch(name, k // 256, 256, lambda: (ones(k), *more))  # noqa: E731
    strided = lambda name: Launch(name, k // 256, 256, lambda: (zeros(k), ones(32 * k), 32, 32 * k))  # noqa: E731
    parts = lambda name: Launch(name, 56, 256, lambda: (ones(56 * 256 * 32), zeros(56 * 256), 32))  # noqa: E731
    columns = lambda name: Launch(name, 56, 256, lambda: (zeros(56 * 256), 64))  # noqa: E731
    bytes_of = lambda: np.random.default_rng(0).integers(0, 256, many).astype("u1")  # noqa: E731
    histogram = lambda name: Launch(name, 56, 256, lambda: (bytes_of(), zeros(256, "u4"), many))  # noqa: E731
    summing = lambda name: Launch(name, k // 256, 256, lambda: (ones(k, "i4"), zeros(1, "i4"), k))  # noqa: E731
    chain = lambda shared: Launch(  # noqa: E731
        "gather", 14 * 8, 128, lambda: (permutation(14 * 1024), ones(14 * 1024), zeros(14 * 1024), 24), shared
    )
    flow = lambda name: Launch(  # noqa: E731
        name, 28, 128, lambda: (ones(28 * 128 * 32), zeros(28 * 128), 32, 28 * 128)
    )
    all_ = 14 * 1024
    passes = lambda name: Launch(name, 56, 256, lambda: (ones(all_ * 64), zeros(all_), 64, all_))  # noqa: E731
    dtype = lambda name, t: Launch(name, 4096, 256, lambda: (ones(4096 * 256, t), zeros(4096 * 256, t)))  # noqa: E731
    barrier = lambda name: Launch(name, 14, 1024, lambda: (zeros(14 * 1024), 32))  # noqa: E731
    integer = lambda name: Launch(name, k // 256, 256, lambda: (ones(k, "u4"), zeros(k, "u4"), 3, 64))  # noqa: E731
    coalescing, conflicts = ("uncoalesced accesses",), ("bank conflicts",)
    return [
        Pair("transpose: through shared memory", coalescing, transpose("transpose_naive"), transpose("transpose_padded")),
        Pair("transpose: padding", conflicts, transpose("transpose_tiled"), transpose("transpose_padded")),
        Pair("reduction 1: no divergence, no modulo", ("divergence", "issue slots", "divisions and special functions"), reduce(0, 1024), reduce(1, 1024)),
        Pair("reduction 2: sequential addresses", conflicts, reduce(1, 1024), reduce(2, 1024)),
        Pair("reduction 3: addition during the load", ("start of CTAs", "barriers", "issue slots", "few warps"), reduce(2, 1024), reduce(3, 512)),
        Pair("reduction 4: last warp unrolled", ("barriers", "issue slots"), reduce(3, 512), reduce(4, 512)),
        Pair("reduction 5: all unrolled", ("issue slots", "arithmetic latency"), reduce(4, 512), reduce(5, 512)),
        Pair("reduction 6: several elements per thread", ("start of CTAs", "barriers", "few warps"), reduce(5, 512), reduce(6, 56)),
        Pair("product: neighbouring columns", coalescing, product("product_rows", (4, 16), (32, 8)), product("product_columns", (4, 16), (32, 8))),
        Pair("product: tiles in shared memory", ("memory behind the L1", "L1 throughput"), product("product_columns", (8, 8), (16, 16)), product("product_tiled", (8, 8), (16, 16))),
        Pair("product: results in registers", ("shared memory",), product("product_tiled", (16, 16), (16, 16), 256), product("product_registers", (16, 4), (16, 16), 256)),
        Pair("stride of 32 elements removed", coalescing, strided("strided"), strided("contiguous")),
        Pair("structures to arrays", coalescing, Launch("structures", 256, 256, lambda: (zeros(8 * k), k)), Launch("arrays", 256, 256, lambda: (zeros(8 * k), k))),
        Pair("parts of threads interleaved", coalescing, parts("blocked_parts"), parts("interleaved_parts")),
        Pair("branch by warp in place of lane", ("divergence",), inplace("diverging_lanes", 128), inplace("diverging_warps", 128)),
        Pair("work in full warps", ("divergence",), inplace("sparse_lanes", 256), inplace("dense_lanes", 256)),
        Pair("columns in shared memory: padding", conflicts, columns("columns_in_shared"), columns("padded_columns_in_shared")),
        Pair("four independent chains", ("arithmetic latency",), Launch("chase_one", 14, 128, lambda: (ones(1792), zeros(1792), 4096)), Launch("chase_four", 14, 128, lambda: (ones(1792), zeros(1792), 4096))),
        Pair("FP32 in place of FP64", ("FP64 rate",), vector("in_double", 64), vector("in_single", 64)),
        Pair("products in place of roots", ("divisions and special functions", "special-function rate"), vector("by_roots", 64), vector("by_products", 64)),
        Pair("histogram of each CTA", ("atomics",), histogram("histogram_global"), histogram("histogram_shared")),
        Pair("sum within the warp first", ("atomics of a warp to one word",), summing("sum_atomics"), summing("sum_warps")),
        Pair("less shared memory per CTA", ("occupancy",), chain(32768), chain(0)),
        Pair("loads four rounds ahead", ("memory latency", "memory behind the L1"), flow("load_then_use"), flow("load_ahead")),
        Pair("one pass over the data", ("device memory", "DRAM bandwidth"), passes("two_passes"), passes("one_pass")),
        Pair("bytes in place of floats", ("DRAM bandwidth", "device memory"), dtype("bytes_as_floats", "f4"), dtype("bytes", "u1")),
        Pair("barriers of the CTA removed", ("barriers",), barrier("many_barriers"), barrier("no_barriers")),
        Pair("larger CTAs", ("start of CTAs", "small CTAs"), Launch("small", k // 32, 32, lambda: (zeros(k),)), Launch("small", k // 256, 256, lambda: (zeros(k),))),
        Pair("loop over the work", ("start of CTAs",), Launch("small", k // 64, 64, lambda: (zeros(k),)), Launch("looping", 14 * 16, 64, lambda: (zeros(k), k))),
        Pair("vectors of four words", ("issue slots", "memory latency"), Launch("copy_words", 4 * k // 256, 256, lambda: (zeros(4 * k), ones(4 * k))), Launch("copy_vectors", k // 256, 256, lambda: (zeros(4 * k), ones(4 * k)))),
        Pair("shifts in place of divisions", ("divisions and special functions", "issue slots", "arithmetic rate"), integer("divisions"), integer("shifts")),
    ]  # fmt: skip


def held_out(seed: int) -> list[tuple[str, Pair]]:
    """The steps drawn for other GPUs."""
    every, draw = pairs(), random.Random(seed)
    return [(gpu, every[i]) for gpu in HELD_OUT[seed] for i in sorted(draw.sample(range(len(every)), DRAWN))]


def part_of(gpu: str) -> Spec:
    """The GPU, or a part of it."""
    whole = load_spec(gpu)
    part = next((parts[gpu] for parts in HELD_OUT.values() if gpu in parts), 1)
    sms, channels = whole.sm.count // part, whole.address_map.channels // part
    return load_spec(gpu, {"sm.count": sms, "address_map.channels": channels}) if part > 1 else whole


def tried(pair: Pair, name: str) -> dict[str, Any]:
    """One pair: what was named, what was predicted, what the step gained."""
    gpu = part_of(name)
    found = explain(pair.before, gpu)
    device = simt.GPU(gpu)
    pair.after(device)
    before, after = found.launch.cycles, device.result().launches[0].cycles
    first = [g.cause.name for g in found.gains[:2]]
    own = [g for g in found.gains if g.cause.name in pair.causes]
    best = max(own, key=lambda g: g.speedup, default=None)
    gain = before / after
    return {
        "gpu": name,
        "step": pair.step,
        "causes": list(pair.causes),
        "first": first,
        "named": any(name in pair.causes for name in first),
        "before": before,
        "after": after,
        "gain": gain,
        "predicted": None if best is None else best.speedup,
        "close": best is not None and abs(best.speedup / gain - 1) <= 0.2,
        "gains": {g.cause.name: round(g.speedup, 3) for g in found.gains},
        "notes": list(found.notes),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gpu", default="gtx1650")
    arguments.add_argument(
        "--held-out", type=int, choices=HELD_OUT, metavar="SEED", help="steps drawn for other GPUs"
    )
    arguments.add_argument("--only", help="steps that contain this text")
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    rows = []
    for gpu, pair in held_out(given.held_out) if given.held_out else [(given.gpu, pair) for pair in pairs()]:
        if given.only and given.only not in pair.step:
            continue
        row = tried(pair, gpu)
        rows.append(row)
        predicted = "-" if row["predicted"] is None else f"{row['predicted']:.2f}"
        print(
            f"{row['step']:42} {'named' if row['named'] else '-':6} {', '.join(row['first']):50} "
            f"predicted {predicted:>6} gained {row['gain']:6.2f} {'close' if row['close'] else ''}",
            flush=True,
        )
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1) + "\n")
    named, close = (sum(row[key] for row in rows) for key in ("named", "close"))
    large = [row for row in rows if row["gain"] >= 1.1]
    of_large = [sum(row[key] for row in large) for key in ("named", "close")]
    print(
        f"{len(rows)} pairs: {named} named among the first two, {close} predicted within 20 %; of the {len(large)} that "
        f"gain 10 % or more {of_large[0]} and {of_large[1]}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
