"""ld and st in every space, with every width and vector, and all address patterns."""

from __future__ import annotations

import numpy as np
import pytest

from simt import _engine
from support.ptx import Device, ptx_only

SIZE = 4096  # bytes of accessed memory
TYPES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "f32": 4, "b64": 8, "s32": 4}
VECTORS = {"": 1, "v2": 2, "v4": 4}
FORMS = [
    (kind, vector, wide)
    for kind, size in TYPES.items()
    for vector, elements in VECTORS.items()
    for wide in (False, True)  # whether the register is wider than the value in memory
    if size * elements <= 16 and not (wide and (size == 8 or kind == "f32"))
]


def program(space: str, kind: str, vector: str, wide: bool) -> str:
    """Kernels that fill a memory of SIZE bytes from `memory`, access it at `address` plus 16, and return the
    registers (load) or the memory (store).
    """
    elements, size = VECTORS[vector], TYPES[kind]
    register = "b64" if wide or size == 8 else "b32"
    width = int(register[1:]) // 8
    named = "" if space in ("shared generic", "generic", "local generic") else f".{space}"
    suffix = f"{named}{'.' + vector if vector else ''}.{kind}"
    values = ", ".join(f"%v{e}" for e in range(elements))
    values = f"{{{values}}}" if vector else values
    own = space.split()[0]
    declared = {
        "shared": f".shared .align 16 .b8 place[{SIZE}];",
        "local": f".local .align 16 .b8 place[{SIZE}];",
    }.get(own, "")
    begin = "mov.u64 %base, place;" if declared else "mov.u64 %base, %memory;"
    if own != space:
        begin += f"cvta.{own}.u64 %base, %base;"
    copy_in = copy_out = ""
    loop = (
        "mov.u32 %k, {first}; {label}: cvt.u64.u32 %at, %k; add.u64 %from, %memory, %at;"
        "add.u64 %to, {to}, %at; {move} add.u32 %k, %k, {step}; setp.lt.u32 %p, %k, {size}; @%p bra {label};"
    )
    if declared:
        # Each lane copies its share; for local memory, all of it.
        first, step = ("%offset4", 128) if own == "shared" else (0, 4)
        common = {"to": "%place", "size": SIZE, "first": first, "step": step}
        move_in = f"ld.global.u32 %word, [%from]; st.{own}.u32 [%to], %word;"
        move_out = f"ld.{own}.u32 %word, [%to]; st.global.u32 [%from], %word;"
        copy_in = "mov.u64 %place, place;" + loop.format(label="IN", move=move_in, **common)
        copy_out = loop.format(label="OUT", move=move_out, **common)
        if own == "local":  # the selected lane outputs its memory
            copy_out = f"setp.ne.u32 %p, %lane, %shown; @%p bra DONE; {copy_out}"
    parameters = (
        ".param .u64 memory, .param .u64 address, .param .u64 values, .param .u32 mask, .param .u32 shown"
    )
    head = f"""({parameters})
{{
  {declared} .reg .{register} %v<4>; .reg .pred %p, %in; .reg .b32 %lane, %k, %word, %mask, %shown, %offset4;
  .reg .b64 %memory, %address, %values, %base, %at, %from, %to, %place;
  ld.param.u64 %memory, [memory]; ld.param.u64 %address, [address]; ld.param.u64 %values, [values];
  ld.param.u32 %mask, [mask]; ld.param.u32 %shown, [shown];
  mov.u32 %lane, %laneid; shl.b32 %offset4, %lane, 2;
  {copy_in} bar.warp.sync -1;
  mul.wide.u32 %at, %lane, 8; add.u64 %at, %at, %address; ld.global.u64 %at, [%at];
  {begin} add.u64 %base, %base, %at;
  mul.wide.u32 %at, %lane, {elements * width}; add.u64 %values, %values, %at;
  shr.u32 %mask, %mask, %lane; and.b32 %mask, %mask, 1; setp.eq.u32 %in, %mask, 1;
"""
    moves = [f"[%values+{e * width}]" for e in range(elements)]
    before = "".join(f"ld.global.{register} %v{e}, {m};" for e, m in enumerate(moves))
    after = "".join(f"st.global.{register} {m}, %v{e};" for e, m in enumerate(moves))
    return (
        f".visible .entry load{head} {before} @%in ld{suffix} {values}, [%base+16]; {after} ret; }}\n"
        f".visible .entry store{head} {before} @%in st{suffix} [%base+16], {values}; bar.warp.sync -1;"
        f"{copy_out} DONE: ret; }}"
    )


def patterns(rng: np.random.Generator, bytes_: int) -> dict[str, np.ndarray]:
    slots = SIZE // bytes_ - 16
    lanes = np.arange(32)
    return {
        "consecutive": (lanes + 3) * bytes_,
        "all the same": np.full(32, 5 * bytes_),
        "two halves": lanes % 16 * bytes_,
        "reversed": (31 - lanes) * bytes_,
        "strided": lanes * 3 % slots * bytes_,
        "random": rng.integers(0, slots, 32) * bytes_,
    }


def extended(raw: bytes, kind: str, wide: bool) -> int:
    """The contents of a register after a load of these bytes."""
    width = 8 if wide or len(raw) == 8 else 4
    value = int.from_bytes(raw, "little", signed=kind.startswith("s"))
    return value % (1 << (8 * width))


SPACES = ["global", "generic", "shared", "shared generic", "local", "local generic"]


@pytest.mark.parametrize(("kind", "vector", "wide"), FORMS)
@pytest.mark.parametrize("space", SPACES)
def test_loads_and_stores(space: str, kind: str, vector: str, wide: bool) -> None:
    elements, size = VECTORS[vector], TYPES[kind]
    rng = np.random.default_rng(list(f"{space}{kind}{vector}{wide}".encode()))
    device = Device(program(space, kind, vector, wide))
    dtype = np.uint64 if wide or size == 8 else np.uint32
    memory = rng.integers(0, 256, SIZE).astype(np.uint8)
    for name, address in patterns(rng, size * elements).items():
        for mask in (0xFFFFFFFF, int(rng.integers(1, 2**32 - 1)), 1 << 31):
            given = rng.integers(0, 2**63, (32, elements)).astype(dtype)
            found = given.copy()
            device.run("load", memory.copy(), address.astype(np.uint64), found, mask, 0)
            expected = given.copy()
            for lane in range(32):
                for e in range(elements if mask >> lane & 1 else 0):
                    at = address[lane] + 16 + e * size
                    expected[lane, e] = extended(memory[at : at + size].tobytes(), kind, wide)
            assert (found == expected).all(), (name, hex(mask))

            shown = max(lane for lane in range(32) if mask >> lane & 1)
            after = memory.copy()
            device.run("store", after, address.astype(np.uint64), given.copy(), mask, shown)
            wanted = memory.copy()
            for lane in range(32):
                if not mask >> lane & 1 or (space.startswith("local") and lane != shown):
                    continue
                for e in range(elements):
                    at = address[lane] + 16 + e * size
                    wanted[at : at + size] = np.frombuffer(given[lane, e].tobytes()[:size], np.uint8)
            assert (after == wanted).all(), (name, hex(mask))


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("vector", ["", "v4"])
@pytest.mark.parametrize("lane", [0, 7, 31])
def test_one_lane_that_goes_beyond_is_named(space: str, vector: str, lane: int) -> None:
    device = Device(program(space, "u32", vector, False))
    memory = np.zeros(SIZE, np.uint8)
    for offset, kind in (
        (SIZE - 16, "illegal address"),
        (SIZE, "illegal address"),
        (2, "misaligned address"),
    ):
        address = np.full(32, 64, np.uint64)
        address[lane] = offset
        values = np.zeros((32, VECTORS[vector]), np.uint32)
        for kernel in ("load", "store"):
            with pytest.raises(_engine.functional.ProgramFault, match=kind) as error:
                device.run(kernel, memory, address, values, 0xFFFFFFFF, 0)
            assert error.value.thread == (lane, 0, 0)
            device.run(kernel, memory, address, values, 0xFFFFFFFF & ~(1 << lane), 0)


BULK_STORE = """
.visible .entry k(.param .u64 out, .param .u64 first, .param .u64 size)
{
    .reg .b64 %a<4>; .reg .b32 %r<3>; .reg .pred %p;
    .shared .align 8 .b8 place[1024];
    ld.param.u64 %a0, [out]; ld.param.u64 %a1, [first]; ld.param.u64 %a2, [size]; cvt.u32.u64 %r1, %a2;
    mov.u32 %r0, %tid.x; mul.wide.u32 %a3, %r0, 4; mov.u64 %a2, place; add.u64 %a3, %a2, %a3;
    st.shared.u32 [%a3], 0xffffffff;
    bar.sync 0;
    setp.ne.u32 %p, %r0, 3; @%p bra STORED;
    add.u64 %a2, %a2, %a1; ADDRESS
    st.bulkMODIFIERS [%a2], %SIZE, 0;
STORED:
    bar.sync 0;
    ld.shared.u32 %r2, [%a3];
    mad.wide.u32 %a0, %r0, 4, %a0; st.global.u32 [%a0], %r2;
    ret;
}
"""


def bulk_store(first: int, size: int, generic: bool, register: str) -> np.ndarray:
    """1 KiB of ones in shared memory, part of which a thread has zeroed with st.bulk."""
    ptx = BULK_STORE.replace("ADDRESS", "cvta.shared.u64 %a2, %a2;" if generic else "")
    ptx = ptx.replace("MODIFIERS", "" if generic else ".weak.shared::cta").replace("%SIZE", register)
    out = np.zeros(256, np.uint32)
    Device(ptx, "100").run("k", out, first, size, block=(256, 1, 1))
    return out


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(("first", "size"), [(0, 1024), (8, 16), (1016, 8), (512, 0)])
@ptx_only("st.bulk is of sm_100, whose machine code simt does not execute")
def test_bulk_store(first: int, size: int, generic: bool) -> None:
    expected = np.full(1024, 255, np.uint8)
    expected[first : first + size] = 0
    for register in ("%r1", str(size)):
        assert (bulk_store(first, size, generic, register).view(np.uint8) == expected).all()


@pytest.mark.parametrize(
    ("first", "size", "fault"),
    [
        (0, 12, "12 bytes: a multiple of 8"),
        (0, 1 << 25, "2\\^24 at most"),
        (4, 8, "misaligned"),
        (512, 520, "1024 bytes"),
    ],
)
@ptx_only("st.bulk is of sm_100, whose machine code simt does not execute")
def test_bulk_store_faults(first: int, size: int, fault: str) -> None:
    with pytest.raises(_engine.functional.ProgramFault, match=fault):
        bulk_store(first, size, False, "%r1")
