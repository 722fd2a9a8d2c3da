"""Cooperative launches: barriers of a whole grid, with and without timing; grids that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.errors import LaunchError
from support.ptx import HEADER

pytest.importorskip("lz4")

# Every step needs the results of other CTAs from the step before; in the last CTA, some threads have exited.
STEPS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void steps(int* a, int* b, int n, int count) {
  cg::grid_group grid = cg::this_grid();
  unsigned i = grid.thread_rank();
  if (i >= n) return;
  for (int k = 0; k < count; ++k) {
    b[i] = a[(i + 77) % n] + a[(i + n - 5) % n] * k;
    grid.sync();
    int* c = a; a = b; b = c;
  }
}
extern "C" __global__ void split(int* a, int* b, int n) {
  cg::grid_group grid = cg::this_grid();
  unsigned i = grid.thread_rank();
  a[i] = i;
  auto token = grid.barrier_arrive();
  int own = i * i;
  grid.barrier_wait(cg::grid_group::arrival_token(token));
  b[i] = own + a[n - 1 - i] + 1000000 * grid.is_valid();
}
extern "C" __global__ void valid(int* a) { a[0] = cg::this_grid().is_valid(); }
"""


def after(a: np.ndarray, count: int) -> np.ndarray:
    for k in range(count):
        a = np.roll(a, -77) + np.roll(a, 5) * np.int32(k)
    return a


def gpu_of(name: str, functional: bool, **options: Any) -> simt.GPU:
    return simt.GPU(name, functional=functional, set={"sm.count": 4}, **options)


@pytest.mark.slow
@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize("name", ["qv100", "a100", "h100"])
def test_steps_of_a_grid_that_fills_the_gpu(name: str, functional: bool) -> None:
    gpu = gpu_of(name, functional)
    kernel = gpu.compile(STEPS).steps
    ctas = 4 * kernel.occupancy(256).ctas
    n = ctas * 256 - 70
    a = np.random.default_rng(7).integers(0, 1000, n).astype(np.int32)
    x, y = gpu.array(a), gpu.zeros(n, np.int32)
    kernel[ctas, 256](x, y, n, 3, cooperative=True)
    assert (y.numpy() == after(a, 3)).all()
    with pytest.raises(LaunchError, match=rf"{ctas + 1} CTAs, of which {ctas} fit"):
        kernel[ctas + 1, 256](x, y, n, 3, cooperative=True)


@pytest.mark.slow
def test_times_do_not_depend_on_threads_and_windows() -> None:
    cycles = set()
    for threads, window in ((1, None), (2, None), (1, 1)):
        gpu = gpu_of("qv100", False, threads=threads, window=window)
        a = np.arange(1000, dtype=np.int32)
        x, y = gpu.array(a), gpu.zeros(1000, np.int32)
        launch = gpu.compile(STEPS).steps[8, 128](x, y, 1000, 5, cooperative=True)
        assert (y.numpy() == after(a, 5)).all()
        cycles.add(launch.cycles)
    assert len(cycles) == 1


@pytest.mark.slow
@pytest.mark.parametrize("functional", [True, False])
def test_arriving_and_waiting_apart_and_grids_of_three_dimensions(functional: bool) -> None:
    gpu = gpu_of("h100", functional)
    n = 12 * 64
    a, b = np.zeros(n, np.int32), np.zeros(n, np.int32)
    gpu.compile(STEPS).split[(3, 2, 2), (8, 4, 2)](a, b, n, cooperative=True)
    i = np.arange(n)
    assert (b == i * i + n - 1 - i + 1000000).all()


@pytest.mark.slow
@pytest.mark.parametrize("functional", [True, False])
def test_without_a_cooperative_launch(functional: bool) -> None:
    gpu = gpu_of("a100", functional)
    module = gpu.compile(STEPS)
    a = np.ones(64, np.int32)
    with pytest.raises(simt.ProgramFault, match="cooperative=True") as fault:
        module.steps[2, 32](a, np.zeros_like(a), 64, 1)
    assert fault.value.kind == "trap"
    for cooperative in (False, True):
        module.valid[1, 1](a, cooperative=cooperative)
        assert a[0] == cooperative


@pytest.mark.slow
def test_a_trace_of_a_cooperative_launch(tmp_path: Path) -> None:
    gpu = gpu_of("a100", False)
    a = np.arange(500, dtype=np.int32)
    x, y = gpu.array(a), gpu.zeros(500, np.int32)
    with gpu.trace(tmp_path / "trace.simt"):
        gpu.compile(STEPS).steps[4, 128](x, y, 500, 3, cooperative=True)
    assert (y.numpy() == after(a, 3)).all()
    replayed = simt.simulate(tmp_path / "trace.simt", "a100", set={"sm.count": 4}).launches[0]
    assert replayed.cycles > 0 and replayed.warp_instructions > 16 * 20


DEVICE_RUNTIME = (
    HEADER.format(target=70)
    + """
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 s);
.extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 h, .param .b32 f);
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .b32 %i, %c, %n, %v; .reg .b64 %a, %b, %h;
  mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %tid.x; mad.lo.u32 %i, %i, %n, %c;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mad.wide.u32 %a, %i, 4, %a; st.global.u32 [%a], %i;
  call.uni (%h), cudaCGGetIntrinsicHandle, (1);
  call.uni (%v), cudaCGSynchronize, (%h, 0);
  ld.param.u64 %a, [a]; mov.u32 %c, %nctaid.x; mul.lo.u32 %c, %c, %n; sub.u32 %c, %c, %i; sub.u32 %c, %c, 1;
  mad.wide.u32 %a, %c, 4, %a; ld.global.u32 %c, [%a]; add.u32 %c, %c, %v;
  mad.wide.u32 %b, %i, 4, %b; st.global.u32 [%b], %c;
  ret;
}
"""
)


@pytest.mark.parametrize("name, code", [("qv100", "ptx"), ("a100", "sass"), ("h100", "sass")])
@pytest.mark.parametrize("functional", [True, False])
def test_barriers_of_the_runtime_for_device_code(functional: bool, name: str, code: str) -> None:
    """As called by Numba and relocatable device code."""
    gpu = gpu_of(name, functional, code=code)
    a, b = np.zeros(8 * 96, np.int32), np.zeros(8 * 96, np.int32)
    kernel = gpu.load(PtxModule.from_text(DEVICE_RUNTIME, "runtime.ptx")).k
    kernel[8, 96](a, b, cooperative=True)
    assert (b == np.arange(8 * 96)[::-1]).all()
    with pytest.raises(simt.ProgramFault, match="cooperative=True"):
        kernel[8, 96](a, b)


SYSTEM_CALLS = (
    HEADER.format(target=70)
    + """
.extern .func (.param .b64 r) __cuda_syscall_CGS_get_intrinsic_handle (.param .b32 s);
.extern .func (.param .b32 r) __cuda_syscall_CGS_sync (.param .b64 h, .param .b32 f);
.extern .func (.param .b32 r) __cuda_syscall_CGS_get_size (.param .b64 t, .param .b64 g, .param .b64 h);
.extern .func (.param .b32 r) __cuda_syscall_CGS_get_rank (.param .b64 t, .param .b64 g, .param .b64 h);
.visible .entry k(.param .u64 facts, .param .u64 b)
{
  .reg .pred %p; .reg .b32 %i, %v; .reg .b64 %a, %b, %c, %h;
  call.uni (%h), __cuda_syscall_CGS_get_intrinsic_handle, (2);
  setp.ne.u64 %p, %h, 0; @%p trap;
  call.uni (%h), __cuda_syscall_CGS_get_intrinsic_handle, (1);
  ld.param.u64 %a, [facts]; add.u64 %c, %a, 4;
  call.uni (%v), __cuda_syscall_CGS_get_size, (%a, %c, %h);
  ld.param.u64 %b, [b];
  mov.u32 %i, %ctaid.y; mad.lo.u32 %i, %i, 3, 0; mov.u32 %v, %ctaid.x; add.u32 %i, %i, %v;
  mad.lo.u32 %i, %i, 40, 0; mov.u32 %v, %tid.z; mad.lo.u32 %i, %v, 20, %i;
  mov.u32 %v, %tid.y; mad.lo.u32 %i, %v, 10, %i; mov.u32 %v, %tid.x; add.u32 %i, %i, %v;
  mad.wide.u32 %b, %i, 4, %b;
  call.uni (%v), __cuda_syscall_CGS_get_rank, (%b, 0, %h);
  call.uni (%v), __cuda_syscall_CGS_sync, (%h, 0);
  barrier.sync 0;
  setp.ge.u32 %p, %v, 1; @%p trap;
  ret;
}
"""
)


@pytest.mark.parametrize("functional", [True, False])
def test_system_calls_of_grids(functional: bool) -> None:
    """As called by libcudadevrt; handles of several grids are null."""
    facts, ranks = np.zeros(2, np.uint32), np.zeros(6 * 40, np.uint32)
    kernel = gpu_of("a100", functional).load(PtxModule.from_text(SYSTEM_CALLS, "calls.ptx")).k
    kernel[(3, 2), (10, 2, 2)](facts, ranks, cooperative=True)
    assert facts.tolist() == [240, 1]
    assert ranks.tolist() == list(range(240))


@pytest.mark.slow
@pytest.mark.parametrize("functional", [True, False])
def test_grids_in_numba(functional: bool) -> None:
    """Numba launches kernels that synchronise their grid as cooperative ones, without being asked to."""
    pytest.importorskip("numba_cuda")
    from numba import cuda

    def reverse(x: Any, y: Any) -> None:
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 2
        grid.sync()
        if i < x.size:
            x[i] = y[x.size - 1 - i] + 1

    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    expected = 2 * x[::-1] + 1
    kernel = gpu_of("a100", functional).numba(reverse)
    kernel[8, 128](x, y)
    assert (x == expected).all()
    with pytest.raises(LaunchError, match="fit on a100 at once"):
        kernel[10_000, 128](x, y)
