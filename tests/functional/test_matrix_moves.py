"""ldmatrix, stmatrix, movmatrix."""

from __future__ import annotations

import numpy as np
import pytest

from simt import _engine
from simt.errors import PtxError
from support.matrices import run_registers

ROWS = np.random.default_rng(0).permutation(32)  # position of each lane's row in shared memory
SHARED = """
.shared .align 16 .b8 room[1024]; .reg .b32 %row, %own; .reg .b64 %wide; mov.u32 %row, room;
"""
FILL = """
add.u32 %own, %row, {at}0;
st.shared.v4.b32 [%own], {w};
bar.sync 0;
"""


def tiles(words: np.ndarray) -> np.ndarray:
    """4 x 8 x 8 elements, from the values stored by 32 lanes: lane i holds row i % 8 of tile i / 8."""
    return np.ascontiguousarray(words.T).view(np.uint16).reshape(4, 8, 8)


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "w": rng.integers(0, 1 << 32, (4, 32), np.uint64).astype(np.uint32),
        "at": (ROWS * 16).astype(np.uint32)[None],
    }


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_ldmatrix(count: int, transposed: bool, space: str) -> None:
    given = inputs()
    address = "%own"
    convert = ""
    if not space:
        convert = "cvt.u64.u32 %wide, %own; cvta.shared.u64 %wide, %wide;"
        address = "%wide"
    trans = ".trans" if transposed else ""
    found = run_registers(
        FILL.replace("{at}", "%at")
        + convert
        + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{d}}, [{address}];",
        given,
        {"d": (count, np.uint32)},
        setup=SHARED,
    )["d"]
    for t, tile in enumerate(tiles(given["w"])[:count]):
        if transposed:
            tile = tile.T
        for lane in range(32):
            low, high = tile[lane // 4, 2 * (lane % 4)], tile[lane // 4, 2 * (lane % 4) + 1]
            assert found[t, lane] == int(low) | int(high) << 16


def test_ldmatrix_may_overwrite_its_address() -> None:
    given = inputs()
    found = run_registers(
        FILL.replace("{at}", "%at")
        + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%own}, [%own]; mov.b32 %d0, %own;",
        given,
        {"d": (1, np.uint32)},
        setup=SHARED,
    )["d"]
    np.testing.assert_array_equal(found[0].view(np.uint16).reshape(8, 8), tiles(given["w"])[0])


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix(count: int, transposed: bool) -> None:
    rng = np.random.default_rng(2)
    given = inputs() | {"s": rng.integers(0, 1 << 32, (count, 32), np.uint64).astype(np.uint32)}
    trans = ".trans" if transposed else ""
    found = run_registers(
        FILL.replace("{at}", "%at")
        + f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%own], {{s}};\n"
        + "bar.sync 0; ld.shared.v4.b32 {d}, [%own];",
        given,
        {"d": (4, np.uint32)},
        setup=SHARED,
    )["d"]
    wanted = tiles(given["w"]).copy()
    for t in range(count):
        tile = given["s"][t].view(np.uint16).reshape(8, 8)
        wanted[t] = tile.T if transposed else tile
    np.testing.assert_array_equal(tiles(found), wanted)


def of_bits(words: np.ndarray, bits: int) -> np.ndarray:
    """32 rows of 16 elements, packed at the beginning of the 16 bytes that each of 32 lanes stores."""
    row = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little")
    elements = row[:, : 16 * bits].reshape(32, 16, bits)
    return (elements << np.arange(bits)).sum(axis=2).astype(np.uint8)


FORMS = [("b8", 8), ("b8x16.b6x16_p32", 6), ("b8x16.b4x16_p64", 4)]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(("form", "bits"), FORMS[1:])
def test_ldmatrix_widens_rows_of_4_and_6_bits(form: str, bits: int, count: int) -> None:
    """To the lower bits of bytes: CUTLASS moves 4 bits to the middle, where mma takes them, itself."""
    given = inputs()
    found = run_registers(
        FILL.replace("{at}", "%at") + f"ldmatrix.sync.aligned.m8n16.x{count}.shared.{form} {{d}}, [%own];",
        given,
        {"d": (count, np.uint32)},
        setup=SHARED,
    )["d"]
    rows = of_bits(given["w"], bits)
    for t in range(count):
        np.testing.assert_array_equal(found[t].view(np.uint8).reshape(8, 16), rows[8 * t : 8 * t + 8])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("form", "bits"), FORMS)
def test_ldmatrix_transposes_bytes(form: str, bits: int, count: int) -> None:
    given = inputs()
    found = run_registers(
        FILL.replace("{at}", "%at")
        + f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form} {{d}}, [%own];",
        given,
        {"d": (2 * count, np.uint32)},
        setup=SHARED,
    )["d"]
    rows = of_bits(given["w"], bits).reshape(2, 16, 16)
    for r, lane, byte in np.ndindex(2 * count, 32, 4):
        row, column = 4 * (lane % 4) + 2 * (r % 2) + byte % 2, lane // 4 + 8 * (byte // 2)
        assert found[r, lane] >> 8 * byte & 0xFF == rows[r // 2, row, column]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_transposes_bytes(count: int) -> None:
    rng = np.random.default_rng(2)
    given = inputs() | {"s": rng.integers(0, 1 << 32, (count, 32), np.uint64).astype(np.uint32)}
    found = run_registers(
        FILL.replace("{at}", "%at")
        + f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%own], {{s}};\n"
        + "bar.sync 0; ld.shared.v4.b32 {d}, [%own];",
        given,
        {"d": (4, np.uint32)},
        setup=SHARED,
    )["d"]
    wanted = of_bits(given["w"], 8)
    for t, lane, byte in np.ndindex(count, 32, 4):
        row, column = 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2)
        wanted[8 * t + row, column] = given["s"][t, lane] >> 8 * byte & 0xFF
    np.testing.assert_array_equal(of_bits(found, 8), wanted)


def test_movmatrix() -> None:
    a = np.random.default_rng(3).integers(0, 1 << 32, (1, 32), np.uint64).astype(np.uint32)
    found = run_registers(
        "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0; movmatrix.sync.aligned.m8n8.trans.b16 %a0, %a0;"
        "mov.b32 %d1, %a0;",
        {"a": a},
        {"d": (2, np.uint32)},
    )["d"]
    for row in found:
        np.testing.assert_array_equal(row.view(np.uint16).reshape(8, 8), a[0].view(np.uint16).reshape(8, 8).T)


def test_rows_beyond_shared_memory_or_between_16_bytes_are_faults() -> None:
    def load(offset: str) -> None:
        run_registers(
            f"shl.b32 %own, %lane, 5; add.u32 %own, %own, %row; add.u32 %own, %own, {offset};"
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d}, [%own];",
            {},
            {"d": (4, np.uint32)},
            setup=SHARED,
        )

    load("0")
    with pytest.raises(_engine.functional.ProgramFault, match="illegal address") as fault:
        load("32")
    assert fault.value.thread == (31, 0, 0)
    with pytest.raises(_engine.functional.ProgramFault, match="misaligned"):
        load("8")


@pytest.mark.parametrize(
    "instruction",
    [
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {d}, [%own];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {d}, [%own];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {d}, [%own];",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {d}, [%own];",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {d}, [%own];",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {d}, [%own];",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%own], {d};",
        "stmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 [%own], {d};",
    ],
)
def test_what_ptx_does_not_have_is_refused(instruction: str) -> None:
    with pytest.raises(PtxError, match=r"matrix\."):
        run_registers(instruction, {}, {"d": (1, np.uint32)}, setup=SHARED)
