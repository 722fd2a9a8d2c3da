"""Machine code of the functions that NVIDIA's driver adds to a program when it loads it: those on which the
grid barriers of libcudadevrt stand, and those that copy to other CTAs of a cluster, which ptxas calls on GPUs
whose own copies cannot (sm_120).

Their names, arguments and results are those with which libcudadevrt of CUDA 12 and 13 and ptxas call them.
Arguments begin in R4, as does the result, and go on at R1 in local memory; R20 holds where to return to; R0,
R3 to R15, uniform registers, P0 to P6 and B0 to B5 need not be kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from .cubin import INSTRUCTION_BYTES, Cubin, CubinKernel
from .disassembler import Instruction

# The handle of a grid (scope 1) is the address of the launch's workspace, 0 without a cooperative launch.
_GET_HANDLE = """
    ISETP.EQ.AND P0, PT, R4, 0x1, PT
    SEL R4, RZ, c[0x0][{envreg2}], !P0
    SEL R5, RZ, c[0x0][{envreg1}], !P0
    RET.ABS.NODEC R20, 0x0
"""
# Bit 0 of the flags: the CTA's threads have met, and only the first one calls. To the workspace's second word
# the CTAs' first threads add 2^31 together, so that its top bit flips when all have come.
_SYNC = """
    LOP3.LUT P1, RZ, R6, 0x1, RZ, 0xc0, !PT
    @P1 BRA ARRIVES
    WARPSYNC 0xffffffff
    BAR.SYNC 0x0
ARRIVES:
    S2R R0, SR_TID.X
    S2R R3, SR_TID.Y
    S2R R7, SR_TID.Z
    LOP3.LUT P0, RZ, R7, R0, R3, 0xfe, !PT
    BSSY B0, MET
    @P0 BRA MET
    S2R R0, SR_CTAID.X
    S2R R3, SR_CTAID.Y
    S2R R7, SR_CTAID.Z
    LOP3.LUT P0, RZ, R7, R0, R3, 0xfe, !PT
    MOV R8, c[0x0][0xc]
    IMAD R8, R8, c[0x0][0x10], RZ
    IMAD R8, R8, c[0x0][0x14], RZ
    IADD3 R8, -R8, -0x7fffffff, RZ
    SEL R8, R8, 0x1, !P0
    MEMBAR.SC.GPU
    ATOMG.E.ADD.STRONG.GPU PT, R8, [R4.64+0x4], R8
POLLS:
    LDG.E.STRONG.GPU R0, [R4.64+0x4]
    LOP3.LUT R0, R0, R8, RZ, 0x3c, !PT
    ISETP.GE.AND P0, PT, R0, RZ, PT
    @P0 BRA POLLS
    MEMBAR.SC.GPU
MET:
    BSYNC B0
    @P1 BRA RETURNS
    WARPSYNC 0xffffffff
    BAR.SYNC 0x0
RETURNS:
    MOV R4, RZ
    RET.ABS.NODEC R20, 0x0
"""
# Pointers to the number of threads and that of grids, either of which may be null, and the handle.
_GET_SIZE = """
    MOV R0, c[0x0][0x0]
    IMAD R0, R0, c[0x0][0x4], RZ
    IMAD R0, R0, c[0x0][0x8], RZ
    IMAD R0, R0, c[0x0][0xc], RZ
    IMAD R0, R0, c[0x0][0x10], RZ
    IMAD R0, R0, c[0x0][0x14], RZ
    LOP3.LUT P0, RZ, R4, R5, RZ, 0xfc, !PT
    @P0 ST.E [R4.64], R0
    MOV R0, 0x1
    LOP3.LUT P0, RZ, R6, R7, RZ, 0xfc, !PT
    @P0 ST.E [R6.64], R0
    MOV R4, RZ
    RET.ABS.NODEC R20, 0x0
"""
# Likewise, to the thread's place in the grid and to that of the grid among grids.
_GET_RANK = """
    S2R R0, SR_CTAID.Z
    S2R R3, SR_CTAID.Y
    IMAD R0, R0, c[0x0][0x10], R3
    S2R R3, SR_CTAID.X
    IMAD R0, R0, c[0x0][0xc], R3
    S2R R3, SR_TID.Z
    IMAD R0, R0, c[0x0][0x8], R3
    S2R R3, SR_TID.Y
    IMAD R0, R0, c[0x0][0x4], R3
    S2R R3, SR_TID.X
    IMAD R0, R0, c[0x0][0x0], R3
    LOP3.LUT P0, RZ, R4, R5, RZ, 0xfc, !PT
    @P0 ST.E [R4.64], R0
    LOP3.LUT P0, RZ, R6, R7, RZ, 0xfc, !PT
    @P0 ST.E [R6.64], RZ
    MOV R4, RZ
    RET.ABS.NODEC R20, 0x0
"""
# Of copies by offsets: from half words in local memory to bit fields.
_OFFSETS = {
    3: """
    LDL.U16 R3, [R1]
""",
    4: """
    LDL R3, [R1]
    PRMT R3, R3, 0x4420, RZ
""",
    5: """
    LDL.U16 R3, [R1]
    LOP3.LUT R3, R3, 0x1f, RZ, 0xc0, !PT
    LDL.U16 R0, [R1+0x2]
    LOP3.LUT R0, R0, 0x1f, RZ, 0xc0, !PT
    IMAD R3, R0, 0x20, R3
    LDL.U16 R0, [R1+0x4]
    LOP3.LUT R0, R0, 0x1f, RZ, 0xc0, !PT
    IMAD R3, R0, 0x400, R3
""",
}
# The copies of this GPU's instructions, which here reach every CTA; uniform registers are those of one lane
# after the other. The policy of caches is not looked at.
_COPY = """
    PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x8
EACH:
    @P0 ELECT P1, URZ, PT
{moves}
    @P1 PLOP3.LUT P0, PT, P1, PT, PT, 0x8, 0x80
    {copy}
    PLOP3.LUT P1, PT, PT, PT, PT, 0x8, 0x80
    @P0 BRA.U.ANY EACH
    RET.ABS.NODEC R20, 0x0
"""


def _copies() -> Iterator[tuple[str, str]]:
    """To [UR8] with the mbarrier at [UR9], from [UR4]; UR6: size or offsets, and CTAs."""
    name = "__cuda_syscall_cp_async_bulk"
    for form in ("unicast", "multicast"):
        is_multicast = form == "multicast"
        modifier = ".MULTICAST" if is_multicast else ""
        size = "SHF.R.U32.HI R3, RZ, 0x4, R8"
        moves = {4: 6, 5: 7, 6: 3, 8: 4, 9: 10}
        prepared = f"    {size}\n    PRMT R3, R3, 0x5410, {'R9' if is_multicast else 'RZ'}"
        yield f"{name}_{form}", prepared + _copy(moves, f"UBLKCP.S.G{modifier} [UR8], [UR4], UR6")
        for rank in range(1, 6):
            for mode in ("tile", "im2col")[: 1 + (rank in _OFFSETS)]:
                offsets = _OFFSETS[rank] if mode == "im2col" else "    MOV R3, RZ\n"
                prepared = f"{offsets}    PRMT R3, R3, 0x5410, {'R13' if is_multicast else 'RZ'}"
                moves = {4: 6, 5: 7, 6: 3, 8: 4, 9: 14} | {10 + k: 8 + k for k in range(rank)}
                opcode = f"UTMALDG.{rank}D{'.IM2COL' if mode == 'im2col' else ''}{modifier}"
                yield (
                    f"{name}_tensor_{rank}d_{mode}_{form}",
                    prepared + _copy(moves, f"{opcode} [UR8], [UR4], UR6"),
                )


def _copy(moves: dict[int, int], copy: str) -> str:
    lines = [f"    @P1 R2UR.BROADCAST UR{to}, R{source}" for to, source in moves.items()]
    return _COPY.format(moves="\n".join(lines), copy=copy)


_TEXTS = {
    "__cuda_syscall_CGS_get_intrinsic_handle": _GET_HANDLE,
    "__cuda_syscall_CGS_sync": _SYNC,
    "__cuda_syscall_CGS_get_size": _GET_SIZE,
    "__cuda_syscall_CGS_get_rank": _GET_RANK,
    **dict(_copies()),
}
_HOPPER = 90
_REGISTERS = 24  # the fewest of code that calls functions
_LINE = re.compile(r"(?:(@\S+) )?(\S+)(?: (.+))?")
_VARIABLE_LATENCY = ("S2R", "LDG", "LDL", "ATOMG", "ELECT", "R2UR")
_STALL, _FETCH_STALL = 6, 1  # more than any result of fixed latency takes
_CONTROL_SHIFT = 41
_NO_YIELD, _NO_COUNTERS, _COUNTER_0, _WAITS_FOR_0 = 1 << 4, 0x3F << 5, 0x38 << 5, 1 << 11


def with_system_calls(
    cubin: Cubin, code: dict[str, list[Instruction]]
) -> tuple[Cubin, dict[str, list[Instruction]]]:
    """A cubin and its instructions, with the functions that it calls of these among its own."""
    number = int(re.sub(r"\D", "", cubin.arch))
    found = {name: _instructions(_TEXTS[name], number) for name in cubin.undefined if name in _TEXTS}
    if not found:
        return cubin, code
    kernels = tuple(_function(name, len(lines)) for name, lines in found.items())
    undefined = tuple(name for name in cubin.undefined if name not in found)
    return replace(cubin, kernels=cubin.kernels + kernels, undefined=undefined), code | found


def _function(name: str, instructions: int) -> CubinKernel:
    return CubinKernel(
        name,
        bytes(instructions * INSTRUCTION_BYTES),
        code_addresses=(),
        registers=_REGISTERS,
        parameters=(),
        parameter_base=0,
        shared_bytes=0,
        stack_bytes=0,
        constants={},
        addresses={},
        functions=(),
        is_entry=False,
        max_threads=(0, 0, 0),
        required_threads=(0, 0, 0),
        cluster=(0, 0, 0),
    )


@lru_cache
def _instructions(text: str, number: int) -> list[Instruction]:
    """number: of the architecture, such as 80."""
    envreg1, envreg2 = ("0x44", "0x48") if number >= _HOPPER else ("0x8c", "0x90")
    lines: list[str] = []
    labels = {}
    for line in text.format(envreg1=envreg1, envreg2=envreg2).split("\n"):
        if line.endswith(":"):
            labels[line[:-1]] = hex(len(lines) * INSTRUCTION_BYTES)
        elif line:
            lines.append(line.strip())
    return [_instruction(index, line, labels) for index, line in enumerate(lines)]


def _instruction(index: int, line: str, labels: dict[str, str]) -> Instruction:
    match = _LINE.fullmatch(line)
    assert match is not None
    predicate, opcode, operands = match[1] or "", match[2], match[3].split(", ") if match[3] else []
    # Every instruction waits for the results of variable latency before it.
    is_slow = opcode.split(".")[0] in _VARIABLE_LATENCY
    counters, waits, stall = (
        (_COUNTER_0, 0 if opcode == "S2R" else _WAITS_FOR_0, _FETCH_STALL)
        if is_slow
        else (_NO_COUNTERS, _WAITS_FOR_0, _STALL)
    )
    control = stall | _NO_YIELD | counters | waits
    return Instruction(
        index * INSTRUCTION_BYTES,
        predicate,
        opcode,
        tuple(labels.get(operand, operand) for operand in operands),
        0,
        control << _CONTROL_SHIFT,
    )
