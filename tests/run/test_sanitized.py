"""A Python whose library is preloaded, as sanitizers need it, starts other programs without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "support" / "sanitized"
PROGRAM = """
import os, subprocess, sys
mapped = lambda text: sys.argv[1] in text
show = "import sys; print(open('/proc/self/maps').read())"
own = mapped(open("/proc/self/maps").read())
child, client = (
    mapped(subprocess.run([sys.executable, *flags, "-c", show], capture_output=True, text=True).stdout)
    for flags in ([], ["-S"])
)
print(own, child, client, os.environ.get("LD_PRELOAD"), sys.argv[2:])
"""


def test_only_python_has_the_library(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    library = tmp_path / "library.so"
    subprocess.run(["g++", "-shared", "-x", "c", os.devnull, "-o", library], check=True)
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "SIMT_SANITIZER": str(library)}
    environment.pop("LD_PRELOAD", None)
    command = [sys.executable, "-c", PROGRAM, str(library), "an argument", "-S"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True False None ['an argument', '-S']\n", done.stderr
