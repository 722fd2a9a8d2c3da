"""`simt check`, its files, and the options of findings."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import simt
from simt.check import Finding, Suppressions, checks_of, sarif
from simt.cli import app, with_values
from simt.cuda import toolkit
from simt.errors import CheckError, LaunchError

RACE = """
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  FENCE
  y[threadIdx.x] = s[63 - threadIdx.x];
}
"""
PROGRAM = "def main(gpu, module):\n    module.reverse[1, 64](gpu.ones(64, 'int32'), gpu.zeros(64, 'int32'))\n"

needs_compiler = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "reverse.cu").write_text(RACE.replace("FENCE", ""))
    (tmp_path / "reverse.py").write_text(PROGRAM)
    return tmp_path / "reverse.cu"


def found_in(source: str, **options: object) -> list[Finding]:
    gpu = simt.GPU("a100", **{"check": True, **options})
    gpu.compile(source).reverse[1, 64](np.arange(64, dtype=np.int32), np.zeros(64, np.int32))
    return gpu.findings()


@needs_compiler
def test_a_finding_names_both_accesses() -> None:
    (one,) = found_in(RACE.replace("FENCE", ""), check="race")
    assert (one.kind, one.kernel, one.line) == ("race-shared", "reverse", 6)
    assert one.first is not None and one.second is not None
    assert (one.first.what, one.first.line, one.second.what) == ("write", 4, "read")
    assert one.second.space == "shared" and one.second.address is not None
    assert one.first.thread[0] == one.second.address // 4  # the thread that writes what the other one reads
    assert "ld.shared" in one.second.instruction
    assert "__syncthreads" in one.remedy


@needs_compiler
def test_a_read_that_races_is_no_use_of_what_nobody_wrote() -> None:
    """Thread 0 reads what the last thread writes: before it, as warps happen to be executed."""
    assert {one.kind for one in found_in(RACE.replace("FENCE", ""))} == {"race-shared"}
    assert {one.kind for one in found_in(RACE.replace("FENCE", ""), check="init")} == {"uninitialised-shared"}


@needs_compiler
def test_a_result_without_a_value_is_reported_once() -> None:
    """Where it is stored, and not where the next launch reads it."""
    gpu = simt.GPU("a100", check="init")
    module = gpu.compile(
        'extern "C" __global__ void copy(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }\n'
        'extern "C" __global__ void odd(const int *x, int *y) { if (x[threadIdx.x] & 1) y[0] = 1; }\n'
    )
    x, y = gpu.empty(32, "int32"), gpu.empty(32, "int32")
    module.copy[1, 32](x, y)
    module.odd[1, 32](y, x)
    assert [(one.kind, one.kernel) for one in gpu.findings()] == [("uninitialised-global", "copy")]


@needs_compiler
def test_a_kernel_has_the_name_of_the_source(tmp_path: Path) -> None:
    mangled = "_ZN6cudapy8__main__7reverseB2v1E5ArrayIfLi1EE"  # as Numba makes it
    (one,) = found_in(RACE.replace("FENCE", ""), check="race")
    one = replace(one, kernel=mangled)
    assert "in kernel `cudapy::__main__::reverse`:" in str(one)
    known = tmp_path / "known"
    for name in ("*::reverse", mangled):
        known.write_text(f"race-* {name}\n")
        assert Suppressions(known).apply([one]) == []


@needs_compiler
def test_a_variable_has_the_name_of_the_source() -> None:
    """`first`, not `_ZZ5shiftE5first`."""
    source = RACE.replace("FENCE", "__syncthreads();").replace("s[63 - threadIdx.x]", "s[1 + threadIdx.x]")
    source = source.replace("int s[64];", "int s[64], t[64]; t[threadIdx.x] = 0;").replace(
        "y[threadIdx.x] =", "y[threadIdx.x] = t[threadIdx.x] +"
    )
    found = [each for each in found_in(source, check="memory") if each.kind == "out-of-bounds"]
    assert found and all("`s`, which has 256 bytes" in each.message for each in found)


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_tensor_memory_is_refused(code: simt.options.Code) -> None:
    """The checker does not follow it, and would take what comes from it for uninitialised."""
    gpu = simt.GPU("b200", check=True, code=code)
    module = gpu.load(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.shared .align 8 .b32 place[4];"
        ".visible .entry k() { .reg .b32 %r<2>; mov.u32 %r0, place;"
        " tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;"
        " ld.shared.b32 %r1, [%r0]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32; ret; }"
    )
    with pytest.raises(LaunchError, match=r"`k`: its module has tcgen05 instructions"):
        module.k[1, 32]()


@needs_compiler
def test_nothing_is_found_with_a_barrier() -> None:
    assert found_in(RACE.replace("FENCE", "__syncthreads();")) == []


@needs_compiler
def test_only_the_checks_that_are_asked_for() -> None:
    assert {one.check for one in found_in(RACE.replace("FENCE", ""), check="init")} <= {"init"}


@needs_compiler
def test_the_command_writes_files_and_fails(program: Path, tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "f.json"), "--sarif", str(tmp_path / "f.sarif")]
    ended = CliRunner().invoke(app, ["check", str(program), "--gpu", "a100", "--check", "race", *files])
    assert ended.exit_code == 1
    assert "race-shared in kernel `reverse`" in ended.output and "1 finding" in ended.output
    (one,) = json.loads((tmp_path / "f.json").read_text())
    assert one["kind"] == "race-shared" and one["first"]["line"] == 4
    log = json.loads((tmp_path / "f.sarif").read_text())
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "race-shared"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 6}


@needs_compiler
def test_suppressed_findings_do_not_fail(program: Path, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("# by design\nrace-* reverse reverse.cu:4\n")
    ended = CliRunner().invoke(
        app, ["check", str(program), "--gpu", "a100", "--check", "race", "--suppressions", str(known)]
    )
    assert (ended.exit_code, ended.output.strip()) == (0, "nothing found")


def test_a_wrong_suppression_is_refused(tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("\nraces\n")
    with pytest.raises(CheckError, match=r"known:2: there is no kind 'races'"):
        Suppressions(known)


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(CheckError, match="check 'races': expected race, init"):
        simt.GPU("a100", check="races")
    assert checks_of("race,weak") == ("race", "weak")


def test_check_alone_asks_for_all() -> None:
    arguments = ["run", "--check", "a.py", "--", "--check"]
    assert with_values(arguments) == ["run", "--check=default", "a.py", "--", "--check"]
    assert with_values(["exec", "--check"]) == ["exec", "--check=default"]


def test_check_may_have_a_value_of_its_own() -> None:
    """As the help shows it, `--check race,init`, and not only behind a `=`."""
    assert with_values(["check", "a.cu", "--check", "race,init"]) == ["check", "a.cu", "--check=race,init"]
    assert with_values(["run", "--check", "leak", "a.py"]) == ["run", "--check=leak", "a.py"]
    assert with_values(["check", "a.cu", "--check", "races"]) == ["check", "a.cu", "--check=races"]


def test_an_empty_log_has_no_rules() -> None:
    (run,) = sarif([])["runs"]
    assert run["results"] == [] and run["tool"]["driver"]["rules"] == []


SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def increment(x, B: tl.constexpr):
    at = tl.program_id(0) * STEP + tl.arange(0, B)
    value = tl.load(x + at)
    tl.store(x + at, value + 1)

x = torch.zeros(512, device="cuda")
increment[(4,)](x, B=128)
assert float(x.sum()) > 0
"""


@pytest.mark.slow
@pytest.mark.parametrize(("step", "kinds"), [(128, set()), (64, {"race-global"})])
def test_a_script_with_pytorch_is_checked(tmp_path: Path, step: int, kinds: set[str]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("STEP", str(step)))
    finished = simt.exec.run([sys.executable, script], gpu="a100", functional=True, check=True)
    assert {finding.kind for finding in finished.findings} == kinds
    assert finished.status == 0
