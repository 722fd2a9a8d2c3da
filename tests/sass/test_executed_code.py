"""Machine code is executed: programs give what they give as PTX, and what NumPy computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import simt
from simt.errors import LaunchError, ProgramFault
from simt.sass.disassembler import is_installed
from support.ptx import Device

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

SOURCE = r"""
#include <cassert>
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter;
__device__ int* pointer = &counter;

__device__ __noinline__ float halves(float x, int n) {
  for (int i = 0; i < n; ++i) x = x * 0.5f + 1.0f;
  return x;
}

extern "C" __global__ void arithmetic(int* d, const int* a, const int* b) {
  int i = threadIdx.x, x = a[i], y = b[i];
  int* o = d + 16 * i;
  o[0] = x + y; o[1] = x - y; o[2] = x * y; o[3] = x / y; o[4] = x % y;
  o[5] = x << (y & 31); o[6] = x >> (y & 31); o[7] = (unsigned)x >> (y & 31);
  o[8] = x & y; o[9] = x | ~y; o[10] = min(x, y); o[11] = max((unsigned)x, (unsigned)y);
  o[12] = __popc(x); o[13] = __clz(x); o[14] = __brev(x); o[15] = abs(x);
}

extern "C" __global__ void longs(long long* d, const long long* a, const long long* b) {
  int i = threadIdx.x;
  long long x = a[i], y = b[i];
  long long* o = d + 8 * i;
  o[0] = x + y; o[1] = x - y; o[2] = x * y; o[3] = x / y; o[4] = x < y;
  o[5] = (unsigned long long)x > (unsigned long long)y;
  o[6] = x >> (y & 63); o[7] = x << (y & 63);
}

extern "C" __global__ void floats(float* d, const float* a, const float* b) {
  int i = threadIdx.x;
  float x = a[i], y = b[i];
  float* o = d + 8 * i;
  o[0] = __fadd_rn(x, y); o[1] = __fmul_rz(x, y); o[2] = x / y; o[3] = sqrtf(fabsf(x)); o[4] = fminf(x, y);
  o[5] = x > y ? x : -y; o[6] = __fmaf_ru(x, y, 1.5f); o[7] = 1.0f / y;
}

extern "C" __global__ void diverges(int* d, const int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = a[i], sum = 0;
  if (i >= n) return;
  for (int k = 0; k < (x & 15); ++k) {
    if ((x ^ k) & 1) sum += k * x;
    else if (k == 7) break;
    else sum -= halves(k, x & 3);
  }
  __syncwarp();
  d[i] = sum;
}

extern "C" __global__ void reverses(float* d, const float* a, int n) {
  extern __shared__ float s[];
  __shared__ float scale[32];
  int i = threadIdx.x;
  if (i < 32) scale[i] = table[i & 3];
  s[i] = a[i];
  __syncthreads();
  d[i] = s[blockDim.x - 1 - i] * scale[i & 31] + halves(a[i], n);
}

extern "C" __global__ void chooses(int* d, const int* a) {
  int i = threadIdx.x;
  switch (a[i]) {
    case 0: d[i] = 10 + i; break;
    case 1: d[i] = a[i] * i; break;
    case 2: d[i] = i / 3; break;
    case 3: d[i] = ~i; break;
    case 4: d[i] = i * i; break;
    case 5: d[i] = __shfl_sync(__activemask(), i, 0); break;
    default: d[i] = -1;
  }
}

extern "C" __global__ void counts(unsigned* d, int n) {
  int i = threadIdx.x;
  d[i] = __ballot_sync(~0u, i < n);
  d[32 + i] = __shfl_xor_sync(~0u, i * i, 5);
  d[64 + i] = __syncthreads_count(i < n);
  d[96 + i] = __any_sync(~0u, i == n) ? 1 : 0;
}

extern "C" __global__ void spills(int* d, int n) {
  int many[64];
  for (int k = 0; k < 64; ++k) many[k] = k * n;
  int at = threadIdx.x;
  for (int k = 0; k < 100; ++k) { at = (many[at & 63] + k) & 63; many[at] += k; }
  d[threadIdx.x] = many[at];
}

extern "C" __global__ void tells(int n) {
  if (threadIdx.x == 0) printf("block %d of %d: %.2f\n", blockIdx.x, n, 0.5f * n);
}
extern "C" __global__ void asserts(int n) { assert(threadIdx.x < n); }
extern "C" __global__ void stores(int* d) { *(d + 1000000000 + threadIdx.x) = 1; }
extern "C" __global__ void allocates(int** d) {
  d[threadIdx.x] = (int*)malloc(64);
  *d[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void follows(int n) { if (threadIdx.x == 0) *pointer = n; }
"""


@pytest.fixture(scope="module", params=["a100", pytest.param("h100"), pytest.param("rtx2060")])
def gpu(request: pytest.FixtureRequest) -> Iterator[simt.GPU]:
    yield simt.GPU(request.param, functional=True, code="sass", memory=1 << 30)


@pytest.fixture(scope="module")
def module(gpu: simt.GPU) -> simt.gpu.Module:
    return gpu.compile("#include <cstdio>\n" + SOURCE, name="program.cu")


def test_integers(module: simt.gpu.Module) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32)
    b = rng.integers(-(1 << 10), 1 << 10, 32).astype(np.int32) | 1
    d = np.zeros((32, 16), np.int32)
    module["arithmetic"][1, 32](d, a, b)
    shift, u = b & 31, a.view(np.uint32)
    quotient = (a.astype(np.float64) / b).astype(np.int64).astype(np.int32)
    assert (d[:, 0] == a + b).all() and (d[:, 1] == a - b).all() and (d[:, 2] == a * b).all()
    assert (d[:, 3] == quotient).all() and (d[:, 4] == a - quotient * b).all()
    assert (d[:, 5] == a << shift).all() and (d[:, 6] == a >> shift).all()
    assert (d[:, 7].view(np.uint32) == u >> shift.astype(np.uint32)).all()
    assert (d[:, 8] == (a & b)).all() and (d[:, 9] == (a | ~b)).all() and (d[:, 10] == np.minimum(a, b)).all()
    assert (d[:, 11].view(np.uint32) == np.maximum(u, b.view(np.uint32))).all()
    assert d[:, 12].tolist() == [int(x).bit_count() for x in u]
    assert d[:, 13].tolist() == [32 - int(x).bit_length() for x in u]
    assert d[:, 14].view(np.uint32).tolist() == [int(f"{x:032b}"[::-1], 2) for x in u]
    assert (d[:, 15] == np.abs(a)).all()


def test_long_integers(module: simt.gpu.Module) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(-(1 << 62), 1 << 62, 32)
    b = rng.integers(-(1 << 40), 1 << 40, 32) | 1
    d = np.zeros((32, 8), np.int64)
    module["longs"][1, 32](d, a, b)
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    quotient = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    assert (d[:, 0] == a + b).all() and (d[:, 1] == a - b).all() and (d[:, 2] == a * b).all()
    assert d[:, 3].tolist() == quotient
    assert (d[:, 4] == (a < b)).all() and (d[:, 5] == (a.view(np.uint64) > b.view(np.uint64))).all()
    assert (d[:, 6] == a >> (b & 63)).all() and (d[:, 7] == a << (b & 63)).all()


def test_floats_as_ptx(gpu: simt.GPU, module: simt.gpu.Module) -> None:
    rng = np.random.default_rng(3)
    a, b = (
        rng.standard_normal(64).astype(np.float32) * (10.0 ** rng.integers(-38, 38, 64)).astype(np.float32)
        for _ in range(2)
    )
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, 1], np.float32)
    a[:8] = b[8:16] = special
    b[:8] = special[::-1]
    found = np.zeros((64, 8), np.float32)
    module["floats"][1, 64](found, a, b)
    expected = np.zeros((64, 8), np.float32)
    ptx = simt.GPU(gpu.spec, functional=True, memory=1 << 28)
    ptx.compile("#include <cstdio>\n" + SOURCE)["floats"][1, 64](expected, a, b)
    # A NaN whose sign is changed keeps its bits in machine code.
    found[np.isnan(found)] = expected[np.isnan(expected)] = np.nan
    assert found.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


@pytest.mark.parametrize("n", [64, 50])
def test_divergence(gpu: simt.GPU, module: simt.gpu.Module, n: int) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 1 << 20, 64).astype(np.int32)
    found, expected = np.zeros(64, np.int32), np.zeros(64, np.int32)
    module["diverges"][2, 32](found, a, n)
    ptx = simt.GPU(gpu.spec, functional=True, memory=1 << 28)
    ptx.compile("#include <cstdio>\n" + SOURCE)["diverges"][2, 32](expected, a, n)
    assert found.tolist() == expected.tolist() and found[:n].any() and not found[n:].any()


def test_shared_memory_and_calls(module: simt.gpu.Module) -> None:
    a = np.arange(128, dtype=np.float32)
    d = np.zeros_like(a)
    module["reverses"][1, 128, 512](d, a, 3)
    x = a
    for _ in range(3):
        x = x * np.float32(0.5) + np.float32(1)
    assert d.tolist() == (a[::-1] * np.tile(np.array([1, 2, 3, 4], np.float32), 32) + x).tolist()


def test_branch_tables(module: simt.gpu.Module) -> None:
    i = np.arange(32)
    a = (i % 8 - 1).astype(np.int32)
    d = np.zeros(32, np.int32)
    module["chooses"][1, 32](d, a)
    # The lanes with 5 are 6, 14, 22 and 30; lane 0 is not active, and each keeps its own value.
    expected = {0: 10 + i, 1: i, 2: i // 3, 3: ~i, 4: i * i}
    for value, of in expected.items():
        assert (d[a == value] == of[a == value]).all()
    assert (d[(a < 0) | (a > 5)] == -1).all()


def test_lanes(module: simt.gpu.Module) -> None:
    d = np.zeros(128, np.uint32)
    module["counts"][1, 32](d, 11)
    i = np.arange(32)
    assert (d[:32] == (1 << 11) - 1).all() and (d[32:64] == (i ^ 5) ** 2).all()
    assert (d[64:96] == 11).all() and (d[96:] == 1).all()


def test_local_memory(module: simt.gpu.Module) -> None:
    d = np.zeros(32, np.int32)
    module["spills"][1, 32](d, 7)
    for lane in (0, 5, 31):
        many, at = [k * 7 for k in range(64)], lane
        for k in range(100):
            at = (many[at & 63] + k) & 63
            many[at] += k
        assert d[lane] == many[at]


def test_system_functions(gpu: simt.GPU, module: simt.gpu.Module) -> None:
    module["tells"][3, 32](3)
    assert gpu.printed.endswith("block 0 of 3: 1.50\nblock 1 of 3: 1.50\nblock 2 of 3: 1.50\n")
    with pytest.raises(ProgramFault, match=r"assertion `threadIdx.x < n` failed"):
        module["asserts"][1, 32](5)
    pointers = np.zeros(4, np.uint64)
    module["allocates"][1, 4](pointers)
    assert len(set(pointers.tolist())) == 4


def test_variables(module: simt.gpu.Module) -> None:
    module["follows"][1, 32](77)
    assert module.variable("counter", "i4").get().tolist() == [77]
    assert module.variable("table", "f4").get().tolist() == [1, 2, 3, 4]


def test_faults_name_the_instruction(module: simt.gpu.Module) -> None:
    with pytest.raises(
        ProgramFault,
        match=r"illegal address in kernel `stores`[^\n]*\n  at program.cu: stores\+0x[0-9a-f]+: STG",
    ):
        module["stores"][1, 32](np.zeros(1, np.int32))


def test_unknown_code() -> None:
    with pytest.raises(LaunchError, match="code is 'ptxx', expected 'ptx' or 'sass'"):
        simt.GPU("a100", code="ptxx")  # type: ignore[arg-type]


def test_barriers_whose_number_or_count_is_in_a_register() -> None:
    """Two groups of two warps meet at barriers of their own, three times and once; then all meet."""
    source = r"""
extern "C" __global__ void groups(int* out, int both) {
  int group = threadIdx.x / 64;
  for (int round = 0; round < (group ? 1 : 3); ++round)
    asm volatile("bar.sync %0, 64;" :: "r"(1 + group) : "memory");
  asm volatile("bar.sync 3, %0;" :: "r"(both) : "memory");
  if (group == 0) asm volatile("bar.sync 3, %0;" :: "r"(both / 2) : "memory");
  out[threadIdx.x] = group;
}"""
    gpu = simt.GPU("a100", code="sass")
    out = np.full(128, -1, np.int32)
    gpu.compile(source)["groups"][1, 128](out, 128)
    assert out.tolist() == [0] * 64 + [1] * 64


def test_sines_of_zeros_keep_their_sign() -> None:
    """PTX ISA, sin: -0.0 of -0.0 and of negative subnormals, which MUFU takes as zeros."""
    source = 'extern "C" __global__ void sines(float* x) { x[threadIdx.x] = __sinf(x[threadIdx.x]); }'
    gpu = simt.GPU("a100", code="sass", functional=True)
    x = gpu.array(np.array([0.0, -0.0, 1e-40, -1e-40], np.float32))
    gpu.compile(source).sines[1, 4](x)
    assert (np.signbit(x.numpy()) == [False, True, False, True]).all()
    assert (x.numpy() == 0).all()


@pytest.mark.parametrize("arch", ["75", "80", "90a"])
def test_only_what_calls_ordered_functions_is_sensitive_to_order(arch: str) -> None:
    """malloc takes effect in the order of time, and so does an atomic in a function; other kernels of the
    module need not be executed in that order.
    """
    text = """
.extern .func (.param .b64 r) malloc (.param .b64 bytes);
.visible .func (.param .b32 r) counts(.param .b64 p)
{
  .reg .b64 %p; .reg .b32 %r;
  ld.param.u64 %p, [p]; atom.global.add.u32 %r, [%p], 1; st.param.b32 [r], %r; ret;
}
.visible .func (.param .b32 r) doubles(.param .b64 p)
{
  .reg .b64 %p; .reg .b32 %r;
  ld.param.u64 %p, [p]; ld.global.u32 %r, [%p]; add.u32 %r, %r, %r; st.param.b32 [r], %r; ret;
}
"""
    call = """
.visible .entry {name}(.param .b64 p)
{{
  .reg .b64 %p, %f; .reg .b32 %r; .reg .pred %c;
  .param .b64 a, place; .param .b32 r;
  ld.param.u64 %p, [p]; cvta.to.global.u64 %p, %p;
  {body}
  st.global.u32 [%p], %r; ret;
}}
"""
    direct = "st.param.b64 [a], %p; call.uni (r), {f}, (a); ld.param.b32 %r, [r];"
    by_pointer = """mov.u64 %f, doubles; ld.global.u32 %r, [%p]; setp.eq.u32 %c, %r, 1;
      @%c mov.u64 %f, counts; st.param.b64 [a], %p;
      prototype: .callprototype (.param .b32 _) _ (.param .b64 _); call (r), %f, (a), prototype;
      ld.param.b32 %r, [r];"""
    bodies = {
        "allocates": "st.param.b64 [a], 8; call.uni (place), malloc, (a); ld.param.b64 %f, [place];"
        "st.global.u64 [%p], %f;",
        "calls_counts": direct.format(f="counts"),
        "calls_doubles": direct.format(f="doubles"),
        "by_pointer": by_pointer,
        "calls_nothing": "mov.u32 %r, 1;",
    }
    text += "".join(call.format(name=name, body=body) for name, body in bodies.items())
    kernels = Device(text, arch, code="sass").module.kernels
    sensitive = {name for name in bodies if kernels[name]["order_sensitive"]}
    assert sensitive == {"allocates", "calls_counts", "by_pointer"}
