"""The Python code in README, the page on running programs and the tutorial runs as written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import simt
from simt.cuda import toolkit

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str = "python") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(page: str, folder: Path) -> dict[str, Any]:
    """All blocks as one program, in a file, because Triton reads the source of its kernels."""
    program = folder / "page.py"
    program.write_text("\n\n".join(blocks(page)), encoding="utf-8")
    return runpy.run_path(str(program))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.fixture
def compiler() -> None:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")


@pytest.mark.usefixtures("compiler")
def test_readme(folder: Path) -> None:
    names = run("README.md", folder)
    assert [launch.name for launch in names["gpu"].result().launches] == ["saxpy"]
    assert names["y"].tolist() == [2 + i for i in range(10_000)]


@pytest.mark.usefixtures("compiler")
def test_page_on_debugging(folder: Path) -> None:
    names = run("docs/functional/debugging.md", folder)
    assert (names["result"].same, names["result"].launches) == (True, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_page_on_checkpoints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("docs/checkpoints.md", folder)
    shown = re.findall(
        r"^prints\n\n((?:    .*\n)+)", (ROOT / "docs/checkpoints.md").read_text(), re.MULTILINE
    )
    assert len(shown) == 3
    assert capsys.readouterr().out.split() == "".join(shown).split()


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_page_on_convolution(folder: Path) -> None:
    names = run("docs/convolution.md", folder)
    expected = names["problem"].forward(names["x"], names["w"])
    assert abs(names["y"].numpy() - expected).max() < 1e-5
    assert [launch.name for launch in names["gpu"].launches] == ["winograd_convolve"]


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_page_on_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("numba")
    names = run("docs/gpu.md", folder)
    launched = [launch.name for launch in names["gpu"].result().launches]
    assert {"saxpy", "add", "scale"} <= set(launched)
    assert (names["z"].numpy() == names["x"] + names["y"]).all()
    assert names["values"][:4].tolist() == [0, 20, 4, 60]
    assert names["scaled"].variable("calls", "i4").numpy() == 1
    one, two = [launch for launch in names["gpu"].launches if launch.name == "saxpy"][1:3]
    assert two.start_cycle >= one.end_cycle
    assert "illegal address" in capsys.readouterr().out


@pytest.mark.usefixtures("compiler")
def test_page_on_workloads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("docs/workloads.md", folder)
    assert names["outputs"]["y"].shape == (10_000,)
    assert capsys.readouterr().out == "0.0\n"


@pytest.mark.slow
def test_tutorial(folder: Path) -> None:
    names = run("docs/tutorial.md", folder)
    assert names["spmv"].cycles > 0
    assert names["r"].totals.cycles > 0


@pytest.mark.usefixtures("compiler")
def test_kernel_of_the_tutorial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = blocks("docs/tutorial.md", "cuda")
    gpu = simt.GPU("h100", functional=True)
    (driver,) = [b for b in blocks("docs/tutorial.md") if b.startswith("import") and "def main" in b]
    names: dict[str, Any] = {}
    exec(driver, names)
    names["main"](gpu, gpu.compile(source))
    assert "right: True" in capsys.readouterr().out


@pytest.mark.slow
def test_page_on_controllers(folder: Path) -> None:
    names = run("docs/control/writing-a-controller.md", folder)
    launches = names["result"].launches
    assert {launch.sampled.decision for launch in launches} >= {"stop"}
    assert all(launch.sampled.cycles <= launch.cycles for launch in launches)


@pytest.mark.slow
def test_page_on_pytorch(folder: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
    pytest.importorskip("triton", reason="Triton is not installed")
    table = run("docs/pytorch.md", folder)["gpu"].result().operators()
    assert any("addmm" in name for name in table["operator"])
    assert any("backward" in name for name in table["operator"])
