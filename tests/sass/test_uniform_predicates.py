"""Uniform predicates as bits of uniform registers, in code written by hand."""

from __future__ import annotations

import pytest

from sass.test_refused_code import EXIT, load
from simt import _engine
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)


def stops(wrong: int) -> bool:
    """Whether a program that compares what it computed with expected values, one of them off by `wrong`,
    stops itself.
    """
    module = load(
        [
            ("", "UMOV", ["UR4", "0x95"]),
            ("", "UMOV", ["UR5", "0xff"]),
            ("", "UR2UP", ["UPR", "UR4", "0x7f"]),  # bit 7 is that of no predicate
            ("UPR", "UP2UR", ["UR6", "URZ", "0x7f"]),
            ("UPR", "UP2UR", ["UR7", "UR5", "0x3"]),  # the other bits are UR5's
            ("", "UR2UP", ["UPR", "URZ", "0x4"]),  # the other predicates stay
            ("UPR", "UP2UR.B1", ["UR8", "URZ", "0x7f"]),
            *(
                line
                for register, expected in (("UR6", 0x15), ("UR7", 0xFD), ("UR8", 0x1100 + wrong))
                for line in (
                    ("", "MOV", ["R1", register]),
                    ("", "ISETP.NE.AND", ["P0", "PT", "R1", hex(expected), "PT"]),
                    ("@P0", "BPT.TRAP", ["0x1"]),
                )
            ),
            EXIT,
        ]
    )
    launch = _engine.functional.Launch(module, 0, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, {})
    try:
        launch.run(b"", 1, 1, lambda text: None)
    except _engine.functional.ProgramFault as fault:
        assert "the program stopped itself" in str(fault)
        return True
    return False


def test_predicates_go_to_bits_and_back() -> None:
    assert not stops(wrong=0)
    assert stops(wrong=1)
