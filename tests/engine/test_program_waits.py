"""What warps wait for whose program has no next instruction yet."""

import numpy as np
import pytest

import simt
from simt.cuda.ptx_module import PtxModule

WARP_GROUP = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds) {
  .reg .u64 %o, %s; .reg .u32 %t, %n, %a; .reg .f32 %f<4>; .reg .pred %p, %q;
  .shared .align 128 .b8 tile[4096];
  ld.param.u64 %o, [out]; ld.param.u32 %n, [rounds];
  mov.u32 %t, %tid.x; mov.u32 %a, tile; shr.u32 %a, %a, 4; cvt.u64.u32 %s, %a; or.b64 %s, %s, 0x1000080000;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %s, %s, 0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  setp.ge.u32 %p, %t, 32; mov.u32 %a, %t;
  @%p bra DONE;
LOOP:
  mad.lo.u32 %a, %a, %a, %t; sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0;
  @%q bra LOOP;
DONE:
  wgmma.wait_group.sync.aligned 0;
  mad.wide.u32 %o, %t, 4, %o; cvt.rn.f32.u32 %f1, %a; add.f32 %f0, %f0, %f1; st.global.f32 [%o], %f0;
  ret;
}
"""

CLUSTER = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds) .explicitcluster .reqnctapercluster 2, 1, 1 {
  .reg .u64 %o; .reg .u32 %n, %a, %r; .reg .pred %p, %q;
  ld.param.u64 %o, [out]; ld.param.u32 %n, [rounds];
  mov.u32 %r, %cluster_ctarank; mov.u32 %a, %tid.x; setp.ne.u32 %p, %r, 0;
  @%p bra DONE;
LOOP:
  mad.lo.u32 %a, %a, %a, %n; sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0;
  @%q bra LOOP;
DONE:
  barrier.cluster.arrive; barrier.cluster.wait;
  st.global.u32 [%o], %a;
  ret;
}
"""


def stalls(text: str, threads: int, rounds: int, code: str, ctas: int = 1) -> tuple[int, dict[str, int]]:
    gpu = simt.GPU("h100", code=code)
    kernel = gpu.load(PtxModule.from_text(text, "k.ptx")).k
    out = gpu.array(np.zeros(128, np.float32))
    launch = kernel[ctas, threads](out, np.uint32(rounds))
    return launch.cycles, launch.warp_stalls


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_warps_of_a_group_wait_for_the_last(code: str) -> None:
    """Three of four warps reach the end of their group's products 20,000 cycles before the first does."""
    few, before = stalls(WARP_GROUP, 128, 1, code)
    many, after = stalls(WARP_GROUP, 128, 1500, code)
    longer = many - few
    assert longer > 10_000
    assert after["warpgroup_arrive"] - before["warpgroup_arrive"] == pytest.approx(3 * longer, rel=0.02)
    assert after["barrier"] == 0


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_a_cta_waits_for_another_of_its_cluster(code: str) -> None:
    few, before = stalls(CLUSTER, 64, 1, code, ctas=2)
    many, after = stalls(CLUSTER, 64, 1500, code, ctas=2)
    longer = many - few
    assert longer > 10_000
    assert after["barrier"] - before["barrier"] == pytest.approx(2 * longer, rel=0.02)
