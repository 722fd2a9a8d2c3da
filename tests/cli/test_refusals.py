"""Inputs of other kinds are refused with what they are, and what to do with them."""

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.cuda import load_images
from simt.errors import ImageError, LaunchError, SimtError, TraceError
from simt.gpu import GPU
from simt.power import load_energies
from simt.power.measurements import read_measurements
from simt.profile import read_profile
from simt.program import run_program, script_of
from simt.result import Result
from simt.spec import load_spec
from simt.study import Study
from simt.trace import open_trace
from simt.tuner.records import read_records
from simt.validate.correlation import find_programs
from simt.validate.recipes import read_recipes, read_table


def elf(machine: int) -> bytes:
    return b"\x7fELF" + bytes([2, 1, 1, 64]) + bytes(8) + struct.pack("<HHI", 3, machine, 1) + bytes(40)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("k.co", elf(224), "is AMD's machine code"),
        ("k", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(40), "is AMD's machine code"),
        ("k.hsaco", b"anything", "is AMD's machine code"),
        ("k.cl", b"__kernel void f() {}", "is OpenCL C; simt runs kernels in CUDA C++"),
        ("profile.jsonl", b'{"Type": 79}\n', "is JSON lines; of Nsight Systems, export SQLite"),
        ("k.spv", b"\x03\x02\x23\x07", "is SPIR-V"),
        ("study.toml", b'inputs = ["a.py"]\n', "is a study; `simt study FILE` runs it"),
        ("study.toml", b'[[inputs]]\ninput = "a.py"\n', "is a study"),
        ("gpu.toml", b'extends = "a100"\n', "is a specification; name it with --gpu"),
        ("app", elf(62), "is a native program or library; `simt exec -- PROGRAM` runs CUDA programs"),
    ],
)
def test_what_is_no_trace(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TraceError) as error:
        open_trace(tmp_path / name)
    assert message in str(error.value)


def test_amd_code_in_place_of_machine_code(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(elf(224))
    for program in (tmp_path / "k.cubin", elf(224)):
        with pytest.raises(ImageError, match="is AMD's machine code"):
            load_images(program, "sm_80")


def test_a_program_without_main_is_refused_before_it_runs(tmp_path: Path) -> None:
    script, mark = tmp_path / "model.py", tmp_path / "ran"
    script.write_text(f"open({str(mark)!r}, 'w')\ndef other(): main()\n")
    with pytest.raises(LaunchError, match=r"has no function `main\(gpu\)`.*simt exec -- python"):
        run_program(script, GPU("a100", functional=True))
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "from other import start\ndef main(gpu): start(gpu)",
        "from other import start\nmain = lambda gpu: start(gpu)",
        "from other import start as main",
        "from other import start\nif 1:\n def main(gpu): start(gpu)",
    ],
)
def test_main_may_be_bound_in_any_way(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "other", raising=False)
    (tmp_path / "other.py").write_text("def start(gpu): print(gpu.name)\n")
    (tmp_path / "model.py").write_text(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{text}\n")
    run_program(tmp_path / "model.py", GPU("a100", functional=True))
    assert capsys.readouterr().out == "a100\n"


def test_tritons_own_launch_names_the_two_ways(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def main(gpu):\n    raise RuntimeError('0 active drivers ([]). There should only be one.')\n"
    )
    with pytest.raises(LaunchError, match=r"gpu\.triton\(kernel\)\[grid\].*`simt exec`"):
        run_program(tmp_path / "model.py", GPU("a100", functional=True))


@pytest.mark.parametrize(
    "read",
    [
        open_trace,
        read_profile,
        Study.load,
        lambda path: script_of(path.with_suffix(".py"), None),
        lambda path: find_programs(path, path),
        lambda path: load_spec(f"{path}.toml"),
        Result.load,
    ],
)
def test_names_that_no_file_can_have(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(SimtError, match="cannot be read: File name too long"):
        read(tmp_path / ("n" * 300))


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_recipes(path.parent, path.stem),
        read_table,
        load_energies,
        read_measurements,
        lambda path: read_records([path]),
        read_profile,
        load_spec,
        Study.load,
        lambda path: run_program(path.with_suffix(".py"), GPU("a100", functional=True)),
    ],
)
@pytest.mark.timeout(20)
def test_pipes_are_refused_before_they_are_opened(read: Callable[[Path], object], tmp_path: Path) -> None:
    for name in ("a.toml", "a.py"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(SimtError, match=r"this is a FIFO \(a pipe\)"):
        read(tmp_path / "a.toml")
