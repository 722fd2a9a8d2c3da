"""Nothing finished is lost: runs killed at random moments. SIMT_KILLS=200 for as many as that."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from simt.result import Result
from simt.trace.writer import Warp
from support.kills import LAUNCHES, PROGRAM, SIGNALS, Runs, finished
from support.tiny import warp_of, write_kernel

KILLS = int(os.environ.get("SIMT_KILLS", "10"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    started = Runs()
    yield started
    started.close()


def make_input(kind: str, folder: Path) -> str:
    if kind == "program":
        (folder / "program.py").write_text(PROGRAM)
        return "program.py"

    def chain(warp: Warp) -> None:
        for _ in range(400):
            warp.op("FFMA", 8, (8, 2, 8))

    for number in range(1, LAUNCHES + 1):
        write_kernel(folder / "traces", [[warp_of(chain)]], number)
    return "traces"


@pytest.mark.slow
@pytest.mark.parametrize("output", ["out", "out.json"])
@pytest.mark.parametrize("kind", ["program", "trace"])
def test_what_had_finished_is_on_disk(runs: Runs, tmp_path: Path, kind: str, output: str) -> None:
    """Killed, and killed again after being resumed, until it completes."""
    chance = random.Random(f"{kind} {output}")
    first = tmp_path / "whole"
    first.mkdir()
    command = ["run", make_input(kind, first), "--set", "sm.count=1", "--quiet", "--output", output]
    seconds = min(runs.whole(command, first) for _ in range(3))
    reference = Result.load(first / output)
    assert len(reference.launches) == LAUNCHES
    again = [*command, "--resume"]
    kills = 0
    while kills < KILLS // 2:
        folder = tmp_path / f"run{kills}"
        folder.mkdir()
        make_input(kind, folder)
        for _ in range(4):  # now it may end
            after, number = chance.uniform(0, seconds), chance.choice(SIGNALS)
            status = runs.killed(again, folder, after, number)
            kills += status != 0
            noted = finished(folder)
            saved = Result.load(folder / output).launches if noted else ()
            for launch in saved:
                expected = reference.launches[launch.index]
                assert launch.warp_instructions == expected.warp_instructions
            assert noted <= {launch.index for launch in saved}, (status, after, number)
        runs.whole(again, folder)
        result = Result.load(folder / output)
        assert result.status == "complete"
        assert [x.index for x in result.launches] == list(range(LAUNCHES))
        left = {path.name for path in folder.iterdir()} | {path.name for path in folder.glob("out/*")}
        assert not any("journal" in name for name in left), left
        if kind == "program":
            assert (folder / "values").read_text() == (first / "values").read_text()
        shutil.rmtree(folder)
