"""Scheduling within basic blocks: loads move up, dependences hold, nothing crosses instructions that order
memory.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ptx import Device


def order(body: str) -> list[str]:
    """The opcodes of a kernel's instructions in the order in which they are executed."""
    ptx = f"""
    .visible .entry k(.param .u64 p)
    {{ .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<9>; .reg .pred %p<3>; .shared .align 4 .b8 s[128];
      ld.param.u64 %rd1, [p];
      {body}
      ret;
    }}"""
    return [text.split()[0] for text in Device(ptx).module.order("k")]


def test_loads_come_before_what_does_not_need_them() -> None:
    found = order("""
      ld.global.f32 %f1, [%rd1]; add.f32 %f2, %f1, %f1;
      ld.global.f32 %f3, [%rd1+4]; add.f32 %f4, %f3, %f3;
      st.global.f32 [%rd1], %f2; st.global.f32 [%rd1+4], %f4;
    """)
    assert found[:5] == ["ld.param.u64", "ld.global.f32", "ld.global.f32", "add.f32", "add.f32"]


def test_a_load_stays_behind_a_store_that_it_may_see() -> None:
    found = order("""
      ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd1+8], %f1; ld.global.f32 %f2, [%rd1+8];
      st.shared.f32 [s], %f1; ld.global.f32 %f3, [%rd1+16]; add.f32 %f4, %f2, %f3; st.global.f32 [%rd1], %f4;
    """)
    globals_ = [x for x in found if "global" in x]
    assert globals_[:2] == ["ld.global.f32", "st.global.f32"]
    assert found.index("st.global.f32") < len(found) - 1 - found[::-1].index("ld.global.f32")


def test_nothing_crosses_a_barrier_or_an_atomic() -> None:
    for fence in (
        "bar.sync 0;",
        "red.global.add.u32 [%rd1], 1;",
        "membar.gl;",
        "ld.volatile.global.u32 %r9, [%rd1];",
    ):
        found = order(f"add.u32 %r1, %r2, 1; mul.lo.u32 %r4, %r1, 3; {fence} ld.global.f32 %f1, [%rd1+4];")
        at = found.index(fence.split()[0].rstrip(";"))
        assert set(found[:at]) >= {"add.u32", "mul.lo.u32"}
        assert "ld.global.f32" in found[at + 1 :]


OPERATIONS = st.sampled_from(["add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "min.u32", "shl.b32"])
NUMBER = st.integers(0, 7)
STEP = st.one_of(
    st.tuples(st.just("op"), OPERATIONS, NUMBER, NUMBER, NUMBER),
    st.tuples(st.just("load"), NUMBER, NUMBER),
    st.tuples(st.just("store"), NUMBER, NUMBER),
    st.tuples(st.just("guarded"), OPERATIONS, NUMBER, NUMBER, NUMBER),
    st.tuples(st.just("carry"), NUMBER, NUMBER, NUMBER),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=3, max_size=60))
def test_random_blocks_compute_what_they_say(steps: list[tuple]) -> None:
    """Straight-line code over registers and eight words of memory, against in-order execution."""
    lines, r, m = [], list(range(1, 9)), [100 * k + 7 for k in range(8)]
    for i in range(8):
        lines.append(f"mov.u32 %r{i}, {r[i]};")
    flag = 0
    mask = 0xFFFFFFFF
    for step in steps:
        match step:
            case ("op" | "guarded" as kind, op, d, a, b):
                guard = ""
                run = True
                if kind == "guarded":
                    lines.append(f"setp.lt.u32 %p1, %r{b}, %r{d};")
                    guard, run = "@%p1 ", r[b] < r[d]
                lines.append(f"{guard}{op} %r{d}, %r{a}, %r{b};")
                x, y = r[a], r[b]
                value = {
                    "add.u32": x + y,
                    "sub.u32": x - y,
                    "xor.b32": x ^ y,
                    "mul.lo.u32": x * y,
                    "min.u32": min(x, y),
                    "shl.b32": x << y if y < 32 else 0,
                }[op] & mask
                if run:
                    r[d] = value
            case ("load", d, k):
                lines.append(f"ld.global.u32 %r{d}, [%rd1+{4 * k}];")
                r[d] = m[k]
            case ("store", s, k):
                lines.append(f"st.global.u32 [%rd1+{4 * k}], %r{s};")
                m[k] = r[s]
            case ("carry", d, a, b):
                lines.append(f"add.cc.u32 %r{d}, %r{a}, %r{b}; addc.u32 %r{a}, %r{a}, 0;")
                low = r[a] + r[b]
                old = r[a]
                r[d] = low & mask
                flag = low >> 32
                r[a] = ((r[a] if d != a else r[d]) + flag) & mask
                _ = old
    for i in range(8):
        lines.append(f"st.global.u32 [%rd1+{32 + 4 * i}], %r{i};")
    ptx = f"""
    .visible .entry k(.param .u64 p)
    {{ .reg .b32 %r<9>; .reg .b64 %rd<2>; .reg .pred %p<2>;
      ld.param.u64 %rd1, [p];
      {" ".join(lines)}
      ret;
    }}"""
    memory = np.array([100 * k + 7 for k in range(8)] + [0] * 8, np.uint32)
    Device(ptx).run("k", memory, block=(1, 1, 1))
    assert memory.tolist() == m + r
