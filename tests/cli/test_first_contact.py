"""A new user's first steps: quick imports, a public API, and errors that say what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import simt
from simt.cli import COMMANDS
from simt.extras import EXTRAS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
LAZY = {"numpy", "polars", "pydantic", "msgspec", "scipy", "sklearn", "matplotlib", "numba", "zstandard"}
CLI = "import simt.cli; simt.cli.main()"


def python(code: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, timeout=120
    )


def without(module: str) -> str:
    """The command line with a module not installed."""
    return f"import sys; sys.modules[{module!r}] = None; {CLI}"


@pytest.mark.parametrize("code", ["import simt", f"import sys; sys.argv = ['simt', '--help']; {CLI}"])
def test_nothing_is_imported_before_it_is_used(code: str) -> None:
    loaded = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    done = python(loaded + code)
    assert done.returncode == 0
    modules = set(done.stderr.split())
    assert "simt" in modules
    assert not LAZY & modules and "simt._engine" not in modules


def test_public_names() -> None:
    packages = {
        "control",
        "debug",
        "errors",
        "exec",
        "isa",
        "policy",
        "power",
        "profile",
        "sampling",
        "sass",
        "spec",
    }
    names = {"GPU", "LaunchResult", "ProgramFault", "Result", "SimtError", "Study", "__version__", "simulate"}
    packages |= {"torch", "trace", "validate", "workloads"}
    assert set(dir(simt)) == names | packages
    for name in (packages | names) - ({"torch"} if find_spec("torch") is None else set()):
        assert getattr(simt, name) is not None
    with pytest.raises(AttributeError):
        _ = simt.nothing  # type: ignore[attr-defined]


def test_the_package_is_typed_and_described() -> None:
    assert (Path(simt.__file__).parent / "py.typed").is_file()
    assert {"Typing :: Typed", "License :: OSI Approved :: MIT License"} <= set(PROJECT["classifiers"])


def test_every_extra_that_errors_name_exists() -> None:
    offered = PROJECT["optional-dependencies"]
    names = {"sklearn": "scikit-learn", "numba_cuda": "numba-cuda"}
    for extra, modules in EXTRAS.items():
        brought = " ".join(offered[extra])
        assert all(names.get(module, module) in brought for module in modules)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_the_same_at_both_places(command: str) -> None:
    whole = python(CLI, "--help").stdout
    one = python(CLI, command, "--help")
    assert one.returncode == 0
    words = COMMANDS[command].split()[:4]
    assert " ".join(words) in " ".join(one.stdout.split())
    assert " ".join(words) in " ".join(whole.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("triton", ["run", "triton_softmax"], "triton_softmax needs triton"),
        ("sklearn", ["sample", "methods"], "simt.sampling needs sklearn"),
        ("scipy", ["tune", "a.json"], "simt.tuner needs scipy"),
        ("matplotlib", ["sample", "compare", "profile.csv", "--plot", "p.png"], "matplotlib"),
    ],
)
def test_a_missing_package_is_one_line(module: str, arguments: list[str], words: str, tmp_path: Path) -> None:
    rows = "name,duration_ns\n" + "".join(f"k{i % 3},{100 + i}\n" for i in range(30))
    (tmp_path / "profile.csv").write_text(rows)
    done = python(without(module), *arguments, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert words in done.stderr and "pip install 'simt[" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("main.hip", b"", "HIP source"),
        ("main.cpp", b"int main() {}", "C++ source"),
        ("a.out", b"\x7fELF\x02\x01\x01", "native program or library"),
        ("kernels", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\xe0\0", "AMD's machine code"),
        ("kernels.hsaco", b"", "AMD's machine code"),
        ("saxpy.cl", b"__kernel void saxpy() {}", "OpenCL C"),
        ("sweep.toml", b'inputs = ["gemm"]\ngpus = ["a100"]\n', "`simt study FILE` runs it"),
        ("my.toml", b'extends = "a100"\n', "name it with --gpu"),
        ("kernel.cubin", b"\x7fELF\x02\x01\x01", "machine code"),
        ("profile", b"SQLite format 3\x00", "`simt sample`"),
        ("result.json", b"{}", "`simt report`"),
        ("gpgpusim.config", b"-gpgpu_n_clusters 80", "`simt gpus import`"),
        ("notes.md", b"# Notes", "notes.md: line 1"),
        ("traces/result.json", b"{}", "`simt report` shows it"),
    ],
)
def test_files_that_are_no_traces_are_named(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    given = file.parent if "/" in name else file
    with pytest.raises(simt.SimtError) as error:
        simt.simulate(given)
    assert str(error.value).startswith(str(given)) and words in str(error.value)


@pytest.mark.slow
def test_names_that_are_nothing_get_a_suggestion(tmp_path: Path) -> None:
    for arguments, words in (
        (["run", "gemn"], "did you mean gemm?"),
        (["run", "qqqqqq"], "the examples and workloads are"),
        (["run", "saxpy", "--gpu", "gpgpusim.config"], "`simt gpus import"),
        (["run", "saxpy", "--gpu", "h10"], "did you mean h100"),
    ):
        done = python(CLI, *arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert words in done.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`simt run ... | true`: the Result is saved nevertheless."""
    read, write = os.pipe()
    os.close(read)
    saved = tmp_path / "result.json"
    trace = Path(__file__).parents[2] / "examples" / "demo"
    done = subprocess.run(
        [sys.executable, "-c", CLI, "run", str(trace), "--kernels", "1", "-o", str(saved)],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    os.close(write)
    assert (done.returncode, done.stderr.strip()) == (0, b"")
    assert json.loads(saved.read_text())["status"] == "complete"


def test_completion_can_be_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLI],
        env={**os.environ, "_SIMT_COMPLETE": "complete_bash", "COMP_WORDS": "simt re", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "report" in done.stdout
