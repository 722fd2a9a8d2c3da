"""Scripts in benchmarks/ and docs/records/scripts/ can be run, and the gate on instructions holds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    ROOT / "benchmarks",
    ROOT / "docs" / "records" / "scripts",
    ROOT / "docs" / "papers" / "scripts",
    ROOT / "validation",
]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "benchmarks" / "bench.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench"] = module  # where its dataclass looks for its types
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_every_script_can_be_imported(folder: Path) -> None:
    """What simt has renamed is found here, before a script is needed."""
    names = sorted(file.stem for file in folder.glob("*.py"))
    code = (
        "import importlib, traceback\n"
        f"for name in {names}:\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        f"        if error.name.split('.')[0] in {['simt', *names]}: traceback.print_exc()\n"
        "    except Exception: traceback.print_exc()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    assert names


def test_three_percent_more_instructions_fail(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    counted = {name: bench.Counts(value, 5, 2) for name, value in {"a": 1030, "b": 1031, "c": 7}.items()}
    assert bench.compare(counted, {"a": 1000, "b": 1000}) == ["b"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["benchmark", "a", "b", "c"]
    assert "+3.00%" in lines[1] and "+3.10%" in lines[2] and " - " in lines[3]


def test_only_the_latest_row_of_the_same_toolchain_counts(bench: ModuleType) -> None:
    rows = [
        {"benchmark": "a", "toolchain": "x", "instructions": "1"},
        {"benchmark": "a", "toolchain": "x", "instructions": "2"},
        {"benchmark": "a", "toolchain": "y", "instructions": "3"},
    ]
    assert bench.latest(rows, "x") == {"a": 2}
    assert bench.latest(rows, "z") == {}


def test_totals_of_callgrind(bench: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "counts.1"
    file.write_text(
        "# callgrind format\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\ntotals: 9 4 3 0 2 1 1 1\n"
    )
    assert bench.read_counts(file) == bench.Counts(9, 3, 2)


def test_without_valgrind_nothing_is_compared(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["bench.py"])
    assert bench.main() == 0
    assert "skipped: valgrind" in capsys.readouterr().out


def test_a_folder_without_a_build_is_not_compared(tmp_path: Path) -> None:
    """An editable installation is not taken for it."""
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "two_builds.py"),
        tmp_path,
        tmp_path,
        "--rows",
        "dram-random",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{tmp_path}: simt with its engine is not installed there" in done.stderr
