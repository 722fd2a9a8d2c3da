"""Programs in `cuda/`, compiled by nvcc, with the replacement libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simt.result import Result

from .conftest import Compile, MadeOnce

HERE = Path(__file__).parent / "cuda"
NAMES = sorted({path.stem for path in HERE.glob("*.cu")} - {"device_code", "dynamic_parallelism"})
# Options of nvcc in addition to the common ones.
OPTIONS = {
    "separate": ["-rdc=true", "device_code.cu"],
    "clusters": ["-std=c++17"],
    "grid_runtime": ["-rdc=true"],
}
SMALL = ["--set", "sm.count=4"]
TIMED = (
    "vector_add",
    "streams",
    "events",
    "graphs",
    "callbacks",
    "copies",
    "separate",
    "particles",
    "stencil",
    "synchronisation",
    "algorithms",
    "grid_runtime",
    "host_and_device",
)


def compiler(toolkit: Path, made_once: MadeOnce, runtime: str, libraries: Path) -> Compile:
    """Compiles a program once, with the CUDA runtime "shared" or "static", and returns its path."""

    def make(name: str) -> Path:
        def compile(program: Path) -> None:
            command = [str(toolkit / "bin" / "nvcc"), "-cudart", runtime, f"-L{libraries}", f"{name}.cu"]
            command += ["-gencode", "arch=compute_90,code=compute_90", "-o", str(program)]
            command += OPTIONS.get(name, ())
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr

        return made_once(f"programs/{runtime}/{name}", compile)

    return make


@pytest.fixture(scope="session")
def compiled(toolkit: Path, made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "libcudart.so").symlink_to(toolkit / "lib" / "libcudart.so.13")
    return compiler(toolkit, made_once, "shared", libraries)


@pytest.fixture(scope="session")
def statically_linked(toolkit: Path, made_once: MadeOnce) -> Compile:
    """As nvcc does unless it is told otherwise."""
    return compiler(toolkit, made_once, "static", toolkit / "lib")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("simt")), "exec", "-q", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, statically_linked) -> None:
    done = run("--functional", "--", str(statically_linked(name)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMED)
def test_values_with_timing(name: str, compiled) -> None:
    done = run(*SMALL, "--", str(compiled(name)), "timed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


@pytest.mark.slow
def test_what_the_l2_holds(compiled, tmp_path: Path) -> None:
    """With an L2 of 1.25 MiB, past which the program streams 4 MiB."""
    small = [*SMALL, "--set", "l2.slice.sets=4", "--set", "l2.slice.ways=16"]
    result = tmp_path / "result.json"
    done = run(*small, "-o", str(result), "--", str(compiled("residency")), "timed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")
    (warning,) = Result.load(result).warnings
    assert "preferred carve-out" in warning and "no effect" in warning


@pytest.mark.slow
@pytest.mark.parametrize("point", ["launch=2", "launch=2,instruction=20"])
@pytest.mark.parametrize(
    "name", ["thrust", "streams", "graphs", "managed", "callbacks", "stencil", "algorithms"]
)
def test_values_of_resumed_programs(name: str, point: str, compiled, tmp_path: Path) -> None:
    program = str(compiled(name))
    done = run(
        "--gpu", "h100", "--checkpoint-at", point, "--checkpoint", str(tmp_path / "one"), "--", program
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("--resume-from", str(tmp_path / "one"), "--functional", "--", program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


@pytest.mark.slow
def test_kernels_print_where_the_program_waits(compiled) -> None:
    done = run("--functional", "--", str(compiled("output")))
    hello = [[f"hello {who} from thread {t}, text {1.5 * who:.2f}" for t in (0, 1)] for who in (1, 2)]
    assert done.stdout.splitlines() == ["before", *hello[0], "between", *hello[1], "ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "timed"),
    [
        (("--capture-range", "cudaProfilerApi"), [2]),
        (("--launches", "2-3"), [2, 3]),
        (("--launches", "name~before"), [1]),
        (("--launches", "1-2", "--capture-range", "cudaProfilerApi"), [2]),
    ],
)
def test_only_the_region_of_interest_is_timed(options, timed, compiled, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = run(*SMALL, *options, "-o", str(result), "--", str(compiled("region")))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert [launch.id for launch in Result.load(result).launches] == timed


@pytest.mark.slow
def test_a_region_without_launches_is_said(compiled) -> None:
    done = run(*SMALL, "--launches", "9", "--", str(compiled("region")))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert "launches: '9' matches none of the program's 3 launches" in done.stderr
