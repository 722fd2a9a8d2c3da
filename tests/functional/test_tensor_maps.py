"""Copies by tensor maps against NumPy: ranks, edges, swizzles, strides, im2col, reductions, multicast."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from support.ptx import Device

# CUtensorMapDataType
TYPES: dict[Any, int] = {
    np.uint8: 0,
    np.uint16: 1,
    np.uint32: 2,
    np.int32: 3,
    np.uint64: 4,
    np.int64: 5,
    np.float16: 6,
    np.float32: 7,
    np.float64: 8,
    ml_dtypes.bfloat16: 9,
}
SPAN = {0: 0, 1: 32, 2: 64, 3: 128}
ATOM_32, ATOM_32_FLIPPED, ATOM_64 = 4, 5, 6  # swizzles of 128 bytes that keep more than 16 together
PACKED_4, PADDED_4, PADDED_6 = 13, 14, 15


def encode(address: int, array: np.ndarray, box: tuple[int, ...], **more: Any) -> np.void:
    """The map of a C-contiguous or strided array; `box` in the order of its shape, outermost first."""
    return np.void(
        _engine.functional.encode_tensor_map(
            more.pop("type", TYPES[array.dtype.type]),
            address,
            list(reversed(array.shape)),
            list(reversed(array.strides[:-1])),
            list(reversed(box)),
            list(reversed(more.pop("element_strides", (1,) * array.ndim))),
            **more,
        )
    )


def tile(
    array: np.ndarray, start: tuple[int, ...], shape: tuple[int, ...], steps: tuple[int, ...], fill: Any
) -> Any:
    """The contents of the box, element by element."""
    out = np.full(shape, fill, array.dtype)
    for index in itertools.product(*(range(n) for n in shape)):
        at = tuple(s + i * k for s, i, k in zip(start, index, steps, strict=True))
        if all(0 <= a < n for a, n in zip(at, array.shape, strict=True)):
            out[index] = array[at]
    return out


def in_shared(rows: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of a box (rows, elements) as laid out in shared memory; gaps are 0xee. Swizzled: in spans of
    32, 64 or 128 bytes, 16-byte pieces are permuted by the number of the 128-byte line.
    """
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(rows.shape[0], -1)
    if not swizzle:
        return data.ravel()
    span = SPAN[swizzle]
    out = np.full((len(data), span // 16, 16), 0xEE, np.uint8)
    for r, row in enumerate(data):
        line = r * span // 128
        for k in range(len(row) // 16):
            out[r, k ^ line % (span // 16)] = row[16 * k : 16 * k + 16]
    return out.ravel()


def kernel(rank: int, instruction: str, bytes_: int, before: str = "", offsets: str = "") -> str:
    """Fills `bytes_` bytes of shared memory with `data`, runs the instruction once, and writes shared memory
    back to `data`. %s: its address, %b: mbarrier, %m: map, %c0..: coordinates.
    """
    coordinates = "".join(f", .param .b32 c{k}" for k in range(rank))
    loads = "".join(f"ld.param.b32 %c{k}, [c{k}];" for k in range(rank))
    return f"""
    .visible .entry k(.param .align 64 .b8 map[128], .param .b64 data{coordinates})
    {{
      .reg .b64 %m, %data, %a; .reg .b32 %s, %b, %c<5>, %i, %v, %at; .reg .pred %p; .reg .b16 %h<3>;
      .shared .align 1024 .b8 buffer[{bytes_}]; .shared .align 8 .b64 bar;
      mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.b64 %data, [data]; {loads} {offsets}
      mov.u32 %s, buffer; mov.u32 %b, bar; mov.u32 %i, %tid.x; shl.b32 %i, %i, 2;
    FILL:
      setp.ge.u32 %p, %i, {bytes_}; @%p bra FILLED;
      mul.wide.u32 %a, %i, 1; add.u64 %a, %a, %data; ld.global.b32 %v, [%a];
      add.u32 %at, %s, %i; st.shared.b32 [%at], %v; add.u32 %i, %i, 128; bra FILL;
    FILLED:
      bar.sync 0; mov.u32 %i, %tid.x; setp.ne.u32 %p, %i, 0; @%p bra ISSUED;
      {before}
      {instruction}
    ISSUED:
      bar.sync 0;
      {"W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;" if "arrive" in before else ""}
      mov.u32 %i, %tid.x; shl.b32 %i, %i, 2;
    BACK:
      setp.ge.u32 %p, %i, {bytes_}; @%p bra DONE;
      mul.wide.u32 %a, %i, 1; add.u64 %a, %a, %data;
      add.u32 %at, %s, %i; ld.shared.b32 %v, [%at]; st.global.b32 [%a], %v; add.u32 %i, %i, 128; bra BACK;
    DONE:
      ret;
    }}
    """


LOAD = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%s], [%m, {%c0, %c1}], [%b];"
)


def vector(rank: int) -> str:
    return "{" + ", ".join(f"%c{k}" for k in range(rank)) + "}"


def load(
    array: np.ndarray,
    box: tuple[int, ...],
    start: tuple[int, ...],
    shared_bytes: int,
    expected_bytes: int,
    **more: Any,
) -> np.ndarray:
    """Shared memory after a load; bytes not written by the load are 0xee."""
    rank = array.ndim
    text = kernel(
        rank,
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        f" [%s], [%m, {vector(rank)}], [%b];",
        shared_bytes,
        f"mbarrier.init.shared::cta.b64 [%b], 1;"
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {expected_bytes};",
    )
    device = Device(text)
    base = array if array.base is None else array.base
    address = device.upload(base)
    address += array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    data = np.full(shared_bytes, 0xEE, np.uint8)
    device.run("k", encode(address, array, box, **more), data, *reversed(start))
    return data


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", list(TYPES), ids=lambda t: np.dtype(t).name)
def test_swizzled_loads_of_every_type(dtype: Any, swizzle: int) -> None:
    size = np.dtype(dtype).itemsize
    span = SPAN[swizzle] or 64
    raw = np.random.default_rng(swizzle).integers(0, 100, (50, 256 // size))
    array = raw.astype(dtype)
    for width, height in ((span // size, 17), (16 // size, 8)):
        shape = (height, width)
        pitch = SPAN[swizzle] or width * size
        got = load(
            array,
            shape,
            (3, 16 // size),
            (height * pitch + 127) // 128 * 128,
            height * width * size,
            swizzle=swizzle,
        )
        expected = in_shared(tile(array, (3, 16 // size), shape, (1, 1), 0), swizzle)
        assert (got[: len(expected)] == expected).all()
        assert (got[len(expected) :] == 0xEE).all()


@pytest.mark.parametrize("flipped", [False, True])
def test_swizzles_that_keep_32_bytes_together(flipped: bool) -> None:
    """Four pieces of 32 bytes are permuted by the line; in every other line, the halves of 16 bytes too."""
    array = np.random.default_rng(6).integers(0, 256, (16, 128)).astype(np.uint8)
    got = load(array, (16, 128), (0, 0), 2048, 2048, swizzle=ATOM_32_FLIPPED if flipped else ATOM_32).reshape(
        16, 4, 32
    )
    for line, pieces in enumerate(array.reshape(16, 4, 32)):
        for k, piece in enumerate(pieces):
            if flipped and line % 2:
                piece = piece.reshape(2, 2, 8)[:, ::-1].ravel()
            assert (got[line, k ^ line % 4] == piece).all()


def of_bits(values: np.ndarray, bits: int) -> np.ndarray:
    """Rows of small integers, packed: the first has the lowest bits."""
    each = values[..., None] >> np.arange(bits) & 1
    return np.packbits(each.reshape(len(values), -1).astype(np.uint8), axis=1, bitorder="little")


@pytest.mark.parametrize("swizzle", [0, 3, ATOM_32])
@pytest.mark.parametrize(("kind", "bits"), [(PACKED_4, 4), (PADDED_4, 4), (PADDED_6, 6)])
@pytest.mark.parametrize("column", [0, 128, 192])
def test_loads_of_4_and_6_bits(kind: int, bits: int, column: int, swizzle: int) -> None:
    """Padded: 16 elements take 16 bytes of shared memory, of which what they leave is not written. A
    transaction counts packed bytes. Coordinates and sizes are in elements; what is outside is zero."""
    values = np.random.default_rng(kind).integers(0, 1 << bits, (6, 256))
    packed = of_bits(values, bits)
    box = np.zeros((4, 128), values.dtype)
    box[:, : 256 - column] = values[2:, column : column + 128]
    device = Device(
        kernel(
            2,
            LOAD,
            512,
            "mbarrier.init.shared::cta.b64 [%b], 1;"
            f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {4 * 128 * bits // 8};",
        )
    )
    raw = _engine.functional.encode_tensor_map(
        kind, device.upload(packed), [256, 6], [packed.shape[1]], [128, 4], [1, 1], swizzle=swizzle
    )
    data = np.full(512, 0xEE, np.uint8)
    device.run("k", np.void(raw), data, column, 2)
    expected = np.full((4, 8, 16), 0xEE, np.uint8)
    pieces = of_bits(box, bits).reshape(4, -1, 16 if kind == PACKED_4 else 2 * bits)
    for line, k in np.ndindex(*pieces.shape[:2]):
        # Rows of packed elements have 64 bytes, a swizzle spreads them over its span.
        pitch = 8 if swizzle or kind != PACKED_4 else 4
        row, at = divmod(line * pitch + k, 8)
        if swizzle:
            at ^= {3: row % 8, ATOM_32: row % 4 * 2}[swizzle]
        expected[row, at, : pieces.shape[2]] = pieces[line, k]
    np.testing.assert_array_equal(data.reshape(expected.shape), expected)


STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {%c0, %c1}], [%s];"


def test_a_store_of_6_bits_drops_the_gaps() -> None:
    values = np.random.default_rng(8).integers(0, 64, (3, 128))
    shared = np.full((3, 8, 16), 0xEE, np.uint8)
    shared[:, :, :12] = of_bits(values, 6).reshape(3, 8, 12)
    target = np.zeros((4, 96), np.uint8)
    device = Device(kernel(2, STORE, shared.size))
    address = device.upload(target)
    raw = _engine.functional.encode_tensor_map(PADDED_6, address, [128, 4], [96], [128, 3], [1, 1])
    device.run("k", np.void(raw), shared.ravel(), 0, 1)
    np.testing.assert_array_equal(
        device.download(address, target), np.concatenate([target[:1], of_bits(values, 6)])
    )


@pytest.mark.parametrize(
    ("kind", "swizzle", "message"),
    [(PADDED_4, 0, "loaded only"), (0, ATOM_32_FLIPPED, "of loads only")],
)
def test_maps_that_only_load(kind: int, swizzle: int, message: str) -> None:
    device = Device(kernel(2, STORE, 1024))
    address = device.upload(np.zeros(4096, np.uint8))
    raw = _engine.functional.encode_tensor_map(
        kind, address, [128, 4], [128], [128, 1], [1, 1], swizzle=swizzle
    )
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        device.run("k", np.void(raw), np.zeros(1024, np.uint8), 0, 0)


@pytest.mark.parametrize(
    ("driver", "word"), [(7, 7), (9, 10), (11, 7 | 1 << 9), (12, 8 | 1 << 9), (13, 11), (14, 12), (15, 13)]
)
def test_types_are_encoded_as_ptxas_writes_them(driver: int, word: int) -> None:
    """Bits 7 and up of the third word: TF32 is F32 with bit 16; types of 4 and 6 bits follow BF16."""
    raw = np.frombuffer(
        _engine.functional.encode_tensor_map(driver, 4096, [128, 4], [512], [128, 1], [1, 1]), np.uint32
    )
    assert raw[2] >> 7 & 0x20F == word


def test_the_pattern_of_the_128_byte_swizzle_by_hand() -> None:
    """Row r of 8 pieces: piece k lies at k xor r mod 8."""
    array = np.arange(16 * 8 * 16, dtype=np.uint64).reshape(16, 128) // 16 % 8
    array = array.astype(np.uint8)
    got = load(array, (16, 128), (0, 0), 2048, 2048, swizzle=3).reshape(16, 8, 16)[:, :, 0]
    assert got[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert got[1].tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    assert got[6].tolist() == [6, 7, 4, 5, 2, 3, 0, 1]
    assert (got[8:] == got[:8]).all()


@st.composite
def boxes(draw: Any) -> tuple[Any, ...]:
    rank = draw(st.integers(1, 5))
    inner = draw(st.sampled_from([4, 8, 12, 32]))

    def outer(least: int, most: int) -> list[int]:
        return [draw(st.integers(least, most)) for _ in range(rank - 1)]

    shape = (*outer(1, 7), draw(st.sampled_from([4, 8, 16, 28])))
    box, steps = (*outer(1, 4), inner), (*outer(1, 3), 1)
    start = tuple(draw(st.integers(-5, 8)) for _ in range(rank))
    return shape, box, steps, start, draw(st.sampled_from([0, 3] if inner == 32 else [0]))


@given(boxes(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_loads_of_any_rank_beyond_all_edges(case: tuple[Any, ...], nan: bool) -> None:
    shape, box, steps, start, swizzle = case
    array = np.random.default_rng(len(shape)).random(shape, np.float32)
    counts = tuple(-(-b // s) for b, s in zip(box, steps, strict=True))
    size = 4 * int(np.prod(counts))
    got = load(
        array, box, start, -(-size // 128) * 128, size, element_strides=steps, swizzle=swizzle, fill=int(nan)
    )
    out = tile(array, start, counts, steps, np.uint32(0x7FFFFFFF).view(np.float32) if nan else 0)
    expected = in_shared(out.reshape(-1, counts[-1]), swizzle)
    assert (got[: len(expected)] == expected).all()


def test_a_view_of_an_array() -> None:
    whole = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
    part = whole[4:20:2, 8:40]
    got = load(part, (4, 16), (2, 8), 128, 128)
    assert (got.view(np.float16).reshape(4, 16) == part[2:6, 8:24]).all()


@pytest.mark.parametrize(
    ("type_", "flush", "round_"), [(10, True, False), (11, False, True), (12, True, True)]
)
def test_types_that_change_numbers(type_: int, flush: bool, round_: bool) -> None:
    bits = np.array(
        [0x00000001, 0x80400000, 0x3F801000, 0x3F800FFF, 0xBF803000, 0x7F800000, 0x7FC00001, 0x3F800001],
        np.uint32,
    )
    got = load(bits.view(np.float32).reshape(1, 8), (1, 8), (0, 0), 128, 32, type=type_)[:32].view(np.uint32)
    expected = [
        0 if flush else bits[0] if not round_ else 0,
        0x80000000 if flush else 0x80400000,
        0x3F802000 if round_ else 0x3F801000,
        0x3F800000 if round_ else 0x3F800FFF,
        0xBF804000 if round_ else 0xBF803000,
        0x7F800000,
        0x7FC00001,
        0x3F800000 if round_ else 0x3F800001,
    ]
    assert got.tolist() == expected


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("start", [(0, 0), (-2, -4), (14, 20), (40, 0)])
def test_stores_write_what_is_inside_only(start: tuple[int, int], swizzle: int) -> None:
    width = (SPAN[swizzle] or 64) // 4
    array = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)
    box = np.random.default_rng(1).random((8, width), np.float32)
    shared = in_shared(box, swizzle)
    text = kernel(
        2,
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {%c0, %c1}], [%s];"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
        len(shared),
    )
    device = Device(text)
    address = device.upload(array)
    device.run("k", encode(address, array, (8, width), swizzle=swizzle), shared, start[1], start[0])
    expected = array.copy()
    for r, c in itertools.product(range(8), range(width)):
        if 0 <= start[0] + r < 16 and 0 <= start[1] + c < 24:
            expected[start[0] + r, start[1] + c] = box[r, c]
    assert (device.download(address, array) == expected).all()


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [
        ("add", np.float32),
        ("add", np.float16),
        ("add", ml_dtypes.bfloat16),
        ("min", np.int32),
        ("max", np.uint64),
        ("min", np.float16),
        ("xor", np.uint32),
        ("inc", np.uint32),
    ],
)
def test_reductions(operation: str, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    array, box = (rng.integers(0, 50, (16, 16)).astype(dtype) for _ in range(2))
    f: dict[str, Any] = {
        "add": lambda a, b: a + b,
        "min": np.minimum,
        "max": np.maximum,
        "xor": lambda a, b: a ^ b,
        "inc": lambda a, b: np.where(a >= b, 0, a + 1).astype(dtype),
    }
    text = kernel(
        2,
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group"
        " [%m, {%c0, %c1}], [%s];",
        box.nbytes,
    )
    device = Device(text)
    address = device.upload(array)
    device.run("k", encode(address, array, (16, 16)), box.copy().view(np.uint8).ravel(), 0, 0)
    assert (device.download(address, array) == f[operation](array, box)).all()


def im2col(
    array: np.ndarray,
    start: tuple[int, ...],
    offsets: tuple[int, ...],
    lower: Any,
    upper: Any,
    pixels: int,
    steps: Any,
) -> np.ndarray:
    """Rows of pixels of an (N, ..., W, C) array, by listing all pixels of the bounding boxes in order."""
    n, *size, channels = array.shape
    ranges = [
        range(lo + o, s + up + o, k)
        for lo, up, o, s, k in zip(lower, upper, offsets, size, steps, strict=True)
    ]
    places = [(b, *p) for b in range(n + 2) for p in itertools.product(*ranges)]
    first = (start[0], *(s + o for s, o in zip(start[1:-1], offsets, strict=True)))
    out = np.zeros((pixels, channels), array.dtype)
    at = places.index(first)
    for row, place in enumerate(places[at : at + pixels]):
        if place[0] < n and all(0 <= p < s for p, s in zip(place[1:], size, strict=True)):
            out[row] = array[place]
    return out


@pytest.mark.parametrize(
    ("shape", "start", "offsets", "lower", "upper", "steps"),
    [
        ((2, 4, 4, 8), (0, 0, 0, 0), (0, 0), (0, 0), (0, 0), (1, 1)),
        ((1, 4, 4, 8), (0, -1, -1, 0), (0, 0), (-1, -1), (-1, -1), (1, 1)),
        ((1, 4, 4, 8), (0, -1, -1, 0), (1, 1), (-1, -1), (-1, -1), (1, 1)),
        ((2, 4, 4, 8), (0, 1, 3, 0), (0, 0), (0, 0), (0, 0), (1, 1)),
        ((2, 5, 7, 8), (0, -1, 3, 0), (2, 1), (-1, -1), (-1, -1), (2, 2)),
        ((2, 9, 8), (0, -1, 0), (2,), (-1,), (-1,), (1,)),
        ((2, 3, 4, 5, 8), (0, -1, 0, 1, 0), (0, 2, 1), (-1, -1, -1), (-1, -1, -1), (1, 1, 1)),
    ],
)
def test_im2col(shape: Any, start: Any, offsets: Any, lower: Any, upper: Any, steps: Any) -> None:
    rank, pixels = len(shape), 24
    array = np.random.default_rng(3).random(shape, np.float32)
    names = ", ".join(f"%h{k}" for k in range(rank - 2))
    values = "".join(f"mov.b16 %h{k}, {o};" for k, o in enumerate(reversed(offsets)))
    text = kernel(
        rank,
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        f" [%s], [%m, {vector(rank)}], [%b], {{{names}}};",
        pixels * 32,
        "mbarrier.init.shared::cta.b64 [%b], 1;"
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {pixels * 32};",
        values,
    )
    device = Device(text)
    address = device.upload(array)
    corners = (list(reversed(lower)), list(reversed(upper)))
    data = np.full(pixels * 32, 0xEE, np.uint8)
    map_ = encode(address, array, (pixels, 8), element_strides=(1, *steps, 1), corners=corners)
    device.run("k", map_, data, *reversed(start))
    expected = im2col(array, start, offsets, lower, upper, pixels, steps)
    assert (data.view(np.float32).reshape(pixels, 8) == expected).all()
    # And back, without offsets.
    text = kernel(
        rank,
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group"
        f" [%m, {vector(rank)}], [%s];",
        pixels * 32,
    )
    device = Device(text)
    address = device.upload(np.zeros_like(array))
    map_ = encode(address, array, (pixels, 8), element_strides=(1, *steps, 1), corners=corners)
    rows = np.random.default_rng(4).random((pixels, 8), np.float32)
    device.run("k", map_, rows.view(np.uint8).ravel().copy(), *reversed(start))
    number = np.arange(1, array.size + 1).reshape(shape)
    where = im2col(number, start, (0,) * (rank - 2), lower, upper, pixels, steps)
    expected = np.zeros(array.size + 1, np.float32)
    expected[where.ravel()] = rows.ravel()
    assert (device.download(address, array).ravel() == expected[1:]).all()


REPLACE = """
.visible .entry k(.param .b64 target, .param .b64 array, .param .b64 out)
{
  .reg .b64 %t, %a, %x; .reg .b32 %s, %b, %i, %z, %v, %at; .reg .pred %p;
  .shared .align 128 .b8 map[128]; .shared .align 1024 .b8 buffer[512]; .shared .align 8 .b64 bar;
  ld.param.b64 %t, [target]; ld.param.b64 %a, [array]; mov.u32 %s, map; mov.u32 %b, bar; mov.u32 %i, %tid.x;
  mad.lo.u32 %at, %i, 4, %s; mov.b32 %z, 0; st.shared.b32 [%at], %z; bar.warp.sync -1;
  setp.ne.u32 %p, %i, 0; @%p bra MADE;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s], %a;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [%s], 0x1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 0x0, 32;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 0x1, 8;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%s], 0x0, 100;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%s], 0x1, 30;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%s], 0x0, 208;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%s], 0x0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%s], 0x1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%s], 0x6;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%s], 0x0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%s], 0x2;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%s], 0x1;
MADE:
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%t], [%s], 0x80;
  fence.proxy.tensormap::generic.acquire.gpu [%t], 0x80;
  @%p bra ISSUED;
  mbarrier.init.shared::cta.b64 [%b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
  mov.u32 %s, buffer; mov.b32 %v, 80; mov.b32 %z, 25;
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%t, {%v, %z}];
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%t, {%v, %z}], [%b];
ISSUED:
  bar.sync 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
  mov.u32 %s, buffer; mad.lo.u32 %s, %i, 16, %s; ld.param.b64 %x, [out]; mad.wide.u32 %x, %i, 16, %x;
  .reg .b64 %q0, %q1; ld.shared.v2.b64 {%q0, %q1}, [%s]; st.global.v2.b64 [%x], {%q0, %q1};
  ret;
}
"""


def test_a_map_made_by_the_kernel_as_triton_does() -> None:
    array = np.random.default_rng(5).random((30, 104)).astype(np.float16)
    target, out = np.zeros(128, np.uint8), np.zeros(512, np.uint8)
    Device(REPLACE).run("k", target, array, out)
    nan = np.uint16(0x7FFF).view(np.float16)
    expected = in_shared(tile(array[:, :100], (25, 80), (8, 32), (1, 1), nan), 2)
    assert (out == expected).all()
    assert target.any()


def test_a_kernel_replaces_the_swizzle_of_a_map() -> None:
    """As of the same map encoded with it."""
    text = """
    .visible .entry k(.param .b64 map) {
      .reg .b64 %m; ld.param.b64 %m, [map];
      tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%m], 0x3;
      tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%m], 0x2;
      ret;
    }"""
    array = np.zeros((4, 128), np.uint8)
    raw = np.frombuffer(encode(4096, array, (4, 128)).tobytes(), np.uint8).copy()
    Device(text).run("k", raw)
    assert raw.tobytes() == encode(4096, array, (4, 128), swizzle=ATOM_32_FLIPPED).tobytes()


def test_multicast_to_the_ctas_of_a_cluster() -> None:
    text = """
    .visible .entry k(.param .align 64 .b8 map[128], .param .b64 out, .param .b32 ctas)
    .reqnctapercluster 4, 1, 1
    {
      .reg .b64 %m, %o; .reg .b32 %s, %b, %r, %v, %z, %i; .reg .b16 %mask; .reg .pred %p;
      .shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 bar;
      mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u32 %s, buffer; mov.u32 %b, bar;
      mov.u32 %r, %cluster_ctarank;
      ld.param.b16 %mask, [ctas]; mov.u32 %i, %tid.x;
      mad.lo.u32 %z, %i, 4, %s; st.shared.b32 [%z], -1;
      setp.ne.u32 %p, %i, 0; @%p bra READY;
      mbarrier.init.shared::cta.b64 [%b], 1;
      .reg .b32 %w; cvt.u32.u16 %w, %mask;
      shr.u32 %w, %w, %r; and.b32 %w, %w, 1; shl.b32 %w, %w, 7;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %w;
    READY:
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      or.b32 %z, %i, %r; setp.ne.u32 %p, %z, 0; @%p bra SENT;
      mov.b32 %v, 0;
      cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%s], [%m, {%v}], [%b], %mask;
    SENT:
      bar.sync 0;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
      mad.lo.u32 %s, %i, 4, %s; ld.shared.b32 %v, [%s];
      ld.param.b64 %o, [out]; mad.lo.u32 %i, %r, 32, %i; mad.wide.u32 %o, %i, 4, %o; st.global.b32 [%o], %v;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      ret;
    }
    """
    device = Device(text)
    array = np.arange(32, dtype=np.uint32)
    address = device.upload(array)
    out = np.zeros((4, 32), np.uint32)
    device.run("k", encode(address, array, (32,)), out, 0b1011, grid=(4, 1, 1))
    for rank in (0, 1, 3):
        assert (out[rank] == array).all()
    assert (out[2] == 0xFFFFFFFF).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interleave": 1}, "interleave"),
        ({"swizzle": 1}, "swizzle"),
        ({"swizzle": ATOM_64}, "64 bytes is not known"),
        ({"swizzle": 7}, "swizzle"),
        ({"type": 16}, "data type"),
        ({"type": PADDED_4}, "expected 128"),
        ({"type": PADDED_4, "box": (1, 128)}, "multiple of 128"),
        ({"type": PADDED_6, "box": (1, 128), "address": 4096 + 16}, "multiple of 32"),
        ({"type": PADDED_6, "box": (1, 128), "swizzle": ATOM_32_FLIPPED}, "padded"),
        ({"type": PACKED_4, "fill": 1}, "NaN"),
        ({"box": (300, 16)}, "box"),
        ({"box": (4, 6)}, "multiple of 16"),
        ({"box": (0, 16)}, "box"),
        ({"element_strides": (9, 1)}, "element stride"),
        ({"address": 8}, "address"),
        ({"fill": 2}, "fill"),
        ({"type": 2, "fill": 1}, "NaN"),
        ({"corners": ([0], [0])}, "rank"),
    ],
)
def test_maps_that_the_driver_refuses(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"box": (4, 16), "address": 4096} | change
    array = np.zeros((8, 32), np.float32)
    with pytest.raises(ValueError, match=message):
        encode(arguments.pop("address"), array, arguments.pop("box"), **arguments)


def run_load(instruction: str, map_: Any, array: np.ndarray) -> None:
    device = Device(kernel(2, instruction, 4096, "mbarrier.init.shared::cta.b64 [%b], 1;"))
    address = device.upload(array)
    device.run("k", map_(address), np.zeros(4096, np.uint8), 0, 0)


@pytest.mark.parametrize(
    ("instruction", "map_", "message"),
    [
        (LOAD.replace("[%s]", "[%s+16]"), None, "misaligned"),
        (LOAD.replace("[%s]", "[%s+4096]"), None, "illegal address"),
        (LOAD.replace("[%b]", "[%b+4096]"), None, "illegal address"),
        (LOAD.replace("[%b]", "[%s]"), None, "has not been initialised"),
        (LOAD, lambda _: np.void(bytes(128)), "invalid tensor map"),
        (LOAD, lambda _: encode(4096, np.zeros((2, 2, 16), np.float32), (1, 1, 16)), "its rank is 3"),
        (LOAD, lambda _: encode(1 << 40, np.zeros((8, 32), np.float32), (4, 16)), "illegal address"),
    ],
)
def test_faults(instruction: str, map_: Any, message: str) -> None:
    array = np.zeros((8, 32), np.float32)
    with pytest.raises(_engine.functional.ProgramFault, match=message):
        run_load(instruction, map_ or (lambda address: encode(address, array, (4, 16))), array)


@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_damaged_map_is_a_fault_or_another_map(damage: list[tuple[int, int]]) -> None:
    array = np.zeros((8, 32), np.float32)

    def damaged(address: int) -> np.void:
        raw = bytearray(encode(address, array, (4, 16), swizzle=2).tobytes())
        for place, value in damage:
            raw[place] = value
        return np.void(bytes(raw))

    try:
        run_load(LOAD, damaged, array)
    except _engine.functional.ProgramFault as fault:
        assert "test.ptx" in str(fault)
