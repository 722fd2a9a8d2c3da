"""Machine code that cannot be executed is refused with one clear error, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt.errors import SassError
from simt.isa import table_for
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

EXIT = ("", "EXIT", [])
OPCODES = """IADD3
    IMAD.WIDE LEA.HI.X SHF.R.U64 LOP3.LUT ISETP.GE.AND LDG.E.128 STS LDC BRA BSSY BSYNC HFMA2 DFMA
    F2F.F64.F32"""
OPERANDS = """R1 RZ R254 UR4 P0 PT UP1 B0 SB3 0x7 -0x1 1.5 +INF c[0x0][0x160] c[0x3][R2] [R2.64+0x10]
    desc[UR4][R2.64] R3.H0_H0"""


def load(lines: list[tuple[str, str, list[str]]], registers: int = 8) -> Any:
    """Loads a kernel of these instructions: predicate, opcode, operands."""
    section = {
        "name": "k",
        "is_kernel": True,
        "lines": [(predicate, opcode, operands, 0, 0, 0, 0) for predicate, opcode, operands in lines],
        "functions": [],
        "registers": registers,
        "shared_bytes": 0,
        "reserved_shared": 0,
        "allocation_mbarrier": 0,
        "allocation_parity": 0,
        "stack_bytes": 0,
        "calls": False,
        "parameters": [],
        "parameter_base": 0x160,
        "max_threads": (0, 0, 0),
        "required_threads": (0, 0, 0),
        "cluster": (0, 0, 0),
        "constants": {},
    }
    module = {
        "name": "k.cubin",
        "sm": 80,
        "opcodes": table_for(80)[0].native,
        "independent_samplers": False,
        "files": [""],
        "sections": [section],
        "system_functions": [],
    }
    return _engine.functional.load_machine_code(module, _engine.functional.DeviceMemory(1 << 20), [], [], [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (("", "FROBNICATE", ["R1"]), r"k\+0x0000: FROBNICATE R1: this opcode is not supported"),
        (("", "IADD3.WRONG", ["R1", "R2", "R3", "RZ"]), r"the modifier \.WRONG is not supported"),
        (("", "IADD3", ["R1", "R2"]), "it has 2 operands, expected more"),
        (("", "IADD3", ["R1", "R2)", "R3", "RZ"]), r"operand `R2\)`: expected its end at character 3"),
        (("", "IADD3", ["R1", "c[0x0][", "R3", "RZ"]), "expected a register or a number at character 8"),
        (("", "IADD3", ["R1", "P0", "R3", "RZ"]), "it has 4 operands, expected more"),
        (("", "MOV", ["R300", "R1"]), "expected a register below 255"),
        (("@R1", "EXIT", []), "its guard is no predicate"),
        (("", "BRA", ["0x500"]), "BRA 0x500: its target holds no code"),
        (("", "LDG.E", ["R1", "R2"]), "operand `R2` is no address"),
        (("", "MUFU.RCP", ["R1", "R2", "R3"]), "operand `R3` is not expected"),
        (("", "EXIT", ["R1"]), "operand `R1` is not expected"),
        (("", "IABS", ["R1", "-R2"]), "the form of operand `-R2` is not supported"),
        (("", "LDS", ["R1", "[R2.X2]"]), r"operand `\[R2.X2\]` is no address"),
        (("", "FMNMX.XORSIGN", ["R1", "R2", "|R3|", "PT"]), r"\.XORSIGN of operands that are no magnitudes"),
        (("", "HADD2.BF16_V2", ["R1", "R2.F32", "R3"]), "a source of f32"),
    ],
)
def test_refused_by_name_and_place(line: tuple[str, str, list[str]], why: str) -> None:
    with pytest.raises(SassError, match=why):
        load([line, EXIT])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "@P0", "@!UP1", "@", "P0", "PR"]),
            st.one_of(st.sampled_from(OPCODES.split()), st.text(max_size=8)),
            st.lists(st.one_of(st.sampled_from(OPERANDS.split()), st.text(max_size=6)), max_size=6),
        ),
        max_size=4,
    )
)
@settings(max_examples=300)
def test_any_text_loads_or_is_refused(lines: list[tuple[str, str, list[str]]]) -> None:
    try:
        load([*lines, EXIT])
    except SassError as error:
        assert str(error).startswith("k.cubin: ")
