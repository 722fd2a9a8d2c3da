"""A kernel that times products into tensor memory as SemiAnalysis's benchmarks do: clock, products, commit,
wait for the mbarrier, clock.
"""

from __future__ import annotations

import numpy as np

import simt

KINDS = {"BF16": "f16", "E4M3": "f8f6f4", "S8": "i8", "F4": "f8f6f4", "MXF8": "mxf8f6f4", "MXF4": "mxf4"}


def descriptor(format_: str, m: int, n: int) -> int:
    """The instruction descriptor of a published row's type."""
    if format_ in ("MXF8", "MXF4"):
        types = 0 if format_ == "MXF8" else 1 << 7 | 1 << 10
        return types | n >> 3 << 17 | 1 << 23 | m >> 7 << 27
    code = {"BF16": 1, "E4M3": 0, "S8": 1, "F4": 5}[format_]
    return (2 if format_ == "S8" else 1) << 4 | code << 7 | code << 10 | n >> 3 << 17 | m >> 4 << 24


def kernel(format_: str, operands: str, ctas: int, m: int, n: int, depth: int, elected: bool = False) -> str:
    """elected: the thread that issues is that of `elect.sync`, for which ptxas makes no loop over lanes."""
    first = "add.u32 %r2, %r2, %r0; setp.ne.u32 %q, %r2, 0; @%q bra END;"
    if elected:
        first = "setp.ne.u32 %q, %r2, 0; @%q bra END; elect.sync %r3|%q, 0xffffffff; @!%q bra END;"
    kind = KINDS[format_]
    a = "[%t]" if operands == "TS" else "%v"
    scales = ", [%t], [%t]" if format_.startswith("MX") else ""
    block = ".block_scale" if scales else ""
    mma = f"tcgen05.mma.cta_group::{ctas}.kind::{kind}{block} [%t], {a}, %v, %r1{scales}, %q;"
    multicast, mask = (".multicast::cluster", ", %h") if ctas == 2 else ("", "")
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if ctas == 2 else "bar.sync 0;"
    return f""".version 8.8
.target sm_100a
.address_size 64
.shared .align 1024 .b8 room[32784];
.visible .entry k(.param .b64 out) {{
.reg .b32 %r<8>, %t, %m; .reg .b16 %h; .reg .b64 %v, %o, %c<2>; .reg .pred %p, %q;
mov.u32 %r0, %tid.x; mov.u32 %m, room; add.u32 %m, %m, 32768; setp.eq.u32 %p, %r0, 0;
@%p mbarrier.init.shared.b64 [%m], 1;
mov.u64 %v, room; shr.u64 %v, %v, 4; or.b64 %v, %v, {1 << 46 | 8 << 16 | 16 << 32};
tcgen05.alloc.cta_group::{ctas}.sync.aligned.shared::cta.b32 [%m+8], 512;
{sync}
ld.shared.b32 %t, [%m+8]; mov.b32 %r1, {descriptor(format_, m, n)};
mov.u32 %r2, %ctaid.x; {first}
setp.ne.u32 %q, 0, 0;
mov.b16 %h, 3; mov.u64 %c0, %clock64;
{(mma + chr(10)) * depth}
tcgen05.commit.cta_group::{ctas}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [%m]{mask};
WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%m], 0; @!%p bra WAIT;
mov.u64 %c1, %clock64;
sub.u64 %c1, %c1, %c0; ld.param.b64 %o, [out]; st.global.b64 [%o], %c1;
END: {sync}
tcgen05.dealloc.cta_group::{ctas}.sync.aligned.b32 %t, 512;
ret; }}"""


def cycles(
    gpu: simt.GPU,
    format_: str,
    operands: str,
    ctas: int,
    m: int,
    n: int,
    depth: int = 1,
    elected: bool = False,
) -> int:
    out = np.zeros(1, np.uint64)
    module = gpu.load(kernel(format_, operands, ctas, m, n, depth, elected))
    module["k"][ctas, 32, 0, None, ctas](out)
    return int(out[0])
