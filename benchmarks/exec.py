"""What calls of CUDA's driver API cost a program under `simt exec --functional`.

Prints microseconds a call, and the speed of copies of 256 MiB beside that of the host's own. Needs g++.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import nvidia.cuda_runtime

from simt.exec import libraries

SOURCE = Path(__file__).with_name("exec_program.cpp")
BYTES = 256 << 20


def build(folder: Path) -> Path:
    """exec_program.cpp as a program in the folder."""
    headers = Path(next(iter(nvidia.cuda_runtime.__path__))) / "include"
    program, library = folder / "program", libraries() / "libcuda.so.1"
    command = ["g++", "-O2", "-std=c++17", f"-I{headers}", str(SOURCE), str(library), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        simt = [sys.executable, "-c", "from simt.cli import main; main()", "exec", "--functional", "--"]
        done = subprocess.run([*simt, str(program)], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, seconds = line.split()
        if "cpy" in name:
            print(f"{name:22} {BYTES / float(seconds) / 1e9:8.2f} GB/s")
        else:
            print(f"{name:22} {float(seconds) * 1e6:8.2f} us")


if __name__ == "__main__":
    main()
