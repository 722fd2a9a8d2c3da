"""Forms of operands and declarations allowed by PTX: each program stores one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simt.errors import CompileError, PtxError
from support.ptx import CODE, Device, per_lane

PAIR = ".global .u32 g[2] = {5, 6};"
FUNCTION = ".func (.reg .pred r) f(.reg .pred a) { not.pred r, a; ret; }"
FORMS = {
    # An address without a state space: that of the variable.
    "shared": (".shared .u32 s[4]; st.u32 [s+4], 7; ld.u32 %r0, [s+4];", "", 7),
    "atomics": (".shared .u32 s; st.shared.u32 [s], 7; atom.add.u32 %r2, [s], 5; red.add.u32 [s], 1;"
                "ld.shared.u32 %r1, [s]; add.u32 %r0, %r1, %r2;", "", 20),
    "of the module": ("st.u32 [s], 7; ld.u32 %r0, [s];", ".shared .u32 s;", 7),
    "dynamic": ("st.volatile.u32 [s+8], 7; ld.shared.u32 %r0, [s+8];", ".extern .shared .u32 s[];", 7),
    "nested": ("{ .shared .u32 s; st.u32 [s], 7; { .shared .u64 s; st.u64 [s], 9; } ld.u32 %r0, "
               "[s]; }", "", 7),
    "mbarrier": (".shared .b64 m; mbarrier.init.b64 [m], 3; mbarrier.arrive.b64 %q1, [m]; ld.u32 %r1, [m];"
                 "setp.ne.u32 %p1, %r1, 0; selp.u32 %r0, 1, 2, %p1;", "", 1),
    "constant": ("ld.u32 %r0, [c+4];", ".const .u32 c[2] = {3, 9};", 9),
    "global": ("ld.u32 %r0, [g+4];", PAIR, 6),
    "local": (".local .u32 l[2]; st.u32 [l+4], 7; ld.u32 %r0, [l+4];", "", 7),
    # Variables of a body.
    "global in a body": (".global .u32 g[2] = {5, 6}; ld.global.u32 %r0, [g+4];", "", 6),
    "two of one name": ("{ .global .u32 g = 1; ld.global.u32 %r0, [g]; } { .global .u32 g = 2;"
                        "ld.global.u32 %r1, [g]; } sub.u32 %r0, %r1, %r0;", ".global .u32 g = 9;", 1),
    "constant in a body": (".const .u32 g[2] = {5, 6}; ld.const.u32 %r0, [g+4];", "", 6),
    # Registers of several components.
    "load": (".reg .v4 .u32 t; ld.global.v4.u32 t, [w]; add.u32 %r0, t.x, t.w;",
             ".global .align 16 .u32 w[4] = {1, 2, 3, 4};", 5),
    "store": (".reg .v2 .u32 t; mov.u32 t.x, 4; mov.u32 t.y, 5; .shared .align 8 .u32 s[2];"
              "st.shared.v2.u32 [s], t; ld.shared.u32 %r0, [s+4];", "", 5),
    "colours": (".reg .v2 .u32 t; mov.u32 t.r, 4; mov.u32 t.g, 5; add.u32 %r0, t.x, t.y;", "", 9),
    "mov.v4": (".reg .v4 .u32 t, u; mov.v4.u32 t, {4, 5, 6, 7}; mov.v4.u32 u, t; add.u32 %r0, u.x, "
               "u.w;", "", 11),
    "mov.v2 swaps": (".reg .v2 .u32 t; mov.v2.u32 t, {4, 5}; mov.v2.u32 t, {t.y, t.x}; sub.u32 %r0, "
                     "t.x, t.y;",
                     "", 1),
    "packed": (".reg .v2 .b16 t; mov.b16 t.x, 4; mov.b16 t.y, 5; mov.b32 %r0, t;", "", 0x50004),
    "unpacked": (".reg .v2 .b16 t; mov.b32 t, 0x50004; mov.b32 %r0, {t.y, t.x};", "", 0x40005),
    "families": (".reg .v2 .u32 %v<3>; mov.u32 %v2.y, 5; mov.u32 %v1.y, 6; mov.u32 %r0, %v2.y;", "", 5),
    # Constant expressions.
    "immediate": ("add.u32 %r0, (1 << 4) | 3, -1 + WARP_SZ;", "", 50),
    "name + 1": ("mov.u64 %q1, g + 4; ld.global.u32 %r0, [%q1 + -4];", PAIR, 5),
    "name + 2 * 2": ("mov.u64 %q1, g+2*2; ld.global.u32 %r0, [%q1];", PAIR, 6),
    "name - 4": ("ld.global.u32 %r0, [g+8-4];", PAIR, 6),
    "in braces": (".shared .align 8 .u32 s[2]; st.shared.v2.u32 [s], {1, 1 + 1}; ld.shared.u32 %r0, "
                  "[s+4];", "", 2),
    "initialiser": ("ld.global.u64 %q1, [p]; ld.u32 %r0, [%q1];", 
                    PAIR + ".global .u64 p = generic(g) + (1 << 2);", 6),
    # Predicates as parameters and results.
    "predicate": ("setp.eq.u32 %p1, 1, 1; call (%p2), f, (%p1); selp.u32 %r0, 3, 4, %p2;", FUNCTION, 4),
    "true": ("call (%p2), f, (1); selp.u32 %r0, 3, 4, %p2;", FUNCTION, 4),
    "among others": ("setp.eq.u32 %p1, 1, 1; call (%r0, %p2), f, (7, %p1, %r1); selp.u32 %r1, 3, 4, %p2;"
                     "add.u32 %r0, %r0, %r1;", ".func (.reg .u32 r, .reg .pred q) f(.reg .u32 a, "
                     ".reg .pred p,"
                     ".reg .u32 b) { selp.u32 r, a, b, p; not.pred q, p; ret; }", 11),
    # Linking within one file.
    "weak and strong": ("ld.global.u32 %r0, [w];", ".weak .global .u32 w = 4; "
                        ".visible .global .u32 w = 5;", 5),
    "weak functions": ("call (%r0), f, (1);",
                       ".visible .func (.reg .u32 r) f(.reg .u32 a) { add.u32 r, a, 1; ret; }"
                       ".weak .func (.reg .u32 r) f(.reg .u32 a) { mov.u32 r, 99; ret; }", 2),
    "common": ("st.global.u32 [w+4], 3; ld.global.u32 %r0, [w+4];",
               ".common .global .u32 w; .common .global .u32 w[2];", 3),
}  # fmt: skip


def kernel(body: str, module: str) -> str:
    return (
        f"{module}\n.visible .entry k(.param .u64 out) {{ .reg .b64 %o, %q<4>; .reg .b32 %r<9>;"
        f".reg .pred %p<4>;\nld.param.u64 %o, [out];\n{body}\nst.global.u32 [%o], %r0; ret; }}"
    )


# What the PTX ISA allows, and ptxas 12.9 refuses for sm_90a.
REFUSED = {
    "constant": "State space mismatch",
    "predicate": "passing predicate, 8-bit and 16-bit parameters to device functions is not supported",
    "true": "Type of argument does not match formal parameter",
    "weak and strong": "Duplicate definition of variable",
    "weak functions": "Duplicate definition of function",
    "common": "Inconsistent redefinition of variable",
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    body, module, expected = FORMS[name]
    if CODE == "sass" and name in REFUSED:
        with pytest.raises(CompileError, match=REFUSED[name]):
            Device(kernel(body, module))
        return
    out = np.zeros(1, np.uint32)
    Device(kernel(body, module)).run("k", out, block=(1, 1, 1), shared=64)
    assert out[0] == expected


@pytest.mark.parametrize(
    ("body", "module", "message"),
    [
        (".reg .v2 .u32 t; mov.u32 %r0, t.z;", "", "expected a component that the vector has"),
        (".reg .v2 .u32 t; mov.v4.u32 t, {1, 2, 3, 4};", "", "operands of 4 components are expected"),
        ("", ".visible .global .u32 w = 4; .visible .global .u32 w = 5;", "not yet declared"),
        ("", ".visible .func f() { ret; } .visible .func f() { ret; }", "not yet declared"),
    ],
)
def test_what_no_form_is(body: str, module: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        Device(kernel(body, module))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("add.u32 %o, %i0+1, %i0;", lambda x: 2 * x + 1),
        ("add.u32 %o, %i0, %i0+-1;", lambda x: 2 * x - 1),
        ("mov.u32 %o, %i0+2*3;", lambda x: x + 6),
        ("mov.u32 %o, %i0+(1+1)+2;", lambda x: x + 4),
        ("mul.lo.u32 %o, %i0+1, %i0+2;", lambda x: (x + 1) * (x + 2)),
        ("{ .reg .pred p; setp.lt.u32 p, %i0+1, 5; selp.u32 %o, 1, 0, p; }", lambda x: x + 1 < 5),
        ("{ .reg .b64 t; cvt.u64.u32 t, %i0+1; cvt.u32.u64 %o, t; }", lambda x: x + 1),
        ("{ .reg .b16 h; cvt.u16.u32 h, %i0; cvt.u32.u16 %o, h+65535; }", lambda x: (x - 1) % 65536),
        (
            "{ .reg .b64 t; .local .b64 l; cvt.u64.u32 t, %i0; st.local.u64 [l], t+4294967296; "
            "ld.local.u32 %o, [l+4]; }",
            lambda x: x // x.dtype.type(1 << 31) + 1,
        ),
        (
            "{ .reg .b32 t, a; .shared .b32 l[32]; mov.u32 a, l; mad.lo.u32 a, %lane0, 4, a; mov.u32 t, 7; "
            "st.shared.u32 [a], t; atom.shared.add.u32 t, [a], %i0+1; ld.shared.u32 %o, [a]; }",
            lambda x: x + 8,
        ),
    ],
)
def test_register_plus_integer(body: str, wanted: Callable[[np.ndarray], np.ndarray]) -> None:
    """As ptxas reads it: the sum in the size of the register."""
    x = np.arange(32, dtype=np.uint32)
    assert (per_lane(body, x, target="80") == wanted(x).astype(np.uint32)).all()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("mov.u32 %o+1, %i0;", 'found "\\+", expected ; or ,'),
        ("atom.global.add.u32 %o+1, [%a0], 1;", 'found "\\+", expected ; or ,'),
        ("{ .reg .pred p; setp.eq.u32 p, %i0, 0; selp.u32 %o, 1, 0, p+1; }", 'found "\\+", expected ; or ,'),
        ("mov.u32 %o, %i0+1.0;", "found a floating-point number, expected an integer offset"),
        ("mov.u32 %o, %i0+%i0;", "expected"),
    ],
)
def test_what_no_integer_is_added_to(body: str, why: str) -> None:
    with pytest.raises(PtxError, match=why):
        per_lane(body, np.zeros(32, np.uint32), code="ptx")
