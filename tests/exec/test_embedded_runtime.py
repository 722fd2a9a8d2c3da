"""Programs and libraries with the CUDA runtime in them, as nvcc links it unless it is told otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.exec.run import _first

from .conftest import MadeOnce, cuda_headers

SOURCE = r"""
#include <cstdio>
__device__ int offset = 5;
__global__ void add(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += i + offset;
}
extern "C" int sum_of(int n) {
  int *p, sum = 0, more = 7;
  if (cudaMalloc(&p, n * sizeof(int)) != cudaSuccess) return -1;
  int* host = new int[n];
  for (int i = 0; i < n; ++i) host[i] = 1;
  cudaMemcpyToSymbol(offset, &more, sizeof more);
  cudaMemcpy(p, host, n * sizeof(int), cudaMemcpyHostToDevice);
  add<<<(n + 127) / 128, 128>>>(p, n);
  if (cudaMemcpy(host, p, n * sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) return -2;
  for (int i = 0; i < n; ++i) sum += host[i];
  delete[] host;
  return cudaFree(p) == cudaSuccess ? sum : -3;
}
#ifdef PROGRAM
int main() {
  int sum = sum_of(PROGRAM);
  std::printf("%d\n", sum);
  return sum < 0;
}
#endif
"""


PROPERTIES = r"""
#include <cuda_runtime_api.h>
#include <cstdio>
int main() {
  int version;
  cudaDeviceProp found;
  if (cudaRuntimeGetVersion(&version) || cudaGetDeviceProperties(&found, 0)) return 1;
  std::printf("%d %d %d %d\n", version / 1000, found.multiProcessorCount, found.major, found.clockRate > 0);
}
"""


def sum_of(n: int) -> int:
    return n * (1 + 7) + n * (n - 1) // 2


@pytest.fixture(scope="module")
def built(toolkit: Path, made_once: MadeOnce) -> Callable[..., Path]:
    """What nvcc makes of SOURCE with these options, with the runtime in it."""

    def make(*options: str) -> Path:
        def compile(made: Path) -> None:
            source = made.with_suffix(".cu")
            source.write_text(SOURCE)
            command = [toolkit / "bin" / "nvcc", *options, "-gencode", "arch=compute_80,code=compute_80"]
            subprocess.run([*command, f"-L{toolkit / 'lib'}", source, "-o", made], check=True)

        return made_once("embedded/" + "_".join(options).replace("/", ""), compile)

    return make


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    simt = [Path(sys.executable).with_name("simt"), "exec", "--functional", "--gpu", "a100", "--", *command]
    return subprocess.run(simt, capture_output=True, text=True, timeout=250, env=os.environ | environment)


def prints(done: subprocess.CompletedProcess[str], *lines: object) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[: len(lines)] == [str(line) for line in lines], done.stdout + done.stderr


def test_a_program_runs(built: Callable[..., Path]) -> None:
    prints(run(built("-DPROGRAM=1000")), sum_of(1000))


def test_a_program_that_can_be_loaded_anywhere_runs(built: Callable[..., Path]) -> None:
    prints(run(built("-DPROGRAM=999", "-Xcompiler", "-fPIE", "-Xlinker", "-pie")), sum_of(999))


def test_libraries_that_are_loaded_later_run(built: Callable[..., Path], tmp_path: Path) -> None:
    """By ctypes, twice, after being closed, and beside another one with a runtime of its own."""
    library = built("-shared", "-Xcompiler", "-fPIC")
    other = shutil.copy(library, tmp_path / "other.so")
    script = f"""
import _ctypes, ctypes
first = ctypes.CDLL({str(library)!r})
print(first.sum_of(100))
second = ctypes.CDLL({str(other)!r})
print(second.sum_of(200), first.sum_of(300))
_ctypes.dlclose(second._handle)
third = ctypes.CDLL({str(other)!r})
print(third.sum_of(400))
"""
    sums = sum_of(100), f"{sum_of(200)} {sum_of(300)}", sum_of(400)
    prints(run(sys.executable, "-c", script), *sums)


def test_a_library_of_the_program_runs(built: Callable[..., Path], tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    library = shutil.copy(built("-shared", "-Xcompiler", "-fPIC"), tmp_path / "libsums.so")
    source = tmp_path / "main.cpp"
    source.write_text(
        '#include <cstdio>\nextern "C" int sum_of(int);\nint main() { std::printf("%d\\n", sum_of(50)); }'
    )
    program = tmp_path / "main"
    subprocess.run(["g++", source, library, f"-Wl,-rpath,{tmp_path}", "-o", program], check=True)
    prints(run(program), sum_of(50))


def test_the_interface_is_that_of_the_runtime_in_the_file(tmp_path: Path) -> None:
    """CUDA 12's device properties have members that CUDA 13's lack."""
    headers = cuda_headers()
    library = headers.parent / "lib" / "libcudart_static.a"
    if not library.is_file() or shutil.which("g++") is None:
        pytest.skip("needs g++ and the static runtime of CUDA 12: pip install nvidia-cuda-runtime-cu12")
    source, program = tmp_path / "properties.cpp", tmp_path / "properties"
    source.write_text(PROPERTIES)
    crt = Path(__file__).parents[2] / "libcuda" / "headers"
    options = [f"-I{headers}", f"-I{crt}", source, library, "-ldl", "-lrt", "-lpthread"]
    subprocess.run(["g++", *options, "-o", program], check=True)
    prints(run(program), "12 108 8 1")


def test_without_symbols_the_runtime_is_named(built: Callable[..., Path], tmp_path: Path) -> None:
    if shutil.which("strip") is None:
        pytest.skip("needs strip")
    program = tmp_path / "stripped"
    subprocess.run(["strip", "-o", program, built("-DPROGRAM=1000")], check=True)
    done = run(program)
    assert done.returncode != 0
    assert f"simt: {program} asked for NVIDIA's private tables" in done.stderr
    assert "Do not strip files" in done.stderr


def test_variables_of_the_environment_are_kept(built: Callable[..., Path]) -> None:
    program = built("-DPROGRAM=1000")
    done = run("sh", "-c", f'echo "$ASAN_OPTIONS"; {program}', ASAN_OPTIONS="detect_leaks=0")
    prints(done, "detect_leaks=0:verify_asan_link_order=0", sum_of(1000))


@pytest.mark.parametrize(
    ("folder", "others", "expected"),
    [
        ("/opt/lib", None, "/opt/lib/x.so"),
        ("/opt/lib", "y.so", "/opt/lib/x.so:y.so"),
        ("/a b/lib", None, "x.so"),
        ("/a:b/lib", "y.so", "x.so:y.so"),
    ],
)
def test_a_preloaded_library_is_named_as_the_linker_reads_it(
    folder: str, others: str | None, expected: str
) -> None:
    assert _first(Path(folder) / "x.so", others) == expected


def test_a_program_with_address_sanitizer_runs(built: Callable[..., Path], tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    source, program = tmp_path / "main.cpp", tmp_path / "main"
    source.write_text('#include <cstdio>\nint main() { std::puts("fine"); }')
    done = subprocess.run(
        ["g++", "-fsanitize=address", source, "-o", program], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"g++ has no AddressSanitizer: {done.stderr}")
    prints(run(program, ASAN_OPTIONS="detect_leaks=0"), "fine")
