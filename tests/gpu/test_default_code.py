"""Which code a GPU executes where nobody says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import simt
from simt.errors import CompileError, PtxError
from simt.gpu.programs import default_code
from simt.sass import disassembler
from simt.spec import load_spec

KERNEL = """.version 6.4
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b64 %a; .reg .b32 %r<3>; .reg .pred %p;
  ld.param.b64 %a, [out]; mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 5;
  VOTE
  mad.wide.u32 %a, %r0, 4, %a; st.global.b32 [%a], %r1; ret; }"""
REFUSED = KERNEL.replace("VOTE", "vote.ballot.b32 %r1, %p;")
"""Without `.sync`, which ptxas wants from Volta on."""
TAKEN = KERNEL.replace("VOTE", "vote.sync.ballot.b32 %r1, %p, -1;")


@pytest.mark.parametrize(
    ("gpu", "code"),
    [
        ("qv100", "sass"),
        ("rtx2060", "sass"),
        ("a100-pcie", "sass"),
        ("l40s", "sass"),
        ("h100", "sass"),
        ("a100-accelsim", "ptx"),  # a scoreboard
        ("titanx", "ptx"),  # no disassembler
        ("rtx5090", "ptx"),  # not executed
        ("mi100", "ptx"),  # another vendor's
    ],
)
def test_machine_code_where_its_control_bits_are_simulated(gpu: str, code: str) -> None:
    assert default_code(load_spec(gpu)) == code
    assert simt.GPU(gpu).code == code


def test_ptx_without_a_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_tools", lambda path: ())
    with pytest.warns(UserWarning, match=r"a100 executes PTX; machine code.*pip install 'simt\[cuda\]'"):
        assert simt.GPU("a100").code == "ptx"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert simt.GPU("titanx").code == "ptx"
        assert simt.GPU("a100", code="sass").code == "sass"


def test_what_ptxas_refuses_is_executed_as_ptx() -> None:
    gpu = simt.GPU("a100", functional=True)
    with pytest.warns(UserWarning, match="executed as PTX: (.|\\n)*vote"):
        refused = gpu.load(REFUSED)
    assert refused.executed == "PTX"
    taken = gpu.load(TAKEN)
    assert taken.executed == "machine code for sm_80"
    out = np.zeros(32, np.uint32)
    taken.k[1, 32](out)
    assert (out == 31).all()


def test_nothing_stands_in_for_code_that_was_asked_for() -> None:
    with pytest.raises(CompileError, match="vote"):
        simt.GPU("a100", code="sass").load(REFUSED)


def test_an_error_of_the_program_is_its_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PtxError, match=r"kernel\.ptx:7: votr"):
            simt.GPU("a100").load(KERNEL.replace("VOTE", "votr.sync.ballot.b32 %r1, %p, -1;"))
