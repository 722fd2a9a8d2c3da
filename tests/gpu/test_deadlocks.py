"""Programs that never end: deadlocks are found and explained, and a limit says what the others do."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.errors import DeadlockError, LimitReached
from simt.sass.disassembler import is_installed
from simt.spec import available, load_spec

SOURCE = r"""
extern "C" __global__ void deadlock(int* v, int how) {
  const bool first = threadIdx.x < blockDim.x / 2;
  if (how == 0 && first) asm volatile("bar.sync 1, %0;" :: "r"(blockDim.x));        // the others leave
  if (how == 1) {                                                                  // two barriers
    if (first) asm volatile("bar.sync 1, %0;" :: "r"(blockDim.x));
    else asm volatile("bar.sync 2, %0;" :: "r"(blockDim.x));
  }
  if (how == 2) asm volatile("bar.sync 1, %0;" :: "r"(2 * blockDim.x));             // more than the block has
  v[0] = 1;
}
extern "C" __global__ void spin(volatile int* flag) {
  if (threadIdx.x < 32) while (*flag == 0) ;
  __syncthreads();
}
"""
CLUSTERS = r"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) half_a_cluster(int how) {
  if (blockIdx.x % 2 == 0)
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
  else if (how == 0)
    asm volatile("bar.sync 3, 64;");
  else
    asm volatile("barrier.cluster.arrive.aligned; bar.sync 3, 64;");
}
"""
CTAS = (1, 2, 9, 500)


def expect_deadlocks(gpu: simt.GPU, ctas: int, how: int, threads: int) -> None:
    module = gpu.compile(SOURCE)
    v = gpu.zeros(1, np.int32)
    error = simt.ProgramFault if gpu.functional else DeadlockError
    with pytest.raises(error, match="barrier") as told:
        module.deadlock[ctas, threads](v, how)
    if not gpu.functional:
        assert f"0 of {ctas} CTAs done" in str(told.value)
    assert v.numpy()[0] == (how == 0)  # by those that leave


@pytest.mark.parametrize("gpu", available())
def test_barriers_that_miss_warps(gpu: str) -> None:
    """On each specification, with one CTA and with more than are resident."""
    options = {"sm.count": 4}
    threads = 2 * load_spec(gpu).sm.warp_size
    for ctas in (1, 2):
        expect_deadlocks(simt.GPU(gpu, code="ptx", set=options), ctas, 1, threads)


@pytest.mark.slow
@pytest.mark.parametrize("how", [0, 1, 2])
@pytest.mark.parametrize("code", ["ptx", "sass"])
@pytest.mark.parametrize("gpu", ["a100", "h100", "qv100"])
def test_deadlocks_of_both_instruction_sets(gpu: str, code: str, how: int) -> None:
    if code == "sass" and not is_installed():
        pytest.skip("nvdisasm is not installed")
    for ctas in CTAS:
        for functional in (False, True):
            expect_deadlocks(simt.GPU(gpu, code=code, functional=functional), ctas, how, 64)


@pytest.mark.parametrize("how", [0, 1])
def test_half_a_cluster_at_its_barrier(how: int) -> None:
    """The other CTA waits elsewhere, before it has arrived or after."""
    for ctas in (2, 8):
        for functional in (True, False):
            gpu = simt.GPU("h100", code="ptx", functional=functional)
            error = simt.ProgramFault if functional else DeadlockError
            with pytest.raises(error) as told:
                gpu.compile(CLUSTERS).half_a_cluster[ctas, 32](how)
            assert "barrier.cluster.wait" in str(told.value) or how == 1
            assert "bar.sync 3, 64" in str(told.value)


def test_a_limit_says_what_the_warps_do() -> None:
    """A loop on memory is no deadlock: nothing shows that the value stays."""
    gpu = simt.GPU("a100", code="ptx", max_cycles=30_000)
    module = gpu.compile(SOURCE)
    with pytest.raises(LimitReached) as told:
        module.spin[2, 96](gpu.zeros(1, np.int32))
    text = str(told.value)
    assert text.startswith("the limit of 30,000 core cycles is reached\n")
    assert "launch 1 (spin): 0 of 2 CTAs done, 2 resident\n" in text
    assert "4 warps, each waits for barrier" in text
    assert "2 warps, each waits for a value from global or local memory" in text and "setp.eq.s32" in text
