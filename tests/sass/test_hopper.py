"""Machine code of sm_90 to sm_120: mbarriers, clusters, asynchronous copies; memory as PTX leaves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt import _engine
from simt.cuda import machine_code
from simt.cuda.ptx_module import PtxModule
from simt.sass import Cubin, disassemble
from simt.sass.program import load_program
from support.ptx import Device

HEADER = ".version 8.7\n.target {target}\n.address_size 64\n"
ENTRY = """
.visible .entry k(.param .b64 out, .param .b64 in)
{
  .reg .b64 %o, %i, %s, %g, %h<4>; .reg .b32 %x, %y, %t, %c, %r<20>; .reg .pred %p, %q; .reg .b16 %m;
  .shared .align 128 .b8 memory[8192];
  ld.param.b64 %o, [out]; ld.param.b64 %i, [in];
  mov.u32 %x, memory; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %y, %ntid.x;
  mad.lo.u32 %y, %c, %y, %t; mad.wide.u32 %o, %y, 64, %o;
"""
WORDS = 4096
TARGETS = pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_120a"])
# Of the tensors in `in`: dimensions, strides, box, element strides, interleave, swizzle, fill and corners.
# Their maps follow at 12288.
MAPS: list[tuple[Any, ...]] = [
    ([64, 20], [256], [32, 4], [1, 1], 0, 3, 0, None),
    ([60, 20], [256], [8, 4], [1, 1], 0, 0, 0, None),
    ([16, 5, 4, 3], [64, 320, 1280], [8, 9], [1, 1, 1, 1], 0, 0, 0, ([-1, -1], [0, 0])),
    ([16, 3, 3, 2, 2], [64, 192, 576, 1152], [8, 9], [1] * 5, 0, 1, 0, ([-1, 0, 0], [0, 1, 1])),
]


def run(
    body: str, code: str, grid: int = 1, block: int = 64, cluster: int = 1, target: str = "sm_90a"
) -> list[int]:
    """What a kernel leaves in `out`, which has 64 bytes for each thread; `in` holds small random numbers."""
    memory = _engine.functional.DeviceMemory(1 << 26)
    text = HEADER.format(target=target) + ENTRY + body + "\n  ret;\n}\n"
    if code == "ptx":
        module: Any = _engine.functional.load(text, "test.ptx", memory)
    else:
        program = PtxModule.from_text(text, "test.ptx")
        module = load_program(Cubin.parse(machine_code(program, program.arch), "test.ptx"), memory, {})
    source, result = memory.allocate(4 * WORDS, "in"), memory.allocate(4 * WORDS, "out")
    data = np.random.default_rng(5).integers(1, 100, WORDS).astype(np.uint32)
    memory.write(source, data.tobytes())
    for k, shape in enumerate(MAPS):
        memory.write(source + 12288 + 128 * k, _engine.functional.encode_tensor_map(2, source, *shape))
    memory.write(result, bytes(4 * WORDS))
    facts = module.kernels["k"]
    arguments = bytearray(facts["parameter_bytes"])
    for (offset, size, *_), value in zip(facts["parameters"], (result, source), strict=True):
        arguments[offset : offset + size] = int(value).to_bytes(size, "little")
    launch = _engine.functional.Launch(
        module, facts["index"], (grid, 1, 1), (block, 1, 1), (cluster, 1, 1), 0, {}
    )
    launch.run(bytes(arguments), 1, 1, lambda text: None)
    left: list[int] = np.frombuffer(memory.read(result, 4 * WORDS), np.uint32).tolist()
    return left


def same(body: str, **how: Any) -> list[int]:
    """Both give the same; returns it."""
    left = run(body, "sass", **how)
    assert left == run(body, "ptx", **how)
    return left


WAIT = """
  mov.b32 %r9, {parity};
again{n}:
  mbarrier.try_wait.parity.shared::cta.b64 %q, [%x+{at}], %r9;
  @!%q bra again{n};
"""


def wait(parity: int, n: int = 0, at: int = 0) -> str:
    return WAIT.format(parity=parity, n=n, at=at)


def init(threads: int, at: int = 0) -> str:
    return f"""
  setp.ne.u32 %p, %t, 0;
  @!%p mbarrier.init.shared.b64 [%x+{at}], {threads};
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""


@TARGETS
def test_an_mbarrier_counts_arrivals_of_each_phase(target: str) -> None:
    left = same(
        init(64)
        + """
  mad.lo.u32 %y, %t, 4, %x; st.shared.u32 [%y+64], %t;
  mbarrier.arrive.shared.b64 %s, [%x];
"""
        + wait(0)
        + """
  xor.b32 %r0, %t, 63; mad.lo.u32 %r0, %r0, 4, %x; ld.shared.u32 %r1, [%r0+64]; st.global.u32 [%o], %r1;
  mbarrier.test_wait.shared.b64 %p, [%x], %s; selp.b32 %r2, 1, 0, %p; st.global.u32 [%o+4], %r2;
  mbarrier.test_wait.parity.shared.b64 %p, [%x], 1; selp.b32 %r2, 1, 0, %p; st.global.u32 [%o+8], %r2;
  bar.sync 0;
  mbarrier.pending_count.b64 %r3, %s; st.global.u32 [%o+12], %r3;
  mbarrier.arrive.shared.b64 %s, [%x];
"""
        + wait(1, 1)
        + "mbarrier.pending_count.b64 %r3, %s; st.global.u32 [%o+16], %r3;",
        target=target,
    )
    threads = np.array(left).reshape(-1, 16)[:64]
    assert threads[:, 0].tolist() == list(range(63, -1, -1))
    assert threads[:, 1].tolist() == [1] * 64
    assert threads[:, 2].tolist() == [0] * 64
    assert sorted(threads[:, 3].tolist()) == list(range(1, 65))


@TARGETS
def test_counts_drops_and_transactions(target: str) -> None:
    left = same(
        """
  setp.ne.u32 %p, %t, 0; @%p bra done;
  mbarrier.init.shared.b64 [%x], 8;
  mbarrier.arrive.shared.b64 %s, [%x], 3;
  mbarrier.pending_count.b64 %r0, %s; st.global.u32 [%o], %r0;
  mbarrier.arrive_drop.shared.b64 %s, [%x], 2;
  mbarrier.pending_count.b64 %r0, %s; st.global.u32 [%o+4], %r0;
  mbarrier.arrive.noComplete.shared.b64 %s, [%x], 2;
  mbarrier.pending_count.b64 %r0, %s; st.global.u32 [%o+8], %r0;
  mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 48;
  mbarrier.pending_count.b64 %r0, %s; st.global.u32 [%o+12], %r0;
  mbarrier.test_wait.shared.b64 %p, [%x], %s; selp.b32 %r2, 1, 0, %p; st.global.u32 [%o+16], %r2;
  mbarrier.expect_tx.relaxed.cta.shared.b64 [%x], 16;
  mbarrier.complete_tx.relaxed.cta.shared.b64 [%x], 48;
  mbarrier.test_wait.shared.b64 %p, [%x], %s; selp.b32 %r2, 1, 0, %p; st.global.u32 [%o+20], %r2;
  mbarrier.complete_tx.relaxed.cta.shared.b64 [%x], 16;
  mbarrier.test_wait.shared.b64 %p, [%x], %s; selp.b32 %r2, 1, 0, %p; st.global.u32 [%o+24], %r2;
  mbarrier.arrive.shared.b64 %s, [%x];
  mbarrier.pending_count.b64 %r0, %s; st.global.u32 [%o+28], %r0;
  mbarrier.inval.shared.b64 [%x];
done:
""",
        target=target,
    )
    assert left[:8] == [8, 5, 3, 1, 0, 0, 1, 6]


@TARGETS
def test_lanes_that_arrive_together_see_their_own_states(target: str) -> None:
    left = same(
        init(200)
        + """
  setp.lt.u32 %p, %t, 32;
  @%p mbarrier.arrive.noComplete.shared.b64 %s, [%x], 3;
  @%p mbarrier.pending_count.b64 %r0, %s;
  @%p st.global.u32 [%o], %r0;
""",
        target=target,
    )
    assert [left[16 * i] for i in range(32)] == [200 - 3 * i for i in range(32)]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_copies_arrive_at_an_mbarrier(target: str) -> None:
    left = same(
        """
  setp.ne.u32 %p, %t, 0;
  @!%p mbarrier.init.shared.b64 [%x], 64;
  @!%p mbarrier.init.shared.b64 [%x+8], 64;
  bar.sync 0;
  mad.lo.u32 %y, %t, 4, %x; mad.wide.u32 %g, %t, 4, %i;
  cp.async.ca.shared.global [%y+64], [%g], 4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [%x];
  cp.async.mbarrier.arrive.shared.b64 [%x+8];
  mbarrier.arrive.shared.b64 %s, [%x+8];
again:
  mbarrier.test_wait.shared.b64 %q, [%x+8], %s;
  @!%q bra again;
  xor.b32 %r0, %t, 63; mad.lo.u32 %r0, %r0, 4, %x; ld.shared.u32 %r1, [%r0+64]; st.global.u32 [%o], %r1;
""",
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS)
    assert [left[16 * i] for i in range(64)] == data[63::-1].tolist()


@TARGETS
def test_what_a_cta_knows_of_its_cluster(target: str) -> None:
    names = ["cluster_ctarank", "cluster_nctarank", "clusterid.x", "nclusterid.x", "cluster_ctaid.x"]
    names += ["cluster_nctaid.x", "clusterid.y", "nclusterid.z", "cluster_nctaid.y"]
    body = "".join(
        f"mov.u32 %r0, %{name}; st.global.u32 [%o+{4 * i}], %r0;\n" for i, name in enumerate(names)
    )
    body += "mov.pred %p, %is_explicit_cluster; selp.b32 %r0, 1, 0, %p; st.global.u32 [%o+60], %r0;"
    left = np.array(same(body, grid=21, block=1, cluster=7, target=target)).reshape(-1, 16)[:21]
    assert left[:, 2].tolist() == [i // 7 for i in range(21)]
    assert left[:, 15].tolist() == [1] * 21
    assert same(body, grid=2, block=1, target=target)[15] == 0


@TARGETS
def test_memory_of_other_ctas(target: str) -> None:
    left = same(
        """
  mad.lo.u32 %y, %t, 4, %x; mad.lo.u32 %r0, %c, 1000, %t; st.shared.u32 [%y], %r0;
  st.shared.u32 [%x+4096], 0;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  add.u32 %r1, %c, 1; and.b32 %r1, %r1, 3;
  mapa.shared::cluster.u32 %r2, %y, %r1; ld.shared::cluster.u32 %r3, [%r2]; st.global.u32 [%o], %r3;
  getctarank.shared::cluster.u32 %r4, %r2; st.global.u32 [%o+4], %r4;
  mov.u64 %g, memory; cvta.shared.u64 %g, %g; mapa.u64 %h0, %g, %r1; st.b32 [%h0+2048], %t;
  getctarank.u64 %r4, %h0; st.global.u32 [%o+8], %r4;
  isspacep.shared::cta %p, %h0; selp.b32 %r5, 1, 0, %p;
  isspacep.shared::cta %p, %g; selp.b32 %r6, 2, 0, %p; add.u32 %r5, %r5, %r6;
  isspacep.shared::cluster %p, %h0; selp.b32 %r6, 4, 0, %p; add.u32 %r5, %r5, %r6; st.global.u32 [%o+12], %r5;
  mov.b32 %r7, 0; mapa.shared::cluster.u32 %r8, %x, %r7;
  red.shared::cluster.add.u32 [%r8+4096], 1;
  atom.shared::cluster.max.u32 %r9, [%r8+4100], 7;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  ld.shared.u32 %r3, [%x+4096]; st.global.u32 [%o+16], %r3;
""",
        grid=8,
        block=32,
        cluster=4,
        target=target,
    )
    threads = np.array(left).reshape(-1, 16)[: 8 * 32].reshape(8, 32, 16)
    assert threads[1, 5, :5].tolist() == [2005, 2, 2, 6, 0]
    assert threads[4, 0, 4] == 128


@TARGETS
def test_arrivals_and_stores_at_other_ctas(target: str) -> None:
    left = same(
        """
  setp.ne.u32 %p, %t, 0; mov.b32 %r0, 2; mov.b64 %g, 77;
  @!%p mbarrier.init.shared.b64 [%x], 5;
  @!%p mbarrier.init.shared.b64 [%x+8], 1;
  st.shared.u32 [%x+512], 9; st.shared.u64 [%x+520], %g;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  xor.b32 %r1, %c, 1; mapa.shared::cluster.u32 %r2, %x, %r1;
  @!%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
  @!%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2], %r0;
  @!%p mbarrier.arrive.release.cta.shared.b64 %s, [%x], 2;
"""
        + wait(0)
        + """
  mov.b32 %r3, 1080;
  @!%p mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %s, [%x+8], %r3;
  mad.lo.u32 %y, %t, 16, %r2; mov.b32 %r4, 5; mov.b32 %r5, 6; add.u32 %r6, %c, 70;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%y+1024], {%t, %r4, %r5, %r6}, [%r2+8];
  @!%p st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%r2+528], %g, [%r2+8];
  @!%p st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r2+536], {%r4, %r5}, [%r2+8];
  @!%p st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2+544], %r5, [%r2+8];
  @!%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2+512], %r6, [%r2+8];
  @!%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [%r2+512], %r4, [%r2+8];
  @!%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 [%r2+512], %r6, [%r2+8];
  @!%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r2+520], %g, [%r2+8];
  @!%p st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r2+560], {%g, %s}, [%r2+8];
"""
        + wait(0, 1, 8)
        + """
  mad.lo.u32 %y, %t, 16, %x;
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+1024]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%x+512]; st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%x+528]; st.global.v4.u32 [%o+32], {%r0, %r1, %r2, %r3};
  ld.shared.u32 %r0, [%x+544]; st.global.u32 [%o+48], %r0;
  ld.shared.u32 %r0, [%x+560]; st.global.u32 [%o+52], %r0;
  barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
        target=target,
    )
    assert left[16 * 3 : 16 * 3 + 4] == [3, 5, 6, 71]
    assert left[4] == 5 ^ 71
    assert left[6] == 154


@TARGETS
def test_bulk_copies(target: str) -> None:
    left = same(
        init(1)
        + """
  @!%p mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 1024;
  bar.sync 0;
  mad.wide.u32 %g, %t, 32, %i; mad.lo.u32 %y, %t, 16, %x;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%y+1024], [%g], 16, [%x];
"""
        + wait(0)
        + """
  @!%p mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 512;
  @!%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
    [%x+2048], [%x+1040], 512, [%x];
"""
        + wait(1, 1)
        + """
  cp.async.bulk.prefetch.L2.global [%i], 64;
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+1024]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
  setp.lt.u32 %p, %t, 32; @%p ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+2048];
  @%p st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};
  fence.proxy.async;
  setp.lt.u32 %p, %t, 40;
  @%p cp.async.bulk.global.shared::cta.bulk_group [%o+32], [%y+1024], 16;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
""",
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS).reshape(-1, 8)[:64, :4]
    threads = np.array(left).reshape(-1, 16)[:64]
    assert (threads[:, :4] == data).all()
    assert (threads[:31, 4:8] == data[1:32]).all()
    assert (threads[:40, 8:12] == data[:40]).all()
    assert not threads[40:, 8:12].any()


REDUCTIONS = [
    "add.u32", "min.s32", "max.u32", "inc.u32", "dec.u32", "and.b32", "or.b32", "xor.b32", "add.u64",
    "min.s64", "xor.b64", "add.f32", "add.f64", "add.noftz.f16", "min.f16", "max.bf16", "add.noftz.bf16",
]  # fmt: skip


@TARGETS
def test_bulk_reductions(target: str) -> None:
    copies = "".join(
        f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [%o+{64 * i}], [%x+1024], 64;\n"
        for i, name in enumerate(REDUCTIONS)
    )
    left = same(
        init(1)
        + """
  mad.lo.u32 %y, %t, 4, %x; mad.wide.u32 %g, %t, 4, %i;
  ld.global.u32 %r0, [%g]; st.shared.u32 [%y+1024], %r0;
  mov.u64 %g, %o; mov.b32 %r1, 40;
"""
        + "".join(f"st.global.u32 [%g+{64 * i}], %r1;\n" for i in range(len(REDUCTIONS)))
        + "mov.b32 %r2, 7; st.shared.u32 [%x+512], %r2; fence.proxy.async; bar.sync 0;\n @%p bra done;\n"
        + copies
        + """
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 128;
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32
    [%x+512], [%x+1024], 64, [%x];
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32
    [%x+512], [%x+1024], 64, [%x];
"""
        + wait(0)
        + "ld.shared.u32 %r0, [%x+512]; st.global.u32 [%o+2048], %r0;\ndone:",
        block=32,
        target=target,
    )
    first = int(np.random.default_rng(5).integers(1, 100, 1)[0])
    assert left[0] == 40 + first
    assert left[16] == min(40, first)


@TARGETS
def test_bulk_copies_to_several_ctas(target: str) -> None:
    left = same(
        init(1)
        + """
  @!%p mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 64;
  barrier.cluster.arrive; barrier.cluster.wait;
  or.b32 %r0, %t, %c; setp.ne.u32 %q, %r0, 0; mov.b16 %m, 11;
  @!%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%x+1024], [%i], 64, [%x], %m;
  setp.eq.u32 %p, %c, 2; @%p bra skip;
"""
        + wait(0)
        + """
skip:
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%x+1024]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
  barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=4,
        cluster=4,
        block=32,
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, 4).tolist()
    ctas = np.array(left).reshape(-1, 16)[: 4 * 32].reshape(4, 32, 16)
    assert [ctas[rank, 3, :4].tolist() for rank in range(4)] == [data, data, [0] * 4, data]


LOAD = "cp.async.bulk.tensor.{}.shared::cluster.global.{}.mbarrier::complete_tx::bytes"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group"


@TARGETS
def test_copies_by_tensor_maps(target: str) -> None:
    left = same(
        init(1)
        + f"""
  add.u64 %g, %i, 12288; add.u32 %r5, %t, 3; mov.b16 %m, 1;
  @%p bra issued;
  mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 1216;
  prefetch.tensormap [%g];
  {LOAD.format("2d", "tile")} [%x+1024], [%g, {{%r5, 18}}], [%x];
  add.u64 %h0, %g, 256;
  {LOAD.format("4d", "im2col")} [%x+2048], [%h0, {{%r5, -1, -1, 1}}], [%x], {{1, %m}};
  add.u64 %h0, %g, 384;
  {LOAD.format("5d", "im2col")} [%x+3072], [%h0, {{8, %t, 0, 0, 0}}], [%x], {{%m, 1, 0}};
  add.u64 %h0, %g, 128;
  {LOAD.format("2d", "tile")} [%x+4096], [%h0, {{56, -1}}], [%x];
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%h0, {{%t, %t}}];
issued:
"""
        + wait(0)
        + f"""
  mad.lo.u32 %y, %t, 16, %x;
  ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%y+1024]; st.global.v4.u32 [%o], {{%r0, %r1, %r2, %r3}};
  ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%y+2048]; st.global.v4.u32 [%o+16], {{%r0, %r1, %r2, %r3}};
  ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%y+3072]; st.global.v4.u32 [%o+32], {{%r0, %r1, %r2, %r3}};
  setp.lt.u32 %q, %t, 8; mov.b32 %r0, 0; @%q ld.shared.u32 %r0, [%y+4096]; st.global.u32 [%o+48], %r0;
  bar.sync 0; @%p bra stored;
  add.u64 %h0, %g, 128; mov.b32 %r5, 16;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%h0, {{%r5, 4}}], [%x+4096];
  {REDUCE.format("add")} [%h0, {{%r5, 8}}], [%x+4096];
  {REDUCE.format("max")} [%h0, {{24, 8}}], [%x+4096];
  {REDUCE.format("xor")} [%h0, {{32, 8}}], [%x+4096];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
stored:
  bar.sync 0;
  mad.wide.u32 %g, %t, 256, %i; setp.lt.u32 %q, %t, 20; @!%q bra done;
  ld.global.u32 %r0, [%g+64]; st.global.u32 [%o+52], %r0; ld.global.u32 %r0, [%g+100];
  st.global.u32 [%o+56], %r0; ld.global.u32 %r0, [%g+128]; st.global.u32 [%o+60], %r0;
done:
""",
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS)
    array = data[: 64 * 20].reshape(20, 64)
    box = np.array(left).reshape(-1, 16)[:64, :4].reshape(-1, 32)  # rows of 128 bytes
    pieces = box.reshape(-1, 8, 4)
    assert (pieces[0].reshape(-1) == array[18, 3:35]).all()
    assert (pieces[1, [1, 0, 3, 2, 5, 4, 7, 6]].reshape(-1) == array[19, 3:35]).all()
    assert not pieces[2:4].any()


@TARGETS
@pytest.mark.parametrize("mask", ["", ", %m"])
def test_copies_by_tensor_maps_to_other_ctas(target: str, mask: str) -> None:
    """Lanes copy other pieces each, to the other CTA; ptxas for sm_120 calls functions."""
    cast = ".multicast::cluster" if mask else ""
    left = same(
        init(1)
        + f"""
  @!%p mbarrier.arrive.expect_tx.shared.b64 %s, [%x], 752;
  barrier.cluster.arrive; barrier.cluster.wait;
  xor.b32 %r1, %c, 1; mapa.shared::cluster.u32 %r2, %x, %r1; add.u64 %g, %i, 12288;
  mov.b16 %m, 1; cvt.u16.u32 %m, %r1; add.u16 %m, %m, 1;
  {"mov.b32 %r2, %x;" if mask else ""}
  setp.ge.u32 %p, %t, 3; @%p bra issued; mul.wide.u32 %h0, %t, 16; add.u64 %h0, %h0, %i;
  mad.lo.u32 %r3, %t, 16, %r2; add.u32 %r5, %t, %c; setp.ne.u32 %p, %t, 1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{cast}
    [%r3+64], [%h0], 16, [%r2]{mask};
  @%p bra issued; add.u64 %h0, %g, 128;
  {LOAD.format("2d", "tile")}{cast} [%r2+1024], [%h0, {{%r5, 4}}], [%r2]{mask};
  add.u64 %h0, %g, 256;
  {LOAD.format("4d", "im2col")}{cast} [%r2+2048], [%h0, {{%r5, -1, -1, 1}}], [%r2], {{1, 0}}{mask};
  add.u64 %h0, %g, 384;
  {LOAD.format("5d", "im2col")}{cast} [%r2+3072], [%h0, {{8, %t, 0, 0, 0}}], [%r2], {{1, 1, 0}}{mask};
issued:
"""
        + wait(0)
        + """
  mad.lo.u32 %y, %t, 16, %x;
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+1024]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+2048]; st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+3072]; st.global.v4.u32 [%o+32], {%r0, %r1, %r2, %r3};
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%y+64]; st.global.v4.u32 [%o+48], {%r0, %r1, %r2, %r3};
  barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
        block=32,
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS)
    ctas = np.array(left).reshape(-1, 16)[:64].reshape(2, 32, 16)
    assert ctas[0, :3, 12:].reshape(-1).tolist() == data[:12].tolist()
    for rank in range(2):  # the box begins where the other CTA asked for
        begin = 4 * 64 + 1 + (1 - rank)
        assert ctas[rank, :2, :4].reshape(-1).tolist() == data[begin : begin + 8].tolist()


@pytest.mark.parametrize("cleared", [True, False], ids=["cleared", "own"])
@pytest.mark.parametrize("issuer", range(4))
def test_copies_for_a_pair_count_at_the_cta_that_the_mbarrier_names(issuer: int, cleared: bool) -> None:
    """As CUTLASS's loads for a pair of CTAs: with bit 24 of its address cleared, the mbarrier is that of the
    first CTA, and for each CTA of the mask that of the first of its pair.
    """
    counting = 0 if cleared else issuer & 1
    left = same(
        init(1)
        + f"""
  and.b32 %r1, %c, 1; setp.eq.u32 %q, %r1, {counting}; selp.b32 %r1, 256, 0, %q;
  @!%p mbarrier.arrive.expect_tx.shared.b64 %s, [%x], %r1;
  barrier.cluster.arrive; barrier.cluster.wait;
  setp.ne.u32 %q, %c, {issuer}; or.pred %q, %q, %p; @%q bra issued;
  {"and.b32 %r2, %x, 0xfeffffff;" if cleared else "mov.b32 %r2, %x;"}
  add.u64 %g, %i, 12416; mov.b16 %m, 15;
  {LOAD.format("2d", "tile")}.multicast::cluster.cta_group::2 [%x+1024], [%g, {{8, 4}}], [%r2], %m;
issued:
  barrier.cluster.arrive; barrier.cluster.wait;
  mov.b32 %r9, 0; mbarrier.test_wait.parity.shared::cta.b64 %q, [%x], %r9; selp.b32 %r0, 1, 0, %q;
  mad.lo.u32 %y, %t, 4, %x; ld.shared.u32 %r1, [%y+1024]; st.global.v2.u32 [%o], {{%r1, %r0}};
""",
        grid=4,
        cluster=4,
        block=32,
        target="sm_100a",
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS)
    box = data[: 64 * 20].reshape(20, 64)[4:8, 8:16].reshape(-1)
    ctas = np.array(left).reshape(-1, 16)[:128].reshape(4, 32, 16)
    assert (ctas[:, :, 0] == box).all()
    assert ctas[:, :, 1].all(), "a CTA got other bytes than it expects"


@TARGETS
def test_tensor_maps_that_kernels_change(target: str) -> None:
    left = same(
        """
  add.u64 %g, %i, 12288; mad.lo.u32 %y, %t, 4, %x; mad.wide.u32 %h0, %t, 4, %g;
  ld.global.u32 %r0, [%h0]; st.shared.u32 [%y], %r0; bar.warp.sync -1;
  setp.ne.u32 %p, %t, 0; @%p bra changed;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%x], 0, 4;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%x], 1, 2;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%x], 0, 128;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%x], 1, 10;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%x], 0, 512;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%x], 1, 1;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%x], 0;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%x], 7;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%x], 1;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%x], %i;
changed:
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%g], [%x], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%g], 128;
  @%p bra loaded;
  mbarrier.init.shared.b64 [%x+512], 1;
  mbarrier.arrive.expect_tx.shared.b64 %s, [%x+512], 32;
"""
        + LOAD.format("2d", "tile")
        + " [%x+1024], [%g, {126, 9}], [%x+512];\nloaded: bar.sync 0;\n"
        + wait(0, 0, 512)
        + "ld.shared.u32 %r0, [%y+1024]; st.global.u32 [%o], %r0;",
        block=32,
        target=target,
    )
    data = np.random.default_rng(5).integers(1, 100, WORDS)
    assert [left[16 * i] for i in range(8)] == [*data[9 * 128 + 126 : 9 * 128 + 128].tolist()] + [
        0x7FFFFFFF
    ] * 6


# Operands in shared memory without swizzles: 8 x 16-byte tiles, one after the other.
FILL = """
  .reg .f32 %f<4>; .reg .b32 %z<4>; mad.lo.u32 %y, %t, 32, %x;
  mul.lo.u32 %r0, %t, 0x01030107; and.b32 %r0, %r0, {mask}; xor.b32 %r1, %r0, {flip};
  st.shared.v4.u32 [%y], {{%r0, %r1, %r0, %r1}}; st.shared.v4.u32 [%y+16], {{%r1, %r0, %r1, %r0}};
  fence.proxy.async; bar.sync 0;
  and.b32 %r2, %x, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %s, %r2;
  mov.b64 %g, 0x1000080000; or.b64 %s, %s, %g;
  cvt.rn.f32.u32 %f0, %t; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
  mov.b32 %z0, %r0; mov.b32 %z1, %r1; mov.b32 %z2, %r1; mov.b32 %z3, %r0; setp.{keep}.u32 %p, %t, 9999;
  wgmma.fence.sync.aligned;
"""
DONE = """
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};
"""
IN_F32, IN_INTEGERS = "{%f0, %f1, %f2, %f3}", "{%z0, %z1, %z2, %z3}"


@pytest.mark.parametrize(
    ("product", "mask", "flip"),
    [
        ("m64n8k16.f32.f16.f16 {f}, %s, %s, %p, 1, 1, 0, 0", "0x03ff03ff", "0x38003c00"),
        ("m64n8k16.f32.f16.f16 {f}, %s, %s, %p, 1, 1, 0, 1", "0x03ff03ff", "0x38003c00"),
        ("m64n8k16.f32.f16.f16 {f}, %s, %s, %p, -1, 1, 1, 0", "0x03ff03ff", "0x38003c00"),
        ("m64n8k16.f32.bf16.bf16 {f}, %s, %s, %p, 1, -1, 0, 0", "0x007f007f", "0x3f803f00"),
        ("m64n8k16.f32.f16.f16 {f}, {h}, %s, %p, 1, 1, 0", "0x03ff03ff", "0x38003c00"),
        ("m64n8k16.f16.f16.f16 {{%z0, %z1}}, %s, %s, %p, 1, 1, 0, 0", "0x03ff03ff", "0x34003400"),
        ("m64n8k8.f32.tf32.tf32 {f}, %s, %s, %p, 1, 1", "0x007fe000", "0x3f800000"),
        ("m64n8k32.f32.e4m3.e5m2 {f}, %s, %s, %p, 1, 1", "0x0f0f0f0f", "0x38343830"),
        ("m64n8k32.s32.s8.u8 {h}, %s, %s, %p", "0xffffffff", "0x05030201"),
        ("m64n8k256.s32.b1.b1.and.popc {h}, %s, %s, %p", "0xffffffff", "0x05030201"),
        ("m64n8k256.s32.b1.b1.and.popc {h}, {{%r0, %r1, %r1, %r0}}, %s, %p", "0xffffffff", "0x05030201"),
    ],
)
@pytest.mark.parametrize("keep", ["ne", "gt"])
def test_products_of_a_warpgroup(product: str, mask: str, flip: str, keep: str) -> None:
    text = FILL.format(mask=mask, flip=flip, keep=keep)
    text += f"  wgmma.mma_async.sync.aligned.{product.format(f=IN_F32, h=IN_INTEGERS)};"
    if ".s32" in product or ".f16.f16.f16" in product:
        text += "  mov.b32 %f0, %z0; mov.b32 %f1, %z1; mov.b32 %f2, %z2; mov.b32 %f3, %z3;"
    result = same(text + DONE, block=128)
    assert len(set(result)) > 8


@pytest.mark.parametrize(
    ("product", "mask", "flip"),
    [
        ("m64n8k32.f32.f16.f16 {f}, %s, %s, %r3, 1, %p, 1, 1, 0, 0", "0x03ff03ff", "0x38003c00"),
        ("m64n8k32.f32.f16.f16 {f}, %s, %s, %r3, 0, %p, -1, 1, 1, 1", "0x03ff03ff", "0x38003c00"),
        ("m64n8k32.f32.bf16.bf16 {f}, {r}, %s, %r3, 0, %p, 1, -1, 1", "0x007f007f", "0x3f803f00"),
        ("m64n8k32.f16.f16.f16 {{%z0, %z1}}, {r}, %s, %r3, 1, %p, -1, 1, 0", "0x03ff03ff", "0x34003400"),
        ("m64n8k16.f32.tf32.tf32 {f}, %s, %s, %r4, 1, %p, 1, 1", "0x007fe000", "0x3f800000"),
        ("m64n8k64.f32.e4m3.e5m2 {f}, %s, %s, %r3, 0, %p, -1, 1", "0x0f0f0f0f", "0x38343830"),
        ("m64n8k64.satfinite.s32.s8.u8 {h}, %s, %s, %r3, 0, %p", "0xffffffff", "0x05030201"),
        ("m64n8k64.s32.s8.s8 {h}, {r}, %s, %r3, 0, %p", "0xffffffff", "0x05030201"),
    ],
)
@pytest.mark.parametrize("keep", ["ne", "gt"])
def test_sparse_products_of_a_warpgroup(product: str, mask: str, flip: str, keep: str) -> None:
    text = FILL.format(mask=mask, flip=flip, keep=keep)
    # Of four elements (0, 2), (1, 2), (0, 3) or (1, 3); of two the first or the second.
    text += """  mul.lo.u32 %r3, %t, 0x9e3779b9; and.b32 %r4, %r3, 0x11111111;
  or.b32 %r3, %r3, 0x88888888; and.b32 %r3, %r3, 0xdddddddd;
  mul.lo.u32 %r4, %r4, 10; or.b32 %r4, %r4, 0x44444444;
"""
    operands = product.format(f=IN_F32, h=IN_INTEGERS, r="{%r0, %r1, %r1, %r0}")
    text += f"  wgmma.mma_async.sp.sync.aligned.{operands};"
    if ".s32" in product or ".f16.f16.f16" in product:
        text += "  mov.b32 %f0, %z0; mov.b32 %f1, %z1; mov.b32 %f2, %z2; mov.b32 %f3, %z3;"
    result = same(text + DONE, block=128)
    assert len(set(result)) > 8


def test_registers_that_a_warpgroup_asks_for_are_there() -> None:
    """ptxas asks in a loop until the answer is yes."""
    text = (
        HEADER.format(target="sm_90a")
        + """
.visible .entry k(.param .b64 out) .maxntid 256 .minnctapersm 1 {
  .reg .b64 %o; .reg .b32 %t; .reg .pred %p; ld.param.b64 %o, [out]; mov.u32 %t, %tid.x;
  mad.wide.u32 %o, %t, 4, %o; setp.ge.u32 %p, %t, 128; @%p bra more;
  setmaxnreg.dec.sync.aligned.u32 40; st.global.u32 [%o], 1; ret;
more: setmaxnreg.inc.sync.aligned.u32 160; st.global.u32 [%o], 2; ret;
}
"""
    )
    code = disassemble(Cubin.parse(machine_code(PtxModule.from_text(text, "k.ptx"), "sm_90a"), "k"))["k"]
    assert any(x.opcode.startswith("USETMAXREG.TRY_ALLOC") for x in code)
    out = np.zeros(256, np.uint32)
    Device(text, code="sass").run("k", out, block=(256, 1, 1))
    assert out.tolist() == [1] * 128 + [2] * 128


@pytest.mark.parametrize(
    ("product", "stored"),
    [
        ("m64n8k16.f32.f16.f16 {f}, %s, %s, %p, 1, 1, 0, 0", "f"),
        ("m64n8k32.f32.e4m3.e5m2 {f}, %s, %s, %p, 1, 1", "f"),
        ("m64n8k32.s32.s8.u8 {h}, %s, %s, %p", "z"),
        ("m64n8k32.s32.s8.u8 {h}, %s, %s, %p", "f"),  # which nothing reads: HGMMA RZ, gdesc[URZ], RZ
    ],
)
def test_a_warpgroup_waits_for_its_products(product: str, stored: str, tmp_path: Path) -> None:
    """`gsb0` closes the group for which WARPGROUP.DEPBAR waits: stores that follow find the results."""
    text = FILL.format(mask="0x03ff03ff", flip="0x38003c00", keep="ne")
    text += f"  wgmma.mma_async.sync.aligned.{product.format(f=IN_F32, h=IN_INTEGERS)};" * 4
    text += DONE.replace("%f", f"%{stored}").replace("v4.f32", "v4.b32")
    (tmp_path / "k.ptx").write_text(HEADER.format(target="sm_90a") + ENTRY + text + "\n  ret;\n}\n")
    gpu = simt.GPU("h100", code="sass", set={"sm.count": 1})
    kernel = gpu.load(tmp_path / "k.ptx").k[1, 128]
    launch = kernel(gpu.zeros(WORDS, np.uint32), gpu.zeros(WORDS, np.uint32))
    assert launch.counters["simt__uncovered_dependences.sum"] == 0
