"""cp.async, bulk copies, mbarriers, clusters: copies and their edge cases, pipelines, faults."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support.ptx import Device, ptx_only

U32 = np.uint32
REFUSED = ptx_only("ptxas refuses it")


def copy_kernel(size: int, more: str, registers: str = "") -> str:
    """Each lane copies `size` bytes of `data` at its position to `out`, through shared memory filled with
    0xee.
    """
    return f"""
    .visible .entry k(.param .b64 data, .param .b64 out, .param .b64 sizes)
    {{
      .reg .b64 %d, %o, %a; .reg .b32 %i, %s, %k, %n, %v; .reg .pred %p; {registers}
      .shared .align 128 .b8 buffer[{32 * size}];
      ld.param.b64 %d, [data]; ld.param.b64 %o, [out]; mov.u32 %i, %tid.x; mov.u32 %s, buffer;
      ld.param.b64 %a, [sizes]; mad.wide.u32 %a, %i, 4, %a; ld.global.b32 %n, [%a];
      setp.gt.u32 %p, %n, 100;
      mad.wide.u32 %d, %i, {size}, %d; mad.wide.u32 %o, %i, {size}, %o; mad.lo.u32 %s, %i, {size}, %s;
      {"".join(f"st.shared.b32 [%s+{k}], 0xeeeeeeee;" for k in range(0, size, 4))}
      {more}
      cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
      {"".join(f"ld.shared.b32 %v, [%s+{k}]; st.global.b32 [%o+{k}], %v;" for k in range(0, size, 4))}
      ret;
    }}
    """


@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies_with_zeros_behind(size: int) -> None:
    rng = np.random.default_rng(size)
    data = rng.integers(1, 255, (32, size), np.uint8)
    sizes = rng.integers(0, size + 1, 32, U32)
    cache = "cg" if size == 16 else "ca"
    every = np.full(32, size, U32)
    forms: list[tuple[str, np.ndarray, np.ndarray]] = [
        (f"cp.async.{cache}.shared.global [%s], [%d], {size};", every, every),
        (f"cp.async.{cache}.shared::cta.global.L2::128B [%s], [%d], {size}, %n;", sizes, sizes),
        (
            f"cp.async.{cache}.shared.global [%s], [%d], {size}, %p;",
            200 * (sizes % 2),
            size * (1 - sizes % 2),
        ),
        (f"cp.async.{cache}.shared.global.L2::cache_hint [%s], [%d], {size}, %d;", every, every),
    ]
    for instruction, given, read in forms:
        out = np.zeros_like(data)
        Device(copy_kernel(size, instruction)).run("k", data, out, given.astype(U32))
        expected = np.where(np.arange(size) < np.asarray(read)[:, None], data, 0)
        assert (out == expected).all(), instruction


def test_a_guard_keeps_copies_away() -> None:
    data, out = np.ones((32, 4), np.uint8), np.zeros((32, 4), np.uint8)
    sizes = np.where(np.arange(32) < 7, 200, 0).astype(U32)
    Device(copy_kernel(4, "@%p cp.async.ca.shared.global [%s], [%d], 4;")).run("k", data, out, sizes)
    assert (out[:7] == 1).all()
    assert (out[7:] == 0xEE).all()


def test_what_is_not_read_may_lie_nowhere() -> None:
    """Guards for partial tiles: addresses outside the array, with a size of 0."""
    data, out = np.ones((16, 16), np.uint8), np.zeros((32, 16), np.uint8)
    sizes = np.where(np.arange(32) < 16, 16, 0).astype(U32)
    Device(copy_kernel(16, "cp.async.cg.shared.global [%s], [%d], 16, %n;")).run("k", data, out, sizes)
    assert (out[:16] == 1).all()
    assert (out[16:] == 0).all()


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("cp.async.ca.shared.global [%s], [%d+2], 4;", "misaligned"),
        ("cp.async.ca.shared.global [%s], [%d+4096], 4;", "illegal address"),
        ("cp.async.ca.shared.global [%s+4096], [%d], 4;", "illegal address"),
        pytest.param("cp.async.ca.shared.global [%s], [%d], 4, 5;", "more bytes", marks=REFUSED),
        pytest.param(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%d], 20, [%s];",
            "multiple of 16",
            marks=REFUSED,
        ),
    ],
)
def test_faults_of_copies(instruction: str, message: str) -> None:
    data = np.zeros((32, 4), np.uint8)
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        Device(copy_kernel(4, instruction)).run("k", data, data.copy(), np.zeros(32, U32))


# Groups of asynchronous copies as compilers use them: a ring of stages in shared memory.
PIPELINE = """
.visible .entry sum(.param .b64 data, .param .b64 out, .param .b32 tiles)
{
  .shared .align 16 .b8 ring[3072];
  .reg .b64 %d, %o; .reg .b32 %i, %n, %k, %load, %s, %slot, %v, %sum, %ring; .reg .pred %p;
  ld.param.b64 %d, [data]; ld.param.b64 %o, [out]; ld.param.b32 %n, [tiles];
  mov.u32 %i, %tid.x; mad.wide.u32 %d, %i, 4, %d; mad.wide.u32 %o, %i, 4, %o;
  mov.u32 %ring, ring; mad.lo.u32 %ring, %i, 4, %ring; mov.b32 %sum, 0; mov.b32 %load, 0; mov.b32 %k, 0;
FILL:
  setp.lt.u32 %p, %load, %n; rem.u32 %slot, %load, 3; mad.lo.u32 %s, %slot, 1024, %ring;
  @%p cp.async.ca.shared.global [%s], [%d], 4;
  cp.async.commit_group; add.u64 %d, %d, 1024; add.u32 %load, %load, 1;
  setp.lt.u32 %p, %load, 2; @%p bra FILL;
LOOP:
  cp.async.wait_group 1; bar.sync 0;
  rem.u32 %slot, %k, 3; mad.lo.u32 %s, %slot, 1024, %ring; ld.shared.u32 %v, [%s]; add.u32 %sum, %sum, %v;
  setp.lt.u32 %p, %load, %n; rem.u32 %slot, %load, 3; mad.lo.u32 %s, %slot, 1024, %ring;
  @%p cp.async.ca.shared.global [%s], [%d], 4;
  cp.async.commit_group; add.u64 %d, %d, 1024; add.u32 %load, %load, 1;
  add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra LOOP;
  st.global.u32 [%o], %sum;
  ret;
}
"""


def test_a_ring_of_copies() -> None:
    data = np.random.default_rng(1).integers(0, 1000, (17, 256), U32)
    out = np.zeros(256, U32)
    Device(PIPELINE).run("sum", data, out, 17, block=(256, 1, 1))
    assert (out == data.sum(0)).all()


# A warp produces by bulk copies, three warps consume; full and empty mbarriers, phases by parity.
PRODUCER = """
.visible .entry k(.param .b64 data, .param .b64 out, .param .b32 tiles)
{
  .shared .align 128 .b8 ring[1536]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
  .reg .b64 %d, %o; .reg .b32 %i, %w, %n, %k, %slot, %parity, %f, %e, %s, %v, %sum, %t; .reg .pred %p, %lead;
  ld.param.b64 %d, [data]; ld.param.b64 %o, [out]; ld.param.b32 %n, [tiles];
  mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; mov.b32 %k, 0; mov.b32 %sum, 0;
  setp.ne.u32 %p, %i, 0; @%p bra READY;
  mov.u32 %f, full; mov.u32 %e, empty;
  mbarrier.init.shared::cta.b64 [%f], 1; mbarrier.init.shared::cta.b64 [%f+8], 1;
  mbarrier.init.shared::cta.b64 [%e], 96; mbarrier.init.shared::cta.b64 [%e+8], 96;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  setp.ne.u32 %p, %w, 3; @%p bra CONSUME;
  elect.sync _|%lead, -1; @!%lead bra DONE;
PRODUCE:
  and.b32 %slot, %k, 1; shr.u32 %parity, %k, 1; and.b32 %parity, %parity, 1; xor.b32 %parity, %parity, 1;
  mov.u32 %e, empty; mad.lo.u32 %e, %slot, 8, %e; mov.u32 %f, full; mad.lo.u32 %f, %slot, 8, %f;
  mov.u32 %s, ring; mad.lo.u32 %s, %slot, 384, %s;
WAIT_EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%e], %parity, 1000; @!%p bra WAIT_EMPTY;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%f], 384;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%d], 128, [%f];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
    [%s+128], [%d+128], 256, [%f], %o;
  add.u64 %d, %d, 384; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra PRODUCE;
  bra DONE;
CONSUME:
  and.b32 %slot, %k, 1; shr.u32 %parity, %k, 1; and.b32 %parity, %parity, 1;
  mov.u32 %e, empty; mad.lo.u32 %e, %slot, 8, %e; mov.u32 %f, full; mad.lo.u32 %f, %slot, 8, %f;
  mov.u32 %s, ring; mad.lo.u32 %s, %slot, 384, %s; mad.lo.u32 %s, %i, 4, %s;
WAIT_FULL:
  mbarrier.WAIT.parity.acquire.cta.shared::cta.b64 %p, [%f], %parity; @!%p bra WAIT_FULL;
  ld.shared.u32 %v, [%s]; mad.lo.u32 %sum, %sum, 3, %v;
  mbarrier.arrive.release.cta.shared::cta.b64 _, [%e];
  add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %n; @%p bra CONSUME;
  mad.wide.u32 %o, %i, 4, %o; st.global.u32 [%o], %sum;
DONE:
  ret;
}
"""


@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
@pytest.mark.parametrize("tiles", [1, 2, 3, 64])
def test_producer_and_consumers(wait: str, tiles: int) -> None:
    data = np.random.default_rng(tiles).integers(0, 2**32, (tiles, 96), U32)
    out = np.zeros(96, U32)
    Device(PRODUCER.replace("WAIT.", wait + ".")).run("k", data, out, tiles, block=(128, 1, 1))
    expected = np.zeros(96, U32)
    for tile in data:
        expected = expected * U32(3) + tile
    assert (out == expected).all()


def mbarrier(body: str, lanes: int = 1, registers: str = "") -> list[int]:
    """The last lane's %d0, %d1, ... after the instructions. %b: an mbarrier's address."""
    results = body.count("@out")
    for k in range(results):
        body = body.replace("@out", f"%d{k}", 1)
    text = f"""
    .visible .entry k(.param .b64 out)
    {{
      .shared .align 8 .b64 bar; .reg .b64 %a, %s<4>; .reg .b32 %b, %i, %d<10>, %v; .reg .pred %p; {registers}
      mov.u32 %b, bar; mov.u32 %i, %tid.x;
      {body}
      ld.param.b64 %a, [out];
      {"".join(f"st.global.b32 [%a+{4 * k}], %d{k};" for k in range(results))}
      ret;
    }}
    """
    out = np.zeros(max(1, results), U32)
    Device(text).run("k", out, block=(lanes, 1, 1))
    return [int(x) for x in out[:results]]


ASK = "mbarrier.test_wait{form}.b64 %p, [%b], {of}; selp.u32 @out, 1, 0, %p;"


def parity(of: int) -> str:
    return ASK.format(form=".parity.shared", of=of)


def state(of: str) -> str:
    return ASK.format(form=".shared::cta", of=of)


def test_phases_by_arrivals() -> None:
    got = mbarrier(
        "mbarrier.init.shared.b64 [%b], 3;"
        + parity(0)
        + parity(1)
        + "mbarrier.arrive.shared.b64 %s0, [%b]; mbarrier.pending_count.b64 @out, %s0;"
        + "mbarrier.arrive.shared.b64 %s1, [%b], 2; mbarrier.pending_count.b64 @out, %s1;"
        + state("%s0")
        + parity(0)
        + parity(1)
        + "mbarrier.arrive.noComplete.shared.b64 %s2, [%b], 2;"
        + state("%s2")
        + "mbarrier.arrive.shared.b64 %s3, [%b];"
        + state("%s3")
    )
    assert got == [0, 1, 3, 2, 1, 1, 0, 0, 1]


def test_phases_by_transactions() -> None:
    got = mbarrier(
        "mbarrier.init.shared.b64 [%b], 1;"
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 100;"
        "mbarrier.arrive.shared.b64 %s0, [%b];"
        + state("%s0")
        + "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%b], 60;"
        + state("%s0")
        + "mbarrier.complete_tx.shared.b64 [%b], 40;"
        + state("%s0")
        # Bytes may arrive before they are expected.
        + "mbarrier.complete_tx.shared.b64 [%b], 8;"
        + "mbarrier.arrive.expect_tx.shared.b64 %s0, [%b], 8;"
        + state("%s0")
    )
    assert got == [0, 0, 1, 1]


def test_threads_that_drop_out() -> None:
    got = mbarrier(
        "mbarrier.init.shared.b64 [%b], 2;"
        "mbarrier.arrive_drop.shared.b64 %s0, [%b];"
        + state("%s0")
        + "mbarrier.arrive.shared.b64 %s0, [%b];"
        + state("%s0")
        + "mbarrier.arrive.shared.b64 %s0, [%b]; mbarrier.pending_count.b64 @out, %s0;"
        + state("%s0")
    )
    assert got == [0, 1, 1, 1]


def test_all_lanes_of_a_warp_arrive() -> None:
    got = mbarrier(
        "setp.ne.u32 %p, %i, 0; @%p bra READY; mbarrier.init.shared.b64 [%b], 32; READY: bar.warp.sync -1;"
        ".reg .b64 %g; cvt.u64.u32 %g, %b; cvta.shared.u64 %g, %g;"
        "mbarrier.arrive.b64 %s0, [%g]; mbarrier.pending_count.b64 @out, %s0;" + state("%s0"),
        lanes=32,
    )
    assert got == [1, 1]


def test_asynchronous_copies_arrive() -> None:
    arrive = "cp.async.mbarrier.arrive{}.shared::cta.b64 [%b];"
    got = mbarrier(
        "mbarrier.init.shared.b64 [%b], 2;"
        + arrive.format(".noinc")
        + parity(0)
        + arrive.format("")
        + parity(0)
        + arrive.format(".noinc")
        + parity(0)
    )
    assert got == [0, 0, 1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mbarrier.arrive.shared.b64 _, [%b];", "has not been initialised"),
        ("mbarrier.init.shared.b64 [%b], 0;", "0 arrivals"),
        pytest.param(
            "mbarrier.init.shared.b64 [%b], 0x100000;",
            "1048576 arrivals",
            marks=ptx_only("ptxas cuts the count to 20 bits"),
        ),
        ("mbarrier.init.shared.b64 [%b], 2; mbarrier.arrive.shared.b64 _, [%b], 3;", "3 arrivals where 2"),
        pytest.param(
            "mbarrier.init.shared.b64 [%b], 1; mbarrier.arrive.noComplete.shared.b64 %s0, [%b], 1;",
            "noComplete",
            marks=ptx_only("machine code does not say .noComplete"),
        ),
        ("mbarrier.init.shared.b64 [%b], 1; mbarrier.inval.shared.b64 [%b];" + parity(0), "initialised"),
        ("mbarrier.init.shared.b64 [%b], 1; mbarrier.expect_tx.shared.b64 [%b], 0x100000;", "out of range"),
        ("mbarrier.init.shared.b64 [%b+4], 1;", "misaligned|illegal"),
    ],
)
def test_faults_of_mbarriers(body: str, message: str) -> None:
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        mbarrier(body)


def bulk(operation: str, type_: str, data: np.ndarray, target: np.ndarray) -> np.ndarray:
    text = f"""
    .visible .entry k(.param .b64 data, .param .b64 target)
    {{
      .shared .align 16 .b8 buffer[{data.nbytes}]; .shared .align 8 .b64 bar;
      .reg .b64 %d, %t; .reg .b32 %s, %b; .reg .pred %p;
      ld.param.b64 %d, [data]; ld.param.b64 %t, [target]; mov.u32 %s, buffer; mov.u32 %b, bar;
      mbarrier.init.shared.b64 [%b], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%b], {data.nbytes};
      cp.async.bulk.prefetch.L2.global [%d], {data.nbytes};
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%d], {data.nbytes}, [%b];
    W: mbarrier.try_wait.parity.shared.b64 %p, [%b], 0; @!%p bra W;
      fence.proxy.async.shared::cta;
      cp{".reduce" if operation else ""}.async.bulk.global.shared::cta.bulk_group{operation}{type_}
        [%t], [%s], {data.nbytes};
      cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
      ret;
    }}
    """
    target = target.copy()
    Device(text).run("k", data, target, block=(1, 1, 1))
    return target


def test_bulk_copies_there_and_back() -> None:
    data = np.random.default_rng(0).integers(0, 256, 4096 + 48, np.uint8)
    assert (bulk("", "", data, np.zeros_like(data)) == data).all()


@pytest.mark.parametrize(
    ("operation", "type_", "dtype"),
    [
        (".add", ".u32", np.uint32),
        (".add", ".s32", np.int32),
        (".add", ".u64", np.uint64),
        (".add", ".f32", np.float32),
        (".add", ".f64", np.float64),
        (".add.noftz", ".f16", np.float16),
        (".add.noftz", ".bf16", ml_dtypes.bfloat16),
        (".min", ".s32", np.int32),
        (".max", ".s64", np.int64),
        (".min", ".f16", np.float16),
        (".max", ".bf16", ml_dtypes.bfloat16),
        (".and", ".b32", np.uint32),
        (".or", ".b64", np.uint64),
        (".xor", ".b32", np.uint32),
        (".inc", ".u32", np.uint32),
        (".dec", ".u32", np.uint32),
    ],
)
def test_bulk_reductions(operation: str, type_: str, dtype: Any) -> None:
    rng = np.random.default_rng(9)
    low = 0 if np.dtype(dtype).kind == "u" else -60
    data, target = (rng.integers(low, 60, 64).astype(dtype) for _ in range(2))
    f: dict[str, Any] = {
        "add": lambda a, b: a + b,
        "min": np.minimum,
        "max": np.maximum,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "inc": lambda a, b: np.where(a >= b, 0, a + 1).astype(dtype),
        "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1).astype(dtype),
    }
    assert (bulk(operation, type_, data, target) == f[operation.split(".")[1]](target, data)).all()


# Each CTA sends to its neighbour with st.async (lane: 8 bytes), red.async (4 bytes) and a bulk copy (128
# bytes); the CTA after the neighbour signals the arrival of 16 bytes without sending any.
CLUSTER = """
.visible .entry k(.param .b64 out)
.reqnctapercluster 4, 1, 1
{
  .shared .align 16 .b8 mine[128]; .shared .align 16 .b8 sent[256]; .shared .align 16 .b8 copied[128];
  .shared .align 8 .b64 bar; .shared .b32 sum;
  .reg .b64 %o, %g, %l; .reg .b32 %m, %s, %c, %b, %r, %i, %n, %t, %rb, %v, %w, %k; .reg .pred %p;
  mov.u32 %m, mine; mov.u32 %b, bar; mov.u32 %r, %cluster_ctarank; mov.u32 %i, %tid.x; ld.param.b64 %o, [out];
  mad.lo.u32 %v, %r, 1000, %i; mad.lo.u32 %w, %i, 4, %m; st.shared.u32 [%w], %v;
  setp.ne.u32 %p, %i, 0; @%p bra READY;
  st.shared.u32 [sum], 0;
  mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 528;
READY:
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  add.u32 %n, %r, 1; and.b32 %n, %n, 3;
  mapa.shared::cluster.u32 %rb, %b, %n; getctarank.shared::cluster.u32 %k, %rb;
  mapa.shared::cluster.u32 %t, sent, %n; mad.lo.u32 %t, %i, 8, %t;
  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%t], {%v, %k}, [%rb];
  mapa.shared::cluster.u32 %t, sum, %n;
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%t], %i, [%rb];
  @%p bra SENT;
  mapa.shared::cluster.u32 %t, copied, %n;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%t], [%m], 128, [%rb];
  add.u32 %n, %r, 2; and.b32 %n, %n, 3; mapa.shared::cluster.u32 %rb, %b, %n;
  mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%rb], 16;
SENT:
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%b], 0; @!%p bra W;
  // out[cta][0..31]: read from the CTA before; [32..95]: sent; [96..127]: copied; [128]: the sum
  mov.u32 %k, %ctaid.x; mad.lo.u32 %k, %k, 129, %i; mad.wide.u32 %l, %k, 4, %o;
  mov.u64 %g, mine; cvta.shared.u64 %g, %g; add.u32 %n, %r, 3; and.b32 %n, %n, 3; mapa.u64 %g, %g, %n;
  mad.wide.u32 %g, %i, 4, %g; ld.u32 %v, [%g]; st.global.u32 [%l], %v;
  mov.u32 %s, sent; mad.lo.u32 %w, %i, 4, %s;
  ld.shared.u32 %v, [%w]; st.global.u32 [%l+128], %v; ld.shared.u32 %v, [%w+128]; st.global.u32 [%l+256], %v;
  mov.u32 %c, copied; mad.lo.u32 %w, %i, 4, %c; ld.shared.u32 %v, [%w]; st.global.u32 [%l+384], %v;
  setp.ne.u32 %p, %i, 0; ld.shared.u32 %v, [sum]; @!%p st.global.u32 [%l+512], %v;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}
"""


def test_ctas_of_a_cluster_exchange_values() -> None:
    out = np.zeros((8, 129), U32)
    Device(CLUSTER).run("k", out, grid=(8, 1, 1))
    lane = np.arange(32)
    for cta in range(8):
        rank = cta % 4
        values = 1000 * ((rank - 1) % 4) + lane
        assert (out[cta, :32] == values).all()
        assert (out[cta, 32:96].reshape(32, 2) == np.stack([values, np.full(32, rank)], 1)).all()
        assert (out[cta, 96:128] == values).all()
        assert out[cta, 128] == lane.sum()


def test_a_cluster_barrier_in_two_halves() -> None:
    """What was stored before the arrival is visible after the wait, to all CTAs and in every round."""
    text = """
    .visible .entry k(.param .b64 out)
    .reqnctapercluster 4, 1, 1
    {
      .shared .b32 value; .reg .b64 %o; .reg .b32 %r, %n, %t, %v, %k, %sum, %i; .reg .pred %p;
      ld.param.b64 %o, [out]; mov.u32 %r, %cluster_ctarank; mov.b32 %k, 0; mov.b32 %sum, 0;
      mov.u32 %i, %tid.x; add.u32 %n, %r, 1; and.b32 %n, %n, 3; mapa.shared::cluster.u32 %t, value, %n;
    LOOP:
      setp.ne.u32 %p, %i, 0; mad.lo.u32 %v, %k, 10, %r; @!%p st.shared.u32 [value], %v;
      barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      ld.shared::cluster.u32 %v, [%t]; mad.lo.u32 %sum, %sum, 7, %v;
      barrier.cluster.arrive; barrier.cluster.wait;
      add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 5; @%p bra LOOP;
      mov.u32 %k, %ctaid.x; mad.lo.u32 %k, %k, 64, %i; mad.wide.u32 %o, %k, 4, %o; st.global.u32 [%o], %sum;
      ret;
    }
    """
    out = np.zeros((8, 64), U32)
    Device(text).run("k", out, grid=(8, 1, 1), block=(64, 1, 1))
    for cta in range(8):
        expected = 0
        for k in range(5):
            expected = (expected * 7 + 10 * k + (cta + 1) % 4) % 2**32
        assert (out[cta] == expected).all()


def test_clearing_bit_24_names_the_first_cta_of_a_pair() -> None:
    """As CUTLASS's and Triton's programs for pairs of CTAs do with the address of a variable."""
    text = """
    .version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .b64 out)
    .reqnctapercluster 4, 1, 1
    {
      .shared .b32 value; .reg .b64 %o; .reg .b32 %r, %a, %b, %v, %i, %n, %m; .reg .pred %p, %odd;
      ld.param.b64 %o, [out]; mov.u32 %r, %cluster_ctarank; mov.u32 %a, value; and.b32 %b, %a, 0xfeffffff;
      setp.eq.u32 %p, %r, 9; @%p tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
      getctarank.shared::cluster.u32 %n, %a; getctarank.shared::cluster.u32 %m, %b;
      st.shared.u32 [value], 100; barrier.cluster.arrive; barrier.cluster.wait;
      and.b32 %v, %r, 1; setp.eq.u32 %odd, %v, 1; mov.u32 %i, %tid.x; setp.eq.and.u32 %odd, %i, 0, %odd;
      add.u32 %v, %r, 7; @%odd st.shared::cluster.u32 [%b], %v;
      barrier.cluster.arrive; barrier.cluster.wait;
      ld.shared.u32 %v, [%a]; mad.wide.u32 %o, %r, 12, %o; st.global.u32 [%o], %v;
      st.global.u32 [%o+4], %n; st.global.u32 [%o+8], %m; ret;
    }
    """
    out = np.zeros((4, 3), U32)
    Device(text).run("k", out, grid=(4, 1, 1), block=(32, 1, 1))
    assert out.tolist() == [[8, 0, 0], [100, 1, 0], [10, 2, 2], [100, 3, 2]]


def test_bulk_reduction_within_a_cluster() -> None:
    text = """
    .visible .entry k(.param .b64 out)
    .reqnctapercluster 2, 1, 1
    {
      .shared .align 16 .b8 box[256]; .shared .align 8 .b64 bar;
      .reg .b64 %o; .reg .b32 %s, %b, %r, %i, %n, %rs, %rb, %v, %w; .reg .pred %p;
      mov.u32 %s, box; mov.u32 %b, bar; mov.u32 %r, %cluster_ctarank; mov.u32 %i, %tid.x;
      ld.param.b64 %o, [out];
      mad.lo.u32 %v, %r, 100, %i; mad.lo.u32 %w, %i, 4, %s; st.shared.u32 [%w], %v; st.shared.u32 [%w+128], 5;
      setp.ne.u32 %p, %i, 0; @%p bra READY;
      mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 128;
    READY:
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      @%p bra SENT;
      xor.b32 %n, %r, 1; mapa.shared::cluster.u32 %rs, %s, %n; mapa.shared::cluster.u32 %rb, %b, %n;
      cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32
        [%rs+128], [%s], 128, [%rb];
    SENT:
      nanosleep.u32 20;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
      mad.lo.u32 %i, %r, 32, %i; mad.wide.u32 %o, %i, 4, %o;
      ld.shared.u32 %v, [%w+128]; st.global.u32 [%o], %v;
      ret;
    }
    """
    out = np.zeros((2, 32), U32)
    Device(text).run("k", out, grid=(2, 1, 1))
    assert (out[0] == 105 + np.arange(32)).all()
    assert (out[1] == 5 + np.arange(32)).all()


def test_what_does_nothing_here() -> None:
    text = """
    .visible .entry k(.param .b64 out) { .reg .b64 %o; ld.param.b64 %o, [out];
      setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 232;
      griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 0;
      st.global.u32 [%o], 1; ret; }
    """
    out = np.zeros(1, U32)
    Device(text).run("k", out)
    assert out[0] == 1


@pytest.mark.parametrize(
    "instruction",
    [
        "cp.async.ca.shared.global [%r], [%d], 12",
        "cp.async.ca.global.shared [%d], [%r], 4",
        "cp.async.bulk.shared::cluster.global.bulk_group [%r], [%d], 16",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.cp_mask.add.u32 [%d], [%r], 16, %h",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%d], [%r], 16",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        " [%r], [%d, {%r, %r}], [%r]",
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r], [%d, {%r}], [%r]",
        "mbarrier.arrive.shared.b32 _, [%r]",
        "multimem.ld_reduce.global.u32 %r, [%d]",
        "st.bulk.weak.shared::cta [%r], 16, 1",
        "st.bulk.weak.shared::cta [%r], %h, 0",
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r], 5, %r",
    ],
)
def test_what_is_refused(instruction: str) -> None:
    text = f".visible .entry k() {{ .reg .b64 %d; .reg .b32 %r; .reg .b16 %h; {instruction}; ret; }}"
    with pytest.raises(PtxError, match=instruction.split(".")[0]):
        Device(text)
