"""Whole `.cu` files written for nvcc: host and device code in one file, in the style of 2008 to 2020. Their
kernels load and run; host code is ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from simt.cuda.host_code import HostSource, marking_macros
from simt.errors import CompileError

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
N = 64

VECTOR_ADD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <unistd.h>
#include <cuda.h>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
__global__ void vecAdd(float *a, float *b, float *c, int n) {
    register int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
int main(int argc, char *argv[]) {
    int n = 64; size_t size = n * sizeof(float);
    float *h = (float *)malloc(size), *d;
    CHECK(cudaMalloc((void **)&d, size));
    vecAdd<<<(n + 255) / 256, 256>>>(d, d, d, n);
    CHECK(cudaMemcpy(h, d, size, cudaMemcpyDeviceToHost));
    printf("done %f\n", h[0]); usleep(10); free(h); cudaFree(d);
    return 0;
}
"""
REDUCTION = r"""
#include <iostream>
#include <vector>
#include <algorithm>
#include <chrono>
#include <assert.h>
#include <string.h>
using namespace std;
const int BLOCK = 64;
static vector<float> results;
void report(const char *what, double ms);
template <unsigned int size> __global__ void reduce(const float *in, float *out) {
    __shared__ float s[size];
    unsigned int t = threadIdx.x;
    assert(blockDim.x == size);
    s[t] = in[blockIdx.x * size + t];
    __syncthreads();
#pragma unroll
    for (unsigned int k = size / 2; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
void report(const char *what, double ms) { cout << what << ": " << ms << " ms" << endl; }
float run(const vector<float> &v) {
    float *in, *out, sum;
    cudaMalloc(&in, v.size() * 4); cudaMalloc(&out, 4);
    auto begin = chrono::high_resolution_clock::now();
    reduce<BLOCK><<<1, BLOCK>>>(in, out);
    cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    report("reduce", chrono::duration<double>(chrono::high_resolution_clock::now() - begin).count());
    return max(sum, 0.0f);
}
int main() { vector<float> v(64, 1.0f); results.push_back(run(v)); sort(v.begin(), v.end()); }
"""
STRUCTS = r"""
#include <cstdio>
#include <cmath>
#include <string>
#include "device_launch_parameters.h"
typedef struct { float x, y; } point;
struct Body { point p; float mass; __host__ __device__ float weight() const { return mass * 9.81f; } };
class Timer {
public:
    Timer() { cudaEventCreate(&start); }
    ~Timer() { cudaEventDestroy(start); }
    void begin() { cudaEventRecord(start, 0); }
private:
    cudaEvent_t start;
    std::string name;
};
enum Mode { NORTH = 1, SOUTH = 2 };
__host__ __device__ inline float squared(point p) { return p.x * p.x + p.y * p.y; }
__device__ float scale = 2.0f;
__constant__ float offsets[2] = {1.0f, 3.0f};
__host__ float on_host(Body &b) { return std::sqrt(b.weight()); }
__global__ void energy(Body *bodies, float *out, int mode) {
    Body b = bodies[threadIdx.x];
    out[threadIdx.x] = scale * squared(b.p) + offsets[mode == NORTH ? 0 : 1] + b.weight();
}
int main(void) { Timer t; t.begin(); Body b; on_host(b);
    energy<<<1, 64>>>(0, 0, SOUTH); return EXIT_SUCCESS; }
"""
SHUFFLE = r"""
#include <stdio.h>
__inline__ __device__ int warpSum(int v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_down(v, o);
    return v;
}
__global__ void sums(int *in, int *out) {
    int v = in[threadIdx.x], lane = threadIdx.x & 31;
    int s = warpSum(v);
    int all = __shfl(s, 0), other = __shfl_xor(v, 1), up = __shfl_up(v, 1);
    unsigned odd = __ballot(v & 1);
    out[threadIdx.x] = all + other + (lane ? up : 0) + __popc(odd)
        + 1000 * __any(v == 5) + 2000 * __all(v >= 0);
}
int main() { sums<<<2, 32>>>(NULL, NULL); cudaThreadSynchronize(); }
"""
PRINTING = r"""
#include <stdio.h>
#include <sys/time.h>
extern "C" double seconds() { struct timeval t; gettimeofday(&t, 0); return t.tv_sec + 1e-6 * t.tv_usec; }
extern "C" __global__ void hello(int n) { if (threadIdx.x < n) printf("Hello from %d\n", threadIdx.x); }
int main() { double t = seconds(); hello<<<1, 32>>>(2); cudaDeviceSynchronize();
    printf("%g s\n", seconds() - t); }
"""
MACROS = r"""
#include "settings.h"
#include "book.h"
#ifdef __CUDACC__
#define KERNEL __global__ void
#define BOTH __host__ __device__
#else
#define KERNEL void
#define BOTH
#endif
#define OP(name, op) KERNEL name(float *a, float b) { a[threadIdx.x] = a[threadIdx.x] op b; }
OP(plus, +)
OP(times, *)
BOTH float clampf(float x) { return x > LIMIT ? LIMIT : x; }
KERNEL clamp_all(float *a) {
    a[threadIdx.x] = clampf(a[threadIdx.x]); /* a brace in a comment: { */
}
#if USE_DOUBLE
static void init(double *a) {
#else
static void init(float *a) {
#endif
    for (int i = 0; i < COUNT; ++i) a[i] = '}' + i;
}
int main() { float a[COUNT]; init(a); HANDLE_ERROR(cudaFree(0)); plus<<<1, COUNT>>>(a, 1); return 0; }
"""
NAMESPACES = r"""
#include <map>
#include <string>
#include <thrust/device_vector.h>
#include <helper_cuda.h>
namespace config { static std::map<std::string, int> options; const int width = 8; }
namespace kernels {
namespace detail {
template <typename T> __device__ __forceinline__ T twice(T x) { return x + x; }
}
template <typename T> __global__ void doubled(T *a) { a[threadIdx.x] = detail::twice(a[threadIdx.x]); }
void launch(float *a) { doubled<float><<<1, config::width>>>(a); doubled<int><<<1, 8>>>((int *)a); }
}  // namespace kernels
template <typename T> void anything(T *a) { kernels::doubled<T><<<1, 1>>>(a); }
int main() { thrust::device_vector<float> v(8); kernels::launch(thrust::raw_pointer_cast(v.data())); }
"""
TILES = r"""
#include <stdio.h>
#define TILE 8
typedef unsigned int uint;
float *d_A, *d_B, *d_C;
cudaStream_t streams[4];
static int verbose = 1;
__global__ void matMul(float *C, const float *A, const float *B, uint n)
{
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    uint row = __mul24(blockIdx.y, TILE) + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (uint m = 0; m < n / TILE; ++m) {
        As[threadIdx.y][threadIdx.x] = A[row * n + m * TILE + threadIdx.x];
        Bs[threadIdx.y][threadIdx.x] = B[(m * TILE + threadIdx.y) * n + col];
        __syncthreads();
        for (uint k = 0; k < TILE; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    C[row * n + col] = sum;
}
bool compare(float *a, float *b, int n) {
    for (int i = 0; i < n; i++) if (fabs(a[i] - b[i]) > 1e-5) return false;
    return true; }
int main(int argc, char **argv)
{
    dim3 threads(TILE, TILE), grid(1, 1);
    for (int i = 0; i < 4; i++) cudaStreamCreate(&streams[i]);
    matMul<<<grid, threads, 0, streams[0]>>>(d_C, d_A, d_B, TILE);
    if (verbose) printf("%s\n", compare(d_A, d_B, 1) ? "PASSED" : "FAILED");
}
"""
LAMBDAS = r"""
#include <functional>
#include <memory>
#include <stdexcept>
#include <sstream>
struct CudaDeleter { void operator()(float *p) const { cudaFree(p); } };
using Buffer = std::unique_ptr<float, CudaDeleter>;
[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what + R"( { )"); }
Buffer make(size_t n) { float *p; if (cudaMalloc(&p, n) != cudaSuccess) fail("no memory"); return Buffer(p); }
constexpr int square(int x) { return x * x; }
template <class F> __global__ void apply(float *a, F f) { a[threadIdx.x] = f(a[threadIdx.x]); }
struct Shift { float by; __device__ float operator()(float x) const { return x + by * square(2); } };
template __global__ void apply<Shift>(float *, Shift);
int main() { auto b = make(256); auto f = [](int x) { return x; }; 
    apply<<<1, 64>>>(b.get(), Shift{1.f}); return f(0); }
"""
CONSTANTS = r"""
#include <stdio.h>
#include <time.h>
#define RADIUS 2
__constant__ float filter[2 * RADIUS + 1];
__device__ int calls;
__global__ void convolve(const float *in, float *out, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    float s = 0.f;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        int j = min(max(i + k, 0), n - 1); s += filter[k + RADIUS] * in[j];
    }
    out[i] = s;
    atomicAdd(&calls, 1);
}
void setup() {
    float h[2 * RADIUS + 1] = {1, 2, 3, 2, 1};
    cudaMemcpyToSymbol(filter, h, sizeof(h));
    srand(time(NULL));
}
int main() { setup(); convolve<<<1, 64>>>(0, 0, 64); return 0; }
"""


def load(text: str, folder: Path, gpu: str = "a100", **files: str) -> Any:
    for name, content in files.items():
        (folder / f"{name}.h").write_text(content)
    (folder / "old.cu").write_text(text)
    return simt.GPU(gpu, functional=True).load(folder / "old.cu")


def test_vector_addition(tmp_path: Path) -> None:
    module = load(VECTOR_ADD, tmp_path)
    a, b, c = (np.arange(N, dtype=np.float32) * k for k in (1, 2, 0))
    module.vecAdd[1, N](a, b, c, N)
    assert (c == 3 * a).all()
    assert "vecAdd<<<" in module.ptx.source
    assert module.ptx.source_text(str(tmp_path / "old.cu"), 12).strip().startswith("if (i < n)")
    assert ".loc\t1 12" in module.ptx.text  # line numbers are preserved


@pytest.mark.slow
def test_reduction_by_a_template_that_the_host_instantiates(tmp_path: Path) -> None:
    module = load(REDUCTION, tmp_path)
    out = np.zeros(1, np.float32)
    module["reduce<BLOCK>"][1, N](np.arange(N, dtype=np.float32), out)
    assert out[0] == N * (N - 1) / 2


@pytest.mark.slow
def test_structures_and_device_variables(tmp_path: Path) -> None:
    module = load(STRUCTS, tmp_path)
    bodies = np.arange(3 * N, dtype=np.float32).reshape(N, 3)
    out = np.zeros(N, np.float32)
    module.energy[1, N](bodies, out, 2)
    x, y, mass = bodies.T
    assert np.allclose(out, 2 * (x * x + y * y) + 3 + mass * 9.81, rtol=1e-6)


def test_shuffles_without_a_mask(tmp_path: Path) -> None:
    module = load(SHUFFLE, tmp_path, "titanx")
    values = np.arange(N, dtype=np.int32)
    out = np.zeros(N, np.int32)
    module.sums[2, 32](values[:32], out[:32])
    low = values[:32]
    up = np.concatenate([[0], low[:-1]])
    assert out[:32].tolist() == (low.sum() + (low ^ 1) + up + 16 + 3000).tolist()
    with pytest.raises(CompileError, match="__shfl_down"):  # compute capability 7.0 has only __shfl_*_sync
        load(SHUFFLE, tmp_path)


def test_printing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load(PRINTING, tmp_path).hello[1, 32](2)
    assert "Hello from 0\nHello from 1\n" in capfd.readouterr().out


def test_macros_and_own_headers_with_host_code(tmp_path: Path) -> None:
    settings = "#include <stdlib.h>\n#define COUNT 64\n#define LIMIT 3.0f\n"
    book = "#include <stdio.h>\nstatic void HandleError(cudaError_t e, const char *f, int l) { exit(1); }\n"
    book += "#define HANDLE_ERROR(e) (HandleError(e, __FILE__, __LINE__))\n"
    module = load(MACROS, tmp_path, settings=settings, book=book)
    a = np.arange(N, dtype=np.float32)
    module.plus[1, N](a, 1.0)
    module.times[1, N](a, 2.0)
    assert (a == (np.arange(N) + 1) * 2).all()
    module.clamp_all[1, N](a)
    assert (a == np.minimum(3, (np.arange(N) + 1) * 2)).all()


@pytest.mark.slow
def test_namespaces_and_headers_that_are_not_there(tmp_path: Path) -> None:
    module = load(NAMESPACES, tmp_path)
    for name, dtype in (("kernels::doubled<float>", np.float32), ("kernels::doubled<int>", np.int32)):
        a = np.arange(8, dtype=dtype)
        module[name][1, 8](a)
        assert (a == 2 * np.arange(8)).all()


def test_tiles(tmp_path: Path) -> None:
    a, b = np.random.default_rng(1).random((2, 16, 16), np.float32)
    c = np.zeros((16, 16), np.float32)
    load(TILES, tmp_path).matMul[(2, 2), (8, 8)](c, a, b, 16)
    assert np.allclose(c, a @ b, rtol=1e-5)


@pytest.mark.slow
def test_modern_host_code(tmp_path: Path) -> None:
    module = load(LAMBDAS, tmp_path)
    a = np.zeros(N, np.float32)
    module[module.kernels[0]][1, N](a, np.float32(2))
    assert (a == 8).all()


def test_constant_memory(tmp_path: Path) -> None:
    module = load(CONSTANTS, tmp_path)
    module.gpu.write(module.variable("filter").address, np.array([1, 2, 3, 2, 1], np.float32))
    x, out = np.random.default_rng(2).random(N, np.float32), np.zeros(N, np.float32)
    module.convolve[1, N](x, out, N)
    padded = np.pad(x, 2, mode="edge")
    assert np.allclose(out, np.convolve(padded, [1, 2, 3, 2, 1], "valid"), rtol=1e-5)
    assert module.variable("calls", np.int32).numpy()[0] == N


def test_an_error_in_a_kernel_is_still_one(tmp_path: Path) -> None:
    text = VECTOR_ADD.replace("c[i] = a[i]", "c[i] = undefined[i]")
    with pytest.raises(CompileError, match=r"old\.cu\(12\): error: identifier \"undefined\" is undefined"):
        load(text, tmp_path)


@pytest.mark.parametrize(
    "text", [VECTOR_ADD, REDUCTION, STRUCTS, MACROS, NAMESPACES, TILES, LAMBDAS, CONSTANTS]
)
def test_left_out_text_keeps_its_lines(text: str) -> None:
    device = HostSource(text, marking_macros([text])).device_text
    assert len(device) == len(text)
    assert [i for i, c in enumerate(device) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    assert "main" not in device
    assert "<<<" not in device
    assert device.count("__global__") == text.count("__global__")


TEMPLATES = r"""
template <class T> __global__ void fill(T *x, T value) { x[threadIdx.x] = value; }
"""
LAUNCHER = r"""
#include <iostream>
#include "templates.h"
int main() { fill<float><<<1, 64>>>(nullptr, 2.0f); return 0; }
"""


def test_templates_of_own_headers_have_the_instances_that_are_launched(tmp_path: Path) -> None:
    module = load(LAUNCHER, tmp_path, **{"templates": TEMPLATES})
    x = np.zeros(N, np.float32)
    module["fill<float>"][1, N](x, 3.0)
    assert (x == 3).all()
    whole = np.zeros(N, np.int32)
    module["fill<int>"][1, N](whole, 5)  # kernels that were never launched are compiled now
    assert (whole == 5).all()


def test_a_file_of_templates_alone(tmp_path: Path) -> None:
    """Launched through a host template whose types only a host compiler knows."""
    source = LAUNCHER.replace("int main()", "template <class T> void run()").replace("<float>", "<T>")
    module = load(source + "int main() { run<short>(); }", tmp_path, **{"templates": TEMPLATES})
    assert module.kernels == ()
    x = np.zeros(N, np.int16)
    module["fill<short>"][1, N](x, 7)
    assert (x == 7).all()


@pytest.mark.slow
def test_what_the_headers_of_a_host_bring_unasked(tmp_path: Path) -> None:
    """`uint`, the standard headers that nvcc includes by itself, all of CUB, `__host__` members."""
    source = r"""
#include <vector>
#include <cub/cub.cuh>
struct Pair {
  uint a; ulong b; ushort c;
  __host__ Pair(const char *text) : a(text[0]) {}
  __device__ Pair(uint x) : a(x), b(0), c(0) {}
};
__global__ void sum(float *x) {
  static_assert(std::is_same<decltype(Pair::a), unsigned>::value, "");
  typedef cub::BlockReduce<float, 64> Reduce;
  __shared__ typename Reduce::TempStorage space;
  float all = Reduce(space).Sum(x[threadIdx.x] + Pair(1u).a);
  if (threadIdx.x == 0) x[0] = all;
}
int main() { std::vector<Pair> v; v.push_back(Pair("x")); sum<<<1, 64>>>(nullptr); }
"""
    x = np.ones(N, np.float32)
    load(source, tmp_path).sum[1, N](x)
    assert x[0] == 128


def test_sources_of_before_utf8(tmp_path: Path) -> None:
    file = tmp_path / "old.cu"
    file.write_bytes("// \u00a9 1998\n__global__ void one(float *x) { *x = 1; }\n".encode("latin-1"))
    x = np.zeros(1, np.float32)
    simt.GPU("a100", functional=True).load(file).one[1, 1](x)
    assert x[0] == 1
