"""tcgen05 in a kernel: tensor memory filled from an array, instructions, and tensor memory read back; and the
arithmetic of a B200's tensor cores, element by element.

Rules of the arithmetic: MODEL.md of sf-tensor/tcgen05, whose authors compared it with a B200.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from support.floats import BF16, E4M3, E5M2, F16, F32
from support.ptx import CODE, Device
from support.shared_matrices import Image

code = CODE  # what the kernels run: "ptx" or "sass"

B200 = {"sm_version": 100}
EXACT = {"sm_version": 100, "exact_tensor_arithmetic": 1}
LANES, COLUMNS = 128, 512

KINDS = {
    "f16": ("f16", "f16"), "bf16": ("f16", "bf16"), "tf32": ("tf32", "tf32"), "e4m3": ("f8f6f4", "e4m3"),
    "e5m2": ("f8f6f4", "e5m2"), "e2m3": ("f8f6f4", "e2m3"), "e3m2": ("f8f6f4", "e3m2"),
    "e2m1": ("f8f6f4", "e2m1"), "u8": ("i8", "u8"), "s8": ("i8", "s8"),
}  # fmt: skip
TYPE_CODES = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1}
TYPE_CODES |= {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
STEPS = {"f16": 16, "bf16": 16, "tf32": 8}  # K; 32 for the other types


def step_of(type_: str) -> int:
    return STEPS.get(type_, 32)


def instruction(
    m: int,
    n: int,
    a: str,
    b: str,
    d: str = "f32",
    saturate: bool = False,
    negate: tuple[bool, bool] = (False, False),
    transpose: tuple[bool, bool] = (False, False),
    most_shift: int = 0,
) -> int:
    """The instruction descriptor of kinds without block scaling. most_shift: with .ws; 1 is 8 columns."""
    word = {"f16": 0, "f32": 1, "s32": 2}[d] << 4 | TYPE_CODES[a] << 7 | TYPE_CODES[b] << 10
    word |= saturate << 3 | negate[0] << 13 | negate[1] << 14 | transpose[0] << 15 | transpose[1] << 16
    return word | n >> 3 << 17 | m >> 4 << 24 | most_shift << 30


def scaled_instruction(
    m: int,
    n: int,
    a: str,
    b: str,
    nibbles: bool,
    exponents_only: bool,
    ids: tuple[int, int] = (0, 0),
    sparse: bool = False,
    wide: bool = False,
) -> int:
    """The instruction descriptor of block-scaled kinds; nibbles: mxf4 and mxf4nvf4; wide: K = 96."""
    types = (1, 1) if nibbles else (TYPE_CODES[a], TYPE_CODES[b])
    word = ids[1] << 4 | types[0] << 7 | types[1] << 10 | n >> 3 << 17 | exponents_only << 23
    return word | m >> 7 << 27 | ids[0] << 29 | sparse << 2 | wide << 31


def here(count: int) -> str:
    """Adds where the kernel's shared memory begins to descriptors %v0, ..., and %v1 (0: %v0 alone)."""
    last = 1 if count == 0 else count
    return "mov.u64 %from, room; and.b64 %from, %from, 0x3ffff; shr.u64 %from, %from, 4;" + "".join(
        f"add.u64 %v{i}, %v{i}, %from;" for i in range(last)
    )


def run_warp(
    body: str, memory: np.ndarray, values: np.ndarray, target: str = "100a"
) -> tuple[np.ndarray, np.ndarray]:
    """Runs `body` in the first warp, between filling and reading tensor memory; %g is the address of the
    thread's row of `values`, which is returned with tensor memory.
    """
    count = values.shape[1]
    registers = np.ascontiguousarray(values, np.uint32)
    after = _run(
        f".reg .b32 %e<{count}>; .reg .b64 %g; mad.wide.u32 %g, %me, {4 * count}, %from;"
        f"setp.ge.u32 %q, %me, 32; @%q bra WAIT; {body} tcgen05.wait::ld.sync.aligned;"
        "tcgen05.wait::st.sync.aligned; setp.ne.u32 %q, %me, 0; @%q bra WAIT;",
        Image(2048),
        memory,
        registers,
        1,
        EXACT,
        (),
        target,
    )
    return after[0], registers


def run(
    body: str,
    image: Image,
    memory: np.ndarray,
    values: Sequence[int] = (),
    group: int = 1,
    machine: dict[str, int] = EXACT,
    images: Sequence[Image] = (),
    target: str = "100a",
) -> np.ndarray:
    """Runs `body` in one thread after tensor memory was filled with `memory` (CTAs x lanes x columns), and
    returns what it holds afterwards. body names tensor memory's address %t, the mbarrier's %m, and 64-bit
    values %v0, %v1, ...; descriptors among them are of the shared memory `image` (images: of each CTA).
    """
    constants = np.array([v & (2**64 - 1) for v in values] or [0], np.uint64)
    load = "".join(f"ld.global.b64 %v{i}, [%from+{8 * i}];" for i in range(len(constants)))
    first = "add.u32 %i, %me, %cta; setp.ne.u32 %q, %i, 0; @%q bra WAIT; setp.eq.u32 %q, 0, 0;"
    registers = f".reg .b64 %v<{len(constants)}>;"
    out = _run(registers + load + first + body, image, memory, constants, group, machine, images, target)
    return out if group == 2 else out[0]


def _run(
    body: str,
    image: Image,
    memory: np.ndarray,
    values: np.ndarray,
    group: int,
    machine: dict[str, int],
    images: Sequence[Image],
    target: str,
) -> np.ndarray:
    """Tensor memory after all threads have run `body`, which sends all but one of them to WAIT."""
    memory = np.ascontiguousarray(memory, np.uint32).reshape(group, LANES, -1)
    columns = memory.shape[2]
    assert columns % 32 == 0
    every = np.concatenate([i.bytes for i in (images or [image] * group)])
    room = len(every) // group
    wide = 1 << max(5, (columns - 1).bit_length())
    chunks = [(c, f"{{{', '.join(f'%d{i}' for i in range(32))}}}") for c in range(0, columns, 32)]
    load = "\n".join(
        "\n".join(f"ld.global.b32 %d{i}, [%at+{4 * (c + i)}];" for i in range(32))
        + f"\ntcgen05.st.sync.aligned.32x32b.x32.b32 [%w+{c}], {names}; tcgen05.wait::st.sync.aligned;"
        for c, names in chunks
    )
    store = "\n".join(
        f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {names}, [%w+{c}]; tcgen05.wait::ld.sync.aligned;\n"
        + "\n".join(f"st.global.b32 [%at+{4 * (c + i)}], %d{i};" for i in range(32))
        for c, names in chunks
    )
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else "bar.sync 0;"
    multicast = ".multicast::cluster" if group == 2 else ""
    mask = ", %h" if group == 2 else ""
    text = f""".version 8.8
.target sm_{target}
.address_size 64
.extern .shared .align 1024 .b8 room[];
.visible .entry k(.param .b64 image, .param .b64 memory, .param .b64 out, .param .b64 values) {{
.reg .b32 %d<32>, %r<8>, %me, %cta, %t, %w, %m, %i; .reg .b64 %at, %from; .reg .b16 %h; .reg .pred %p, %q;
mov.b16 %h, 3; mov.u32 %me, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %m, room; add.u32 %m, %m, {room};
setp.eq.u32 %p, %me, 0; @%p mbarrier.init.shared.b64 [%m], 1;
ld.param.b64 %from, [image]; mad.lo.u32 %i, %cta, {room // 16}, %me; mad.wide.u32 %from, %i, 16, %from;
mov.u32 %r4, room; mad.lo.u32 %r4, %me, 16, %r4; mov.u32 %i, %me;
COPY: ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%from]; st.shared.v4.b32 [%r4], {{%r0, %r1, %r2, %r3}};
add.u64 %from, %from, 2048; add.u32 %r4, %r4, 2048; add.u32 %i, %i, 128;
setp.lt.u32 %q, %i, {room // 16}; @%q bra COPY;
setp.lt.u32 %q, %me, 32; add.u32 %r0, %m, 8; @!%q bra ALLOCATED;
tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r0], {wide};
tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
ALLOCATED: {sync}
ld.shared.b32 %t, [%r0]; and.b32 %w, %me, 0x60; shl.b32 %w, %w, 16; add.u32 %w, %w, %t;
ld.param.b64 %at, [memory]; mad.lo.u32 %i, %cta, {LANES}, %me; mad.wide.u32 %at, %i, {4 * columns}, %at;
{load}
fence.proxy.async.shared::cta; tcgen05.fence::before_thread_sync; {sync} tcgen05.fence::after_thread_sync;
ld.param.b64 %from, [values];
{body}
tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [%m]{mask};
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%m], 0; @!%q bra WAIT;
tcgen05.fence::after_thread_sync;
ld.param.b64 %at, [out]; mad.lo.u32 %i, %cta, {LANES}, %me; mad.wide.u32 %at, %i, {4 * columns}, %at;
{store}
tcgen05.fence::before_thread_sync; {sync}
setp.lt.u32 %q, %me, 32; @!%q bra END;
tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t, {wide};
END: ret; }}"""
    out = np.zeros_like(memory)
    Device(text, target=target, code=code).run(
        "k",
        every,
        memory,
        out,
        values,
        grid=(group, 1, 1),
        cluster=(group, 1, 1),
        block=(LANES, 1, 1),
        shared=room + 16,
        machine=machine,
    )
    return out


# --- arithmetic -------------------------------------------------------------------------------------------

SMALL = {"e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
FORMATS = {"f16": F16, "bf16": BF16, "tf32": F32, "e4m3": E4M3, "e5m2": E5M2, "f32": F32}


def number(code: int, type_: str) -> tuple[float, int]:
    """The number of a code, and its exponent as encoded; of subnormal ones, the least normal number's."""
    if type_ in SMALL:
        exponent, mantissa, bias = SMALL[type_]
        field = code >> mantissa & ((1 << exponent) - 1)
        fraction = (code & ((1 << mantissa) - 1)) + ((1 << mantissa) if field else 0)
        value = math.ldexp(fraction, max(field, 1) - bias - mantissa)
        return (-value if code >> (exponent + mantissa) & 1 else value), max(field, 1) - bias
    f = FORMATS[type_]
    if type_ == "tf32":
        code &= 0xFFFFE000
    field = (code & (f.sign - 1)) >> f.mantissa_bits
    return f.decode(code), max(field, 1) - f.bias


def units(value: Fraction, quantum: int) -> int:
    return math.trunc(value / Fraction(2) ** quantum)


def rounded(total: Fraction, d: str) -> int:
    if d == "f16":
        code = F16.encode(total)
        return 0 if code == F16.sign else code
    if abs(total) >= 2**128:
        return F32.infinity | (F32.sign if total < 0 else 0)
    code = F32.encode(total, "rz")
    return 0 if code == F32.sign else code


def dot(a: Sequence[int], b: Sequence[int], c: int, types: tuple[str, str], d: str = "f32") -> int:
    """Code of D's element without block scaling."""
    pairs = [(number(int(x), types[0]), number(int(y), types[1])) for x, y in zip(a, b, strict=True)]
    addend, of_c = number(c, d if d == "f16" else "f32")
    special = addend + sum(x * y for (x, _), (y, _) in pairs)
    if not math.isfinite(special):
        nan, infinity, sign = (0x7FFF, 0x7C00, 0x8000) if d == "f16" else (0x7FFFFFFF, 0x7F800000, 1 << 31)
        return nan if math.isnan(special) else infinity | (sign if special < 0 else 0)
    exponents = [ex + ey for (x, ex), (y, ey) in pairs if x * y != 0]
    if addend != 0:
        exponents.append(of_c)
    if not exponents:
        return 0
    quantum = max(exponents) - 25
    total = units(Fraction(addend), quantum)
    total += sum(units(Fraction(x) * Fraction(y), quantum) for (x, _), (y, _) in pairs)
    return rounded(total * Fraction(2) ** quantum, d)


def scale_number(code: int, exponents_only: bool) -> tuple[Fraction, int]:
    """The number of a scale factor, and its exponent as encoded."""
    if exponents_only:
        return Fraction(2) ** (code - 127), code - 127
    value, exponent = number(code & 0x7F, "e4m3")
    return Fraction(value), exponent


def scaled_dot(
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    types: tuple[str, str],
    scales: tuple[Sequence[int], Sequence[int]],
    exponents_only: bool,
    window: bool,
    group: int = 16,
) -> int:
    """Code of D's element with scale factors that share k evenly. window: as mxf8f6f4 adds."""
    block = len(a) // len(scales[0])
    factors = [
        (scale_number(int(x), exponents_only), scale_number(int(y), exponents_only))
        for x, y in zip(*scales, strict=True)
    ]
    values, exponents, of_scales = [], [], []
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        (left, of_a), (right, of_b) = number(int(x), types[0]), number(int(y), types[1])
        (sa, of_sa), (sb, of_sb) = factors[i // block]
        values.append(Fraction(left) * Fraction(right) * sa * sb)
        exponents.append(of_a + of_b + of_sa + of_sb if values[-1] else None)
        of_scales.append(of_sa + of_sb if values[-1] else None)
    addend, of_c = number(c, "f32")
    largest = max((e for e in exponents if e is not None), default=None)
    if largest is None:
        return c
    start = Fraction(addend)

    def total(quantum: int, step: int) -> int:
        return units(start, quantum) + sum(
            units(sum(values[i : i + step], Fraction(0)), quantum) for i in range(0, len(values), step)
        )

    def result(count: int, quantum: int) -> int:
        return rounded(count * Fraction(2) ** quantum, "f32")

    if window:
        quantum = max(largest, of_c if addend else largest) - 25
        return result(total(quantum, 1), quantum)
    if addend and of_c >= largest:
        return result(total(of_c - 35, group), of_c - 35)
    highest = max(s for s in of_scales if s is not None)
    quantum = max(largest - 39, highest - 35)
    if not exponents_only:
        return result(total(quantum, 4), quantum)
    parts = []
    for i in range(0, len(values), group):
        own = max((e for e in exponents[i : i + group] if e is not None), default=None)
        coarse = max(quantum, of_c - 35) if addend and own is not None and of_c >= own else quantum
        scale = max((s for s in of_scales[i : i + group] if s is not None), default=None)
        parts.append((units(sum(values[i : i + group], Fraction(0)), coarse) << coarse - quantum, scale))
    word = result(units(start, quantum) + sum(p for p, _ in parts), quantum)
    if 0 < word & 0x7FFFFFFF < 1 << 23:
        # A subnormal sum lacks small groups of lesser scale.
        least = 1 << max(0, -174 - quantum)
        kept = [p for p, s in parts if s is None or s >= highest or abs(p) >= least]
        word = result(units(start, quantum) + sum(kept), quantum)
    return word
