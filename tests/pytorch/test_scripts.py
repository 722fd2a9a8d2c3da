"""Scripts that say "cuda" or "simt", as they are, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
pytest.importorskip("triton", reason="Triton is not installed")

SCRIPTS = Path(__file__).parent / "scripts"
START = "from simt.cli import main; main()"
pytestmark = pytest.mark.slow


def run(*command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert found.returncode == 0, found.stderr[-4000:]
    return found


def test_triton_script_in_simulated_time() -> None:
    found = run("-m", "simt.torch", SCRIPTS / "kernels.py")
    assert found.stdout.splitlines()[-1] == "passed"
    assert "arcsine" in found.stderr and "doubled" in found.stderr  # the table of launches


def test_operators_of_cuda() -> None:
    found = run("-m", "simt.torch", "--functional", "-q", SCRIPTS / "operators.py", "cuda")
    assert found.stdout == "passed\n"


def on_simt(name: str, folder: Path) -> str:
    """What a script prints whose device is "simt"."""
    script = folder / name
    script.write_text(
        "import simt.torch\nsimt.torch.use('h100', timed=False)\n" + (SCRIPTS / name).read_text()
    )
    return run(script, "simt").stdout


def test_operators_of_simt(tmp_path: Path) -> None:
    assert on_simt("operators.py", tmp_path) == "passed\n"


def test_training_has_the_losses_of_the_cpu() -> None:
    expected = run(SCRIPTS / "training.py", "cpu").stdout
    found = run("-m", "simt.torch", "--functional", "-q", SCRIPTS / "training.py", "cuda").stdout
    assert found == expected


def test_simt_exec_gives_pytorch_a_device(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.util, sys\nassert importlib.util.find_spec('torch')\n"  # as many packages ask
        "from importlib.machinery import PathFinder\n"
        "class Greedy:\n"  # pytest's takes every module if tests may have any name
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return PathFinder.find_spec(name) if name == 'torch' else None\n"
        "sys.meta_path.insert(0, Greedy())\nimport colorsys\n"
        "import torch\nx = torch.ones(64, device='cuda')\nprint((x + x).sum().item())\n"
    )
    output = tmp_path / "out.json"
    found = run("-c", START, "exec", "--gpu", "a100", "--output", output, "--", sys.executable, script)
    assert found.stdout == "128.0\n"
    assert output.is_file() and "a100" in found.stderr


def test_compiled_for_cuda() -> None:
    assert run("-m", "simt.torch", "--functional", "-q", SCRIPTS / "compiled.py", "cuda").stdout == "passed\n"


def test_compiled_for_simt(tmp_path: Path) -> None:
    assert on_simt("compiled.py", tmp_path) == "passed\n"


def test_flex_attention(tmp_path: Path) -> None:
    assert on_simt("flex.py", tmp_path) == "passed\n"
