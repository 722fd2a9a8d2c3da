"""Profiles of launches that are executed without timing: their counts are those of the timed simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import LaunchError, ProfileError
from simt.profile import Profile, read_profile
from simt.profile.executed import VECTOR, Executed

SOURCE = """
__shared__ float part[128];
extern "C" __global__ void strided(const float* a, float* b, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = a[i * stride % n];
  __syncthreads();
  if (threadIdx.x < 40) b[i] = part[127 - threadIdx.x];
}
extern "C" __global__ void ticket(int* next, int* taken) {
  if (threadIdx.x == 0) taken[blockIdx.x] = atomicAdd(next, 1);
}
extern "C" __global__ void rounds(float* a, int n) {
  float x = a[threadIdx.x];
  for (int i = 0; i < n; ++i) x = x * 0.5f + 1;
  a[threadIdx.x] = x;
}
"""
N = 1 << 16
MACHINE = {"sm.count": 4}
SAME = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
)


def program(gpu: simt.GPU) -> Any:
    module = gpu.compile(SOURCE)
    a, b = gpu.array(np.arange(N, dtype=np.float32)), gpu.zeros(N)
    next_, taken = gpu.zeros(1, np.int32), gpu.zeros(8192, np.int32)
    for stride in (1, 8, 32):
        module.strided[N // 128, 128](a, b, stride, N)
    module.ticket[8192, 32](next_, taken)
    module.rounds[1, 64](a, 5)
    module.rounds[1, 64](a, 500)
    return a.numpy(), b.numpy(), np.sort(taken.numpy())


@pytest.fixture(scope="module")
def profile() -> Profile:
    gpu = simt.GPU("qv100", functional=True, set=MACHINE)
    with gpu.profiled() as executed:
        values = program(gpu)
    for ours, theirs in zip(values, program(simt.GPU("qv100", functional=True)), strict=True):
        assert (ours == theirs).all()
    assert gpu.instructions == executed.profile().column("smsp__inst_executed.sum").sum()
    return executed.profile()


def test_counts_are_those_of_the_timed_simulation(profile: Profile) -> None:
    gpu = simt.GPU("qv100", set=MACHINE)
    program(gpu)
    assert profile.launches["name"].cast(str).to_list() == [x.name for x in gpu.launches]
    for name in SAME:
        assert profile.column(name).tolist() == [x.counters[name] for x in gpu.launches], name


def test_memory_that_a_launch_reaches(profile: Profile) -> None:
    read = profile.column("simt__footprint_read_bytes")
    written = profile.column("simt__footprint_written_bytes")
    assert read[:3].tolist() == [4 * N, 4 * N, N]  # every 32nd float, each in a sector of its own
    assert written[0] == N // 128 * 160  # 40 of 128 floats
    assert written[3] == 4 * 8192 + 32  # an atomic operation writes
    assert profile.column("smsp__inst_executed_op_global_atom.sum")[3] == 8192


def test_vectors_tell_code_and_iterations_apart(profile: Profile) -> None:
    vectors = np.stack([profile.column(name) for name in VECTOR], axis=1)
    assert (vectors[0] == vectors[2]).all()
    assert np.abs(vectors[0] - vectors[3]).max() > 0.1
    assert np.abs(vectors[4] - vectors[5]).max() > 0.1


def test_expected_times_are_the_longest_bound(profile: Profile) -> None:
    times, spec = profile.column("duration_ns"), simt.spec.load_spec("qv100", MACHINE)
    assert profile.expected and profile.gpu == "qv100"
    moved = profile.column("simt__footprint_read_bytes") + profile.column("simt__footprint_written_bytes")
    instructions = profile.column("smsp__inst_executed.sum")
    at_peak = moved[0] / spec.dram_bytes_per_cycle
    in_turn = instructions[5] / 2 * spec.sm.units.int.latency
    for time, cycles in ((times[0], at_peak), (times[5], in_turn)):
        issued = instructions[0] / (4 * spec.sm.sub_cores) if cycles is at_peak else 0.0
        assert time == pytest.approx(spec.launch.overhead + 1e3 * max(cycles, issued) / spec.clock.core_mhz)


def test_host_threads_change_nothing(profile: Profile) -> None:
    gpu = simt.GPU("qv100", functional=True, set=MACHINE, threads=3)
    with gpu.profiled() as executed:
        program(gpu)
    assert executed.profile().launches.equals(profile.launches)


def test_a_saved_profile_is_still_of_expected_times(profile: Profile, tmp_path: Path) -> None:
    again = read_profile(profile.save(tmp_path / "p.parquet"))
    assert again.expected and again.launches.equals(profile.launches)


def test_refusals() -> None:
    with pytest.raises(LaunchError, match="functional=True"), simt.GPU("qv100").profiled():
        pass
    with pytest.raises(ProfileError, match="no kernel was launched"):
        Executed(simt.spec.load_spec("qv100"), "p.py").profile()
