"""`simt run program.cu` of a source with its own `main`: compiled by nvcc, run as by `simt exec`."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simt.cli.run import app
from simt.cuda.nvcc import compiled_program, find_nvcc
from simt.errors import LaunchError, SimtError, ToolkitError
from simt.explain import explain
from simt.program import is_whole, script_of
from simt.result import Result

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
__global__ void sum(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, x[i]);
}
int main(int argc, char** argv) {
  int n = atoi(argv[1]), *x, *out, h[1000], r = 0;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&out, sizeof r);
  for (int i = 0; i < n; ++i) h[i] = i;
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof r);
  sum<<<4, 256>>>(x, out, n);
  cudaMemcpy(&r, out, sizeof r, cudaMemcpyDeviceToHost);
  printf("%d\n", r);
  return argc - 1;
}
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("simt")), "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def invoke(*arguments: object) -> None:
    CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("int main() {}", True),
        ("auto main(int argc, char** argv) -> int {}", True),
        ("// int main() {}\nvoid f();", False),
        ('/* int\nmain( */ const char* s = "int main()";', False),
        ("int domain(int x);", False),
    ],
)
def test_is_whole(text: str, found: bool, tmp_path: Path) -> None:
    source = tmp_path / "x.cu"
    source.write_text(text)
    assert is_whole(source) is found
    assert not is_whole(source, driver=tmp_path / "other.py")
    source.with_suffix(".py").touch()
    assert not is_whole(source)


@pytest.mark.slow
def test_a_program_with_its_own_main(toolkit: Path, tmp_path: Path) -> None:
    """Prints, simulates, and ends with the program's own status, on a GPU older than nvcc compiles for."""
    source = tmp_path / "sum.cu"
    source.write_text(PROGRAM)
    done = run(source, "--gpu", "qv100", "--output", tmp_path / "out", "--", "500", "-x")
    assert done.returncode == 2, done.stderr
    assert done.stdout == "124750\n"
    assert "compiled for sm_75, nvcc's oldest; qv100 executes that" in done.stderr
    result = Result.load(tmp_path / "out")
    assert [launch.name for launch in result.launches] == ["_Z3sumPKiPii"]
    assert result.provenance.input == str(source)
    assert result.provenance.overrides == {"sm_version": "75"}


def test_what_does_not_go_with_it(toolkit: Path, tmp_path: Path) -> None:
    source = tmp_path / "sum.cu"
    source.write_text("int main() { return undeclared; }")
    done = run(source, "--gpu", "a100")
    assert done.returncode == 2
    assert "sum.cu: nvcc does not compile it for sm_80" in done.stderr and '"undeclared"' in done.stderr
    with pytest.raises(LaunchError, match="without --resume"):
        invoke(source, "--resume")
    with pytest.raises(LaunchError, match="with its own `main`, which only `simt run`"):
        script_of(source, None)
    source.write_text("__global__ void k() {}")
    with pytest.raises(LaunchError, match=r"takes no arguments \('5'\)"):
        invoke(source, "5")


def test_without_nvcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolkitError, match=r"nvcc, which .* is not installed: pip install nvidia-cuda-nvcc"):
        find_nvcc()
    (tmp_path / "nvcc").touch(mode=0o755)
    assert find_nvcc() == tmp_path / "nvcc"


def test_what_would_help_one(toolkit: Path, tmp_path: Path) -> None:
    """Atomics on one word are all that its second launch waits for; the first is not explained. The same of
    the executable file, and of a command that starts it.
    """
    source = tmp_path / "sum.cu"
    text = PROGRAM.replace("sum<<<4", "sum<<<1, 32>>>(x, out, 0); sum<<<60").replace("argc - 1", "argc - 2")
    source.write_text(text)
    causes = ["atomics", "barriers", "divergence"]
    found = explain(source, "gtx1650", arguments=["999"], causes=causes)
    assert found.launch.id == 2 and [gain.cause.name for gain in found.gains] == ["atomics"]
    assert found.gains[0].speedup > 1.1 and found.gains[0].cycles < found.launch.cycles
    with compiled_program(source, 75) as program:
        for target, arguments in ((program, ["999"]), ("env", [str(program), "999"])):
            again = explain(target, "gtx1650", arguments=arguments, causes=causes)
            assert [gain.cycles for gain in again.gains] == [gain.cycles for gain in found.gains]
    with pytest.raises(SimtError, match="it ended with status 1"):
        explain(source, "gtx1650", arguments=["999", "5"])


def test_arguments_are_of_programs_that_take_them(tmp_path: Path) -> None:
    for target in ("saxpy", tmp_path / "kernelslist.g", lambda gpu: None):
        with pytest.raises(SimtError, match=r"takes no arguments \('5'\)"):
            explain(target, arguments=["5"])
    with pytest.raises(LaunchError, match="there is no such file, example or workload"):
        explain("no-such-command", arguments=["5"])
