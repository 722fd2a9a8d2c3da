"""atom and red: each operation and type against a sequential reference; spaces, forms, order, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import simt
from simt import _engine
from simt.cuda import PtxModule
from simt.cuda.ptxas import can_assemble
from simt.errors import PtxError
from simt.sass.disassembler import is_installed
from support.ptx import CODE, HEADER, Device

U32, S32, U64, S64 = np.uint32, np.int32, np.uint64, np.int64
F16, BF16, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
Reference = Callable[[Any, Any], Any]


def wrap(f: Callable[[int, int], int], dtype: Any) -> Reference:
    """f on Python integers, modulo the type's size."""
    bits = 8 * np.dtype(dtype).itemsize
    unsigned = np.dtype(f"u{bits // 8}")
    return lambda a, b: np.array([f(int(a), int(b)) % (1 << bits)], unsigned).view(dtype)[0]


def flush(x: np.float32) -> np.float32:
    return np.copysign(F32(0), x) if abs(x) < np.finfo(F32).tiny else x


def extreme(greater: bool) -> Reference:
    def f(a: Any, b: Any) -> Any:
        if np.isnan(a) or np.isnan(b):
            return b if np.isnan(a) else a
        if a == b:
            return a if np.signbit(a) != greater else b
        return max(a, b) if greater else min(a, b)

    return f


INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exch": lambda a, b: b,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}
CASES: list[tuple[str, Any, Reference]] = [
    *((f"{op}.u32", U32, wrap(INTEGER[op], U32)) for op in ("add", "min", "max", "inc", "dec")),
    *((f"{op}.s32", S32, wrap(INTEGER[op], S32)) for op in ("add", "min", "max")),
    *((f"{op}.u64", U64, wrap(INTEGER[op], U64)) for op in ("add", "min", "max")),
    *((f"{op}.s64", S64, wrap(INTEGER[op], S64)) for op in ("min", "max")),
    *((f"{op}.b32", U32, wrap(INTEGER[op], U32)) for op in ("and", "or", "xor", "exch")),
    *((f"{op}.b64", U64, wrap(INTEGER[op], U64)) for op in ("and", "or", "xor", "exch")),
    ("add.f32", F32, lambda a, b: F32(a + b)),
    ("add.f64", F64, lambda a, b: a + b),
    ("add.noftz.f16", F16, lambda a, b: F16(F64(a) + F64(b))),
    ("add.noftz.bf16", BF16, lambda a, b: BF16(F64(a) + F64(b))),
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 6e-8, -6e-8, 1e-5]


def values(dtype: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of all kinds, including small integers, so that counters wrap around."""
    if np.dtype(dtype).kind in "ui":
        raw = rng.integers(0, 256, (count, np.dtype(dtype).itemsize), np.uint8).view(dtype)[:, 0]
        small = rng.integers(0, 9, count).astype(dtype)
        return np.where(rng.random(count) < 0.5, raw, small)
    scaled = (rng.standard_normal(count) * np.exp2(rng.integers(-12, 12, count))).astype(dtype)
    special = rng.choice(SPECIAL, count).astype(dtype)
    return np.where(rng.random(count) < 0.2, special, scaled)


def kernel(operation: str, dtype: Any, space: str, guard: bool = False, offset: int = 0) -> str:
    """out[i] = atom(&memory[index[i]], b[i]), in global memory, or in shared memory filled from it."""
    size = np.dtype(dtype).itemsize
    t = f"b{8 * size}"
    if space == "global":
        place, prepare, finish = ".global", "mov.b64 %m, %memory;", ""
    else:
        place = {"shared": ".shared", "cluster": ".shared::cluster"}.get(space, "")
        address = "mov.u32 %w, buffer; mov.u64 %m, buffer;"
        if space == "generic":
            address += "cvta.shared.u64 %m, %m;"
        prepare = f"""
          {address}
          mad.lo.u32 %w, %lane, {size}, %w; mad.wide.u32 %p, %lane, {size}, %memory;
          ld.global.{t} %v, [%p]; st.shared.{t} [%w], %v; bar.sync 0;
        """
        finish = f"bar.sync 0; ld.shared.{t} %v, [%w]; st.global.{t} [%p], %v;"
    return f"""
    .visible .entry k(.param .b64 memory, .param .b64 index, .param .b64 b, .param .b64 out)
    {{
      .reg .b64 %m, %p, %memory, %a; .reg .b32 %lane, %i, %w; .reg .{t} %v, %b, %old; .reg .pred %odd;
      .shared .align 16 .b8 buffer[{32 * size}];
      ld.param.b64 %memory, [memory]; mov.u32 %lane, %tid.x;
      ld.param.b64 %a, [index]; mad.wide.u32 %a, %lane, 4, %a; ld.global.b32 %i, [%a];
      ld.param.b64 %a, [b]; mad.wide.u32 %a, %lane, {size}, %a; ld.global.{t} %b, [%a];
      {prepare}
      mad.wide.u32 %a, %i, {size}, %m;
      and.b32 %i, %lane, 1; setp.ne.u32 %odd, %i, 0; mov.{t} %old, 0;
      {"sub.s64 %a, %a, %d;".replace("%d", str(offset)) if offset else ""}
      {"@%odd" if guard else ""} atom{place}.{operation} %old, [%a{f"+{offset}" if offset else ""}], %b;
      {finish}
      ld.param.b64 %a, [out]; mad.wide.u32 %a, %lane, {size}, %a; st.global.{t} [%a], %old;
      ret;
    }}
    """


def timed(text: str) -> Any:
    """The module on a GPU with timing, where accesses to global memory take effect in the L2."""
    return simt.GPU("h100").load(PtxModule.from_text(HEADER.format(target="90") + text, "test.ptx"))


def sequential(f: Reference, memory: np.ndarray, index: np.ndarray, b: np.ndarray, lanes: list[int]) -> Any:
    memory, old = memory.copy(), np.zeros_like(b)
    for i in lanes:
        old[i] = memory[index[i]]
        memory[index[i]] = f(memory[index[i]], b[i])
    return memory, old


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits, where any NaN equals any other."""
    unsigned = f"u{a.dtype.itemsize}"
    return bool(((a.view(unsigned) == b.view(unsigned)) | ((a != a) & (b != b))).all())


def in_rounds(f: Reference, memory: np.ndarray, index: np.ndarray, b: np.ndarray, lanes: list[int]) -> Any:
    """Machine code has no minimum and maximum of 64 bits in shared memory: in a loop, lanes that change
    nothing leave; then the first of the others at each place swaps.
    """
    memory, old, left = memory.copy(), np.zeros_like(b), list(lanes)
    while left:
        for i in left:
            old[i] = memory[index[i]]
        left = [i for i in left if f(old[i], b[i]) != old[i]]
        first = {index[i]: i for i in reversed(left)}
        for place, i in first.items():
            memory[place] = f(old[i], b[i])
        left = [i for i in left if i not in first.values()]
    return memory, old


@pytest.mark.parametrize("space", ["global", "shared", "cluster", "generic"])
@pytest.mark.parametrize(("operation", "dtype", "reference"), CASES, ids=[c[0] for c in CASES])
def test_lanes_act_one_after_the_other(operation: str, dtype: Any, reference: Reference, space: str) -> None:
    rng = np.random.default_rng(7)
    guarded = Device(kernel(operation, dtype, space, guard=True, offset=8))
    device = Device(kernel(operation, dtype, space))
    loops = CODE == "sass" and space != "global" and operation in {"min.u64", "max.u64", "min.s64", "max.s64"}
    order = in_rounds if loops else sequential
    with np.errstate(all="ignore"):
        for spread in (1, 4, 32):
            memory, b = values(dtype, 32, rng), values(dtype, 32, rng)
            index = rng.integers(0, spread, 32).astype(U32)
            for program, lanes in ((device, range(32)), (guarded, range(1, 32, 2))):
                expected, old = order(reference, memory, index, b, list(lanes))
                result, out = memory.copy(), np.zeros_like(b)
                program.run("k", result, index, b, out)
                assert same(result, expected), (result, expected)
                assert same(out, old)


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
def test_f32_sums_flush_subnormals_in_global_memory_only(space: str) -> None:
    tiny = F32(1e-39)
    memory = np.array([tiny, 0, -tiny, 1e-38, np.finfo(F32).tiny] + [0] * 27, F32)
    b = np.array([0, tiny, 0, 1e-38, -np.finfo(F32).tiny * F32(1.5)] + [1] * 27, F32)
    expected = memory + b
    if space == "global":
        expected = np.array([flush(F32(flush(x) + flush(y))) for x, y in zip(memory, b, strict=True)], F32)
        assert expected[4] == 0 and np.signbit(expected[4])
    Device(kernel("add.f32", F32, space)).run("k", memory, np.arange(32, dtype=U32), b, np.zeros(32, F32))
    assert same(memory, expected)


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap(bits: int, space: str) -> None:
    dtype = np.dtype(f"u{bits // 8}")
    rng = np.random.default_rng(bits)
    text = kernel(f"cas.b{bits}", dtype, space).replace(
        "%old, [%a], %b;",
        f"%old, [%a], %b, %s; // s = b + 1, so that lanes chain\n.reg .b{bits} %s;",
    )
    text = text.replace("mov.u32 %lane, %tid.x;", f"mov.u32 %lane, %tid.x; .reg .b{bits} %s;", 1)
    text = text.replace(f"\n.reg .b{bits} %s;", "").replace("%old, 0;", f"%old, 0; add.u{bits} %s, %b, 1;", 1)
    for spread in (1, 3, 32):
        memory = rng.integers(0, 4, 32).astype(dtype)
        index = rng.integers(0, spread, 32).astype(U32)
        b = rng.integers(0, 8, 32).astype(dtype)
        b[-1] = memory[-1] = np.iinfo(dtype).max
        expected, old = memory.copy(), np.zeros(32, dtype)
        for i in range(32):
            old[i] = expected[index[i]]
            if old[i] == b[i]:
                expected[index[i]] = dtype.type((int(b[i]) + 1) % (1 << bits))
        out = np.zeros(32, dtype)
        Device(text).run("k", memory, index, b, out)
        assert (memory == expected).all()
        assert (out == old).all()


def test_128_bits() -> None:
    text = """
    .visible .entry k(.param .b64 memory, .param .b64 out)
    {
      .reg .b64 %a, %x<6>; .reg .b32 %lane; .reg .b128 %old, %b, %s; .reg .pred %p;
      ld.param.b64 %a, [memory]; mov.u32 %lane, %tid.x;
      mul.wide.u32 %x0, %lane, 1; add.u64 %x1, %x0, 1; mov.b64 %x2, 77;
      mov.b128 %b, {%x0, %x2}; mov.b128 %s, {%x1, %x2};
      atom.global.acq_rel.gpu.cas.b128 %old, [%a], %b, %s;
      mov.b128 {%x3, %x4}, %old;
      atom.global.exch.b128 %old, [%a+16], %b;
      mov.b128 {%x4, %x5}, %old;
      ld.param.b64 %a, [out]; mad.wide.u32 %a, %lane, 24, %a;
      st.global.b64 [%a], %x3; st.global.b64 [%a+8], %x4; st.global.b64 [%a+16], %x5;
      ret;
    }
    """
    memory = np.array([3, 77, 100, 200], U64)
    out = np.zeros((32, 3), U64)
    Device(text).run("k", memory, out)
    assert memory.tolist() == [32, 77, 31, 77]
    chain = [3, 3, 3, *range(3, 32)]
    assert out[:, 0].tolist() == chain
    assert out[:, 1].tolist() == [100, *range(31)]
    assert out[:, 2].tolist() == [200] + [77] * 31


@pytest.mark.parametrize(
    ("operation", "dtype", "count", "packed"),
    [
        ("add.v2.f32", F32, 2, False),
        ("add.v4.f32", F32, 4, False),
        ("add.noftz.v2.f16", F16, 2, False),
        ("min.noftz.v2.f16", F16, 2, False),
        ("max.noftz.v2.bf16", BF16, 2, False),
        ("max.noftz.v4.f16", F16, 4, False),
        ("min.noftz.v8.bf16", BF16, 8, False),
        ("add.noftz.v2.f16x2", F16, 4, True),
        ("max.noftz.v4.bf16x2", BF16, 8, True),
        ("add.noftz.f16x2", F16, 2, True),
        ("add.noftz.bf16x2", BF16, 2, True),
    ],
)
@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_vectors(operation: str, dtype: Any, count: int, packed: bool, returns: bool, code: str) -> None:
    if code == "sass" and not (can_assemble("sm_90") and is_installed()):
        pytest.skip("ptxas or nvdisasm is not installed: pip install 'simt[cuda]'")
    total = count * np.dtype(dtype).itemsize
    element = 4 if packed else np.dtype(dtype).itemsize
    registers = total // element
    vector = ".v" in operation

    def group(name: str) -> str:
        names = ", ".join(f"%{name}{k}" for k in range(registers))
        return f"{{{names}}}" if vector else names

    loads = "".join(f"ld.global.b{8 * element} %b{k}, [%p+{k * element}];" for k in range(registers))
    stores = "".join(f"st.global.b{8 * element} [%p+{k * element}], %d{k};" for k in range(registers))
    text = f"""
    .visible .entry k(.param .b64 memory, .param .b64 index, .param .b64 b, .param .b64 out)
    {{
      .reg .b64 %p, %a; .reg .b32 %lane, %i; .reg .b{8 * element} %b<8>, %d<8>;
      mov.u32 %lane, %tid.x;
      ld.param.b64 %p, [index]; mad.wide.u32 %p, %lane, 4, %p; ld.global.b32 %i, [%p];
      ld.param.b64 %a, [memory]; mad.wide.u32 %a, %i, {total}, %a;
      ld.param.b64 %p, [b]; mad.wide.u32 %p, %lane, {total}, %p; {loads}
      {f"atom.global.{operation} {group('d')}," if returns else f"red.global.{operation}"} [%a], {group("b")};
      {"ld.param.b64 %p, [out]; mad.wide.u32 %p, %lane, " + str(total) + ", %p;" + stores if returns else ""}
      ret;
    }}
    """
    rng = np.random.default_rng(count)
    memory, b = (values(dtype, 32 * count, rng).reshape(32, count) for _ in range(2))
    index = rng.integers(0, 5, 32).astype(U32)
    f = {"add": lambda x, y: dtype(F64(x) + F64(y)), "max": extreme(True), "min": extreme(False)}[
        operation[:3]
    ]
    expected, old = memory.copy(), np.zeros_like(b)
    with np.errstate(all="ignore"):
        for i in range(32):
            old[i] = expected[index[i]]
            for k in range(count):
                expected[index[i], k] = f(expected[index[i], k], b[i, k])
    out = np.zeros_like(b)
    Device(text, code=code).run("k", memory, index, b, out)
    assert same(memory, expected)
    assert same(out, old) if returns else not out.view(np.uint8).any()


HISTOGRAM = """
.visible .entry histogram(.param .b64 data, .param .b64 bins, .param .b32 n, .param .b64 extremes)
{
  .reg .b64 %data, %bins, %a, %e; .reg .b32 %i, %n, %v, %step, %x, %unused; .reg .pred %p;
  ld.param.b64 %data, [data]; ld.param.b64 %bins, [bins]; ld.param.b32 %n, [n]; ld.param.b64 %e, [extremes];
  mov.u32 %i, %ctaid.x; mov.u32 %x, %ntid.x; mov.u32 %v, %tid.x; mad.lo.u32 %i, %i, %x, %v;
  mov.u32 %step, %nctaid.x; mul.lo.u32 %step, %step, %x;
LOOP:
  setp.ge.u32 %p, %i, %n; @%p bra DONE;
  mad.wide.u32 %a, %i, 4, %data; ld.global.u32 %v, [%a];
  mad.wide.u32 %a, %v, 4, %bins; atom.global.add.u32 %unused, [%a], 1;
  red.global.min.u32 [%e], %i; red.relaxed.gpu.global.max.s32 [%e+4], %v;
  add.u32 %i, %i, %step; bra LOOP;
DONE:
  ret;
}
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_reductions_without_result_run_on_several_host_threads(threads: int) -> None:
    device = Device(HISTOGRAM)
    assert not device.module.kernels["histogram"]["order_sensitive"]
    data = np.random.default_rng(1).integers(0, 37, 100_003).astype(U32)
    bins, extremes = np.zeros(37, U32), np.array([5, 0], U32)
    device.run(
        "histogram", data, bins, len(data), extremes, grid=(24, 1, 1), block=(128, 1, 1), threads=threads
    )
    assert (bins == np.bincount(data, minlength=37)).all()
    assert extremes.tolist() == [0, 36]


def test_a_result_that_is_read_makes_the_order_matter() -> None:
    text = HISTOGRAM.replace("red.global.min.u32 [%e], %i;", "red.global.min.u32 [%e], %unused;")
    assert Device(text).module.kernels["histogram"]["order_sensitive"]
    text = HISTOGRAM.replace("red.global.min.u32 [%e], %i;", "red.global.add.f32 [%e], 0f3F800000;")
    assert Device(text).module.kernels["histogram"]["order_sensitive"]


LOCK = """
.visible .entry k(.param .b64 memory)
{
  .shared .align 8 .b32 lock[2];
  .reg .b64 %m; .reg .b32 %old, %v, %t; .reg .pred %p;
  ld.param.b64 %m, [memory];
  mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p bra READY; st.shared.u32 [lock], 0;
READY:
  bar.sync 0;
TAKE:
  atom.LOCKSPACE.cas.b32 %old, [LOCK], 0, 1;
  setp.ne.u32 %p, %old, 0; @%p bra TAKE;
  ld.volatile.global.u32 %v, [%m]; add.u32 %v, %v, %t; st.volatile.global.u32 [%m], %v;
  atom.LOCKSPACE.exch.b32 %old, [LOCK], 0;
  ret;
}
"""


@pytest.mark.parametrize(("space", "lock"), [("shared", "lock"), ("global", "%m+4")])
def test_a_lock_that_lanes_of_a_warp_fight_for(space: str, lock: str) -> None:
    memory = np.zeros(2, U32)
    Device(LOCK.replace("LOCKSPACE", space).replace("LOCK", lock)).run("k", memory, block=(96, 1, 1))
    assert memory.tolist() == [sum(range(96)), 0]


@pytest.mark.parametrize(
    "instruction",
    [
        "atom.global.add.b128 %q, [%a], %q",
        "atom.global.inc.u64 %a, [%a], %a",
        "atom.global.xor.f32 %r, [%a], %r",
        "atom.global.exch.b16 %h, [%a], %h",
        "atom.global.min.noftz.f16 %h, [%a], %h",
        "red.local.add.u32 [%a], %r",
        "atom.global.add.v4.f16x2.sat {%r,%r,%r,%r}, [%a], {%r,%r,%r,%r}",
    ],
)
def test_what_there_is_not_is_refused(instruction: str) -> None:
    text = f"""
    .visible .entry k() {{ .reg .b64 %a; .reg .b32 %r; .reg .b16 %h; .reg .b128 %q;
      {instruction}; ret; }}
    """
    with pytest.raises(PtxError, match=instruction.split()[0].replace(".", r"\.")):
        Device(text)


def test_faults() -> None:
    text = (
        ".visible .entry k(.param .b64 m) {.reg .b64 %a; ld.param.b64 %a, [m]; red.add.u32 [%a+2], 1; ret; }"
    )
    with pytest.raises(_engine.functional.ProgramFault, match="misaligned"):
        Device(text).run("k", np.zeros(8, U32))
    with pytest.raises(_engine.functional.ProgramFault, match="illegal address"):
        Device(text.replace("%a+2", "%a+32")).run("k", np.zeros(8, U32))
