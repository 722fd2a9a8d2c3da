"""Programs in `cuda/` whose fat binaries hold machine code, made by nvcc, and cubins that programs load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simt.result import Result

from .conftest import MadeOnce

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent / "cuda"
OPTIONS = {
    "separate": ["-rdc=true", "device_code.cu"],
    "dynamic_parallelism": ["-rdc=true"],
    "grid_runtime": ["-rdc=true"],
}
GPUS = {"sm_75": "rtx2060", "sm_80": "a100", "sm_86": "rtx3070", "sm_90": "h100"}
Make = Callable[..., Path]


@pytest.fixture(scope="session")
def make(toolkit: Path, made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Compiles a program with these -gencode options, once."""
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "libcudart.so").symlink_to(toolkit / "lib" / "libcudart.so.13")

    def compiled(name: str, *generated: str) -> Path:
        def compile(program: Path) -> None:
            command = [str(toolkit / "bin" / "nvcc"), "-cudart", "shared", f"-L{libraries}", f"{name}.cu"]
            command += [word for g in generated for word in ("-gencode", g)]
            command += ["-o", str(program), *OPTIONS.get(name, ())]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr

        return made_once("-".join(["programs/" + name, *(g.replace(",", "-") for g in generated)]), compile)

    return compiled


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("simt")), "exec", "-q", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def only(arch: str) -> str:
    return f"arch={arch.replace('sm_', 'compute_')},code={arch}"


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("vector_add", "sm_75"),
        ("vector_add", "sm_86"),
        ("managed", "sm_80"),
        ("symbols", "sm_90"),
        ("separate", "sm_80"),
        ("separate", "sm_90"),
        ("output", "sm_75"),
        ("assertion", "sm_80"),
        ("stencil", "sm_80"),
        ("textures", "sm_90"),
        ("graphs", "sm_90"),
        ("streams", "sm_80"),
        ("groups", "sm_90"),
        ("grid_runtime", "sm_75"),
        ("grid_runtime", "sm_86"),
        ("grid_runtime", "sm_90"),
    ],
)
def test_values_without_ptx(name: str, arch: str, make: Make) -> None:
    succeeds(run("--gpu", GPUS[arch], "--functional", "--", make(name, only(arch))))


@pytest.mark.parametrize("name", ["graphs", "grid_runtime"])
def test_machine_code_is_timed(name: str, make: Make) -> None:
    succeeds(run("--gpu", "a100", "--set", "sm.count=4", "--", make(name, only("sm_80")), "timed"))


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_the_option_chooses_where_both_are_there(code: str, make: Make, tmp_path: Path) -> None:
    program = make("vector_add", only("sm_80"), "arch=compute_80,code=compute_80")
    options = ("--gpu", "a100", "--set", "sm.count=4", "--code", code, "--output", tmp_path / "out")
    succeeds(run(*options, "--", program))
    launch = Result.load(tmp_path / "out").launches[0]
    assert launch.pc is not None
    assert any(launch.pc["ptx"]) is (code == "ptx")


def test_machine_code_of_another_architecture(make: Make) -> None:
    done = run("--gpu", "h100", "--functional", "--", make("vector_add", only("sm_80")))
    assert done.returncode != 0
    assert "holds machine code for sm_80; needed for sm_90a is machine code for sm_90" in done.stderr
    assert "no kernel image is available for execution on the device" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["streams", "managed"])
def test_a_checkpoint(name: str, make: Make, tmp_path: Path) -> None:
    program = make(name, only("sm_80"))
    point = ("--checkpoint-at", "launch=2,instruction=8", "--checkpoint", tmp_path / "one")
    done = run("--gpu", "a100", *point, "--", program)
    assert done.returncode == 0, done.stdout + done.stderr
    succeeds(run("--resume-from", tmp_path / "one", "--functional", "--", program))
    # Code for sm_80 also runs there.
    succeeds(run("--resume-from", tmp_path / "one", "--gpu", "rtx3070", "--functional", "--", program))


def test_cubins_through_the_driver(compiled: Callable[[str], Path], toolkit: Path, tmp_path: Path) -> None:
    program = compiled("given_code")
    source = tmp_path / "k.cu"
    source.write_text(
        'extern "C" __global__ void run(unsigned* out, unsigned n) { out[threadIdx.x] = n * threadIdx.x; }'
    )
    files = []
    for kind, compress in (("cubin", []), ("fatbin", []), ("fatbin", ["-Xfatbin", "-compress-all"])):
        files.append(tmp_path / f"{len(files)}.{kind}")
        command = [toolkit / "bin" / "nvcc", f"-{kind}", "-arch=sm_80", *compress, source, "-o", files[-1]]
        subprocess.run(command, check=True, capture_output=True)
    cut = tmp_path / "cut.cubin"
    cut.write_bytes(files[0].read_bytes()[:-200] + bytes([0xA5] * 200))
    done = run("--gpu", "a100", "--functional", "--", program, *files)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
    for file, gpu in ((files[0], "h100"), (cut, "a100")):
        done = run("--gpu", gpu, "--functional", "--", program, "refused", file)
        assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_dynamic_parallelism_is_refused_by_name(code: str, make: Make) -> None:
    """The program ignores errors and ends with 0; simt says in one line what it lacked, and ends with 1."""
    program = make("dynamic_parallelism", "arch=compute_80,code=[compute_80,sm_80]")
    done = run("--gpu", "a100", "--functional", "--code", code, "--", program)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "dynamic parallelism is not supported" in line
    assert "_Z6parentPi" in line
    assert "__cudaCDP2GetParameterBufferV2" in line
