"""`simt run` with programs: examples, Python files, CUDA and PTX files with a driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simt.cuda import toolkit

PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out)
{
  .reg .b32 %r; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; mov.u32 %r, %tid.x; mul.wide.u32 %rd2, %r, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r;
  ret;
}
"""
DRIVER = """
import numpy as np

def main(gpu, module):
    out = np.zeros(32, np.uint32)
    module.fill[1, 32](out)
    print("sum", out.sum())
"""


def simt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import simt.cli; simt.cli.main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_ptx_file_with_its_driver(tmp_path: Path) -> None:
    (tmp_path / "fill.ptx").write_text(PTX)
    (tmp_path / "fill.py").write_text(DRIVER)
    out = tmp_path / "result.json"
    done = simt("run", str(tmp_path / "fill.ptx"), "--gpu", "qv100", "--json", str(out))
    assert done.returncode == 0, done.stderr
    assert "sum 496" in done.stdout
    assert "1 launch on qv100" in done.stdout
    assert json.loads(out.read_text())["launches"][0]["name"] == "fill"
    values = simt("run", str(tmp_path / "fill.ptx"), "--functional")
    assert values.stdout.strip() == "sum 496"
    whole = simt("run", str(tmp_path / "fill.ptx"), "--json", "-")
    assert json.loads(whole.stdout)["launches"][0]["name"] == "fill"
    assert "sum 496" in whole.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.cu",), "there is no such file"),
        (("lonely.ptx",), "its driver lonely.py is missing"),
        (("empty.py",), "has no function `main(gpu)`"),
        (("empty.py", "--kernels", "1"), "--kernels applies to traces only"),
        (("empty.py", "--driver", "x.py"), "is its own driver"),
        (("empty.py", "--functional", "--output", "out"), "there is no Result to write"),
        (("kernelslist.g", "--functional"), "--functional applies to programs only"),
    ],
)
def test_programs_that_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "lonely.ptx").write_text(PTX)
    (tmp_path / "empty.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-c", "import simt.cli; simt.cli.main()", "run", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_examples_are_listed() -> None:
    done = simt("run", "--examples")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"saxpy", "gemm", "coalescing", "bank_conflicts", "triton_softmax", "flash_attention"} <= set(
        names
    )


@pytest.mark.slow
@pytest.mark.parametrize("example", ["saxpy", "coalescing", "bank_conflicts"])
def test_an_example_runs(example: str) -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    done = simt("run", example, "--gpu", "h100", "--set", "sm.count=16")
    assert done.returncode == 0, done.stderr
    assert "False" not in done.stdout
    assert "largest error: 0.0" in done.stdout or "times as fast as" in done.stdout


@pytest.mark.slow
def test_workloads_are_listed_with_their_sizes() -> None:
    done = simt("run", "--workloads")
    assert done.returncode == 0
    assert "resnet152" in done.stdout
    assert "nodes: 8192, 12288, 16384," in done.stdout


@pytest.mark.slow
def test_a_workload_runs() -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    done = simt("run", "relu", "--size", "1000", "--gpu", "h100", "--set", "sm.count=16")
    assert done.returncode == 0, done.stderr
    assert "y: 1,000 values of float32" in done.stdout
    assert "1 launch on" in done.stdout


@pytest.mark.slow
def test_a_size_is_refused_for_what_is_no_workload() -> None:
    done = simt("run", "saxpy", "--size", "1000", "--functional")
    assert done.returncode == 2
    assert "--size is for workloads" in done.stderr
