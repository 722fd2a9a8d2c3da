"""PTX in the styles of different compilers."""

from __future__ import annotations

from typing import Any

import pytest

from simt import _engine
from simt.cuda import compile_cuda, toolkit
from support.ptx_dump import check_allocation

SOURCE = r"""
#include <cuda_fp16.h>
struct Pair { double a; char b; };
__constant__ float table[5] = {1.f, 2.f, 0.f, -4.5f};
__device__ int counter = 7;
__device__ int *pointer = &counter;
__device__ const char *words[2] = {"one", "two"};
extern __shared__ float dynamic[];

__device__ __noinline__ int twice(int x) { return x > 3 ? twice(x - 1) + 2 : 2 * x; }
__device__ __noinline__ int thrice(int x) { return 3 * x; }
typedef int (*function)(int);
__device__ function functions[2] = {twice, thrice};

__device__ int clamp_by_hand(int x) {
  int y;
  asm("{ .reg .pred p; .reg .b32 t;\n\t setp.lt.s32 p, %1, 9; @p bra small; mov.b32 t, 9; bra.uni out;\n"
      "\tsmall: mov.b32 t, %1;\n\tout: mov.b32 %0, t; }" : "=r"(y) : "r"(x));
  return y;
}

extern "C" __global__ void __launch_bounds__(128, 2) everything(Pair p, float *out, int n, half2 h) {
  __shared__ int tile[33];
  int local[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 8; ++k) local[k] = clamp_by_hand(i + k) + clamp_by_hand(k);
  tile[threadIdx.x % 33] = local[n & 7];
  __syncthreads();
  switch (n) {
    case 0: out[i] = table[i % 5]; break;
    case 1: out[i] = sinf(p.a); break;
    case 2: out[i] = functions[i & 1](n); break;
    case 3: atomicAdd(pointer, n); break;
    case 4: printf("%s %d\n", words[i & 1], n); break;
    case 5: out[i] = __half2float(__hadd2(h, h).x); break;
    case 6: out[i] = __shfl_xor_sync(~0u, dynamic[i], 1); break;
    default: out[i] = p.a / tile[i % 33] + p.b; if (n < 0) return; out[i + 1] = 1;
  }
  while (out[i] > 1.f) { out[i] *= 0.5f; if (__any_sync(__activemask(), out[i] < 0)) break; }
}
"""


def allocations(text: str) -> list[dict[str, Any]]:
    module = _engine.PtxModule(text.encode(), "compiled.ptx")
    return [check_allocation(module, index) for index in range(len(module.instruction_counts()))]


@pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
@pytest.mark.parametrize("options", [(), ("-G",), ("--use_fast_math",)], ids=str)
def test_nvrtc(options):
    text = compile_cuda(SOURCE, arch="sm_80", options=options).text
    module = _engine.PtxModule(text.encode(), "compiled.ptx")
    (kernel,) = module.kernels()
    assert kernel["name"] == "everything"
    assert [p[2:] for p in kernel["parameters"]] == [(16, 8, 0), (8, 8, 16), (4, 4, 24), (4, 4, 28)]
    assert kernel["max_threads"] == (128, 1, 1) and kernel["min_ctas"] == 2
    dump = module.dump()
    variables = {v["name"]: v for v in dump["variables"]}
    assert variables["table"]["initial"][-8:] == b"\0\0\x90\xc0\0\0\0\0"
    assert variables["counter"]["initial"] == b"\7\0\0\0"
    assert [r[4] for r in variables["pointer"]["relocations"]] == ["counter"]
    assert [r[0] for r in variables["functions"]["relocations"]] == [0, 8]
    assert variables["dynamic"]["size"] == 0
    assert {f["name"] for f in dump["functions"] if not f["defined"]} >= {"vprintf"}
    assert any(i["location"] for i in dump["functions"][-1]["instructions"])
    assert len(allocations(text)) == len(dump["functions"])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_triton(arch):
    pytest.importorskip("triton", reason="Triton is not installed")
    import numpy as np

    from simt.cuda.triton import compile_triton, specialise
    from support import triton_kernels as kernels

    halves = np.zeros((64, 64), np.float16)
    found = specialise(kernels.attention, (halves,) * 4 + (0.125, 256), {"BM": 64, "BN": 64, "D": 64})
    (allocation,) = allocations(compile_triton(kernels.attention, found, arch=arch).module.text)
    assert allocation["registers"] <= 1.1 * allocation["max_live"]
