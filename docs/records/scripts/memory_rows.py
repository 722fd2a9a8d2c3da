"""Latency and bandwidth of cp.async and TMA loads on a B200: simulated against SemiAnalysis's rows.

All SMs run, as there. Latency: after a memset of the L2's size, a thread copies once and waits (cp.async), or
a CTA copies one box (TMA); the median of all threads, or CTAs, is compared. Bandwidth: stages are filled in
turn, each after the wait for its last copy; the published kernels read up to 2 GB, here the rate follows from
two shorter launches, between which no stage is filled first.

Translations of a process take one of two times, which the program does not determine. A process is slow if
the least of its latencies is SLOW_FROM cycles or more; such rows of cp.async are simulated a second time,
with SLOW_MISS.

Every second row of a kind, in the order of the file, is `held-out`, the first one is `tuning`.

    python docs/records/scripts/memory_rows.py b200-memory.csv --use tuning
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simt
from simt import _engine
from simt.run.l2 import MemoryRows
from simt.run.session import QueuedTransfer

WIDTH = 128  # floats of a box's row
FLOAT32 = 7  # of cuTensorMapEncodeTiled
SHARED = 232448  # bytes of a CTA that copies boxes, whatever it needs
SHORT, LONG = 6, 18  # rounds of all stages
FLUSH = 132644864  # bytes
APART = 1 << 30  # bytes, more than a translation is of
MOST_GROUPS = 8  # that CUDA's `__pipeline_wait_prior` lets pass, if it is asked for more
SLOW_FROM, SLOW_MISS = 700, 1150  # cycles
PTX = ".version 8.8\n.target sm_100a\n.address_size 64\n"


@dataclass(frozen=True)
class Row:
    """A published row. size: of a thread's copy, or of a box; measured: cycles or bytes a second; least: of
    the latencies whose median `measured` is.
    """

    kind: str
    ctas: int
    stages: int
    threads: int
    size: int
    measured: float
    least: float = 0

    @property
    def slow(self) -> bool:
        return self.kind == "ldgsts-latency" and self.least >= SLOW_FROM

    @property
    def name(self) -> str:
        threads = f", {self.threads} threads" if self.kind.startswith("ldgsts") else ""
        return f"{self.ctas} CTA{threads}, {self.stages} x {self.size} B"


def rows_of(path: Path, use: str) -> list[Row]:
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    seen: Counter[str] = Counter()
    rows = []
    for each in csv.DictReader(lines):
        kind, stages = each["kind"], int(each["stages"] or 1)
        seen[kind] += 1
        if (seen[kind] % 2 == 1) != (use == "tuning"):
            continue
        size = int(each["bytes"])
        if kind == "tma2d-throughput":
            size //= stages  # the file has the bytes in flight
        value = each["latency_cycles_median"] or each["dram_bytes_per_second"]
        rows.append(
            Row(
                kind,
                int(each["ctas_per_sm"]),
                stages,
                int(each["threads"] or 32),
                size,
                float(value),
                float(each["latency_min"] or 0),
            )
        )
    return rows


def copy_text(row: Row) -> str:
    """Kernels `latency` and `rate` of cp.async. 16 bytes are copied past the L1, as CUDA's pipelines do."""
    cache = "cg" if row.size == 16 else "ca"
    copy = f"cp.async.{cache}.shared.global [%s], [%a], {row.size}; cp.async.commit_group;"
    pending = min(row.stages - 1, MOST_GROUPS)
    prologue = f"""
.reg .b32 %t, %n, %s, %i, %r, %x; .reg .b64 %a, %o, %step, %c<2>; .reg .pred %p;
mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mad.lo.u32 %n, %n, {row.threads}, %t;
mul.lo.u32 %t, %t, {row.size}; mov.u32 %s, room; add.u32 %s, %s, %t;
ld.param.b64 %a, [from]; mul.wide.u32 %step, %n, {row.size}; add.u64 %a, %a, %step;"""
    return f"""{PTX}.shared .align 16 .b8 room[{row.stages * row.threads * row.size}];
.visible .entry latency(.param .b64 from, .param .b64 out) {{{prologue}
mov.u64 %c0, %clock64;
{copy} cp.async.wait_group 0; ld.volatile.shared.b32 %x, [%s];
mov.u64 %c1, %clock64;
sub.u64 %c1, %c1, %c0; ld.param.b64 %o, [out]; mul.wide.u32 %step, %n, 8; add.u64 %o, %o, %step;
st.global.b64 [%o], %c1; ret; }}
.visible .entry rate(.param .b64 from, .param .b32 rounds) {{{prologue}
ld.param.b32 %r, [rounds]; mov.u32 %i, 0; mov.u32 %n, %nctaid.x;
mul.wide.u32 %step, %n, {row.stages * row.threads * row.size};
NEXT: cp.async.wait_group {pending};
{copy}
add.u64 %a, %a, %step; add.u32 %i, %i, 1; setp.eq.u32 %p, %i, {row.stages};
@%p sub.u32 %s, %s, {(row.stages - 1) * row.threads * row.size};
@!%p add.u32 %s, %s, {row.threads * row.size}; @%p mov.u32 %i, 0;
sub.u32 %r, %r, 1; setp.ne.u32 %p, %r, 0; @%p bra NEXT;
cp.async.wait_group {pending}; ret; }}
"""


def box_text(row: Row) -> str:
    """Kernels `latency` and `rate` of a bulk tensor copy by the first thread of a warp."""
    height = row.size // (4 * WIDTH)
    bars = row.stages * row.size
    copy = f"""mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%b], {row.size};
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%d], [%m, {{0, %y}}], [%b];"""
    prologue = f"""
.reg .b32 %t, %n, %d, %b, %y, %i, %r, %phase, %step; .reg .b64 %m, %o, %w, %c<2>; .reg .pred %p, %q;
mov.u64 %m, map; cvta.param.u64 %m, %m; mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0;
mov.u32 %n, %ctaid.x; mul.lo.u32 %y, %n, {height}; mov.u32 %d, room; add.u32 %b, %d, {bars};
@!%q bra READY; mov.u32 %i, 0;
INIT: mbarrier.init.shared::cta.b64 [%b], 1; add.u32 %b, %b, 8; add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, {row.stages}; @%p bra INIT;
READY: add.u32 %b, %d, {bars}; bar.sync 0; fence.mbarrier_init.release.cluster; bar.sync 0;"""
    wait = "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%b], %phase; @!%p bra"
    advance = f"""add.u32 %i, %i, 1; setp.eq.u32 %p, %i, {row.stages}; @%p xor.b32 %phase, %phase, 1;
@%p mov.u32 %i, 0; mad.lo.u32 %d, %i, {row.size}, %r; mad.lo.u32 %b, %i, 8, %r; add.u32 %b, %b, {bars};"""
    return f"""{PTX}.extern .shared .align 128 .b8 room[];
.visible .entry latency(.param .align 64 .b8 map[128], .param .b64 out) {{{prologue}
mov.u32 %phase, 0; @!%q bra WAIT;
mov.u64 %c0, %clock64;
{copy}
WAIT: {wait} WAIT;
@!%q bra END; mov.u64 %c1, %clock64;
sub.u64 %c1, %c1, %c0; ld.param.b64 %o, [out]; mul.wide.u32 %w, %n, 8; add.u64 %o, %o, %w;
st.global.b64 [%o], %c1;
END: ret; }}
.visible .entry rate(.param .align 64 .b8 map[128], .param .b32 rounds) {{{prologue}
mov.u32 %step, %nctaid.x; mul.lo.u32 %step, %step, {height}; mov.u32 %r, %d; mov.u32 %i, 0; mov.u32 %phase, 0;
ld.param.b32 %n, [rounds];
FILL: @!%q bra FILLED;
{copy}
FILLED: add.u32 %y, %y, %step; {advance}
sub.u32 %n, %n, 1; setp.ne.u32 %p, %i, 0; @%p bra FILL;
mov.u32 %phase, 0;
NEXT: {wait} NEXT;
@!%q bra ISSUED;
{copy}
ISSUED: add.u32 %y, %y, %step; {advance}
sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra NEXT;
mov.u32 %t, 0;
DRAIN: {wait} DRAIN;
{advance} add.u32 %t, %t, 1; setp.ne.u32 %p, %t, {row.stages}; @%p bra DRAIN;
ret; }}
"""


def tensor_map(address: int, size: int, height: int) -> np.void:
    return np.void(
        _engine.functional.encode_tensor_map(
            FLOAT32, address, [WIDTH, size // (4 * WIDTH)], [4 * WIDTH], [WIDTH, height], [1, 1]
        )
    )


def simulated(row: Row, miss: int | None = None) -> float:
    """Cycles or bytes a second, as the row has. miss: cycles of a translation, if not the specification's."""
    if row.kind.endswith("latency"):
        _, times = launched(row, 1, miss)
        return float(np.sort(times)[len(times) // 2])
    # Each on a GPU of its own: the TLBs know nothing.
    (short, of_round), (long, _) = (launched(row, rounds * row.stages) for rounds in (SHORT, LONG))
    return (LONG - SHORT) * row.stages * int(of_round) / (long - short)


def launched(row: Row, rounds: int, miss: int | None = None) -> tuple[float, Any]:
    """Seconds of a launch, and the cycles of each copy, or the bytes of a round."""
    boxes, latency = row.kind.startswith("tma"), row.kind.endswith("latency")
    changed = {} if miss is None else {"tlb.miss_latency": miss}
    gpu = simt.GPU("b200", set={"launch.cold_caches": not latency, **changed})
    ctas = gpu.spec.sm.count * row.ctas
    of_round = ctas * row.size * (1 if boxes else row.threads)
    # cp.async steps over as many bytes as all of its stages take.
    held = gpu.empty(rounds * (1 if boxes else row.stages) * of_round, np.uint8, unbacked=True)
    module = gpu.load(box_text(row) if boxes else copy_text(row))
    given = tensor_map(held.address, held.nbytes, row.size // (4 * WIDTH)) if boxes else held
    grid = (ctas, row.threads, SHARED if boxes else 0)
    if not latency:
        module["rate"][grid](given, rounds)
        return gpu.launches[0].seconds, of_round
    out = gpu.zeros(ctas * (1 if boxes else row.threads), np.uint64)
    # There, freeing this buffer also empties the TLBs; here they know only what is near it.
    _apart, flush = (gpu.empty(size, np.uint8, unbacked=True) for size in (APART, FLUSH))
    gpu.transfer(QueuedTransfer(touched=[MemoryRows(flush.address, FLUSH, use="written")]))
    module["latency"][grid](given, out)
    return gpu.launches[0].seconds, out.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--use", choices=("tuning", "held-out"), default="tuning")
    parser.add_argument("--kind", help="only rows of this kind")
    parser.add_argument("--every", type=int, default=1, help="only every so many rows of a kind")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows_of(given.rows, given.use):
        if given.kind in (None, row.kind):
            kinds[row.kind].append(row)
    out = []
    for kind, rows in kinds.items():
        errors, known = [], []
        for row in rows[:: given.every]:
            value = simulated(row)
            errors.append(value / row.measured - 1)
            known.append(simulated(row, SLOW_MISS) / row.measured - 1 if row.slow else errors[-1])
            out.append({"kind": kind, "row": row.name, "measured": row.measured, "simulated": value})
            print(
                f"{kind:18} {row.name:34} {row.measured:14.5g} {value:14.5g} {errors[-1]:+7.1%}", flush=True
            )
            if given.json:
                given.json.write_text(json.dumps(out, indent=1) + "\n")
        size, bias = np.mean(np.abs(errors)), np.mean(errors)
        print(f"{given.use}, {kind}: {len(errors)} rows, mean error {size:.1%}, bias {bias:+.1%}", flush=True)
        slow = [error for row, error in zip(rows[:: given.every], known, strict=True) if row.slow]
        if slow:
            size, slowest = np.mean(np.abs(known)), np.mean(np.abs(slow))
            print(
                f"  {len(slow)} slow ones with {SLOW_MISS} cycles: {slowest:.1%}, all then: {size:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
