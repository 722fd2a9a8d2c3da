"""examples/own_sampler.py, which the guide shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_ones_own_sampler_runs_and_is_what_the_guide_shows() -> None:
    example = ROOT / "examples" / "own_sampler.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "median" in done.stdout and "random" in done.stdout
    shown = example.read_text().partition("class Median")[2].partition("if __name__")[0].strip()
    assert shown in (ROOT / "docs" / "sampling" / "README.md").read_text()
