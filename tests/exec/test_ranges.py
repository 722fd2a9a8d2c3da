"""NVTX ranges of unmodified programs: which launches are timed, and what the Result says of each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.result import Result

ANNOTATIONS = {
    1: "warm-up",
    2: "",
    3: "atténtion",
    4: "decode",
    5: "gemm 128",
    6: "gemm 128",
    7: "step",
    8: "",
}
Compile = Callable[[str], Path]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from simt.cli import main; main()", "exec", "-q", "--set", "sm.count=2"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "timed"),
    [
        (None, [1, 2, 3, 4, 5, 6, 7, 8]),
        ("decode", [3, 4, 5]),
        ("nvtx", [1, 3, 4, 5, 6, 7]),
        ("name~ntion", [3]),
        ("/gemm \\d+|warm/", [1, 5, 6]),
        ("w*", [1]),
        ("step", [7]),
    ],
)
def test_nvtx_ranges(chosen: str | None, timed: list[int], compiled: Compile, tmp_path: Path) -> None:
    options = [] if chosen is None else ["--capture-range", chosen]
    done = run(*options, "-o", tmp_path / "out.json", "--", compiled("nvtx"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
    found = {launch.id: launch.annotation for launch in Result.load(tmp_path / "out.json").launches}
    assert found == {number: ANNOTATIONS[number] for number in timed}


@pytest.mark.slow
def test_ranges_of_several_devices(compiled: Compile, tmp_path: Path) -> None:
    options = ["--gpu", "h100,a100", "--capture-range", "decode", "-o", tmp_path / "out.json"]
    done = run(*options, "--", compiled("nvtx"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
    first, second = (Result.load(tmp_path / name) for name in ("out.json", "out.2.json"))
    assert [launch.id for launch in first.launches] == [3, 4, 5]
    assert [launch.id for launch in second.launches] == [1]


@pytest.mark.slow
def test_ranges_after_a_checkpoint(compiled: Compile, tmp_path: Path) -> None:
    """The launch from which the program resumes is within a range that it had opened before."""
    program = compiled("nvtx")
    made = ["--checkpoint-at", "launch=4", "--checkpoint", tmp_path / "one"]
    done = run("--gpu", "h100", *made, "--", program)
    assert done.returncode == 0, done.stderr
    resumed = ["--resume-from", tmp_path / "one", "--capture-range", "decode", "-o", tmp_path / "out.json"]
    done = run(*resumed, "--", program)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
    found = {launch.id: launch.annotation for launch in Result.load(tmp_path / "out.json").launches}
    assert found == {4: "decode", 5: "gemm 128"}


def test_an_unknown_range_is_a_warning(compiled: Compile) -> None:
    done = run("--capture-range", "no such", "--", compiled("nvtx"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
    assert "range 'no such': none of the program's 8 launches is within it" in done.stderr


def test_a_malformed_pattern_is_refused_before_the_start(compiled: Compile) -> None:
    done = run("--capture-range", "/(/", "--", compiled("nvtx"))
    assert done.returncode != 0 and not done.stdout
    assert "capture_range: '/(/' is not a regular expression" in done.stderr
