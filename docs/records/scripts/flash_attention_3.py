"""FlashAttention-3 forward on an H100 at published shapes, each estimated from four short launches.

    python docs/records/scripts/flash_attention_3.py FOLDER [HEADSIZE-CAUSAL ...]

FOLDER has `fa-HEADSIZE-CAUSAL` (causal: 0 or 1), made of flash_attention_3.cu with `hopper` of
Dao-AILab/flash-attention 0251105a and `include` of CUTLASS 7107b055:

    nvcc -arch=sm_90a -O3 -std=c++17 --use_fast_math -cudart shared -lcuda -DNDEBUG
      -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90 --expt-relaxed-constexpr
      -Ihopper -Iinclude -DHD=128 -DCAUSAL=true flash_attention_3.cu -o fa-128-1

The kernel has one CTA on each SM, which works on one tile of queries after another: a tile takes `fixed`
cycles, and `block` for each block of keys. Both come from launches of one and two tiles on each SM with 4 and
with 12 blocks of keys, which all heads share, as those that run at a time do at the published shapes. The
mask of a tile's last blocks is in `fixed`. Without a mask tiles are dealt in turn, so that the busiest SM
counts; with one the longest go first to whichever SM is free, so that the mean does. Cycles are those at
1,830 MHz.
"""

import re
import subprocess
import sys
from pathlib import Path

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

Shape = tuple[int, int, int]  # batch, heads, tokens


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
    return found


def cycles(folder: Path, size: int, causal: int, tiles: int, blocks: int) -> int:
    """Of a launch with so many tiles on each SM, and so many blocks of keys for each."""
    queries, keys = TILES[size, causal]
    of_a_head = 2 if size >= 128 and not causal else 1  # tiles: pairs of CTAs share keys
    shape = [of_a_head * queries, blocks * keys, tiles * SMS // of_a_head, 1]
    program = [str(folder / f"fa-{size}-{causal}"), *map(str, shape)]
    command = [
        "simt",
        "exec",
        "--gpu",
        "h100",
        "--code",
        "sass",
        "--set",
        "clock.core_mhz=1830",
        "--",
        *program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"([\d,]+) cycles", done.stdout + done.stderr)
    if found is None:
        sys.exit(done.stdout + done.stderr)
    return int(found[1].replace(",", ""))


def whole(size: int, causal: int, shape: Shape, block: float, fixed: float) -> float:
    """Cycles of all tiles."""
    batch, heads, tokens = shape
    queries, keys = TILES[size, causal]
    tiles = -(-tokens // queries)
    if causal:
        blocks = sum(-(-min(tokens, (i + 1) * queries) // keys) for i in range(tiles))
        return (tiles * fixed + blocks * block) * batch * heads / SMS
    return -(-tiles * batch * heads // SMS) * (fixed + -(-tokens // keys) * block)


def main() -> None:
    folder = Path(sys.argv[1])
    print("source,head size,causal,batch,heads,tokens,measured us,simulated us,error,cycles a block,a tile")
    for name in sys.argv[2:] or [f"{size}-{causal}" for size, causal in TILES]:
        size, causal = map(int, name.split("-"))
        one, two = ([cycles(folder, size, causal, tiles, blocks) for blocks in (4, 12)] for tiles in (1, 2))
        block = (two[1] - one[1] - two[0] + one[0]) / 8
        fixed = two[0] - one[0] - 4 * block
        for source, mhz, shape, measured in rows(size, causal):
            simulated = (2 * one[0] - two[0] + whole(size, causal, shape, block, fixed)) / mhz
            where = ",".join(map(str, (source, size, causal, *shape)))
            error = simulated / measured - 1
            print(f"{where},{measured:.1f},{simulated:.1f},{error:+.1%},{block:.0f},{fixed:.0f}", flush=True)


if __name__ == "__main__":
    main()
