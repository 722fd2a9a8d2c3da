"""A slow, simple reader of grouped kernel traces, to compare the engine's with; and helpers to write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simt import _engine
from simt.trace import open_trace

BULK = ("UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UBLKCP", "UBLKPF", "UBLKRED")


@dataclass(frozen=True)
class Executed:
    """One line of a trace."""

    pc: int
    mask: int
    destinations: tuple[str, ...]
    opcode: str
    sources: tuple[str, ...]
    immediate: int
    addresses: tuple[int, ...]


Ctas = list[tuple[tuple[int, ...], dict[int, list[Executed]]]]


def read_text(text: str) -> Ctas:
    """CTAs in file order: position, and the instructions of each warp that has any."""
    header, _, body = text.partition("#")
    fields = dict(line[1:].split(" = ", 1) for line in header.splitlines() if line.startswith("-"))
    version = int(fields.get("accelsim tracer version", 0))
    lines = bool(int(fields.get("enable lineinfo", 0)))
    ctas: Ctas = []
    for block in body.split("#BEGIN_TB")[1:]:
        position: tuple[int, ...] = ()
        warps: dict[int, list[Executed]] = {}
        warp = 0
        for line in block.partition("#END_TB")[0].splitlines():
            key, _, value = line.partition(" = ")
            if key == "thread block":
                position = tuple(map(int, value.split(",")))
            elif key == "warp":
                warp = int(value)
            elif line.strip() and key not in ("insts", "cluster id", "cluster cta", "cluster rank"):
                warps.setdefault(warp, []).append(_line(line.split(), version, lines))
        if warps:
            ctas.append((position, warps))
    return ctas


def _line(tokens: list[str], version: int, lines: bool) -> Executed:
    if version < 3:
        tokens = tokens[4:]
    if lines:
        tokens = tokens[1:]
    tokens = tokens[::-1]
    pc, mask = int(tokens.pop(), 16), int(tokens.pop(), 16)
    destinations = tuple(tokens.pop() for _ in range(int(tokens.pop())))
    opcode = tokens.pop()
    sources = tuple(tokens.pop() for _ in range(int(tokens.pop())))
    if version >= 6 and "GMMA" in opcode:
        tokens.pop()
    width = int(tokens.pop())
    lanes = bin(mask).count("1")
    addresses: list[int] = []
    bulk = version >= 6 and any(name in opcode for name in BULK)
    if bulk:
        tokens.pop()
        if int(tokens.pop()):
            tokens.pop()
        tokens.pop()
        tokens.pop()
    if bulk or width:
        mode = int(tokens.pop())
        base = int(tokens.pop(), 16) if mode in (1, 2, 4) else 0
        count = int(tokens.pop()) if mode >= 3 else lanes
        if mode in (0, 3):
            addresses = [int(tokens.pop(), 16) for _ in range(count)]
        elif mode == 1:
            stride = int(tokens.pop())
            addresses = [base + k * stride for k in range(count)]
        else:
            for k in range(count):
                addresses.append(base if k == 0 else addresses[-1] + int(tokens.pop()))
    immediate = int(tokens.pop()) if tokens else 0
    return Executed(
        pc, mask, destinations, opcode, sources, immediate, tuple(a % (1 << 64) for a in addresses)
    )


_FILES = ("R", "UR", "P", "UP")


def read_source(source: _engine.TraceSource) -> Ctas:
    """The same, as returned by the engine."""
    static = source.instructions()

    def names(registers: list[tuple[int, int, int]]) -> tuple[str, ...]:
        return tuple(f"{_FILES[file]}{index}" for index, file, _ in registers)

    ctas: Ctas = []
    for ordinal in range(source.cta_count):
        warps = {}
        for warp, records in enumerate(source.read_cta(ordinal)):
            if records:
                warps[warp] = [
                    Executed(
                        s["pc"],
                        mask,
                        names(s["destinations"]),
                        s["opcode"],
                        names(s["sources"]),
                        s["immediate"],
                        tuple(addresses),
                    )
                    for index, mask, addresses in records
                    for s in (static[index],)
                ]
        ctas.append((tuple(source.cta_position(ordinal)), warps))
    return ctas


def read_file(path: Path) -> Ctas:
    """A kernel trace as read by simt."""
    return read_source(open_trace(path).kernels[0].source())


def header(version: int | None = 5, **values: object) -> str:
    """Header lines with the given values: `grid_dim="(2,1,1)"`."""
    fields: dict[str, object] = {
        "kernel name": "k",
        "kernel id": 1,
        "grid dim": "(4,1,1)",
        "block dim": "(64,1,1)",
        "shmem": 0,
        "nregs": 16,
        "binary version": 80,
        "cuda stream id": 0,
        "shmem base_addr": "0x00007f0000000000",
        "local mem base_addr": "0x00007f0001000000",
    }
    if version is not None:
        fields["accelsim tracer version"] = version
    fields |= {key.replace("_", " "): value for key, value in values.items()}
    return "".join(f"-{key} = {value}\n" for key, value in fields.items()) + "\n#format\n"


def cta(position: str, *warps: list[str], extra: str = "") -> str:
    """A thread block; warp i has the given lines."""
    text = f"#BEGIN_TB\n\nthread block = {position}\n{extra}"
    for number, lines in enumerate(warps):
        text += f"\nwarp = {number}\ninsts = {len(lines)}\n" + "".join(f"{line}\n" for line in lines)
    return text + "\n#END_TB\n\n"
