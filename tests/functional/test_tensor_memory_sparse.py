"""tcgen05 with a sparse A, with K = 96, and with shifted rows: against NumPy, a slow model of a B200's sums,
and what is known of the metadata's places.
"""

from __future__ import annotations

import numpy as np
import pytest

from simt import _engine
from simt.cuda.ptxas import can_assemble
from simt.errors import CompileError, PtxError
from simt.sass.disassembler import is_installed
from support import tensor_memory as tm
from support.matrices import decode, encode, product, random_codes
from support.shared_matrices import Image, descriptor
from support.tensor_operands import A_AT, B_AT, ROOM, VERSION, k_rows, lanes_of, numbers, some_codes, words

ProgramFault = _engine.functional.ProgramFault
META = 256  # the column where the metadata begin
PAIRS = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE])  # two of four


@pytest.fixture(params=["ptx", "sass"], autouse=True)
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the kernels of a test run."""
    if request.param == "sass" and not (can_assemble("sm_100") and is_installed()):
        pytest.skip("ptxas or nvdisasm is not installed: pip install 'simt[cuda]'")
    monkeypatch.setattr(tm, "code", request.param)
    return str(request.param)


def chunk_of(type_: str, nibbles: bool = False) -> int:
    return 2 if type_ == "tf32" else 8 if nibbles else 4


def draw_selectors(rng: np.random.Generator, m: int, k: int, chunk: int) -> np.ndarray:
    """Four bits for each chunk of each row."""
    return rng.choice(np.array([0x4, 0xE]) if chunk == 2 else PAIRS, (m, k // chunk))


def kept_of(selectors: np.ndarray, chunk: int) -> np.ndarray:
    """Places of the elements that a row stores."""
    first, second = selectors & 3, selectors >> 2
    if chunk == 2:
        places = (first // 2)[..., None]
    elif chunk == 4:
        places = np.stack([first, second], -1)
    else:
        places = np.stack([2 * first, 2 * first + 1, 2 * second, 2 * second + 1], -1)
    start = np.arange(selectors.shape[1])[None, :, None] * chunk
    return (places + start).reshape(len(selectors), -1)


def metadata_words(selectors: np.ndarray, wide: bool) -> np.ndarray:
    """Words of lanes, as JAX formats metadata (format_tcgen05_sparse_metadata): of elements with 16 bits and
    more, lanes of 16 have first the first halves of rows, then the second ones; rows 8 apart share words.
    """
    m, chunks = selectors.shape
    twos = np.stack([selectors & 3, selectors >> 2], -1).reshape(m, 2 * chunks)
    if wide:
        twos = twos.reshape(m // 16, 2, 8, 2, 8).transpose(0, 3, 2, 1, 4).reshape(m, 16)
    bits = twos.reshape(m, -1, 16).astype(np.uint64) << (2 * np.arange(16, dtype=np.uint64))
    return bits.sum(-1).astype(np.uint32)


def put_metadata(memory: np.ndarray, selectors: np.ndarray, wide: bool, lanes: np.ndarray, at: int) -> None:
    """lanes: of rows of D, in each group of columns that has lanes of its own."""
    data = metadata_words(selectors, wide)
    for own in lanes:
        memory[own, at : at + data.shape[1]] = data


def multiply(
    kept_a: np.ndarray,
    codes_b: np.ndarray,
    selectors: np.ndarray,
    before: np.ndarray,
    types: tuple[str, str, str],
    machine: dict[str, int] = tm.EXACT,
    ws: bool = False,
    selector: int = 0,
    in_tensor_memory: bool = False,
) -> np.ndarray:
    d, a, b = types
    m, n = len(kept_a), codes_b.shape[1]
    image = Image(ROOM)
    left, right = k_rows(image, kept_a, a, A_AT), k_rows(image, codes_b.T, b, B_AT)
    word = tm.instruction(m, n, a, b, d) | 4 | selector
    place = lanes_of(m, n, ws=ws)
    memory = words((128, 320), 6)
    memory[place[..., 1], place[..., 2]] = before
    lanes = np.unique(place[..., 1], axis=1).T  # of each group, by row
    put_metadata(memory, selectors, a in ("f16", "bf16", "tf32"), lanes, META + selector)
    source = "%v0"
    if in_tensor_memory:
        source = "[%t+288]"
        size = 4 if a == "tf32" else 2 if a in ("f16", "bf16") else 1
        raw = np.ascontiguousarray(kept_a.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[size]))
        for own in lanes:
            memory[own, 288:296] = raw.view(np.uint32)
    form = f"{'.ws' if ws else ''}.sp.cta_group::1.kind::{tm.KINDS[a][0]}"
    body = tm.here(2) + f"cvt.u32.u64 %r0, %v2; tcgen05.mma{form} [%t], {source}, %v1, [%t+{META}], %r0, %q;"
    found = tm.run(body, image, memory, [left, right, word], machine=machine)
    return found[place[..., 1], place[..., 2]]


def full(kept: np.ndarray, places: np.ndarray, k: int) -> np.ndarray:
    """A with zeros, as numbers or codes."""
    out = np.zeros((len(kept), k), kept.dtype)
    np.put_along_axis(out, places, kept, 1)
    return out


def wanted(
    kept: np.ndarray, places: np.ndarray, b: np.ndarray, before: np.ndarray, types: tuple[str, str, str]
) -> np.ndarray:
    d, ta, tb = types
    a = full(numbers(kept, ta), places, len(b))
    return encode(product(a, numbers(b, tb), decode(before, d)), d)


TYPES = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e5m2"),
    ("f32", "e2m3", "e3m2"),
    ("f16", "e2m1", "e4m3"),
    ("s32", "s8", "u8"),
]


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_kinds(types: tuple[str, str, str], m: int) -> None:
    d, a, b = types
    k, n, chunk = 2 * tm.step_of(a), 16, chunk_of(a)
    rng = np.random.default_rng(m)
    selectors = draw_selectors(rng, m, k, chunk)
    kept, codes_b = some_codes(rng, a, (m, k // 2)), some_codes(rng, b, (k, n))
    before = random_codes(rng, d, (m, n), 3)
    np.testing.assert_array_equal(
        multiply(kept, codes_b, selectors, before, types),
        wanted(kept, kept_of(selectors, chunk), codes_b, before, types),
    )


@pytest.mark.parametrize("type_", ["f16", "tf32"])
def test_sparsity_selector(type_: str) -> None:
    """The metadata's column, of two that begin at the address."""
    k, chunk, types = 2 * tm.step_of(type_), chunk_of(type_), ("f32", type_, type_)
    rng = np.random.default_rng(3)
    selectors = draw_selectors(rng, 128, k, chunk)
    kept, codes_b = some_codes(rng, type_, (128, k // 2)), some_codes(rng, type_, (k, 16))
    before = np.zeros((128, 16), np.uint32)
    np.testing.assert_array_equal(
        multiply(kept, codes_b, selectors, before, types, selector=1),
        wanted(kept, kept_of(selectors, chunk), codes_b, before, types),
    )


@pytest.mark.parametrize("type_", ["bf16", "s8"])
@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary_products(m: int, type_: str) -> None:
    """Where groups of lanes hold D's columns, each has the metadata."""
    k, d = 2 * tm.step_of(type_), "s32" if type_ == "s8" else "f32"
    rng = np.random.default_rng(m)
    selectors = draw_selectors(rng, m, k, 4)
    kept, codes_b = some_codes(rng, type_, (m, k // 2)), some_codes(rng, type_, (k, 64))
    before = random_codes(rng, d, (m, 64), 3)
    types = (d, type_, type_)
    np.testing.assert_array_equal(
        multiply(kept, codes_b, selectors, before, types, ws=True),
        wanted(kept, kept_of(selectors, 4), codes_b, before, types),
    )


@pytest.mark.parametrize("type_", ["f16", "tf32", "s8"])
def test_a_in_tensor_memory(type_: str) -> None:
    k, d, chunk = 2 * tm.step_of(type_), "s32" if type_ == "s8" else "f32", chunk_of(type_)
    rng = np.random.default_rng(8)
    selectors = draw_selectors(rng, 64, k, chunk)
    kept, codes_b = some_codes(rng, type_, (64, k // 2)), some_codes(rng, type_, (k, 16))
    before, types = np.zeros((64, 16), np.uint32), (d, type_, type_)
    np.testing.assert_array_equal(
        multiply(kept, codes_b, selectors, before, types, in_tensor_memory=True),
        wanted(kept, kept_of(selectors, chunk), codes_b, before, types),
    )


@pytest.mark.parametrize("m", [128, 256])
def test_two_ctas(m: int) -> None:
    """With M = 128, D has half the lanes of each CTA, as with M = 64 and one CTA."""
    n, k = 64, 32
    rng = np.random.default_rng(14)
    selectors = draw_selectors(rng, m, k, 4)
    kept, codes_b = random_codes(rng, "f16", (m, k // 2), 3), random_codes(rng, "f16", (k, n), 3)
    before, half = random_codes(rng, "f32", (m, n), 3), m // 2
    images = [Image(ROOM), Image(ROOM)]
    for rank, image in enumerate(images):
        left = k_rows(image, kept[rank * half : (rank + 1) * half], "f16", A_AT)
        right = k_rows(image, codes_b[:, rank * n // 2 : (rank + 1) * n // 2].T, "f16", B_AT)
    own = lanes_of(half, n)
    memory = words((2, 128, 288))
    for rank in range(2):
        rows = slice(rank * half, (rank + 1) * half)
        memory[rank, own[..., 1], own[..., 2]] = before[rows]
        put_metadata(memory[rank], selectors[rows], True, own[:, :1, 1].T, META)
    word = tm.instruction(m, n, "f16", "f16") | 4
    body = tm.here(2) + (
        f"cvt.u32.u64 %r0, %v2; tcgen05.mma.sp.cta_group::2.kind::f16 [%t], %v0, %v1, [%t+{META}], %r0, %q;"
    )
    out = tm.run(body, images[0], memory, [left, right, word], group=2, images=images)
    found = np.concatenate([out[rank][own[..., 1], own[..., 2]] for rank in range(2)])
    expected = wanted(kept, kept_of(selectors, 4), codes_b, before, ("f32", "f16", "f16"))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("types", [t for t in TYPES if t[0] != "s32"], ids=".".join)
def test_adds_as_a_b200(types: tuple[str, str, str]) -> None:
    """What A does not store takes no part, though B is infinite or no number there."""
    d, a, b = types
    k, chunk = 2 * tm.step_of(a), chunk_of(a)
    rng = np.random.default_rng(15)
    selectors = np.tile(draw_selectors(rng, 1, k, chunk), (64, 1))
    places = kept_of(selectors, chunk)
    kept, codes_b = some_codes(rng, a, (64, k // 2), 8), some_codes(rng, b, (k, 8), 8)
    special = {"f16": 0x7C00, "bf16": 0x7F80, "tf32": 0x7F800000, "e4m3": 0x7F, "e5m2": 0x7C}.get(b)
    if special is not None:
        codes_b[[i for i in range(k) if i not in places[0]], ::2] = special
    before = random_codes(rng, d, (64, 8), 8)
    found = multiply(kept, codes_b, selectors, before, types, machine=tm.B200)
    expected = [
        [tm.dot(kept[i], codes_b[places[i], j], int(before[i, j]), (a, b), d) for j in range(8)]
        for i in range(64)
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.uint32))


# --- scale factors ----------------------------------------------------------------------------------------


def put_scales(memory: np.ndarray, factors: np.ndarray, first: int, at: int) -> None:
    """One byte for each, in four lanes: those of 32 rows in a column. What does not fit in the word goes on
    in one that is four columns further for each 128 rows.
    """
    for line, row in enumerate(factors):
        for k, value in enumerate(row):
            word, byte = divmod(first + k, 4)
            column = at + word * 4 * -(-len(factors) // 128) + line // 32
            for lane in range(line % 32, 128, 32):
                kept = int(memory[lane, column]) & ~(0xFF << 8 * byte)
                memory[lane, column] = kept | int(value) << 8 * byte


def nibble_rows(image: Image, codes: np.ndarray, start: int) -> int:
    image.put_bytes((codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8), start, "none")
    return start >> 4 | len(codes) << 16 | 128 >> 4 << 32 | VERSION


def scaled(
    form: str,
    word: int,
    operands: tuple[int, int, Image],
    factors: tuple[np.ndarray, np.ndarray],
    ids: tuple[int, int],
    before: np.ndarray,
    selectors: np.ndarray | None = None,
    target: str = "100a",
) -> np.ndarray:
    left, right, image = operands
    n = before.shape[1]
    memory = words((128, 352), 7)
    memory[:, :n] = before
    put_scales(memory, factors[0], ids[0], 200)
    put_scales(memory, factors[1], ids[1], 224)
    sparse = ""
    if selectors is not None:
        put_metadata(memory, selectors, False, np.arange(128)[None], META)
        sparse = f"[%t+{META}], "
    body = tm.here(2) + (
        f"cvt.u32.u64 %r0, %v2; tcgen05.mma{form} [%t], %v0, %v1, {sparse}%r0, [%t+200], [%t+224], %q;"
    )
    machine = {"sm_version": 103 if target == "103a" else 100}
    return tm.run(body, image, memory, [left, right, word], machine=machine, target=target)[:, :n]


SCALED = [
    ("mxf8f6f4", "1X", True, ("e4m3", "e5m2"), (1, 2)),
    ("mxf8f6f4", "1X", True, ("e2m1", "e3m2"), (3, 0)),
    ("mxf4", "2X", True, ("e2m1", "e2m1"), (2, 0)),
    ("mxf4nvf4", "2X", True, ("e2m1", "e2m1"), (0, 2)),
    ("mxf4nvf4", "4X", True, ("e2m1", "e2m1"), (0, 0)),
    ("mxf4nvf4", "4X", False, ("e2m1", "e2m1"), (0, 0)),
]


def addends(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Zero, small, and larger than the products."""
    values = rng.standard_normal(shape) * 2.0 ** rng.choice([-40, 0, 12, 30], shape)
    return np.where(rng.random(shape) < 0.2, 0, values).astype(np.float32).view(np.uint32)


@pytest.mark.parametrize(("kind", "vector", "exponents_only", "types", "ids"), SCALED)
@pytest.mark.parametrize("selector", [0, 3])
def test_block_scaled_kinds(
    kind: str, vector: str, exponents_only: bool, types: tuple[str, str], ids: tuple[int, int], selector: int
) -> None:
    """Groups are of what A stores; with ue4m3, of all elements, and twice as long. A sparsity selector does
    not count.
    """
    nibbles, count, n = kind != "mxf8f6f4", int(vector[0]), 40
    k, chunk = 128 if nibbles else 64, chunk_of("", nibbles)
    rng = np.random.default_rng(16)
    selectors = draw_selectors(rng, 128, k, chunk)
    places = kept_of(selectors, chunk)
    kept, b = some_codes(rng, types[0], (128, k // 2), 1), some_codes(rng, types[1], (k, n), 1)
    low, high = (112, 140) if exponents_only else (0x20, 0x58)
    factors = rng.integers(low, high, (128, count)), rng.integers(low, high, (n, count))
    before = addends(rng, (128, n))
    image = Image(ROOM)
    if nibbles:
        left, right = nibble_rows(image, kept, A_AT), nibble_rows(image, b.T, B_AT)
    else:
        left, right = k_rows(image, kept, types[0], A_AT), k_rows(image, b.T, types[1], B_AT)
    word = tm.scaled_instruction(128, n, *types, nibbles, exponents_only, ids, sparse=True) | selector
    form = f".sp.cta_group::1.kind::{kind}.block_scale.scale_vec::{vector}"
    found = scaled(form, word, (left, right, image), factors, ids, before, selectors)
    for i in range(0, 128, 9):
        for j in range(n):
            if exponents_only:
                row, column, group = kept[i], b[places[i], j], 16
            else:
                row, column, group = full(kept[i : i + 1], places[i : i + 1], k)[0], b[:, j], 32
            expected = tm.scaled_dot(
                row,
                column,
                int(before[i, j]),
                types,
                (factors[0][i], factors[1][j]),
                exponents_only,
                not nibbles,
                group,
            )
            assert found[i, j] == expected, (i, j)


@pytest.mark.parametrize("n", [48, 144])
@pytest.mark.parametrize(
    ("kind", "block", "exponents_only", "ids"),
    [
        ("mxf4", 32, True, (0, 1)),
        ("mxf4", 32, True, (2, 3)),
        ("mxf4nvf4", 32, True, (3, 2)),
        ("mxf4nvf4", 16, True, (2, 0)),
        ("mxf4nvf4", 16, False, (0, 2)),
    ],
)
def test_96_elements(kind: str, block: int, exponents_only: bool, ids: tuple[int, int], n: int) -> None:
    k = 96
    rng = np.random.default_rng(block)
    a, b = rng.integers(0, 16, (128, k)), rng.integers(0, 16, (n, k))
    low, high = (112, 140) if exponents_only else (0x20, 0x58)
    factors = rng.integers(low, high, (128, k // block)), rng.integers(low, high, (n, k // block))
    before = addends(rng, (128, n))
    image = Image(ROOM)
    operands = nibble_rows(image, a, A_AT), nibble_rows(image, b, B_AT), image
    word = tm.scaled_instruction(128, n, "e2m1", "e2m1", True, exponents_only, ids, wide=True)
    form = f".cta_group::1.kind::{kind}.block_scale.block{block}"
    found = scaled(form, word, operands, factors, ids, before, target="103a")
    for i in range(0, 128, 9):
        for j in range(n):
            scales = factors[0][i], factors[1][j]
            types = ("e2m1", "e2m1")
            expected = tm.scaled_dot(a[i], b[j], int(before[i, j]), types, scales, exponents_only, False)
            assert found[i, j] == expected, (i, j)


@pytest.mark.parametrize("first", [0, 5, 6, 7])
def test_rows_of_48_bytes_across_a_line(first: int) -> None:
    """What does not fit in a swizzled line of 128 bytes is in a second buffer, at an absolute address."""
    n, k = 16, 96
    rng = np.random.default_rng(first)
    a, b = rng.integers(0, 16, (128, k)), rng.integers(0, 16, (n, k))
    image = Image(ROOM)

    def place(codes: np.ndarray, start: int, second: int) -> int:
        packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
        raw = np.full((len(codes), 256), 0xA5, np.uint8)
        raw[:, 16 * first : 16 * first + 48] = packed
        image.put_bytes(raw[:, :128], start, "128")
        image.put_bytes(raw[:, 128:], second, "128")
        return descriptor(start + 16 * first, second, 1024, "128") | VERSION | 1 << 52

    left, right = place(a, 0, 16384), place(b, 32768, 40960)
    ones = np.full((128, 3), 127), np.full((n, 3), 127)
    word = tm.scaled_instruction(128, n, "e2m1", "e2m1", True, True, wide=True)
    # Absolute addresses, too, are from where the kernel's shared memory begins.
    memory_start = "shl.b64 %at, %from, 16; add.u64 %v0, %v0, %at; add.u64 %v1, %v1, %at;"
    form = ".cta_group::1.kind::mxf4.block_scale.block32"
    memory = words((128, 352), 7)
    for factors, at in zip(ones, (200, 224), strict=True):
        put_scales(memory, factors, 0, at)
    body = tm.here(2) + memory_start + "setp.ne.u32 %q, 0, 0;"
    body += f"cvt.u32.u64 %r0, %v2; tcgen05.mma{form} [%t], %v0, %v1, %r0, [%t+200], [%t+224], %q;"
    machine = {"sm_version": 103}
    out = tm.run(body, image, memory, [left, right, word], machine=machine, target="103a")[:, :n]
    expected = numbers(a, "e2m1") @ numbers(b, "e2m1").T
    np.testing.assert_array_equal(out.view(np.float32), expected)


# --- shifts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", [0, 64])
def test_shift(lane: int) -> None:
    """Of 32 lanes, each but the last takes 32 bytes of the next one."""
    before = words((128, 64), 2)
    found = tm.run(f"tcgen05.shift.cta_group::1.down [%t+{(lane << 16) + 8}];", Image(2048), before)
    expected = before.copy()
    expected[lane : lane + 31, 8:16] = before[lane + 1 : lane + 32, 8:16]
    np.testing.assert_array_equal(found, expected)


def test_shift_of_two_ctas() -> None:
    before = words((2, 128, 32), 3)
    found = tm.run("tcgen05.shift.cta_group::2.down [%t];", Image(2048), before, group=2)
    expected = before.copy()
    expected[:, :31, :8] = before[:, 1:32, :8]
    np.testing.assert_array_equal(found, expected)


def test_rows_that_a_shift_leaves_are_copied() -> None:
    """tcgen05.cp.4x256b to the last lane of each 32."""
    raw = np.random.default_rng(4).integers(0, 256, (8, 32), np.uint8)
    image = Image(ROOM)
    image.put_bytes(raw, 0, "none")
    place = 8 * 16 >> 4 << 16 | 128 >> 4 << 32 | VERSION
    before = words((128, 32), 5)
    body = tm.here(0) + f"tcgen05.cp.cta_group::1.4x256b [%t+{(31 << 16) + 4}], %v0;"
    found = tm.run(body, image, before, [place])
    expected = before.copy()
    expected[31::32, 4:12] = raw[:4].view(np.uint32)
    np.testing.assert_array_equal(found, expected)


def test_a_is_shifted_while_it_is_read() -> None:
    rng = np.random.default_rng(13)
    codes_a, codes_b = random_codes(rng, "f16", (128, 16), 3), random_codes(rng, "f16", (16, 16), 3)
    image = Image(ROOM)
    right = k_rows(image, codes_b.T, "f16", B_AT)
    memory = np.zeros((128, 32), np.uint32)
    memory[:, 16:24] = np.ascontiguousarray(codes_a.astype(np.uint16)).view(np.uint32)
    body = tm.here(2) + (
        "cvt.u32.u64 %r0, %v2; tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%t+16], %v1, %r0, %q;"
    )
    out = tm.run(body, image, memory, [0, right, tm.instruction(128, 16, "f16", "f16")])
    rows = [i if i % 32 == 31 else i + 1 for i in range(128)]
    expected = encode(
        product(decode(codes_a[rows], "f16"), decode(codes_b, "f16"), np.zeros((128, 16))), "f32"
    )
    np.testing.assert_array_equal(out[:, :16], expected)


# --- what is refused --------------------------------------------------------------------------------------

SPARSE = "tcgen05.mma.sp.cta_group::1.kind::{} [%t], %v0, %v0, [%t+{}], %r0, %q;"
DENSE = "tcgen05.mma.cta_group::1.kind::{} [%t], %v0, %v0, %r0, %q;"
MX = "tcgen05.mma{}.cta_group::1.kind::mxf4.block_scale.block32 [%t], %v0, %v0,{} %r0, [%t], [%t], %q;"
F16 = tm.instruction(128, 16, "f16", "f16")
MXF4 = tm.scaled_instruction(128, 16, "e2m1", "e2m1", True, True)


@pytest.mark.parametrize(
    ("body", "word", "message"),
    [
        (SPARSE.format("f16", 2), F16 | 4 | 2, "the sparsity selector 2; .* have 0 and 1"),
        (
            SPARSE.format("tf32", 2),
            tm.instruction(128, 16, "tf32", "tf32") | 4 | 3,
            "the sparsity selector 3",
        ),
        (
            SPARSE.format("f8f6f4", 2),
            tm.instruction(128, 16, "e4m3", "e4m3") | 4 | 1,
            "the sparsity selector 1; .* the others 0",
        ),
        (
            SPARSE.format("i8", 2),
            tm.instruction(128, 16, "s8", "s8", "s32") | 4 | 1,
            "the sparsity selector 1",
        ),
        (SPARSE.format("f16", 1), F16 | 4, "begin at column 1, expected an even one"),
        (MX.format("", ""), MXF4 | 1 << 31, "K = 96 .* sm_103 has and sm_100 has not"),
        (MX.format(".sp", " [%t],"), MXF4 | 1 << 31 | 4, "with a sparse matrix A"),
        ("tcgen05.shift.cta_group::1.down [%t+1048576];", 0, "at lane 16, expected 0, 32, 64 or 96"),
        ("tcgen05.cp.cta_group::1.4x256b [%t+2097152], %v0;", 0, "to lane 32, expected lane 0 to 31"),
        (
            "tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%t], %v0, %r0, %q;",
            tm.instruction(64, 16, "f16", "f16"),
            "M = 128 or 256",
        ),
    ],
)
def test_faults(body: str, word: int, message: str) -> None:
    body = tm.here(0) + "cvt.u32.u64 %r0, %v1; " + body
    with pytest.raises(ProgramFault, match=message):
        tm.run(body, Image(ROOM), words((128, 64)), [0, word])


@pytest.mark.parametrize(
    ("body", "word", "message"),
    [
        (SPARSE.format("f16", 2), F16, r"a dense matrix A, but the instruction \.sp"),
        (DENSE.format("f16"), F16 | 4, r"a sparse matrix A, which needs \.sp"),
    ],
)
def test_sparse_and_dense_contradict_each_other(body: str, word: int, message: str, code: str) -> None:
    if code == "sass":
        pytest.skip("in machine code, the instruction descriptor decides")
    test_faults(body, word, message)


def test_metadata_are_an_operand() -> None:
    body = "tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %v0, %v0, %r0, %q;"
    with pytest.raises((PtxError, CompileError)):
        tm.run(body, Image(ROOM), words((128, 32)), [0])
