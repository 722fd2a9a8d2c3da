"""Latency and rate of tcgen05.mma on a B200: simulated against SemiAnalysis's rows, all of them.

The kernel times products as the published benchmarks do: clock, products, commit, wait for the mbarrier,
clock. The latency is that of one product; the rate with a number of products in flight is their time divided
by the number, latency included. As machine code, the thread that issues is that of `elect.sync`, as there.

    python docs/records/scripts/tensor_products.py b200-tcgen05.csv --code sass
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simt

KINDS = {"BF16": "f16", "E4M3": "f8f6f4", "S8": "i8", "F4": "f8f6f4", "MXF8": "mxf8f6f4", "MXF4": "mxf4"}
AT_DEPTH = "cycles_at_depth_"
LATENCY_AIM, RATE_AIM = 6, 0.05  # cycles; of the published value


@dataclass(frozen=True)
class Product:
    """A product's shape. operands: SS, both in shared memory, or TS, A in tensor memory."""

    format: str
    operands: str
    ctas: int
    m: int
    n: int

    @classmethod
    def of(cls, row: dict[str, str]) -> Product:
        return cls(row["format"], row["operands"], int(row["ctas"]), int(row["m"]), int(row["n"]))

    @property
    def descriptor(self) -> int:
        """The instruction descriptor."""
        if self.format.startswith("MX"):
            types = 0 if self.format == "MXF8" else 1 << 7 | 1 << 10
            return types | self.n >> 3 << 17 | 1 << 23 | self.m >> 7 << 27
        code = {"BF16": 1, "E4M3": 0, "S8": 1, "F4": 5}[self.format]
        result = 2 if self.format == "S8" else 1
        return result << 4 | code << 7 | code << 10 | self.n >> 3 << 17 | self.m >> 4 << 24


def entry(product: Product, depth: int, elected: bool) -> str:
    """The kernel `k{depth}`. elected: the thread that issues is that of `elect.sync`, for which ptxas makes
    no loop over lanes.
    """
    ctas = product.ctas
    first = "add.u32 %r2, %r2, %r0; setp.ne.u32 %q, %r2, 0; @%q bra END;"
    if elected:
        first = "setp.ne.u32 %q, %r2, 0; @%q bra END; elect.sync %r3|%q, 0xffffffff; @!%q bra END;"
    a = "[%t]" if product.operands == "TS" else "%v"
    scales = ", [%t], [%t]" if product.format.startswith("MX") else ""
    block = ".block_scale" if scales else ""
    instruction = f"tcgen05.mma.cta_group::{ctas}.kind::{KINDS[product.format]}{block}"
    mma = f"{instruction} [%t], {a}, %v, %r1{scales}, %q;\n"
    multicast, mask = (".multicast::cluster", ", %h") if ctas == 2 else ("", "")
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if ctas == 2 else "bar.sync 0;"
    return f"""
.visible .entry k{depth}(.param .b64 out) {{
.reg .b32 %r<8>, %t, %m; .reg .b16 %h; .reg .b64 %v, %o, %c<2>; .reg .pred %p, %q;
mov.u32 %r0, %tid.x; mov.u32 %m, room; add.u32 %m, %m, 32768; setp.eq.u32 %p, %r0, 0;
@%p mbarrier.init.shared.b64 [%m], 1;
mov.u64 %v, room; shr.u64 %v, %v, 4; or.b64 %v, %v, {1 << 46 | 8 << 16 | 16 << 32};
tcgen05.alloc.cta_group::{ctas}.sync.aligned.shared::cta.b32 [%m+8], 512;
{sync}
ld.shared.b32 %t, [%m+8]; mov.b32 %r1, {product.descriptor};
mov.u32 %r2, %ctaid.x; {first}
setp.ne.u32 %q, 0, 0;
mov.b16 %h, 3; mov.u64 %c0, %clock64;
{mma * depth}
tcgen05.commit.cta_group::{ctas}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [%m]{mask};
WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%m], 0; @!%p bra WAIT;
mov.u64 %c1, %clock64;
sub.u64 %c1, %c1, %c0; ld.param.b64 %o, [out]; st.global.b64 [%o], %c1;
END: {sync}
tcgen05.dealloc.cta_group::{ctas}.sync.aligned.b32 %t, 512;
ret; }}
"""


def cycles(gpu: simt.GPU, product: Product, depths: Sequence[int], elected: bool = False) -> list[int]:
    """Of each number of products in flight, from the first issue to the end of the wait."""
    head = ".version 8.8\n.target sm_100a\n.address_size 64\n.shared .align 1024 .b8 room[32784];\n"
    module = gpu.load(head + "".join(entry(product, depth, elected) for depth in depths))
    out = np.zeros(1, np.uint64)
    found = []
    for depth in depths:
        module[f"k{depth}"][product.ctas, 32, 0, None, product.ctas](out)
        found.append(int(out[0]))
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--code", choices=("ptx", "sass"), default="ptx")
    parser.add_argument("--latencies", action="store_true", help="no rates, which take most of the time")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    gpu = simt.GPU("b200", set={"sm.count": 2}, code=given.code)
    out, latencies, rates = [], [], []
    for row in rows_of(given.rows):
        product = Product.of(row)
        published = {int(k.removeprefix(AT_DEPTH)): float(v) for k, v in row.items() if v and AT_DEPTH in k}
        if given.latencies:
            published = {}
        found = cycles(gpu, product, [1, *published], elected=given.code == "sass")
        latencies.append(found[0] - float(row["latency_cycles"]))
        ratios = {depth: c / depth / published[depth] for depth, c in zip(published, found[1:], strict=True)}
        rates += [ratio - 1 for ratio in ratios.values()]
        name = f"{product.format} {product.operands} {product.ctas} CTA {product.m}x{product.n}"
        out.append({"product": name, "latency_off": latencies[-1], "rates": ratios})
        off = [f"{depth}: {ratio - 1:+.1%}" for depth, ratio in ratios.items() if abs(ratio - 1) > RATE_AIM]
        far = [", ".join(off)] if off else []
        if far or abs(latencies[-1]) > LATENCY_AIM:
            print(f"{name}: latency {latencies[-1]:+.0f} cycles", *far, sep="; rates ", flush=True)
        if given.json:
            given.json.write_text(json.dumps(out, indent=1) + "\n")
    near = sum(abs(x) <= LATENCY_AIM for x in latencies)
    print(
        f"{given.code}: latencies within {LATENCY_AIM} cycles: {near} of {len(latencies)}, at most "
        f"{max(map(abs, latencies)):.0f}, mean {np.mean(latencies):+.1f}"
    )
    if rates:
        close = sum(abs(x) <= RATE_AIM for x in rates)
        print(
            f"{given.code}: rates within {RATE_AIM:.0%}: {close} of {len(rates)}, at most "
            f"{max(map(abs, rates)):.1%}, mean size {np.mean(np.abs(rates)):.1%}"
        )


if __name__ == "__main__":
    main()
