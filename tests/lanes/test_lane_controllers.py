"""Controllers on GPUs with warps of 64 lanes: whole warps are observed and predicted, values stay correct."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simt
from simt.control import GO_ON, Controller, Decision, Interval, LaunchView, Predict, Stop
from simt.cuda import PtxModule

SOURCE = """.version 8.7
.target sm_70
.address_size 64
// Loops of 40 iterations in even warps of 32 lanes and 60 in odd ones, around a shared counter.
.visible .entry work(.param .u64 out, .param .u64 total)
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd4, [total];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2; shr.u32 %r5, %r1, 5; and.b32 %r6, %r5, 1;
  mad.lo.u32 %r7, %r6, 20, 40; mov.u32 %r8, 0;
LOOP:
  ld.global.u32 %r9, [%rd3]; add.u32 %r9, %r9, 1; st.global.u32 [%rd3], %r9;
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p1, %r8, %r7;
  @%p1 bra LOOP;
  bar.sync 0;
  red.global.add.u32 [%rd4], 1;
  ret;
}
"""
CTAS, BLOCK = 120, 96


class Recorder(Controller):
    method = "recorder"
    interval = 200
    warps = blocks = True

    def __init__(self, decision: Decision = GO_ON, at: int = 0) -> None:
        self._decision, self._at = decision, at
        self.finished: list[np.ndarray] = []
        self.previewed: list[int] = []  # warp instructions of each warp

    def begin(self, launch: LaunchView) -> Decision:
        assert launch.warps_per_cta == 2
        if launch.code is not None:
            counts = launch.code.preview(1.0).counts
            self.previewed.extend((counts * launch.code.blocks.length).sum(axis=1))
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        self.finished.append(interval.warps)
        return self._decision if interval.end == self._at else GO_ON


def run(controller: Controller | None, **options: Any) -> tuple[np.ndarray, int, Any]:
    gpu = simt.GPU("r9nano", set={"sm.count": 4, "sm.max_ctas": 4}, controller=controller, **options)
    module = gpu.load(PtxModule.from_text(SOURCE, "work.ptx"))
    out, total = np.zeros(CTAS * BLOCK, np.uint32), np.zeros(1, np.uint32)
    result = module.work[CTAS, BLOCK](out, total)
    return out, int(total[0]), result


def expected() -> np.ndarray:
    return 40 + 20 * (np.arange(CTAS * BLOCK) % BLOCK // 32 % 2)


def test_whole_warps_are_seen_and_previewed() -> None:
    recorder = Recorder()
    out, total, result = run(recorder)
    assert (out == expected()).all()
    assert total == CTAS * BLOCK
    # Warps that finish after the last whole interval are not reported.
    assert 2 * CTAS - 32 <= sum(len(warps) for warps in recorder.finished) <= 2 * CTAS
    # The preview counts what warps of 64 lanes execute: their halves diverge only at the ends of loops.
    assert len(recorder.previewed) == 2 * CTAS
    assert sum(recorder.previewed) == result.warp_instructions


@pytest.mark.parametrize(
    "decision",
    [Stop("enough"), Predict(warp_cycles=3000.0), Predict(warp_cycles=3000.0, residents=True)],
    ids=["stop", "predict", "residents"],
)
def test_values_are_right_whatever_is_decided(decision: Decision) -> None:
    first = None
    for threads, window in ((1, None), (2, 1)):
        out, total, result = run(Recorder(decision, 2000), threads=threads, window=window)
        assert (out == expected()).all()
        assert total == CTAS * BLOCK
        assert result.sampled is not None
        first = first or result
        assert result == first
