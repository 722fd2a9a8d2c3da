"""Tiny programs for studies."""

from __future__ import annotations

from pathlib import Path

from support.kills import PTX

SMALL = f'''
import numpy as np

PTX = """{PTX}"""

def main(gpu, seed=0):
    module, x = gpu.load(PTX), gpu.zeros(64, np.uint32)
    for _ in range(LAUNCHES):
        module.work[1, 64](x, STEPS + seed)
'''
CRASHING = (
    SMALL
    + """
    import os, signal, sys
    if seed == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 2:
        raise ValueError("two")
    if seed == 3:
        sys.exit(3)
"""
)


def write_program(
    folder: Path, name: str = "small", text: str = SMALL, launches: int = 1, steps: int = 20
) -> str:
    """Writes a program and returns its name. STEPS: iterations of its kernel, which its cycles depend on."""
    path = folder / f"{name}.py"
    path.write_text(text.replace("LAUNCHES", str(launches)).replace("STEPS", str(steps)))
    return path.name
