"""Runs the steps of the GitHub Action and of the GitLab template as their machines do, in a bare environment.

    python ci/try_templates.py [SIMT]

SIMT: what pip installs, such as a wheel; by default this folder, which is compiled. Each template gets a
folder with the example of docs/testing.md, a new virtual environment, and no variables but those that it
names. Needs PyYAML.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
SAXPY = """extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""


def github(**inputs: str) -> tuple[list[str], dict[str, str]]:
    """The Action's commands, and their variables. inputs: that differ from the defaults."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: str(each["default"]) for name, each in action["inputs"].items()} | inputs
    names = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(ROOT)}

    def filled(text: str) -> str:
        return re.sub(
            r"\$\{\{(.*?)\}\}",
            lambda found: next(filter(None, (names[x.strip()] for x in found[1].split("||"))), ""),
            text,
        )

    steps = [step for step in action["runs"]["steps"] if "run" in step]
    variables = {key: filled(value) for step in steps for key, value in step["env"].items()}
    return [filled(step["run"]) for step in steps], variables


def gitlab(**variables: str) -> tuple[list[str], dict[str, str]]:
    """The template's commands, and their variables. variables: that differ from the defaults."""
    job: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".simt"]
    return job["script"], job["variables"] | variables


def example(folder: Path) -> None:
    """The repository of docs/testing.md."""
    text = (ROOT / "docs" / "testing.md").read_text()
    test = re.search(r"(?:^    .*\n|^\n)+", text[text.index("    import numpy") :], re.MULTILINE)
    assert test
    for name in ("kernels", "tests"):
        (folder / name).mkdir()
    (folder / "kernels" / "saxpy.cu").write_text(SAXPY)
    (folder / "tests" / "test_saxpy.py").write_text(re.sub(r"^    ", "", test[0], flags=re.MULTILINE))


def run(commands: list[str], variables: dict[str, str], folder: Path, path: str) -> None:
    """Runs them in a shell each. Raises CalledProcessError."""
    for command in commands:
        subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=folder,
            env={"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", **variables},
            check=True,
        )


def main() -> None:
    simt = str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else str(ROOT)
    for name, (commands, variables) in {
        "GitHub Action": github(simt=simt, tests="tests", gpu="a100"),
        "GitLab template": gitlab(SIMT=simt, TESTS="tests", GPU="a100"),
    }.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "repository"
            folder.mkdir()
            example(folder)
            begin = time.monotonic()
            venv.create(Path(temporary) / "venv", with_pip=True)
            run(commands, variables, folder, f"{temporary}/venv/bin:/usr/local/bin:/usr/bin:/bin")
            print(f"{name}: green after {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
