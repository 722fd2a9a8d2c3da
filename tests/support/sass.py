"""Runs lines of machine code, which need neither ptxas nor nvdisasm."""

from __future__ import annotations

import numpy as np

import simt
from simt.sass import assemble

_LOADED, _RESULT = 4, 12
_GPUS = {75: "rtx2060", 80: "a100", 90: "h100", 100: "b200", 120: "rtx5090"}


def number_of(arch: str) -> int:
    return int(arch[3:].rstrip("a"))


def parameters_begin(arch: str) -> int:
    """In constant bank 0."""
    number = number_of(arch)
    return 0x380 if number >= 100 else 0x210 if number == 90 else 0x160


def per_lane(body: str, *inputs: np.ndarray, arch: str = "sm_80", timed: bool = False) -> np.ndarray:
    """What a warp's lanes leave in R12. Lines of the body find a word of each input in R4, R5, R6 and so on,
    the lane in R0, and their own shared memory of 1 KiB from 0 on.
    """
    number, base = number_of(arch), parameters_begin(arch)
    loads = [
        f"IMAD.WIDE R2, R0, R1, c[0x0][{base + 8 + 8 * k:#x}]\nLDG.E R{_LOADED + k}, [R2.64]"
        for k in range(len(inputs))
    ]
    program = "\n".join(
        [
            f".target {arch}",
            ".kernel body",
            f".parameters {' '.join(['8'] * (1 + len(inputs)))}",
            ".shared 1024",
            "S2R R0, SR_TID.X",
            "MOV R1, 0x4",
            *loads,
            body,
            f"IMAD.WIDE R2, R0, R1, c[0x0][{base:#x}]",
            f"STG.E [R2.64], R{_RESULT}",
            "EXIT",
        ]
    )
    gpu = simt.GPU(_GPUS[number], functional=not timed)
    result = np.zeros(32, np.uint32)
    gpu.load(assemble(program))["body"][1, 32](result, *(x.view(np.uint32) for x in inputs))
    gpu.synchronize()
    return result
