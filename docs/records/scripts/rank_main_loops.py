"""Which stages and depth of a tile are fastest on a B200: simulated against SemiAnalysis's CUTLASS rows.

A row is one CTA that multiplies one tile: bulk tensor copies fill stages, tcgen05.mma reads them (`text`). A
group is a type and a tile; its configurations are the depth (TILE_K) and the number of stages. Rows
in which CUTLASS chose the number are left out. Groups are shuffled by random.Random(4803): the first half is
`tuning`, the other `held-out`. The time of a row's K follows from those of two shorter ones, between which no
stage is filled first.

    python docs/records/scripts/rank_main_loops.py b200-cutlass-mainloop.csv --use tuning
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simt
from simt import _engine

SEED = 4803
SHORT, LONG = 4096, 12288
BYTES = {"BF16": 2, "FP8_E4M3": 1}
KIND = {"BF16": "f16", "FP8_E4M3": "f8f6f4"}
MAP_TYPE = {"BF16": 9, "FP8_E4M3": 0}  # of cuTensorMapEncodeTiled
SPAN = 128  # bytes: of the widest swizzle, and so of a box's rows
HALF_L2 = 63 * 10**6  # bytes
STEP = 32  # bytes of K that an instruction multiplies


@dataclass(frozen=True)
class Row:
    """A published row. depth: of a stage, in elements; seconds: measured, of the whole K."""

    type: str
    m: int
    n: int
    k: int
    depth: int
    stages: int
    seconds: float

    @property
    def is_cold(self) -> bool:
        """Whether A and B have more than a die's half of the L2, which then holds nothing from one of the 20
        runs to the next. Rows of the only such group (128 x 128, BF16) take longer by what memory takes
        beyond the L2.
        """
        return self.k * BYTES[self.type] * (self.m + self.n) > HALF_L2

    @property
    def group(self) -> str:
        return f"{self.type} {self.m}x{self.n}"


def rows_of(path: Path) -> list[Row]:
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    found = [
        Row(
            r["dtype"],
            *(int(r[name]) for name in ("TILE_M", "TILE_N", "K", "TILE_K", "STAGES")),
            float(r["time_ms"]) / 1e3,
        )
        for r in csv.DictReader(lines)
    ]
    return [row for row in found if row.stages]


def groups_of(rows: list[Row], use: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    names = sorted(groups)
    random.Random(SEED).shuffle(names)
    half = len(names) // 2
    return {name: groups[name] for name in (names[:half] if use == "tuning" else names[half:])}


def swizzle(row: Row) -> tuple[int, int]:
    """The swizzle's code of a descriptor, and the bytes of a row of a box."""
    span = min(SPAN, row.depth * BYTES[row.type])
    return {128: 2, 64: 4, 32: 6}[span], span


def text(row: Row) -> str:
    """A warp copies, another multiplies, as CUTLASS's warp-specialised main loop does."""
    code, span = swizzle(row)
    boxes = row.depth * BYTES[row.type] // span
    a_box, b_box = row.m * span, row.n * span
    stage = boxes * (a_box + b_box)
    elements = span // BYTES[row.type]
    template = 1 << 46 | 1 << 16 | (8 * span // 16) << 32 | code << 61
    type_code = 1 if row.type == "BF16" else 0
    instruction = 1 << 4 | type_code << 7 | type_code << 10 | row.n >> 3 << 17 | row.m >> 4 << 24
    copies = "".join(
        f"add.u32 %d, %at, {offset}; add.u32 %c, %k, {box * elements};\n"
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[%d], [%{name}, {{%c, 0}}], [%full];\n"
        for box in range(boxes)
        for name, offset in (("ma", box * a_box), ("mb", boxes * a_box + box * b_box))
    )
    products = "".join(
        f"add.u64 %va, %base, {(box * a_box + step) >> 4};\n"
        f"add.u64 %vb, %base, {(boxes * a_box + box * b_box + step) >> 4};\n"
        f"tcgen05.mma.cta_group::1.kind::{KIND[row.type]} [%t], %va, %vb, %i, %q;\n"
        for box in range(boxes)
        for step in range(0, span, STEP)
    )
    columns = max(32, 1 << (row.n - 1).bit_length())
    advance = f"""add.u32 %s, %s, 1; setp.eq.u32 %p, %s, {row.stages}; @%p xor.b32 %phase, %phase, 1;
selp.b32 %s, 0, %s, %p; mad.lo.u32 %full, %s, 8, %bars; add.u32 %empty, %full, {8 * row.stages};
mad.lo.u32 %at, %s, {stage}, %room; sub.u32 %left, %left, 1; setp.ne.u32 %p, %left, 0;"""
    return f""".version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 room[];
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .b32 rounds) {{
.reg .b32 %room, %bars, %full, %empty, %at, %s, %phase, %left, %k, %c, %d, %t, %i, %r, %done;
.reg .b64 %ma, %mb, %va, %vb, %base; .reg .pred %p, %q;
mov.u32 %room, room; add.u32 %bars, %room, {row.stages * stage}; add.u32 %done, %bars, {16 * row.stages};
mov.u64 %ma, a; cvta.param.u64 %ma, %ma; mov.u64 %mb, b; cvta.param.u64 %mb, %mb;
ld.param.b32 %left, [rounds]; mov.u32 %r, %tid.x; setp.ne.u32 %p, %r, 0; @%p bra READY;
mov.u32 %s, 0; mov.u32 %d, %bars;
INIT: mbarrier.init.shared.b64 [%d], 1; add.u32 %d, %d, 8; add.u32 %s, %s, 1;
setp.le.u32 %p, %s, {2 * row.stages}; @%p bra INIT;
READY: setp.lt.u32 %p, %r, 32; @!%p bra ALLOCATED;
add.u32 %d, %done, 8; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%d], {columns};
ALLOCATED: bar.sync 0; ld.shared.b32 %t, [%done+8];
mov.u32 %s, 0; mov.u32 %full, %bars; add.u32 %empty, %bars, {8 * row.stages};
mov.u32 %at, %room; mov.u32 %k, 0;
setp.eq.u32 %p, %r, 0; @%p bra COPY; setp.eq.u32 %p, %r, 32; @!%p bra END; bra MULTIPLY;
COPY: mov.u32 %phase, 1;
NEXT: mbarrier.try_wait.parity.shared.b64 %p, [%empty], %phase; @!%p bra NEXT;
mbarrier.arrive.expect_tx.shared.b64 _, [%full], {stage};
{copies}
add.u32 %k, %k, {row.depth};
{advance} @%p bra NEXT; bra END;
MULTIPLY: mov.u32 %phase, 0; mov.b32 %i, {instruction}; setp.ne.u32 %q, 0, 0;
TAKE: mbarrier.try_wait.parity.shared.b64 %p, [%full], %phase; @!%p bra TAKE;
tcgen05.fence::after_thread_sync;
cvt.u64.u32 %base, %at; shr.u64 %base, %base, 4; or.b64 %base, %base, {template};
{products}
setp.eq.u32 %q, 0, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%empty];
{advance} @%p bra TAKE;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%done];
LAST: mbarrier.try_wait.parity.shared.b64 %p, [%done], 0; @!%p bra LAST;
END: bar.sync 0; setp.lt.u32 %p, %r, 32; @!%p bra OUT;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, {columns};
OUT: ret; }}"""


def simulated(row: Row) -> float:
    """Seconds of the row's K, without the launch and the first stages."""
    return (seconds(row, LONG) - seconds(row, SHORT)) / (LONG - SHORT) * row.k


def seconds(row: Row, k: int) -> float:
    """Of one CTA, for a K of k."""
    gpu = simt.GPU("b200", set={"sm.count": 2, "launch.cold_caches": row.is_cold})
    _, span = swizzle(row)
    dtype = np.dtype(f"u{BYTES[row.type]}")
    maps, held = [], []  # the arrays live as long as the launch
    for lines in (row.m, row.n):
        array = gpu.array(np.zeros((lines, k), dtype))
        held.append(array)
        maps.append(
            np.void(
                _engine.functional.encode_tensor_map(
                    MAP_TYPE[row.type], array.address, [k, lines], [k * BYTES[row.type]],
                    [span // BYTES[row.type], lines], [1, 1], swizzle={32: 1, 64: 2, 128: 3}[span],
                )
            )
        )  # fmt: skip
    shared = row.stages * row.depth * BYTES[row.type] * (row.m + row.n) + 16 * row.stages + 32
    gpu.load(text(row))["k"][1, 64, shared](*maps, k // row.depth)
    return gpu.launches[0].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--use", choices=("tuning", "held-out"), default="tuning")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    out = []
    for name, rows in groups_of(rows_of(given.rows), given.use).items():
        times = [(simulated(row), row) for row in rows]
        order = [row for _, row in sorted(times, key=lambda each: each[0])]
        best = min(rows, key=lambda row: row.seconds)
        ratios = [t / row.seconds for t, row in times]
        out.append(
            {
                "group": name,
                "rows": len(rows),
                "best": [best.depth, best.stages],
                "first": [[row.depth, row.stages] for row in order[:3]],
                "held": best in order[:3],
                "loss": order[0].seconds / best.seconds - 1,
                "loss_of_three": min(row.seconds for row in order[:3]) / best.seconds - 1,
                "times": [
                    [row.depth, row.stages, ratio] for (_, row), ratio in zip(times, ratios, strict=True)
                ],
            }
        )
        last = out[-1]
        print(
            f"{name:18} {len(rows):3} rows, best {last['best']}, ranked first {last['first']}: "
            f"{'held' if last['held'] else '-':4} loss {last['loss']:.1%}, "
            f"of three {last['loss_of_three']:.1%}; "
            f"simulated / measured {min(ratios):.2f} to {max(ratios):.2f}",
            flush=True,
        )
        if given.json:
            given.json.write_text(json.dumps(out, indent=1) + "\n")
    print(
        f"{len(out)} groups: the three best hold the best in {sum(x['held'] for x in out)}; "
        f"mean loss of the first {np.mean([x['loss'] for x in out]):.1%}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
