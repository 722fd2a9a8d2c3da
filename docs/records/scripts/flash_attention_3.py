"""FlashAttention-3 forward on an H100 at published shapes, each estimated from four short launches.

    python docs/records/scripts/flash_attention_3.py FOLDER [HEADSIZE-CAUSAL ...] [--limit W] [--results DIR]

FOLDER has `fa-HEADSIZE-CAUSAL` (causal: 0 or 1), made of flash_attention_3.cu with `hopper` of
Dao-AILab/flash-attention 0251105a and `include` of CUTLASS 7107b055:

    nvcc -arch=sm_90a -O3 -std=c++17 --use_fast_math -cudart shared -lcuda -DNDEBUG
      -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90 --expt-relaxed-constexpr
      -Ihopper -Iinclude -DHD=128 -DCAUSAL=true flash_attention_3.cu -o fa-128-1

The kernel has one CTA on each SM, which works on one tile of queries after another. What a tile takes, by its
number of blocks of keys, is half of what launches of two tiles on each SM take, with 4, 12 and 44 blocks of
keys, apart from their start: linear between these, and beyond. The start is what a launch of one tile with 12
blocks takes more than half of one with two. All heads share keys, as those that run at a time do at the
published shapes. Without a mask tiles are dealt in turn, so that the busiest SM counts; with one the
longest go first to whichever SM is free, so that the mean does. Cycles are those at 1,830 MHz. Events are
added up in the same way, which gives the clock that the board's power limit leaves (`simt.power.AnyClock`).
DIR keeps the Results of the short launches, and those in it are not simulated again.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from simt.power import AnyClock, highest_clock, load_energies
from simt.result import Result

SMS = 132
TILES = {(64, 0): (192, 192), (128, 0): (128, 176), (256, 0): (128, 80)}  # queries, keys
TILES |= {(64, 1): (192, 128), (128, 1): (128, 128), (256, 1): (128, 80)}

# Shah et al. 2024, figure 5: TFLOP/s in FP16 for 16,384 tokens, by head size and mask; the clock was fixed at
# 1,830 MHz (appendix C.1). The code is that of May 2024, not this one.
PAPER = {(64, 0): 497, (64, 1): 475, (128, 0): 649, (128, 1): 616, (256, 0): 756, (256, 1): 642}
# meta-pytorch/tritonbench, pull requests 1254 (TFLOP/s) and 1267 (us), September 2026: batch 4, 48 heads of
# 128, BF16, by tokens. The clock is not said; 1,980 MHz is the highest.
WITHOUT_MASK = {1024: 541.291, 2048: 617.773, 4096: 628.363, 8192: 638.572}
WITH_MASK = {1024: 141.63, 2048: 368.35, 4096: 1236.90, 8192: 4817.44}

# waynehacking8/blackwell-tensorcore-kernels c289bded, results/reference/fa3.txt: TFLOP/s in FP16 for 8,192
# tokens, code of 2026, a power limit of 700 W. The clock is not said.
REFERENCE = {(128, 0): 756.9, (128, 1): 738.3}
SIMULATED_MHZ = 1830.0
BLOCKS = (4, 12, 44)  # of keys, of the short launches

Shape = tuple[int, int, int]  # batch, heads, tokens
Counts = dict[str, float]  # events by the energies' keys, and CYCLES
CYCLES = "cycles"


def tflop(size: int, causal: int, shape: Shape) -> float:
    """With a mask half of the operations count."""
    batch, heads, tokens = shape
    return 4 * batch * heads * tokens**2 * size / (2 if causal else 1) / 1e12


def rows(size: int, causal: int) -> list[tuple[str, int, Shape, float]]:
    """Source, highest clock in MHz, shape, and microseconds that were measured."""
    shape = (1, 2048 // size, 16384)
    found = [("paper", 1830, shape, tflop(size, causal, shape) / PAPER[size, causal] * 1e6)]
    if size == 128:
        for tokens, value in (WITH_MASK if causal else WITHOUT_MASK).items():
            shape = (4, 48, tokens)
            us = value if causal else tflop(size, causal, shape) / value * 1e6
            found.append(("tritonbench", 1980, shape, us))
        shape = (2, 16, 8192)
        found.append(
            ("tensorcore-kernels", 1980, shape, tflop(size, causal, shape) / REFERENCE[size, causal] * 1e6)
        )
    return found


def launch(folder: Path, results: Path, size: int, causal: int, tiles: int, blocks: int) -> Counts:
    """A launch with so many tiles on each SM, and so many blocks of keys for each."""
    queries, keys = TILES[size, causal]
    of_a_head = 2 if size >= 128 and not causal else 1  # tiles: pairs of CTAs share keys
    shape = [of_a_head * queries, blocks * keys, tiles * SMS // of_a_head, 1]
    program = [str(folder / f"fa-{size}-{causal}"), *map(str, shape)]
    output = results / f"{size}-{causal}-{tiles}-{blocks}"
    if not output.exists():
        options = ["--gpu", "h100", "--code", "sass", "--power", "--set", f"clock.core_mhz={SIMULATED_MHZ:g}"]
        subprocess.run(["simt", "exec", *options, "-o", str(output), "--", *program], check=True)
    found = Result.load(output)
    return {**found.energy.launches[0].events.counts, CYCLES: found.launches[0].cycles}


def sums(*terms: tuple[float, Mapping[str, float]]) -> Counts:
    """Of so many times each."""
    keys = dict.fromkeys(key for _, counts in terms for key in counts)
    return {key: sum(n * counts.get(key, 0) for n, counts in terms) for key in keys}


def tile(points: Mapping[int, Counts], blocks: int) -> Counts:
    """Events of a tile of so many blocks. points: those of some numbers of blocks."""
    few, some, many = sorted(points)
    low, high = (few, some) if blocks < some else (some, many)
    share = (blocks - low) / (high - low)
    return sums((1 - share, points[low]), (share, points[high]))


def whole(
    size: int, causal: int, shape: Shape, start: Counts, points: Mapping[int, Counts]
) -> tuple[Counts, float]:
    """Events of all tiles, and the cycles of the launch.

    start: of a launch apart from its tiles. points: of a tile, by its blocks.
    """
    batch, heads, tokens = shape
    queries, keys = TILES[size, causal]
    tiles = -(-tokens // queries)
    each = batch * heads / SMS  # heads on an SM
    seen = [min(tokens, (i + 1) * queries) if causal else tokens for i in range(tiles)]
    mean = sums(*((each, tile(points, -(-keys_seen // keys))) for keys_seen in seen))
    busiest = 1.0 if causal else -(-tiles * each // 1) / (tiles * each)
    events = sums((1, start), (1, mean))
    cycles = start[CYCLES] + busiest * mean[CYCLES]
    longer = cycles / events.pop(CYCLES)
    return {key: n * (longer if key.startswith("power.") else 1) for key, n in events.items()}, cycles


def parts(folder: Path, results: Path, size: int, causal: int) -> tuple[Counts, dict[int, Counts]]:
    """`start` and `points` of `whole`."""
    two = {blocks: launch(folder, results, size, causal, 2, blocks) for blocks in BLOCKS}
    one = launch(folder, results, size, causal, 1, BLOCKS[1])
    start = sums((2, one), (-1, two[BLOCKS[1]]))
    return start, {blocks: sums((0.5, found), (-0.5, start)) for blocks, found in two.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", nargs="*", metavar="HEADSIZE-CAUSAL")
    parser.add_argument("--limit", type=float, default=700.0, help="power limit of the board in W")
    parser.add_argument("--results", type=Path, help="where Results of the short launches are kept")
    given = parser.parse_args()
    energies = load_energies("h100")
    print(
        "source,head size,causal,batch,heads,tokens,measured us,us at the highest clock,error,"
        f"W there,MHz at {given.limit:g} W,error,cycles a block"
    )
    with tempfile.TemporaryDirectory() as temporary:
        results = given.results or Path(temporary)
        for name in given.kernels or [f"{size}-{causal}" for size, causal in TILES]:
            size, causal = map(int, name.split("-"))
            start, points = parts(given.folder, results, size, causal)
            block = (points[BLOCKS[2]][CYCLES] - points[BLOCKS[1]][CYCLES]) / (BLOCKS[2] - BLOCKS[1])
            for source, mhz, shape, measured in rows(size, causal):
                events, cycles = whole(size, causal, shape, start, points)
                at = AnyClock(energies, events, cycles / SIMULATED_MHZ / 1e6, SIMULATED_MHZ)
                free, kept = cycles / mhz, highest_clock(at, float(mhz), given.limit)
                where = ",".join(map(str, (source, size, causal, *shape)))
                print(
                    f"{where},{measured:.1f},{free:.1f},{free / measured - 1:+.1%},{at.watts(mhz):.0f},"
                    f"{kept.core_mhz:.0f},{kept.seconds * 1e6 / measured - 1:+.1%},{block:.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
