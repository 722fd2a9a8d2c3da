"""Products and sums that become one fma: which ones, and that nothing else changes. The expected pairs are
those of ptxas 12.9 for sm_80 and sm_90, observed with nvdisasm (docs/functional/float.md).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.cuda import PtxModule, machine_code
from simt.sass import Cubin, disassemble
from support.ptx import CODE, HEADER, Device, per_lane, ptx_only

AB, CD, EF = "mul.f32 %x, %a, %b; ", "mul.f32 %y, %c, %d; ", "mul.f32 %z, %e, %f; "
SHAPES = {
    # body: (mul, add and sub, fma) that remain
    AB + "add.f32 %r, %x, %c;": (0, 0, 1),
    AB + "sub.f32 %r, %c, %x;": (0, 0, 1),
    AB + "add.sat.f32 %r, %x, %c;": (0, 0, 1),
    AB + "@%p add.f32 %r, %x, %c;": (0, 0, 1),
    AB + "bar.sync 0; add.f32 %r, %x, %c;": (0, 0, 1),
    AB + "bra NEXT; NEXT: add.f32 %r, %x, %c;": (0, 0, 1),
    AB + "neg.f32 %y, %x; mov.b32 %w, %y; sub.f32 %r, %c, %w;": (0, 0, 1),
    AB + "add.f32 %r, %x, %c; add.f32 %s, %x, %d;": (0, 0, 2),
    AB + CD + "add.f32 %r, %x, %y;": (1, 0, 1),
    AB + CD + EF + "add.f32 %r, %x, %y; add.f32 %s, %x, %z;": (1, 0, 2),
    AB + CD + "add.f32 %r, %x, %y; sub.f32 %s, %x, %y;": (1, 0, 2),
    AB + CD + "add.f32 %r, %x, %e; add.f32 %s, %x, %y;": (1, 1, 1),
    AB + CD + "add.f32 %r, %x, %e; add.f32 %s, %y, %x; add.f32 %t, %y, %f;": (1, 0, 3),
    AB + CD + "add.f32 %r, %x, %e; add.f32 %s, %x, %y; add.f32 %t, %y, %f;": (1, 1, 2),
    AB + "add.f32 %r, %x, %c; mov.f32 %s, %x; st.global.f32 [%out+16], %s;": (1, 1, 0),
    AB + "add.f32 %r, %x, %x;": (1, 1, 0),
    AB + "add.f32 %r, %x, %c; mul.f32 %s, %x, %d;": (2, 1, 0),
    AB + "add.rn.f32 %r, %x, %c;": (1, 1, 0),
    AB + "add.ftz.f32 %r, %x, %c;": (1, 1, 0),
    "mul.rn.f32 %x, %a, %b; add.f32 %r, %x, %c;": (1, 1, 0),
    "mul.sat.f32 %x, %a, %b; add.f32 %r, %x, %c;": (1, 1, 0),
    "mul.ftz.f32 %x, %a, %b; add.ftz.f32 %r, %x, %c;": (0, 0, 1),
    "@%p mul.f32 %x, %a, %b; add.f32 %r, %x, %c;": (1, 1, 0),
    AB + "@%p bra NEXT; add.f32 %r, %x, %c; NEXT:": (1, 1, 0),
    AB + "div.rn.f32 %s, %c, %d; add.f32 %r, %x, %s;": (1, 1, 0),
    AB + "abs.f32 %y, %x; add.f32 %r, %y, %c;": (1, 1, 0),
}  # fmt: skip
KERNEL = """.visible .entry k(.param .b64 in, .param .b64 out) {{
.reg .f32 %a, %b, %c, %d, %e, %f, %x, %y, %z, %w, %r, %s, %t;
.reg .pred %p; .reg .b64 %in, %out; .reg .b32 %i;
ld.param.b64 %in, [in]; ld.param.b64 %out, [out]; mov.u32 %i, %tid.x; setp.lt.u32 %p, %i, 16;
mad.wide.u32 %in, %i, 24, %in; mad.wide.u32 %out, %i, 12, %out;
ld.global.f32 %a, [%in]; ld.global.f32 %b, [%in+4]; ld.global.f32 %c, [%in+8];
ld.global.f32 %d, [%in+12]; ld.global.f32 %e, [%in+16]; ld.global.f32 %f, [%in+20];
{body}
st.global.f32 [%out], %r; st.global.f32 [%out+4], %s; st.global.f32 [%out+8], %t;
ret; }}"""


def ptx_of(body: str, fmad: bool = True) -> PtxModule:
    text = PtxModule.from_text(HEADER.format(target="80") + KERNEL.format(body=body), "k.ptx")
    return text if fmad else text.without_contraction()


def loaded(body: str) -> Device:
    return Device(ptx_of(body).text)


def operations(body: str, fmad: bool = True) -> tuple[int, int, int]:
    ptx = ptx_of(body, fmad)
    if CODE == "sass":
        code = disassemble(Cubin.parse(machine_code(ptx, "sm_80"), "k.cubin"))["k"]
        kinds = Counter(instruction.opcode.split(".")[0] for instruction in code)
        return kinds["FMUL"], kinds["FADD"], kinds["FFMA"]
    kinds = Counter(name.split(".")[0] for name in Device(ptx.text).module.order("k") if name.endswith("f32"))
    return kinds["mul"], kinds["add"] + kinds["sub"], kinds["fma"]


@pytest.mark.parametrize("body", SHAPES)
def test_the_pairs_that_ptxas_fuses(body: str) -> None:
    if CODE == "sass" and "div" in body:
        pytest.skip("the machine code of a division has FFMAs of its own")
    assert operations(body) == SHAPES[body]
    assert operations(body, fmad=False)[2] == 0


@pytest.mark.parametrize(("type_", "dtype"), [("f32", np.float32), ("f64", np.float64), ("f16", np.float16)])
def test_one_rounding(type_: str, dtype: type) -> None:
    """c - a * b, a * b - c, -(a * b) - c, each rounded once."""
    random = np.random.default_rng(7)
    a, b, c = (random.uniform(-4, 4, 512).astype(dtype) for _ in range(3))
    c[::2] = (a * b)[::2]  # the rest is the product's rounding error
    bits = 8 * a.dtype.itemsize
    product = f"mul.{type_} %t, %i0, %i1;"
    forms = {
        f"{product} sub.{type_} %o, %i2, %t;": lambda p, q: q - p,
        f"{product} sub.{type_} %o, %t, %i2;": lambda p, q: p - q,
        f"{product} neg.{type_} %t, %t; sub.{type_} %o, %t, %i2;": lambda p, q: -p - q,
    }
    for body, exact in forms.items():
        got = per_lane(body, a, b, c, output=dtype, registers=f".reg .b{bits} %t;")
        for x, y, z, result in zip(a, b, c, got, strict=True):
            value = exact(Fraction(float(x)) * Fraction(float(y)), Fraction(float(z)))
            assert Fraction(float(result)) == Fraction(float(nearest(value, dtype))), body


@ptx_only("machine code of sm_100 and later is not executed")
def test_pairs_are_contracted() -> None:
    """ptxas 13 makes one FFMA2 (sm_100) or two FFMA (sm_120) of a product and a sum that name no rounding."""
    random = np.random.default_rng(7)
    a, b, c = (random.uniform(-4, 4, 128).astype(np.float32) for _ in range(3))
    c[::2] = (a * b)[::2]
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    forms = {
        "mul.f32x2 %t, %i0, %i1; add.f32x2 %o, %t, %i2;": x * y + z,
        "mul.f32x2 %t, %i0, %i1; sub.f32x2 %o, %t, %i2;": x * y - z,
        "mul.f32x2 %t, %i0, %i1; sub.f32x2 %o, %i2, %t;": z - x * y,
        "mul.rn.f32x2 %t, %i0, %i1; add.f32x2 %o, %t, %i2;": a * b + c,
        "mul.f32x2 %t, %i0, %i1; add.rn.f32x2 %o, %t, %i2;": a * b + c,
    }
    pairs = [v.view(np.uint64) for v in (a, b, c)]
    for body, wanted in forms.items():
        got = per_lane(body, *pairs, output=np.uint64, registers=".reg .b64 %t;", target="100")
        assert (got.view(np.float32) == wanted.astype(np.float32)).all(), body


def nearest(value: Fraction, dtype: type) -> np.floating:
    """The number of a type closest to an exact value; the even one of two."""
    guess = dtype(float(value))
    near = [guess, np.nextafter(guess, dtype(-np.inf)), np.nextafter(guess, dtype(np.inf))]
    return min(near, key=lambda n: (abs(Fraction(float(n)) - value), int(n.view(f"u{guess.itemsize}")) & 1))


registers = st.sampled_from(["%a", "%b", "%c", "%d", "%x", "%y", "%z"])
steps = st.one_of(
    st.tuples(st.sampled_from(["mul", "mul", "add", "sub"]), registers, registers, registers),
    st.tuples(st.sampled_from(["neg", "mov"]), registers, registers),
    st.just(("split",)),
)


def exact_values(program: list[tuple[tuple[str, ...], str]], row: list[int], first: bool) -> list[int] | None:
    """The final values of %x, %y and %z; None if an intermediate result is too large for f32."""
    r = dict(zip(("%a", "%b", "%c", "%d"), row[:4], strict=True))
    r |= {"%x": r["%a"], "%y": r["%b"], "%z": r["%c"]}
    for step, guard in program:
        if step[0] == "split":
            if first == (guard == "@!%p "):
                r["%x"] += r["%y"]
        elif not guard or first == (guard == "@%p "):
            values = [r[name] for name in step[2:]]
            r[step[1]] = {
                "mul": lambda a, b: a * b,
                "add": lambda a, b: a + b,
                "sub": lambda a, b: a - b,
                "neg": lambda a: -a,
                "mov": lambda a: a,
            }[step[0]](*values)
        if max(map(abs, r.values())) >= 2**24:
            return None
    return [r["%x"], r["%y"], r["%z"]]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(steps, st.sampled_from(["", "", "", "@%p ", "@!%p "])), min_size=3, max_size=25))
def test_values_without_rounding_stay(program: list[tuple[tuple[str, ...], str]]) -> None:
    """Rewritten registers, guards, branches: where nothing is rounded, fusing has no effect."""
    lines = ["mov.f32 %x, %a; mov.f32 %y, %b; mov.f32 %z, %c;"]
    for k, (step, guard) in enumerate(program):
        if step[0] == "split":
            lines.append(f"{guard or '@%p '}bra L{k}; add.f32 %x, %x, %y; L{k}:")
        else:
            lines.append(f"{guard}{step[0]}.f32 {', '.join(step[1:])};")
    body = "\n".join([*lines, "mov.f32 %r, %x; mov.f32 %s, %y; mov.f32 %t, %z;"])
    values = np.random.default_rng(1).integers(-2, 3, (32, 6))
    out = np.zeros((32, 3), np.float32)
    loaded(body).run("k", values.astype(np.float32), out)
    for lane in range(32):
        expected = exact_values(program, values[lane].tolist(), lane < 16)
        assert expected is None or out[lane].tolist() == expected


def test_compile_and_load_without() -> None:
    source = """extern "C" __global__ void k(float* x, float a, float b) { *x -= a * b; }"""
    gpu = simt.GPU("a100", functional=True, code=CODE)
    a, b = np.float32(1.1), np.float32(1.3)
    fused = np.float32(np.float64(a * b) - np.float64(a) * np.float64(b))
    for module, expected in [
        (gpu.compile(source), fused),
        (gpu.compile(source, fmad=False), 0),
        (gpu.load(gpu.compile(source).ptx.text, fmad=False), 0),
        (gpu.load(gpu.compile(source).ptx.text), fused),
        (simt.GPU("a100", functional=True, fmad=False, code=CODE).compile(source), 0),
    ]:
        x = np.array([a * b], np.float32)
        module.k[1, 1](x, a, b)
        assert x[0] == expected


def test_a_timed_product_and_sum_are_one_instruction() -> None:
    source = """extern "C" __global__ void k(float* x, float a) {
        for (int i = 0; i < 64; ++i) x[threadIdx.x + 32 * i] -= a * x[threadIdx.x]; }"""
    kept = {}
    for fmad in (True, False):
        gpu = simt.GPU("a100")
        module = gpu.compile(source, fmad=fmad)
        module.k[1, 32](gpu.array(np.ones(2048, np.float32)), 1.5)
        kept[fmad] = gpu.result().launches[0].warp_instructions
    assert kept[False] - kept[True] == 64
