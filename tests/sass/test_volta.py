"""Machine code of Volta, which nvdisasm reads under Turing's name."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import compile_cuda, machine_code
from simt.cuda.ptxas import _assemblers
from simt.errors import SassError
from simt.sass import Cubin, disassemble
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed() or not _assemblers(),
    reason="nvdisasm or ptxas is not installed: pip install 'simt[cuda]'",
)

SOURCE = r"""
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void product(const half* a, const half* b, float* wide, half* narrow) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> fd;
  wmma::fill_fragment(fc, 0.5f);
  wmma::fill_fragment(fd, __float2half(0.5f));
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::mma_sync(fd, fa, fb, fd);
  wmma::store_matrix_sync(wide, fc, 16, wmma::mem_row_major);
  wmma::store_matrix_sync(narrow, fd, 16, wmma::mem_row_major);
}

__device__ __noinline__ int twice(int x) { return x * 2; }

extern "C" __global__ void mixed(int* x, float* f, double* d, long long* l, int n) {
  __shared__ int tile[64];
  const int i = threadIdx.x;
  tile[i] = x[i];
  __syncthreads();
  atomicAdd(&x[tile[i ^ 1] & 31], 1);
  int sum = __shfl_xor_sync(~0u, i, 3) + __ballot_sync(~0u, i & 1) + __popc(i) + __ffs(i);
  for (int k = 0; k < tile[i] % n; ++k) {
    if (k == 5) break;
    sum += twice(k);
  }
  switch (tile[i] & 7) {
    case 0: sum += 2; break;
    case 1: sum -= f[3]; break;
    case 2: sum *= 7; break;
    case 3: sum ^= 3; break;
    case 4: sum = ~sum; break;
    case 5: sum = -sum; break;
  }
  __syncthreads();
  x[64 + i] = sum;
  d[i] = sqrt(d[i]) / 3.0 + fma(d[i], 2.0, 1.0);
  f[i] = __fsqrt_rn(f[i]) / 3.0f + __half2float(__float2half(f[i]));
  l[i] = l[i] / 7 + l[i] % 11;
  if (i == 0) printf("%d\n", n);
}
"""


def values(code: str) -> tuple[list[np.ndarray], simt.GPU]:
    gpu = simt.GPU("qv100", code=code)  # type: ignore[arg-type]
    chance = np.random.default_rng(7)
    module = gpu.compile("#include <cstdio>\n" + SOURCE)
    a, b = (chance.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    made = [a, b, np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float16)]
    module.product[1, 32](*made)
    given = [
        chance.integers(0, 1 << 20, 128).astype(np.int32),
        chance.random(64).astype(np.float32),
        chance.random(64),
        chance.integers(-(1 << 40), 1 << 40, 64),
    ]
    module.mixed[1, 64](*given, 9)
    assert module.executed == ("PTX" if code == "ptx" else "machine code for sm_70")
    return [*made, *given], gpu


def test_volta_executes_its_own_code() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, gpu = values("sass")
    wanted, _ = values("ptx")
    for one, other in zip(found, wanted, strict=True):
        assert one.tobytes() == other.tobytes()
    assert gpu.result().warnings == ()


def test_its_tensor_cores_take_four_steps() -> None:
    cubin = Cubin.parse(machine_code(compile_cuda(SOURCE, arch="sm_70"), "sm_70"), "k")
    assert cubin.arch == "sm_70"
    opcodes = [x.opcode for x in disassemble(cubin)["product"]]
    assert [opcodes.count(f"HMMA.884.F32.F32.STEP{n}") for n in range(4)] == [4] * 4
    assert not any(x.startswith("U") for x in opcodes)  # no uniform datapath


def test_turing_executes_it_too_but_not_ampere(tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    source = 'extern "C" __global__ void adds(int* x, int n) { x[threadIdx.x] += n; }'
    path.write_bytes(machine_code(compile_cuda(source, arch="sm_70"), "sm_70"))
    x = np.arange(32, dtype=np.int32)
    simt.GPU("rtx2060", functional=True).load(path).adds[1, 32](x, 2)
    assert x.tolist() == [i + 2 for i in range(32)]
    with pytest.raises(SassError, match="sm_70 does not run on a100"):
        simt.GPU("a100", functional=True).load(path)


def test_without_a_compiler_for_volta_its_successor_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA 13's ptxas makes nothing for Volta."""
    source = 'extern "C" __global__ void adds(int* x, int n) { x[threadIdx.x] += n; }'
    module = compile_cuda(source, arch="sm_70")
    made = {"sm_75": machine_code(module, "sm_75")}
    monkeypatch.setattr("simt.cuda.ptxas._version", lambda _: "13.0.1")
    monkeypatch.setattr("simt.gpu.programs.machine_code", lambda ptx, arch: made[arch])
    gpu = simt.GPU("qv100", code="sass", functional=True)
    with pytest.warns(UserWarning, match="qv100 is sm_70: it executes sm_75 code"):
        loaded = gpu.load(module)
    x = np.zeros(32, np.int32)
    loaded.adds[1, 32](x, 3)
    assert x.tolist() == [3] * 32
    assert loaded.executed == "machine code for sm_75"
