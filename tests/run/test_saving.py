"""How runs are saved and stopped: full disks, faults, limits, progress without a terminal."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import simt
from simt import progress
from simt.errors import LimitReached, ProgramFault, ResultError, SimtError
from simt.result import Result
from support.fake_gpu import installed
from support.kills import PTX

SMALL = {"sm.count": 1}


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Simulates a full disk: writing more than this many bytes to a file fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def line_ends(output: Path) -> list[int]:
    """Size of the journal after each of its lines, for a whole run."""
    ends, at = [], 0
    for line in (output / "result.journal").read_bytes().splitlines(keepends=True):
        at += len(line)
        ends.append(at)
    return ends


@pytest.mark.parametrize("launches", [1, 2, 3])
def test_a_full_disk_keeps_what_is_written(tmp_path: Path, launches: int) -> None:
    with installed():
        whole = simt.simulate("input", output=tmp_path / "whole", max_cycles=16_000)
        room = line_ends(tmp_path / "whole")[launches] + 40
        with files_up_to(room), pytest.raises(ResultError) as refused:
            simt.simulate("input", output=tmp_path / "out")
        assert "cannot write a finished launch: File too large" in str(refused.value)
        assert f"{launches} launch" in str(refused.value) and "--resume" in str(refused.value)
        kept = Result.load(tmp_path / "out")
        assert kept.launches == whole.launches[:launches] and kept.status == "interrupted"
        resumed = simt.simulate("input", output=tmp_path / "out", resume=True)
    assert resumed.status == "complete" and len(resumed.launches) == 4
    assert resumed.launches[:launches] == kept.launches
    assert not (tmp_path / "out" / "result.journal").exists()


@pytest.mark.parametrize("cut", [1, 7, 400])
def test_a_torn_line_is_the_end(tmp_path: Path, cut: int) -> None:
    with installed():
        simt.simulate("input", output=tmp_path / "out", max_cycles=16_000)
    journal = tmp_path / "out" / "result.journal"
    data = journal.read_bytes()[: line_ends(tmp_path / "out")[2]]
    journal.write_bytes(data + b'{"launch":' + b"x" * cut)
    assert [x.id for x in Result.load(tmp_path / "out").launches] == [1, 2]
    journal.write_bytes(b"rubbish\n")
    with pytest.raises(ResultError, match="not the journal of a run"):
        Result.load(tmp_path / "out")


def test_a_programs_fault_keeps_what_had_finished_and_it_goes_on(tmp_path: Path) -> None:
    def launch_all(gpu: simt.GPU, broken: bool) -> None:
        module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
        for i in range(4):
            if broken and i == 2:
                module.work[1, 64](1 << 40, 5)
            module.work[1, 64](x, 100 + i)

    whole = simt.GPU("qv100", set=SMALL)
    launch_all(whole, False)
    gpu = simt.GPU("qv100", set=SMALL, output=tmp_path / "out")
    with pytest.raises(ProgramFault):
        launch_all(gpu, True)
    assert [x.id for x in Result.load(tmp_path / "out").launches] == [1, 2]
    again = simt.GPU("qv100", set=SMALL, output=tmp_path / "out", resume=True)
    launch_all(again, False)
    again.save()
    result = Result.load(tmp_path / "out")
    assert result.status == "complete" and [x.id for x in result.launches] == [1, 2, 3, 4]
    assert result.provenance.resumed_after == 2 and "resumed after 2 launches" in result.warnings[0]
    expected = [x.warp_instructions for x in whole.launches]
    assert [x.warp_instructions for x in result.launches] == expected
    other = simt.GPU("qv100", set=SMALL, output=tmp_path / "other")
    launch_all(other, False)
    changed = simt.GPU("qv100", set=SMALL, output=tmp_path / "other", resume=True)
    with pytest.raises(ResultError, match=r"launch 1 was 'work'.*does not behave the same again"):
        changed.load(PTX).work[1, 32](changed.zeros(64, np.uint32), 100)


def test_max_cycles_of_a_program(tmp_path: Path) -> None:
    def launch_all(gpu: simt.GPU) -> None:
        module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
        for i in range(4):
            module.work[1, 64](x, 100 + i)

    whole = simt.GPU("qv100", set=SMALL)
    launch_all(whole)
    most = whole.launches[1].end_cycle + 500
    gpu = simt.GPU("qv100", set=SMALL, output=tmp_path / "out", max_cycles=most)
    with pytest.raises(LimitReached, match=f"the limit of {most:,} core cycles is reached") as stopped:
        launch_all(gpu)
    assert stopped.value.result.status == "max_cycles"
    assert stopped.value.result.launches == tuple(whole.launches[:2])


@pytest.mark.slow
def test_timeout_of_a_gpu(tmp_path: Path) -> None:
    """Features shared by runs of traces and programs: a time limit, overrides as text, resuming from a
    Result; both refuse invalid parameters.
    """
    gpu = simt.GPU("qv100", set=["sm.count=1"], output=tmp_path / "out", timeout=3)
    module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
    module.work[1, 64](x, 100)
    with pytest.raises(LimitReached, match="the limit of 3 seconds is reached") as stopped:
        module.work[1, 64](x, 0)
    left = stopped.value.result
    assert left.status == "timeout" and [launch.id for launch in left.launches] == [1]
    again = simt.GPU("qv100", set=SMALL, resume=left)
    again.load(PTX).work[1, 64](again.zeros(64, np.uint32), 100)
    assert again.result().launches == left.launches
    for wrong in ({"timeout": 0}, {"max_cycles": 0}, {"timeline": 0}):
        with pytest.raises(SimtError, match=f"{next(iter(wrong))} is 0"):
            simt.GPU("qv100", **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("endless", ["while True: pass", "gpu.load(PTX).work[1, 64](gpu.zeros(64, int), 0)"])
def test_timeout_ends_any_program(tmp_path: Path, endless: str) -> None:
    (tmp_path / "endless.py").write_text(
        f'PTX = """{PTX}"""\ndef main(gpu):\n'
        f"    gpu.load(PTX).work[1, 64](gpu.zeros(64, int), 9)\n    {endless}\n"
    )
    run = ["run", "endless.py", "--output", "out", "--timeout", "4", "--set", "sm.count=1"]
    done = subprocess.run(
        [sys.executable, "-c", "from simt.cli import main; main()", *run],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert "timeout reached" in done.stderr and "1 launch is finished and saved in out" in done.stderr
    assert Result.load(tmp_path / "out").status == "timeout"


def test_progress_is_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed():
        simt.simulate("input", progress=True)
        assert capsys.readouterr().err == "", "it took less than half a minute"
        monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
        simt.simulate("input", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2 and "gemm_128x64, 2 of 4" in "".join(lines) and "cycles" in lines[-1]


def test_a_launch_after_the_result_was_saved_starts_a_journal_with_those_before(tmp_path: Path) -> None:
    gpu = simt.GPU("qv100", set=SMALL, output=tmp_path / "out")
    module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
    module.work[1, 64](x, 100)
    gpu.save()
    module.work[1, 64](x, 101)
    gpu.synchronize()
    assert (tmp_path / "out" / "result.journal").exists()
    kept = Result.load(tmp_path / "out")  # as if the process were killed here
    assert [launch.id for launch in kept.launches] == [1, 2]
