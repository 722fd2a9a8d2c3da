"""The parts of a launch's time: they add up to all of it, and are what the engine counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import simt
from simt.result.stack import times
from support.launches import launch


def test_shares_add_up_and_follow_from_the_counts() -> None:
    one = launch(ctas=4)
    parts = {part.name: part for part in one.stack}
    assert sum(part.share for part in parts.values()) == pytest.approx(1)
    assert parts["launch"].share == pytest.approx(one.launch_latency / one.cycles)
    schedulers = 4 * 4
    assert parts["issue"].share == pytest.approx(sum(one.stalls["selected"]) / (one.cycles * schedulers))
    assert sum(times(one).values()) == pytest.approx(one.seconds)


def test_waiting_for_memory_is_divided_by_where_sectors_were_found() -> None:
    waiting = {"stalls": {"selected": [640] * 4, "long_scoreboard": [3000] * 4}}
    hits = {"l1": {"global_read": {"hit": 1000}}, "l2": {}}
    near = replace(launch(ctas=4, **waiting), **hits, engine=launch(ctas=4).engine | {"dram_bus_cycles": 0})
    assert {p.name for p in near.stack if p.share > 0} >= {"L1"}
    assert not any(p.name.startswith("DRAM") for p in near.stack)
    machine = near.machine
    assert machine is not None
    body = near.cycles - near.launch_latency
    half = machine.dram_channels * body * machine.dram_khz // machine.core_khz // 2
    busy = {p.name: p.share for p in replace(near, engine=near.engine | {"dram_bus_cycles": half}).stack}
    assert busy["DRAM bandwidth"] == pytest.approx(busy["L1"], rel=1e-3)


def test_a_launch_that_was_not_measured_has_no_parts() -> None:
    assert launch(ctas=4, warp_instructions=10**9).stack == ()  # its schedulers issued for others


SOURCE = """
extern "C" __global__ void conflicts(float* out) {
  __shared__ float s[1024];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += s[threadIdx.x % 32 * 32 + k];
  out[threadIdx.x] = sum;
}
"""


def test_names_of_throttles_are_nsight_computes() -> None:
    gpu = simt.GPU("a100")
    found = gpu.compile(SOURCE).conflicts[1, 256](np.zeros(256, np.float32))
    assert found.warp_stalls["mio_throttle"] > 10 * found.warp_stalls["lg_throttle"]
    parts = {part.name: part.waiting for part in found.stack}
    assert max(parts, key=lambda name: parts[name]) == "shared memory"
    lines = found.lines()
    assert lines[0].text.strip().startswith("for (int k = 0") and "mio_throttle" in lines[0].stalled
    assert "kernel.cu:7" in str(lines) and "mio_throttle" in lines._repr_html_()
    assert sum(row["share"] for row in lines.to_json()) == pytest.approx(1)
    with pytest.raises(ValueError, match="expected 'source' or 'instruction'"):
        found.lines("word")  # type: ignore[arg-type]
    assert "shared memory" in found._repr_html_()
