"""wgmma.mma_async: operands in registers, and in shared memory in all layouts that descriptors allow."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support import tensor_cores
from support.matrices import BITS, EXACT, a_position, decode, encode, pack, product, random_codes
from support.ptx import Device
from support.shared_matrices import ROOM, WIDTHS, Image, descriptor, k_major, mn_major

A_AT, B_AT = 0, 65536


def run(
    shape_n: int,
    d: str,
    a: str,
    b: str,
    image: Image,
    steps: list[tuple[int | np.ndarray, int]],
    tail: str,
    before: np.ndarray | None = None,
    modifier: str = "",
    groups: int = 1,
    machine: dict[str, int] = EXACT,
    sparsity: tuple[np.ndarray, int] | None = None,
) -> np.ndarray:
    """D's codes after one wgmma per step (A: a descriptor or registers of the warpgroup's lanes; B).
    sparsity: metadata of the lanes, and selector.
    """
    m, n, k = 64, shape_n, 256 // BITS[a] * (1 if sparsity is None else 2)
    variant, chosen, metadata, load_metadata = "", "", np.zeros(128, np.uint32), ""
    if sparsity is not None:
        variant, chosen, metadata = ".sp", f", %e, {sparsity[1]}", sparsity[0]
        load_metadata = "ld.global.b32 %e, [%from];"
    count = n // 2 if d != "f16" else n // 4
    start = np.zeros((groups * 128, n // 2), np.uint32) if before is None else fragments(before)
    raw = start if d != "f16" else start[:, 0::2] | start[:, 1::2] << 16
    out = np.ascontiguousarray(raw)
    in_registers = not isinstance(steps[0][0], int)
    words = (
        np.ascontiguousarray(np.stack([s[0] for s in steps]).transpose(2, 0, 1))  # lane, step, register
        if in_registers
        else np.zeros(1, np.uint32)
    )
    vector = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    lines = [
        f"""
    .extern .shared .align 1024 .b8 room[];
    .visible .entry k(.param .b64 image, .param .b64 words, .param .b64 metadata, .param .b64 out) {{
    .reg .b32 %d<{count}>, %a<4>, %e, %lane, %i, %to; .reg .b64 %at, %from, %da, %db, %base; .reg .pred %p;
    mov.u64 %base, room; shr.u64 %base, %base, 4;  // room does not begin at 0 in machine code
    mov.u32 %lane, %tid.x; mov.u32 %i, %lane;
    ld.param.b64 %from, [image]; mad.wide.u32 %from, %lane, 16, %from;
    shl.b32 %to, %lane, 4; mov.b32 %a0, room; add.u32 %to, %to, %a0;
    COPY: ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%from]; st.shared.v4.b32 [%to], {{%a0, %a1, %a2, %a3}};
    add.u64 %from, %from, {2048 * groups}; add.u32 %to, %to, {2048 * groups}; add.u32 %i, %i, {128 * groups};
    setp.lt.u32 %p, %i, {ROOM // 16}; @%p bra COPY; bar.sync 0;
    ld.param.b64 %from, [metadata]; mad.wide.u32 %from, %lane, 4, %from; {load_metadata}
    ld.param.b64 %from, [words]; mad.wide.u32 %from, %lane, {16 * len(steps)}, %from;
    ld.param.b64 %at, [out]; mad.wide.u32 %at, %lane, {4 * count}, %at;
    setp.ne.u32 %p, {0 if before is None else 1}, 0;"""
    ]
    if before is not None:
        lines += [f"ld.global.b32 %d{i}, [%at+{4 * i}];" for i in range(count)]
    lines += ["wgmma.fence.sync.aligned;"]
    for step, (left, right) in enumerate(steps):
        if in_registers:
            lines.append(f"ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%from+{16 * step}];")
        else:
            lines.append(f"add.u64 %da, %base, {left};")
        lines.append(f"add.u64 %db, %base, {right};")
        first = "{%a0, %a1, %a2, %a3}" if in_registers else "%da"
        lines.append(
            f"wgmma.mma_async{variant}.sync.aligned.m{m}n{n}k{k}{modifier}.{d}.{a}.{b}"
            f"{'.and.popc' if a == 'b1' else ''} {vector}, {first}, %db{chosen}, %p{tail};"
        )
        lines.append("setp.eq.u32 %p, 0, 0;")
    lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
    lines += [f"st.global.b32 [%at+{4 * i}], %d{i};" for i in range(count)]
    lines += ["ret; }"]
    Device("\n".join(lines)).run(
        "k", image.bytes, words, metadata, out, block=(128 * groups, 1, 1), shared=ROOM, machine=machine
    )
    if d == "f16":
        out = np.stack([out & 0xFFFF, out >> 16], axis=2).reshape(len(out), -1)
    result = np.zeros((groups * 64, n), np.uint32)
    for lane in range(groups * 128):
        for i in range(n // 2):
            result[d_position(lane, i)] = out[lane, i]
    return result


def d_position(lane: int, i: int) -> tuple[int, int]:
    """(row, column) of element i of wgmma's accumulators in a lane of the warpgroup, as in the PTX ISA's
    figure: each warp has 16 rows and each lane two of them, with a pair from each 8 columns.
    """
    warp, lane = divmod(lane, 32)
    return 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


def fragments(codes: np.ndarray) -> np.ndarray:
    m, n = codes.shape
    return np.array([[codes[d_position(lane, i)] for i in range(n // 2)] for lane in range(m * 2)], np.uint32)


TYPES = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e5m2"),
    ("f16", "e5m2", "e4m3"),
    ("s32", "s8", "u8"),
    ("s32", "u8", "u8"),
]


def tail_of(a: str, in_registers: bool, scale: str = "1, 1", trans_a: int = 0, trans_b: int = 0) -> str:
    if a in ("s8", "u8", "b1"):
        return ""
    if a not in ("f16", "bf16"):
        return f", {scale}"
    return f", {scale}, {trans_b}" if in_registers else f", {scale}, {trans_a}, {trans_b}"


def wanted(
    d: str, a: str, b: str, codes_a: np.ndarray, codes_b: np.ndarray, before: np.ndarray | None
) -> np.ndarray:
    """Step by step, each result rounded to D's type. codes_a: m x k, codes_b: k x n."""
    step = 256 // BITS[a]
    numbers_a, numbers_b = decode(codes_a, a), decode(codes_b, b)
    total = np.zeros((len(codes_a), codes_b.shape[1])) if before is None else decode(before, d)
    for k in range(0, codes_a.shape[1], step):
        codes = encode(product(numbers_a[:, k : k + step], numbers_b[k : k + step], total), d)
        total = decode(codes, d)
    return codes


@pytest.mark.parametrize("types", [t for t in TYPES if t[0] != "s32"], ids=".".join)
def test_adds_as_hopper(types: tuple[str, str, str]) -> None:
    d, a, b = types
    k = 256 // BITS[a]
    rng = np.random.default_rng(8)
    codes_a, codes_b = random_codes(rng, a, (64, k)), random_codes(rng, b, (k, 8))
    before = random_codes(rng, d, (64, 8))
    image = Image()
    left = k_major(image, codes_a, a, A_AT, "none")
    right = k_major(image, np.ascontiguousarray(codes_b.T), b, B_AT, "none")
    steps = list(zip(left, right, strict=True))
    found = run(8, d, a, b, image, steps, tail_of(a, False), before, machine={"sm_version": 90})
    addition = tensor_cores.find(tensor_cores.WARPGROUP, a)
    wanted_codes = tensor_cores.product(addition, codes_a, codes_b, before, (d, a, b, d))
    np.testing.assert_array_equal(found, wanted_codes)


@pytest.mark.slow
@pytest.mark.parametrize("types", TYPES, ids=".".join)
@pytest.mark.parametrize("swizzle", WIDTHS)
def test_operands_along_k(types: tuple[str, str, str], swizzle: str) -> None:
    d, a, b = types
    n, k = 24, 2 * max(256 // BITS[a], WIDTHS[swizzle] * 128 // BITS[a])
    rng = np.random.default_rng(1)
    codes_a, codes_b = random_codes(rng, a, (64, k), 3), random_codes(rng, b, (k, n), 3)
    image = Image()
    left = k_major(image, codes_a, a, A_AT, swizzle)
    right = k_major(image, codes_b.T, b, B_AT, swizzle)
    found = run(n, d, a, b, image, list(zip(left, right, strict=True)), tail_of(a, False))
    np.testing.assert_array_equal(found, wanted(d, a, b, codes_a, codes_b, None))


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("swizzle", WIDTHS)
def test_transposed_operands(type_: str, swizzle: str) -> None:
    n, k = 128, 32
    rng = np.random.default_rng(2)
    codes_a, codes_b = random_codes(rng, type_, (64, k), 3), random_codes(rng, type_, (k, n), 3)
    image = Image()
    left = mn_major(image, codes_a.T, type_, A_AT, swizzle)
    right = mn_major(image, codes_b, type_, B_AT, swizzle)
    tail = tail_of(type_, False, trans_a=1, trans_b=1)
    found = run(n, "f32", type_, type_, image, list(zip(left, right, strict=True)), tail)
    np.testing.assert_array_equal(found, wanted("f32", type_, type_, codes_a, codes_b, None))


def a_registers(codes: np.ndarray, type_: str) -> np.ndarray:
    """Registers x 128 lanes, derived from the layout of mma.sync for the 16 rows of each warp."""
    k = codes.shape[1]
    position = partial(a_position, (16, 8, k), type_) if BITS[type_] < 32 else tf32_position
    parts = [pack(codes[16 * w : 16 * w + 16], type_, 16 * k // 32, position) for w in range(4)]
    return np.concatenate(parts, axis=1)


def tf32_position(lane: int, i: int) -> tuple[int, int]:
    return a_position((16, 8, 8), "tf32", lane, i)


@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_a_in_registers(types: tuple[str, str, str]) -> None:
    d, a, b = types
    step = 256 // BITS[a]
    n, k = 16, 2 * step
    rng = np.random.default_rng(3)
    codes_a, codes_b = random_codes(rng, a, (64, k), 3), random_codes(rng, b, (k, n), 3)
    before = random_codes(rng, d, (64, n), 3)
    image = Image()
    if step == 16:
        right, trans = mn_major(image, codes_b, b, B_AT, "32"), 1
    else:
        right, trans = k_major(image, codes_b.T, b, B_AT, "64" if step != 8 else "32"), 0
    left = [a_registers(codes_a[:, i : i + step], a) for i in range(0, k, step)]
    tail = tail_of(a, True, trans_b=trans)
    found = run(n, d, a, b, image, list(zip(left, right, strict=True)), tail, before)
    np.testing.assert_array_equal(found, wanted(d, a, b, codes_a, codes_b, before))


@pytest.mark.parametrize("scales", ["1, -1", "-1, 1", "-1, -1"])
def test_scales_negate(scales: str) -> None:
    rng = np.random.default_rng(4)
    codes_a, codes_b = random_codes(rng, "f16", (64, 16), 3), random_codes(rng, "f16", (16, 8), 3)
    before = random_codes(rng, "f32", (64, 8), 3)
    image = Image()
    left, right = k_major(image, codes_a, "f16", A_AT, "32"), k_major(image, codes_b.T, "f16", B_AT, "32")
    tail = tail_of("f16", False, scales)
    found = run(8, "f32", "f16", "f16", image, list(zip(left, right, strict=True)), tail, before)
    sign = 1 if scales.count("-") == 2 else -1
    numbers = product(sign * decode(codes_a, "f16"), decode(codes_b, "f16"), decode(before, "f32"))
    np.testing.assert_array_equal(found, encode(numbers, "f32"))


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 40, 64, 192, 256])
def test_sizes_and_two_warpgroups(n: int) -> None:
    rng = np.random.default_rng(n)
    codes_a, codes_b = random_codes(rng, "f16", (64, 64), 3), random_codes(rng, "f16", (64, n), 3)
    image = Image()
    left, right = k_major(image, codes_a, "f16", A_AT, "128"), k_major(image, codes_b.T, "f16", B_AT, "128")
    found = run(
        n, "f32", "f16", "f16", image, list(zip(left, right, strict=True)), tail_of("f16", False), groups=2
    )
    expected = wanted("f32", "f16", "f16", codes_a, codes_b, None)
    np.testing.assert_array_equal(found, np.concatenate([expected, expected]))


def sparse_matrix(
    rng: np.random.Generator, type_: str, k: int, selector: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Elements that are kept of a matrix of 64 x k, all of them, which are present, and metadata of the lanes
    (CUTLASS's ELayout_64x16, 64x32 and 64x64): two of four, or one of two for tf32.
    """
    kept, chunk = random_codes(rng, type_, (64, k // 2), 3), 2 if type_ == "tf32" else 4
    dense, present = np.zeros((64, k), np.uint32), np.zeros((64, k), bool)
    metadata = rng.integers(0, 1 << 32, 128, np.uint64)  # unused values do not matter
    for row in range(64):
        for i in range(k // chunk):
            first, second = sorted(rng.permutation(4)[:2])
            if chunk == 2:
                first, second = [(0, 1), (2, 3)][rng.integers(0, 2)]
                at = [2 * i + first // 2]
            else:
                at = [4 * i + first, 4 * i + second]
            dense[row, at], present[row, at] = kept[row, len(at) * i : len(at) * (i + 1)], True
            low = row % 16
            if BITS[type_] == 8:  # a lane has 32 columns of a row
                lane, bit = low % 8 * 4 + low // 8 + i // 8 * 2, i % 8 * 4
            else:  # a lane has four chunks of two rows
                lane, bit = low % 8 * 4 + 2 * selector + i // 4, low // 8 * 16 + i % 4 * 4
            lane += row // 16 * 32
            metadata[lane] &= np.uint64(0xFFFFFFFF ^ (15 << bit))
            metadata[lane] |= np.uint64((first | second << 2) << bit)
    return kept, dense, present, metadata.astype(np.uint32)


@pytest.mark.parametrize("types", TYPES, ids=".".join)
@pytest.mark.parametrize("a_at", ["shared", "swizzled", "registers"])
def test_sparse(types: tuple[str, str, str], a_at: str) -> None:
    d, a, b = types
    n, k = 24, 512 // BITS[a]
    rng = np.random.default_rng(9)
    for selector in range(1 if BITS[a] == 8 else 2):
        kept, dense, _, metadata = sparse_matrix(rng, a, k, selector)
        codes_b, before = random_codes(rng, b, (k, n), 3), random_codes(rng, d, (64, n), 3)
        image = Image()
        if a_at == "registers":
            left: int | np.ndarray = a_registers(kept, a)
        else:
            left = k_major(image, kept, a, A_AT, "none" if a_at == "shared" else "32")[0]
        right = k_major(image, np.ascontiguousarray(codes_b.T), b, B_AT, "64")[0]
        tail = tail_of(a, a_at == "registers")
        found = run(n, d, a, b, image, [(left, right)], tail, before, sparsity=(metadata, selector))
        exact = product(decode(dense, a), decode(codes_b, b), decode(before, d))
        np.testing.assert_array_equal(found, encode(exact, d))


def test_sparse_transposed_and_negative() -> None:
    rng = np.random.default_rng(10)
    kept, dense, _, metadata = sparse_matrix(rng, "f16", 32, 1)
    codes_b = random_codes(rng, "f16", (32, 64), 3)
    image = Image()
    left = mn_major(image, np.ascontiguousarray(kept.T), "f16", A_AT, "64")[0]
    right = mn_major(image, codes_b, "f16", B_AT, "128", 32)[0]
    tail = tail_of("f16", False, "1, -1", 1, 1)
    found = run(64, "f32", "f16", "f16", image, [(left, right)], tail, sparsity=(metadata, 1))
    exact = product(-decode(dense, "f16"), decode(codes_b, "f16"), np.zeros((64, 64)))
    np.testing.assert_array_equal(found, encode(exact, "f32"))


@pytest.mark.parametrize("types", [t for t in TYPES if t[0] != "s32"], ids=".".join)
def test_sparse_adds_what_is_there(types: tuple[str, str, str]) -> None:
    """As many products in a sum as of a dense A."""
    d, a, b = types
    k = 512 // BITS[a]
    rng = np.random.default_rng(11)
    kept, dense, present, metadata = sparse_matrix(rng, a, k, 0)
    codes_b, before = random_codes(rng, b, (k, 8)), random_codes(rng, d, (64, 8))
    image = Image()
    left = k_major(image, kept, a, A_AT, "none")[0]
    right = k_major(image, np.ascontiguousarray(codes_b.T), b, B_AT, "none")[0]
    machine = {"sm_version": 90}
    tail = tail_of(a, False, "1, -1")
    found = run(8, d, a, b, image, [(left, right)], tail, before, machine=machine, sparsity=(metadata, 0))
    negative = dense ^ np.uint32(1 << (31 if a == "tf32" else BITS[a] - 1))
    addition = tensor_cores.find(tensor_cores.WARPGROUP, a)
    wanted_codes = tensor_cores.product(addition, negative, codes_b, before, (d, a, b, d), present=present)
    np.testing.assert_array_equal(found, wanted_codes)


@pytest.mark.parametrize("a_at", ["shared", "swizzled", "registers"])
def test_bits(a_at: str) -> None:
    rng = np.random.default_rng(12)
    n, steps = 48, 2
    words_a, words_b = (rng.integers(0, 1 << 32, (rows, 8 * steps), np.uint64) for rows in (64, n))
    before = rng.integers(0, 1 << 32, (64, n), np.uint64).astype(np.uint32)
    image = Image()
    swizzle = "none" if a_at == "shared" else "64"
    right = k_major(image, words_b, "f32", B_AT, swizzle)
    left: list[int] | list[np.ndarray]
    if a_at == "registers":
        codes = words_a.astype(np.uint32)
        left = [a_registers(codes[:, 8 * i : 8 * i + 8], "tf32") for i in range(steps)]
    else:
        left = k_major(image, words_a, "f32", A_AT, swizzle)
    found = run(n, "s32", "b1", "b1", image, list(zip(left, right, strict=True)), "", before)
    common = (words_a[:, None] & words_b[None]).astype(np.uint32)
    count = np.unpackbits(common.view(np.uint8), axis=-1).sum(axis=-1)
    np.testing.assert_array_equal(found, before + count.astype(np.uint32))
    fresh = run(n, "s32", "b1", "b1", image, list(zip(left, right, strict=True)), "")
    np.testing.assert_array_equal(fresh, count)


def test_integers_saturate() -> None:
    rng = np.random.default_rng(6)
    codes_a, codes_b = random_codes(rng, "s8", (64, 32)), random_codes(rng, "s8", (32, 32))
    before = np.where(np.arange(32) % 2, 0x7FFFFFFF, 0x80000000) * np.ones((64, 1), np.uint32)
    image = Image()
    steps = list(
        zip(
            k_major(image, codes_a, "s8", A_AT, "32"),
            k_major(image, codes_b.T, "s8", B_AT, "32"),
            strict=True,
        )
    )
    exact = product(decode(codes_a, "s8"), decode(codes_b, "s8"), decode(before, "s32"))
    for modifier in ("", ".satfinite"):
        found = run(32, "s32", "s8", "s8", image, steps, "", before.astype(np.uint32), modifier)
        np.testing.assert_array_equal(found, encode(exact, "s32", saturate=bool(modifier)))


def test_a_pattern_that_begins_in_between_has_a_base_offset() -> None:
    """The rows of a 128-byte pattern that starts at line 3 of a 1024-byte block: base offset 3."""
    rng = np.random.default_rng(7)
    codes_a, codes_b = random_codes(rng, "f16", (64, 64), 3), random_codes(rng, "f16", (64, 8), 3)
    image = Image()
    k_major(image, codes_a, "f16", A_AT + 3 * 128, "128")
    left = [descriptor(A_AT + 3 * 128 + k, 16, 1024, "128", 3) for k in range(0, 128, 32)]
    right = k_major(image, codes_b.T, "f16", B_AT, "128")
    found = run(8, "f32", "f16", "f16", image, list(zip(left, right, strict=True)), tail_of("f16", False))
    np.testing.assert_array_equal(found, wanted("f32", "f16", "f16", codes_a, codes_b, None))


def test_after_the_wait_one_warp_may_give_the_operands_back() -> None:
    """Warps 5 to 7 are late; warp 4 notifies warp 0 after its own wait, which overwrites A immediately."""
    late = "setp.lt.u32 %p, %lane, 160; @%p bra READY; mov.u32 %i, 0;"
    late += "LATE: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 30000; @%p bra LATE; READY:"
    device = Device(
        f"""
    .extern .shared .align 1024 .b8 room[];
    .visible .entry k(.param .b64 out) {{
    .reg .b32 %d<4>, %lane, %i, %to, %flag; .reg .b64 %at, %da, %db; .reg .pred %p;
    mov.u64 %at, room; shr.u64 %at, %at, 4;
    add.u64 %da, %at, {descriptor(0, 128, 256, "none")};
    add.u64 %db, %at, {descriptor(2048, 128, 256, "none")};
    mov.u32 %lane, %tid.x; shl.b32 %to, %lane, 4; mov.b32 %i, room; add.u32 %to, %to, %i;
    // A and B: ones. The flag lies behind them.
    mov.b32 %i, 0x3C003C00; st.shared.v4.b32 [%to], {{%i, %i, %i, %i}}; mov.b32 %flag, room;
    mov.b32 %i, 0; st.shared.b32 [%flag+4096], %i; bar.sync 0;
    setp.lt.u32 %p, %lane, 128; @%p bra OTHERS;
    {late}
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}},
      %da, %db, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    setp.eq.u32 %p, %lane, 128; mov.b32 %i, 1; @%p st.volatile.shared.b32 [%flag+4096], %i;
    ld.param.b64 %at, [out]; mad.wide.u32 %at, %lane, 16, %at;
    st.global.v4.b32 [%at+-2048], {{%d0, %d1, %d2, %d3}};
    ret;
    OTHERS: setp.ge.u32 %p, %lane, 32; @%p ret;
    SPIN: ld.volatile.shared.b32 %i, [%flag+4096]; setp.eq.u32 %p, %i, 0; @%p bra SPIN;
    mov.b32 %i, 0; mov.b32 %d0, 0;
    CLEAR: st.shared.v4.b32 [%to], {{%d0, %d0, %d0, %d0}}; add.u32 %to, %to, 512; add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 8; @%p bra CLEAR;
    ret; }}"""
    )
    out = np.zeros((128, 4), np.float32)
    device.run("k", out, block=(256, 1, 1), shared=4096 + 16)
    assert (out == 16).all()


def test_a_warp_that_never_waits_is_a_fault() -> None:
    text = """.visible .entry k() { .reg .b32 %lane; .reg .pred %p; mov.u32 %lane, %tid.x;
    setp.lt.u32 %p, %lane, 96; @%p bra WAIT; ret; WAIT: wgmma.wait_group.sync.aligned 0; ret; }"""
    with pytest.raises(_engine.functional.ProgramFault, match="divergent barrier"):
        Device(text).run("k", block=(128, 1, 1))


def test_a_descriptor_beyond_shared_memory_is_a_fault() -> None:
    image = Image()
    bad = descriptor(ROOM - 128, 128, 256, "none")
    with pytest.raises(_engine.functional.ProgramFault, match="matrix descriptor"):
        run(8, "f32", "f16", "f16", image, [(0, bad)], tail_of("f16", False))


@pytest.mark.parametrize(
    ("n", "d", "a", "b", "tail"),
    [
        (12, "f32", "f16", "f16", ", 1, 1, 0, 0"),
        (40, "s32", "s8", "s8", ""),
        (8, "f32", "f16", "f16", ", 1, 2, 0, 0"),
        (8, "f32", "f16", "f16", ", 1, 1, 0"),
        (8, "f32", "e4m3", "e4m3", ", 1, 1, 0, 0"),
        (8, "f16", "bf16", "bf16", ", 1, 1, 0, 0"),
        (40, "s32", "b1", "b1", ""),
        (8, "s32", "b1", "b1", ", 1, 1"),
    ],
)
def test_what_does_not_exist_is_refused(n: int, d: str, a: str, b: str, tail: str) -> None:
    with pytest.raises(PtxError, match=r"wgmma\.mma_async.*: "):
        run(n, d, a, b, Image(), [(0, 0)], tail)


@pytest.mark.parametrize(("a", "selector"), [("f16", 2), ("tf32", -1), ("e4m3", 1), ("b1", 0)])
def test_sparsity_that_does_not_exist_is_refused(a: str, selector: int) -> None:
    d = "s32" if a == "b1" else "f32"
    with pytest.raises(PtxError, match=r"wgmma\.mma_async\.sp.*: "):
        run(8, d, a, a, Image(), [(0, 0)], tail_of(a, False), sparsity=(np.zeros(128, np.uint32), selector))
