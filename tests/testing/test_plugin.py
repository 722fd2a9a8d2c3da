"""The plug-in for pytest: fixtures, budgets, baselines, reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

KERNEL = """
extern "C" __global__ void turn(float* out, const float* in, int n) {
  __shared__ float t[32][WIDTH];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
"""
TESTS = """
import numpy as np
import pytest

def run(gpu, assert_kernel, **more):
    n = 64
    values = np.arange(n * n, dtype=np.float32).reshape(n, n)
    kernel = gpu.load("turn.cu").turn[(2, 2), (32, 8)]
    return assert_kernel(kernel, np.zeros_like(values), values, n, expected={0: values.T}, **more)

@pytest.mark.simt(gpu=["a100", "gtx1650"], budget="turn <= 20000 cycles")
def test_two(gpu, assert_kernel):
    assert run(gpu, assert_kernel).cycles > 0

@pytest.mark.simt(functional=True)
def test_values(gpu, assert_kernel):
    assert run(gpu, assert_kernel) is None

@pytest.mark.simt(gpu="a100", budget=["t* <= 0.1 us", "other <= 5 cycles"])
def test_budget(gpu, assert_kernel):
    run(gpu, assert_kernel)

def test_wrong(gpu, assert_kernel):
    kernel = gpu.load("turn.cu").turn[(2, 2), (32, 8)]
    zeros = np.zeros((64, 64), "f4")
    with pytest.raises(AssertionError, match="4,096 of 4,096 elements differ; the first is .0, 0.: found 0"):
        assert_kernel(kernel, zeros, zeros, 64, expected=lambda out, values, n: values + 1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "turn.cu").write_text(KERNEL.replace("WIDTH", "33"))
    (tmp_path / "test_turn.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nsimt_gpu = a100\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Loaded by name where simt was installed before it had the entry point.
    plugin = [] if "simt" in _entry_points() else ["-p", "simt.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)


def _entry_points() -> set[str]:
    from importlib.metadata import entry_points

    return {one.name for one in entry_points(group="pytest11")}


@pytest.mark.slow
def test_a_project(project: Path) -> None:
    first = run(project, "--simt-update", "--junitxml", "junit.xml", "--simt-sarif", "found.sarif")
    assert "4 passed" in first.stdout and "1 failed" in first.stdout, first.stdout
    assert "budget 't* <= 0.1 us': turn (launch 1) takes" in first.stdout and "on a100" in first.stdout
    assert "budget 'other <= 5 cycles': no launch of this kernel was timed; there are: turn" in first.stdout
    cases = ElementTree.parse(project / "junit.xml").iter("testcase")
    properties = {case.get("name"): [p.get("name") for p in case.iter("property")] for case in cases}
    assert "simt.turn.cycles" in properties["test_two[gtx1650]"]
    (log,) = json.loads((project / "found.sarif").read_text())["runs"]
    assert [x["ruleId"] for x in log["results"]] == ["budget", "budget"]
    where = log["results"][0]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "test_turn.py" and where["region"]["startLine"] > 1
    kept = json.loads((project / "simt-baseline.json").read_text())["tests"]
    assert (
        len(kept) == 3 and kept["test_turn.py::test_two[a100]"][0]["cycles"] > 0
    )  # those that passed, with time

    same = run(project, "-k", "two", "-n", "2")
    assert "2 passed" in same.stdout, same.stdout
    (project / "turn.cu").write_text(KERNEL.replace("WIDTH", "32"))
    slower = run(project, "-k", "two and a100", "--simt-sarif", "found.sarif")
    assert "% more cycles" in slower.stdout and "more shared-memory passes at line" in slower.stdout, (
        slower.stdout
    )
    (log,) = json.loads((project / "found.sarif").read_text())["runs"]
    assert log["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "turn.cu"
    assert "1 passed" in run(project, "-k", "two and a100", "--simt-tolerance", "900").stdout


def test_a_mark_with_a_typing_error_is_a_usage_error(project: Path) -> None:
    (project / "test_turn.py").write_text(
        "import pytest\n@pytest.mark.simt(budgets='x <= 1 cycles')\ndef test_it(gpu): pass\n"
    )
    found = run(project)
    assert (
        "@pytest.mark.simt takes gpu=, functional=, budget=, baseline=, options=; found budgets"
        in found.stdout
    )


def test_it_loads_nothing_of_simt_until_it_is_used(project: Path) -> None:
    (project / "test_turn.py").write_text(
        "import sys\ndef test_it(): assert not {'simt.gpu', 'simt.result', 'numpy', 'polars'} & "
        "set(sys.modules)\n"
    )
    found = run(project)
    assert "1 passed" in found.stdout, found.stdout


RACE = """
extern "C" __global__ void turn_round(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  BARRIER y[threadIdx.x] = s[63 - threadIdx.x];
}
"""
CHECKED = """
import numpy as np

def run(simt_check, barrier):
    module = simt_check.load("race.cu", defines={"BARRIER": barrier})
    module.turn_round[1, 64](np.zeros(64, np.float32))

def test_without(simt_check):
    run(simt_check, "")

def test_with(simt_check):
    run(simt_check, "__syncthreads();")
"""


@pytest.mark.slow
def test_what_the_checker_finds_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "race.cu").write_text(RACE)
    (tmp_path / "test_race.py").write_text(CHECKED)
    done = run(tmp_path, "--simt-gpu", "a100", "--simt-sarif", "found.sarif")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "race-shared in kernel `turn_round`" in done.stdout
    (found,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    assert {each["ruleId"] for each in found["results"]} == {"check"}
    places = [each["locations"][0]["physicalLocation"] for each in found["results"]]
    assert {place["region"]["startLine"] for place in places} == {5}
