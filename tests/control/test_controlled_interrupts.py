"""Ctrl-C, and launches without work, under a controller."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from simt.control import GO_ON, PKP, Controller, Decision, Interval, LaunchView, Predict, Stop
from simt.errors import Interrupted
from simt.gpu import GPU
from simt.simulate import simulate
from support.tiny import dependent, write_kernel

SMALL = {"sm.count": 2}
LOOP = """
extern "C" __global__ void loop(float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; ++k) v = v * 1.5f + 1.0f;
    x[i] = v;
}
extern "C" __global__ void nothing() {}
"""


class Interrupting(Controller):
    """Stops the first launch, and presses Ctrl-C during the second."""

    method = "interrupting"
    interval = 200

    def begin(self, launch: LaunchView) -> Decision:
        self._index = launch.index
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        if self._index == 0 and interval.index == 4:
            return Stop("enough")
        if self._index == 1 and interval.index == 2:
            signal.raise_signal(signal.SIGINT)
        return GO_ON


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_kernel(tmp_path, [[dependent(80)]] * 2000, number, sm=80)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as stopped:
        simulate(tmp_path, "a100", set=SMALL, controller=Interrupting())
    result = stopped.value.result
    assert signal.getsignal(signal.SIGINT) is handler
    assert result.status == "interrupted" and 1 <= len(result.launches) < 3
    first = result.launches[0]
    assert first.sampled is not None and first.sampled.decision == "stop"


def test_ctrl_c_in_a_program_keeps_what_is_finished() -> None:
    gpu = GPU("a100", code="ptx", set=SMALL, controller=Interrupting())
    loop, x = gpu.compile(LOOP).loop, gpu.zeros(2000 * 64)
    loop[2000, 64](x, 40)
    with pytest.raises(KeyboardInterrupt):
        loop[2000, 64](x, 40_000)
    assert [launch.id for launch in gpu.launches] == [1]
    assert gpu.launches[0].sampled is not None and gpu.launches[0].sampled.decision == "stop"
    loop[4, 64](x, 1)  # the run continues
    assert len(gpu.launches) == 2


class AtOnce(Controller):
    method = "at-once"
    interval = 1

    def __init__(self, answer: Decision) -> None:
        self._answer = answer

    def begin(self, launch: LaunchView) -> Decision:
        return self._answer


@pytest.mark.parametrize(
    "controller",
    [AtOnce(GO_ON), AtOnce(Predict(warp_cycles=10)), AtOnce(Predict(launch_cycles=10)), PKP()],
)
def test_launches_of_next_to_no_work(controller: Controller) -> None:
    gpu = GPU("a100", code="ptx", set=SMALL, controller=controller)
    kernel = gpu.compile(LOOP).nothing
    for ctas in (1, 3):
        kernel[ctas, 1]()
    launches = gpu.result().launches
    assert [x.engine["ctas_finished"] for x in launches] == [1, 3]
    assert [x.warp_instructions for x in launches] == [1, 3]  # EXIT
    assert np.all([x.cycles > 0 for x in launches])
