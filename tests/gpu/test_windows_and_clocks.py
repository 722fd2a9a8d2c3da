"""Cycles do not depend on the window, whatever the ratio of the clocks."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.cuda import toolkit

# A thousand atomics on one address: its slice stalls most of the time, and the network to it is full.
SOURCE = """
extern "C" __global__ void count(unsigned* hits, unsigned* places) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  places[i] = atomicAdd(hits, 1u);
  atomicAdd(hits + 1, threadIdx.x);
}
"""


@pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
@pytest.mark.parametrize("interconnect_mhz", [1410, 2115, 2820])
def test_a_slice_that_refuses(interconnect_mhz: int) -> None:
    cycles = []
    for window in (1, 4, None):
        overrides = {"sm.count": 2, "clock.interconnect_mhz": interconnect_mhz}
        gpu = simt.GPU("a100", set=overrides, window=window)
        hits, places = gpu.zeros(2, np.uint32), gpu.zeros(1024, np.uint32)
        launch = gpu.compile(SOURCE).count[8, 128](hits, places)
        assert launch is not None
        assert sorted(places.numpy()) == list(range(1024))
        cycles.append(launch.cycles)
    assert cycles[1:] == cycles[:1] * 2
