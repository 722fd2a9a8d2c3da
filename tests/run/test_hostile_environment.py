"""Limits of a cluster's hosts, hostile files and hostile names: one clear error, or it works all the same."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from rich.console import Console

import simt
from simt.checkpoint.folder import HEADER, STATE
from simt.cli.tables import print_table
from simt.errors import CheckpointError, LaunchError, ResultError, SimtError, SpecError, StudyError
from simt.exec import run
from simt.files import decompressed, parse_toml, require_output
from simt.names import printable, short_name
from simt.result import Result
from simt.spec import load_spec
from simt.study.expression import Expression


def test_a_zstd_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """A frame that says its size is not bounded by zstandard's max_output_size."""
    simt.GPU("qv100", functional=True).checkpoint(tmp_path / "c")
    size = 2 << 30
    stream = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    bomb = b"".join(stream.compress(bytes(1 << 24)) for _ in range(size >> 24)) + stream.flush()
    (tmp_path / "c" / STATE).write_bytes(bomb)
    header = json.loads((tmp_path / "c" / HEADER).read_text())
    header["sha256"] = hashlib.sha256(bomb).hexdigest()
    (tmp_path / "c" / HEADER).write_text(json.dumps(header))
    with pytest.raises(CheckpointError, match=r"state.json.zst: it would take 2,147,483,648 bytes"):
        simt.GPU.from_checkpoint(tmp_path / "c")
    exact = zstandard.ZstdCompressor().compress(bytes(1000))
    assert decompressed(exact, 1000) == bytes(1000)
    with pytest.raises(zstandard.ZstdError):
        decompressed(exact, 999)


@pytest.mark.parametrize("name", [HEADER, STATE, "memory.zst"])
def test_a_pipe_within_a_checkpoint_is_refused(tmp_path: Path, name: str) -> None:
    gpu = simt.GPU("qv100", functional=True)
    x = gpu.array(np.arange(8))
    gpu.checkpoint(tmp_path / "c", {"x": x})
    (tmp_path / "c" / name).unlink()
    os.mkfifo(tmp_path / "c" / name)
    with pytest.raises(CheckpointError, match=f"{name}: this is a FIFO"):
        simt.GPU.from_checkpoint(tmp_path / "c")


def test_a_pipe_within_a_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "result.json")
    with pytest.raises(ResultError, match="this is a FIFO"):
        Result.load(tmp_path / "out")


def test_a_key_of_very_many_parts_takes_no_time(tmp_path: Path) -> None:
    """The parser needs a time that grows with the square of the parts."""
    file = tmp_path / "gpu.toml"
    start = time.process_time()
    for key in (".".join(["a"] * 50_000), " . ".join(['"a"'] * 50_000), "a." * 100 + "a"):
        file.write_text(f"x = 1\n{key} = 1\n")
        with pytest.raises(SpecError, match="line 2: a key of more than 32 parts"):
            load_spec(file)
    parse_toml("a" * 500_000 + " = 1")  # in linear time
    assert parse_toml(".".join("b" * 32) + " = 1\nname = 'x.y'")["name"] == "x.y"
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_toml("a = " + "[" * 50_000)
    assert time.process_time() - start < 5


LIMITED = """
import resource, sys, warnings
import numpy as np, simt
simt.GPU  # whatever it imports has its addresses
warnings.simplefilter("always")
limit = int(open("/proc/self/statm").read().split()[0]) * 4096 + (4 << 30)
resource.setrlimit(resource.{which}, ({limit},) * 2)
gpu = simt.GPU("h100", functional=True)
x = gpu.array(np.arange(1000)); assert int(x.numpy().sum()) == 499500
print("capacity", gpu.memory.capacity)
"""


@pytest.mark.parametrize(("which", "limit"), [("RLIMIT_AS", "limit"), ("RLIMIT_FSIZE", "1 << 30")])
def test_a_limit_of_addresses_or_files_makes_memory_smaller(which: str, limit: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(which=which, limit=limit)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "device memory is" in done.stderr and "ulimit -v" in done.stderr
    assert 64 << 20 <= int(done.stdout.split()[-1]) <= 1 << 30


def test_no_addresses_at_all_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: simt.GPU, capacity: int) -> Any:
        raise MemoryError

    monkeypatch.setattr(simt.GPU, "_device_memory", refuse)
    with pytest.raises(LaunchError, match=r"no addresses for device memory.*ulimit -v"):
        simt.GPU("qv100", functional=True)


def test_a_long_directory_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a socket has 107 bytes at most."""
    folder = tmp_path / ("d" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert run([sys.executable, "-c", ""], "qv100").status == 0
    monkeypatch.setattr(sys.modules["simt.exec.run"], "_SHORT_PLACES", (str(tmp_path / "nothing"),))
    with pytest.raises(SimtError, match=r"too long for a socket.*No such file.*set TMPDIR"):
        run([sys.executable, "-c", ""], "qv100")


def test_names_do_not_act_on_the_terminal() -> None:
    evil = "\x1b]0;title\x07k\x9b2J[/red]"
    assert printable(evil) == r"\x1b]0;title\x07k\x9b2J[/red]" == short_name(evil)
    assert printable("a\tb\nµ") == "a\tb\nµ"
    shown = io.StringIO()
    print_table(Console(file=shown, width=200), ["kernel", "n"], [[evil, "1"]], (0,))
    assert "\x1b" not in shown.getvalue() and r"\x1b]0;title" in shown.getvalue()


def test_numbers_beyond_floats() -> None:
    assert Expression("9" * 400).number({}) is None
    assert Expression(f"{'9' * 400} <= 1").excess({}) == sys.float_info.max
    assert Expression(f"1 >= {'9' * 400}").excess({}) == sys.float_info.max
    with pytest.raises(StudyError):
        Expression("'a'").number({})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"window": -1}, "window is -1, expected 0 or more"),
    ({"window": 1 << 70}, "window is 1180591620717411303424, expected 0 or more, up to"),
    ({"window": "x"}, "window is 'x', expected a whole number"),
    ({"timeline": 1.5}, "timeline is 1.5, expected a whole number"),
    ({"max_cycles": "5"}, "max_cycles is '5', expected a whole number"),
    ({"max_cycles": 1 << 70}, "max_cycles is 1180591620717411303424, expected 1 or more, up to"),
    ({"timeout": "3"}, "timeout is '3' seconds, expected a number"),
    ({"timeout": math.inf}, "timeout is inf seconds"),
    ({"timeout": math.nan}, "timeout is nan seconds"),
    ({"threads": 1 << 70}, "threads is"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_are_one_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SimtError, match=message):
        simt.GPU("qv100", **options)


@pytest.mark.parametrize("dtype", ["V0", "S0", np.dtype([])])
def test_elements_of_no_bytes_are_refused(dtype: Any) -> None:
    with pytest.raises(LaunchError, match="elements are"):
        simt.GPU("qv100", functional=True).empty(8).view(dtype)


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "x" * 240 + ".json", "a\0b.json"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ResultError, match="cannot write a file of this name"):
        require_output(tmp_path / name)
    if len(name) > 255 or "\0" in name:
        with pytest.raises(ResultError, match=r"cannot be read: File name too long|no name of a file"):
            Result.load(tmp_path / name)
