"""Which pointer parameters machine code may store through."""

from __future__ import annotations

import pytest

import simt
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

SOURCE = """
struct Pair { int n; float* to; };
__device__ __noinline__ void put(float* p, float v) { p[threadIdx.x] = v; }
extern "C" __global__ void maps(const float* x, int n, float* y, const float* w, float* z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * w[i];
    else atomicAdd(z + i % 7, 1.0f);
}
extern "C" __global__ void reads(const float* x, const float* y, float** z) {
    float v = x[threadIdx.x] + y[threadIdx.x];
    if (v > 7) z[0][0] = v;  // an address from memory is not followed
}
extern "C" __global__ void moves(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i, y += 32) y[threadIdx.x] = x[i];
}
extern "C" __global__ void chooses(float* x, float* y, float* z, int n) {
    (n & 1 ? x : y)[threadIdx.x] = z[threadIdx.x];
}
extern "C" __global__ void in_a_structure(const float* x, Pair pair) { pair.to[threadIdx.x] = x[pair.n]; }
extern "C" __global__ void in_a_function(float* x, float* y) { put(y, x[threadIdx.x]); }
extern "C" __global__ void in_shared(const int* x, int* y) {
    __shared__ int s[64]; s[threadIdx.x] = x[threadIdx.x]; atomicAdd(&s[x[0]], 1); __syncthreads();
    atomicMax(y, s[threadIdx.x ^ 1]);
}
"""
WORDS = {
    "maps": [2, 4],
    "reads": [],
    "moves": [1],
    "chooses": [0, 1],
    "in_a_structure": [2],
    "in_a_function": [1],
    "in_shared": [1],
}


@pytest.mark.parametrize("gpu", ["rtx2060", "a100", "h100"])
def test_stores_are_followed_back_to_parameters(gpu: str) -> None:
    module = simt.GPU(gpu, code="sass", functional=True).compile(SOURCE)
    found = {}
    for name in WORDS:
        facts = module._native.kernels[name]
        pointers = {offset // 8 for offset, size, _ in facts["parameters"] if size >= 8}
        if name == "in_a_structure":
            pointers |= {2}
        # Of numbers, such as what an address is computed with, nothing is asked.
        found[name] = [word for word in facts["stored_parameters"] if word in pointers]
    assert found == WORDS
