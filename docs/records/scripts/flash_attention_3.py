"""FlashAttention-3 forward on an H100 at published shapes, each from four short launches.

    python docs/records/scripts/flash_attention_3.py FOLDER [paper|tritonbench ...]

FOLDER has `fa-HEADSIZE-CAUSAL` (causal: 0 or 1), made of flash_attention_3.cu with Dao-AILab/flash-attention 0251105a and
the headers of CUTLASS 7107b055:

    nvcc -arch=sm_90a -O3 -std=c++17 --use_fast_math -cudart shared -lcuda -DNDEBUG -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
      -DCUTLASS_ENABLE_GDC_FOR_SM90 --expt-relaxed-constexpr -Ihopper -Iinclude -DHD=128 -DCAUSAL=true flash_attention_3.cu

The kernel has one CTA on each SM, which works on one tile of queries after another: a tile takes `fixed` cycles, and
`block` for each block of keys. Both come from launches of one and two tiles on each SM with 4 and with 12 blocks of keys,
which all heads share, as those that run at a time do at the published shapes. A mask of a tile's last blocks is in
`fixed`. Without a mask tiles are dealt in turn, so that the busiest SM counts; with one the longest go first to whichever
is free, so that the mean does.
"""

import re
import subprocess
import sys
from pathlib import Path

SMS = 132
TILES = {64: (192, 192), 128: (128, 176), 256: (128, 80)}  # queries, keys
CAUSAL_TILES = {64: (192, 128), 128: (128, 128), 256: (128, 80)}
# Set: clock in MHz, and rows: head size, causal, batch, heads, tokens, microseconds or TFLOP/s that were measured.
# paper: Shah et al. 2024, figure 5, FP16, 16,384 tokens; the clock was fixed at 1,830 MHz (appendix C.1); half of the
# operations are counted with a mask. The code is that of May 2024, not ours.
# tritonbench: meta-pytorch/tritonbench, pull requests 1254 and 1267 (September 2026), `flash_v3` and FA3; BF16; the clock
# is not said. 1,980 MHz is the highest.
PAPER = {(64, 0): 497, (64, 1): 475, (128, 0): 649, (128, 1): 616, (256, 0): 756, (256, 1): 642}
WITHOUT_MASK = {1024: 541.291, 2048: 617.773, 4096: 628.363, 8192: 638.572}  # TFLOP/s
WITH_MASK = {1024: 141.63, 2048: 368.35, 4096: 1236.90, 8192: 4817.44}  # us


def operations(size: int, causal: int, batch: int, heads: int, tokens: int) -> float:
    return 4 * batch * heads * tokens**2 * size / (2 if causal else 1)


def rows(kind: str) -> list[tuple[tuple[int, int, int, int, int], float]]:
    """Shapes, and their times in microseconds."""
    if kind == "paper":
        shapes = [(size, causal, 1, 2048 // size, 16384) for size, causal in PAPER]
        return [(s, operations(*s) / PAPER[s[:2]] / 1e6) for s in shapes]
    plain = [(128, 0, 4, 48, tokens) for tokens in WITHOUT_MASK]
    found = [(s, operations(*s) / WITHOUT_MASK[s[4]] / 1e6) for s in plain]
    return found + [((128, 1, 4, 48, tokens), us) for tokens, us in WITH_MASK.items()]


def cycles(folder: Path, size: int, causal: int, tiles: int, blocks: int, mhz: int) -> int:
    """Of a launch with so many tiles on each SM, and so many blocks of keys for each."""
    queries, keys = (CAUSAL_TILES if causal else TILES)[size]
    rows_of_a_head = 2 * queries if size >= 128 and not causal else queries  # pairs of CTAs share keys
    heads = tiles * SMS * queries // rows_of_a_head
    program = [str(folder / f"fa-{size}-{causal}"), str(rows_of_a_head), str(blocks * keys), str(heads), "1"]
    command = [
        "simt",
        "exec",
        "--gpu",
        "h100",
        "--code",
        "sass",
        "--set",
        f"clock.core_mhz={mhz}",
        "--",
        *program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"([\d,]+) cycles", done.stdout + done.stderr)
    assert found, done.stdout + done.stderr
    return int(found[1].replace(",", ""))


def main() -> None:
    folder = Path(sys.argv[1])
    known: dict[tuple[int, ...], tuple[float, float, float]] = {}
    print(
        "set,head size,causal,batch,heads,tokens,measured us,simulated us,error,cycles a block,cycles a tile"
    )
    for kind in sys.argv[2:] or ["paper", "tritonbench"]:
        mhz = 1830 if kind == "paper" else 1980
        for (size, causal, batch, heads, tokens), measured in rows(kind):
            if (size, causal, mhz) not in known:
                one, two = (
                    [cycles(folder, size, causal, tiles, blocks, mhz) for blocks in (4, 12)]
                    for tiles in (1, 2)
                )
                block = (two[1] - one[1] - two[0] + one[0]) / 8
                fixed = two[0] - one[0] - 4 * block
                known[size, causal, mhz] = block, fixed, 2 * one[0] - two[0]
            block, fixed, start = known[size, causal, mhz]
            queries, keys = (CAUSAL_TILES if causal else TILES)[size]
            tiles = -(-tokens // queries)
            if causal:
                blocks = sum(-(-min(tokens, (i + 1) * queries) // keys) for i in range(tiles))
                whole = (tiles * fixed + blocks * block) * batch * heads / SMS
            else:
                whole = -(-tiles * batch * heads // SMS) * (fixed + -(-tokens // keys) * block)
            simulated = (start + whole) / mhz
            values = f"{measured:.1f},{simulated:.1f},{simulated / measured - 1:+.1%},{block:.0f},{fixed:.0f}"
            print(f"{kind},{size},{causal},{batch},{heads},{tokens},{values}", flush=True)


if __name__ == "__main__":
    main()
