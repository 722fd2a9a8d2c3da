"""Programs whose executions are compared, and a GPU with a bug."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import simt
from simt.cuda.driver import Driver, DriverDevice
from simt.debug import CudaExecutor
from support.fake_cuda import FakeCuda

HEADER = ".version 8.0\n.target sm_70\n.address_size 64\n"

# y[i] = a * x[i] + y[i], in a loop of `rounds` iterations.
AXPY = (
    HEADER
    + """.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n, .param .u32 rounds)
{
  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .f32 %f<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n]; ld.param.u32 %r6, [rounds];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  mov.u32 %r7, 0;
AGAIN:
  fma.rn.f32 %f3, %f1, %f2, %f3;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p2, %r7, %r6;
  @%p2 bra AGAIN;
  st.global.f32 [%rd5], %f3;
DONE:
  ret;
}
"""
)


def axpy(ptx: str = AXPY, n: int = 1000, rounds: int = 1, launches: int = 1) -> Callable[[simt.GPU], None]:
    """A program that launches `ptx` several times, with a = 1.1, 2.1 and so on."""

    def program(gpu: simt.GPU) -> None:
        module = gpu.load(ptx)
        x, y = (gpu.array(v) for v in np.random.default_rng(1).random((2, n), np.float32))
        for k in range(launches):
            module.axpy[-(-n // 128), 128](x, y, 1.1 + k, n, rounds)

    return program


def gpu_with(change: Callable[[str], str] = lambda text: text) -> CudaExecutor:
    """A stand-in for a GPU that executes PTX after applying `change`."""
    return CudaExecutor(DriverDevice(0, Driver(FakeCuda(change))))
