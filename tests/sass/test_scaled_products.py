"""FMUL.D2 to .D8 and .M2 to .M8: what ptxas makes of two multiplications, one of them by a power of two."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from simt.cuda import PtxModule, machine_code
from simt.cuda.ptxas import _assemblers
from simt.sass import Cubin, disassemble
from simt.sass.disassembler import is_installed
from support import floats
from support.floats import F32, assert_same, codes, expect, negative
from support.ptx import HEADER, per_lane

pytestmark = pytest.mark.skipif(
    not is_installed() or not _assemblers(),
    reason="pyelftools or ptxas is not installed: pip install 'simt[cuda,sass]'",
)
SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}


def scaled(f: floats.Format, factor: float, a: float, b: float) -> int:
    """The product and the factor, rounded once."""
    if np.isfinite(a) and np.isfinite(b):
        return f.encode(Fraction(a) * Fraction(b) * Fraction(factor), "rn", negative(a) != negative(b))
    return floats.mul(f, "rn", a, b)


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("scale", SCALES)
def test_rounded_once(scale: str, ftz: str) -> None:
    factor = SCALES[scale]
    bits = int(np.float32(factor).view(np.uint32))
    body = f"mul{ftz}.f32 %o, %i0, %i1; mul{ftz}.f32 %o, %o, 0f{bits:08X};"
    text = (
        HEADER.format(target="80")
        + ".visible .entry k(.param .b64 p) { .reg .b64 %a; .reg .b32 %i<2>, %o; ld.param.b64 %a, [p]; "
        + f"ld.global.b32 %i0, [%a]; ld.global.b32 %i1, [%a+4]; {body} st.global.b32 [%a], %o; ret; }}"
    )
    cubin = Cubin.parse(machine_code(PtxModule.from_text(text, "k.ptx"), "sm_80"), "k.cubin")
    assert any(x.opcode.startswith("FMUL") and scale in x.opcode for x in disassemble(cubin)["k"])
    a, b = codes(F32, 2048, 1), codes(F32, 2048, 2)
    f = F32.flushing() if ftz else F32
    wanted = expect(f, lambda x, y: scaled(f, factor, x, y), [a, b], bool(ftz))
    assert_same(per_lane(body, a, b, target="80", code="sass"), wanted, a, b)


def test_products_that_only_the_scale_brings_into_range() -> None:
    """2^127 * 2 is infinite and its half is not; 2^-100 * 2^-50 is 0 and 8 times that is 2^-147."""
    a = np.array([2.0**127, 2.0**-100], np.float32)
    b = np.array([2.0, 2.0**-50], np.float32)
    for k, (factor, wanted) in enumerate([("3F000000", 2.0**127), ("41000000", 2.0**-147)]):
        body = f"mul.f32 %o, %i0, %i1; mul.f32 %o, %o, 0f{factor};"
        found = per_lane(body, a, b, output=np.float32, target="80", code="sass")
        assert found[k] == wanted
