"""Outputs never replace something that is not a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from simt.cli import main
from support.fake_gpu import installed

COMMANDS = {
    "run -o": ["run", "traces", "--output", "TARGET.json"],
    "run --json": ["run", "traces", "--json", "TARGET"],
    "run --perfetto": ["run", "traces", "--perfetto", "TARGET"],
    "report": ["report", "out", "-o", "TARGET"],
    "report --perfetto": ["report", "out", "--perfetto", "TARGET"],
    "convert": ["trace", "convert", "traces", "TARGET"],
    "info": ["trace", "info", "traces", "--json", "TARGET"],
    "sample": ["sample", "out", "-o", "TARGET"],
    "correlate": ["correlate", "out", "out", "--csv", "TARGET"],
    "tune": ["tune", "records.json", "-o", "TARGET.toml"],
    "bench": ["bench", "run", "l1", "--gpu", "qv100", "--json", "TARGET"],
}


@pytest.mark.parametrize("kind", ["fifo", "device", "directory"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    kind: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with installed():
        import simt

        simt.simulate("traces").save("out")
    from support.tiny import warp_of, write_kernel

    write_kernel(tmp_path / "traces", [[warp_of(lambda warp: warp.op("FFMA", 8, (8, 2, 8)))]])
    target = tmp_path / next(a for a in COMMANDS[command] if a.startswith("TARGET"))
    if kind == "fifo":
        os.mkfifo(target)
    elif kind == "device":
        target.symlink_to("/dev/full")
    else:
        target.mkdir()
    before = target.lstat()
    monkeypatch.setattr(sys, "argv", ["simt", *COMMANDS[command]])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2, said
    assert "this is a" in said and "Traceback" not in said
    assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)
