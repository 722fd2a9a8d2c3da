"""Instrumented PTX: valid for NVIDIA's assembler, with the same effect on memory as the original."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import compile_cuda
from simt.cuda.ptxas import _assemblers
from simt.cuda.toolkit import toolkits
from simt.debug import compare, record
from simt.debug.instrument import InstrumentedProgram
from simt.errors import DebugError
from support.debug_programs import AXPY, HEADER, axpy, gpu_with
from support.fake_cuda import replacing

CUDA = r"""
#include <cuda_fp16.h>
#include <mma.h>
__device__ float table[4] = {1, 2, 3, 4};
__constant__ int offsets[2] = {3, 5};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ void divide(double a, double b, double* quotient) { *quotient = a / b; }
typedef float (*Function)(float);
__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float half_of(float x) { return x / 2; }
__device__ Function functions[2] = {twice, half_of};
extern "C" __global__ void calls(int* out, double* quotients, float* floats) {
  int i = threadIdx.x;
  out[i] = fibonacci(i % 8) + offsets[i & 1];
  double q;
  divide(i, 3.0, &q);
  quotients[i] = q;
  floats[i] = functions[i & 1](table[i & 3]);
  if (i == 3) printf("%d\n", out[i]);
}
extern "C" __global__ void halves(__half2* x, unsigned short* bits, unsigned long long* counters, char* bytes)
{
  int i = threadIdx.x;
  x[i] = __hfma2(x[i], x[i], __float2half2_rn(1.5f));
  bits[i] = (unsigned short)(i * 257) >> 3;
  atomicAdd(counters, (unsigned long long)i);
  bytes[i] = (char)(__shfl_xor_sync(~0u, i, 5) + __popc(__ballot_sync(~0u, i & 1)));
  if (i % 3 == 0) return;
  bytes[i] ^= 0x55;
}
extern "C" __global__ void tensor(const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(sum, fa, fb, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}
"""
needs_nvrtc = pytest.mark.skipif(
    not any(t.nvrtc for t in toolkits()), reason="NVRTC's wheel is not installed"
)


def assemble(text: str, arch: str, folder: Path) -> str:
    """ptxas's errors for a PTX text; empty if there are none."""
    (folder / "module.ptx").write_text(text)
    done = subprocess.run(
        [_assemblers()[0], f"--gpu-name={arch}", folder / "module.ptx", "-o", folder / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.skipif(not _assemblers(), reason="no ptxas is installed")
@pytest.mark.parametrize("arch", ["sm_70", "sm_90a"])
def test_ptxas_takes_it(arch: str, tmp_path: Path) -> None:
    module = compile_cuda(CUDA, arch=arch)
    for kernel in module.kernels:
        program = InstrumentedProgram(module.text, module.name, kernel)
        points = program.points()
        assert len(points) > 10
        for text in (
            program.traced(points),
            program.traced(points, points[len(points) // 2]),
            program.traced(program.points({"time", "address", "order"})),
            program.writers(),
        ):
            assert assemble(text, arch, tmp_path) == ""


def run_calls(gpu: simt.GPU) -> None:
    module = gpu.compile(CUDA)
    out, quotients, floats = gpu.zeros(64, np.int32), gpu.zeros(64, np.float64), gpu.zeros(64)
    module.calls[1, 64](out, quotients, floats)
    module.halves[1, 32](
        gpu.array(np.arange(64, dtype=np.float16)),
        gpu.zeros(32, np.uint16),
        gpu.zeros(1, np.uint64),
        gpu.zeros(32, np.uint8),
    )
    rng = np.random.default_rng(0)
    a, b = (gpu.array(rng.random((16, 16)).astype(np.float16)) for _ in range(2))
    module.tensor[1, 32](a, b, gpu.zeros((16, 16)))


@needs_nvrtc
@pytest.mark.parametrize(
    ("right", "wrong", "launch", "function"),
    [
        (r"add\.s32\s+(%r\d+), (%r\d+), -2;", r"add.s32 \1, \2, -3;", 1, "add.s32"),
        (r"div\.rn\.f64", "div.rz.f64", 1, "div.rn.f64"),
        (r"xor\.b16\s+(.*), 85;", r"xor.b16 \1, 84;", 2, "xor.b16"),
    ],
)
def test_bugs_in_functions_and_narrow_registers(right: str, wrong: str, launch: int, function: str) -> None:
    result = compare(run_calls, gpu_with(replacing(right, wrong)))
    assert result.difference is not None
    assert result.difference.launch == launch
    found = result.difference.instruction
    assert found is not None
    assert found.instruction.startswith(function)
    assert found.source_file == "kernel.cu"
    assert all(i.ours == i.reference for i in found.inputs)


@needs_nvrtc
def test_the_source_line() -> None:
    found = compare(run_calls, gpu_with(replacing(r"div\.rn\.f64", "div.rz.f64"))).difference
    assert found is not None and found.instruction is not None
    assert found.instruction.source_text.startswith("__device__ __noinline__ void divide")
    assert found.instruction.source_line == 1 + CUDA.splitlines().index(found.instruction.source_text)


def test_results_that_may_differ_are_left_out() -> None:
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .b8 s[16];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %clock; add.u32 %r2, %r1, 1;
  mov.u32 %r3, s; add.u32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4];
  atom.global.add.u32 %r6, [%rd1], 1; add.u32 %r7, %r6, %r5;
  mov.u32 %r8, %tid.x;
  ret;
}
"""
    )
    program = InstrumentedProgram(text, "k.ptx", "k")

    def names(*exclude: str) -> set[str]:
        return {p.register for p in program.points(exclude)}

    every = {"%rd1", *(f"%r{k}" for k in range(1, 9))}
    assert names() == every
    assert names("time") == every - {"%r1", "%r2"}
    assert names("address") == every - {"%r3", "%r4"}
    assert names("order") == every - {"%r6", "%r7"}


def test_a_guard_that_the_instruction_writes() -> None:
    text = AXPY.replace(
        "@%p2 bra AGAIN;",
        "@%p2 bra AGAIN;\n  @!%p1 setp.gt.f32 %p1, %f3, 0f3F800000;\n  @%p1 add.f32 %f3, %f3, 0f3F800000;",
    )
    assert compare(axpy(text), gpu_with()).same
    wrong = replacing(r"setp\.gt\.f32 %p1, %f3", "setp.gt.f32 %p1, %f2")
    difference = compare(axpy(text), gpu_with(wrong)).difference
    assert difference is not None
    assert difference.instruction is not None
    assert difference.instruction.instruction == "@!%p1 setp.gt.f32 %p1, %f3, 0f3F800000"
    assert (difference.instruction.register, difference.instruction.type) == ("%p1", "pred")


def test_executions_that_go_different_ways() -> None:
    """All values are computed correctly, but a branch goes wrong."""
    wrong = replacing(r"@%p1 bra DONE", "@!%p1 bra DONE")
    difference = compare(axpy(n=1000), gpu_with(wrong)).difference
    assert difference is not None
    found = difference.instruction
    assert found is not None
    assert (found.kind, found.ours, found.inputs) == ("path", None, ())
    assert found.instruction == "mul.wide.u32 %rd3, %r5, 4"
    assert found.reference_instruction == "the end of the thread"


def test_what_cannot_be_instrumented() -> None:
    with pytest.raises(DebugError, match="no kernel 'other'"):
        InstrumentedProgram(AXPY, "a.ptx", "other")
    program = InstrumentedProgram(AXPY, "a.ptx", "axpy")
    with pytest.raises(DebugError, match="instrumented"):
        InstrumentedProgram(program.traced(program.points()), "a.ptx", "axpy")


TEXTURE = (
    HEADER
    + """.global .texref image;
.visible .entry look(.param .u64 out)
{
  .reg .b32 %r<3>; .reg .f32 %f<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];
  add.f32 %f5, %f1, 0f3F800000;
  st.global.f32 [%rd3], %f5;
  ret;
}
"""
)


def test_textures(tmp_path: Path) -> None:
    """A texture reference keeps its address when a launch is rerun; a real GPU has no such thing."""

    def program(text: str) -> Callable[[simt.GPU], None]:
        def run(gpu: simt.GPU) -> None:
            module = gpu.load(text)
            module.bind_texture("image", gpu.texture(gpu.array(np.arange(32, dtype=np.float32)), kind="1d"))
            module.look[1, 32](gpu.zeros(32))

        return run

    recording = record(program(TEXTURE.replace("add.f32", "sub.f32")), tmp_path / "r")
    difference = compare(program(TEXTURE), recording).difference
    assert difference is not None and difference.instruction is not None
    assert difference.instruction.instruction == "add.f32 %f5, %f1, 0f3F800000"
    assert [str(i.ours) for i in difference.instruction.inputs if i.ours] == ["0.0 (0x00000000)"]
    with pytest.raises(DebugError, match=r"`look` reads textures or surfaces"):
        compare(program(TEXTURE), gpu_with())


@needs_nvrtc
@pytest.mark.parametrize("kernel", ["calls", "halves", "tensor"])
def test_memory_is_left_as_it_is(kernel: str) -> None:
    """A GPU that executes instrumented code computes the same values."""

    def instrumented(text: str) -> str:
        program = InstrumentedProgram(text, "kernel.cu", kernel)
        return program.traced(program.points(), program.points()[5])

    # Of the generation of the fake GPU: tensor cores of another one add otherwise.
    assert compare(run_calls, gpu_with(instrumented), gpu="a100").same
