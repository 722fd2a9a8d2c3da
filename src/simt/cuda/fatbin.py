"""Reads PTX and machine code from files made by nvcc: programs, libraries, objects, archives, `.fatbin` files
and cubins.

A fat binary is a header followed by entries, each PTX or machine code for one architecture. It is recognised
by its header anywhere in a file, so all kinds of programs are read alike. NVIDIA does not document the
layout; this is based on files made by nvcc 12 and 13.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import zstandard

from simt.errors import CompileError, ImageError, PtxError, ToolkitError
from simt.files import require_regular

from .cubin_module import CubinModule, code_arch, code_needed, code_runs_on, successor_of
from .device_runtime import SYSTEM, is_of_runtime
from .image import Image
from .ptx_module import PtxModule, arch_number, runs_on
from .ptxas import machine_code
from .toolkit import INSTALL

ELF_MAGIC = b"\x7fELF"
FATBIN_MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
"""Magic, version and size of a header: what every fat binary begins with."""

_HEADER = struct.Struct("<8sQ")
"""Magic as above, bytes of all entries."""
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
"""Kind, version, header bytes, payload bytes, of these not padding (if packed), options, minor, major, SM,
offset and length of the source's name, flags, unknown, bytes when unpacked."""
_KIND_PTX, _KIND_CODE = 1, 2
_VOLTAS_LAST_PTX = "8.8"
"""Of CUDA 12.9, the last that compiles for Volta (PTX ISA, release history)."""
_FLAG_LZ4, _FLAG_ZSTD = 0x2000, 0x8000
_MOST_TEXT = 1 << 30
_PIECE = 1 << 20
_CUDA_MACHINE = 190
_DEBUG_PTX = ".nv_debug_ptx_txt"
_PARAMETERS = ".nv.constant0."
"""Begins the name of a kernel's section; its constant bank 0 holds its parameters."""

Buffer = bytes | mmap.mmap


@dataclass(frozen=True)
class _Entry:
    kind: int
    place: int
    """Offset in the file."""
    arch: int
    payload: bytes
    flags: int
    unpacked: int
    """Bytes of the contents when unpacked."""

    @property
    def what(self) -> str:
        """For messages."""
        return "PTX" if self.kind == _KIND_PTX else "machine code"


def read_fatbins(path: str | PathLike[str], arch: str | None = None) -> list[PtxModule]:
    """The PTX in a file, one module per translation unit.

    Args:
        arch: of each unit take only the PTX that suits this device best: the newest that runs on it. None
            takes every PTX.

    Raises:
        PtxError: the file cannot be read, is damaged, or holds no PTX, or none for this device.
    """
    path = Path(path)
    with mapped(path) as data:
        return ptx_in(data, str(path), arch)


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """The bytes of a file. Raises PtxError if it cannot be read, or is empty."""
    try:
        require_regular(path)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise PtxError(f"{path}: the file is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data
    except OSError as error:
        raise PtxError(f"{path}: cannot be read: {error.strerror}") from None


def ptx_in(data: Buffer, name: str, arch: str | None = None) -> list[PtxModule]:
    """As `read_fatbins`, for the bytes of a file. `name` is the file's, for messages.

    Raises:
        PtxError: as there.
    """
    if arch is not None:
        arch_number(arch)
    modules: list[PtxModule] = []
    others: set[str] = set()
    for unit, every in enumerate(_fatbins(data, name)):
        entries = [entry for entry in every if entry.kind == _KIND_PTX]
        # Newest first: unpack no more than needed.
        ordered = entries if arch is None else sorted(entries, key=lambda entry: -entry.arch)
        for entry in ordered:
            if arch is not None and entry.arch > arch_number(arch)[0]:
                others.add(f"sm_{entry.arch}")
                continue
            module = PtxModule.from_text(_text(entry, name), f"{name}[{unit}]")
            if not module.has_code:
                break
            if arch is None or runs_on(module.arch, arch):
                modules.append(module)
                if arch is not None:
                    break
            else:
                others.add(module.arch)
    for text in [] if modules else _debug_ptx(data, name):
        module = PtxModule.from_text(text, name)
        if arch is None or runs_on(module.arch, arch):
            modules.append(module)
        else:
            others.add(module.arch)
    if not modules:
        if others:
            raise PtxError(
                f"{name}: holds PTX for {', '.join(sorted(others))}, none that runs on {arch}; "
                f"compile it with -gencode arch=compute_NN,code=compute_NN for that or an older architecture"
            )
        if is_cubin(data):
            raise PtxError(f"{name}: holds no PTX, only machine code (a cubin)")
        raise PtxError(
            f"{name}: holds no PTX; compile it with -gencode arch=compute_NN,code=compute_NN, "
            "as without it only machine code is kept"
        )
    return modules


def images_in(data: Buffer, name: str, arch: str, code: str) -> list[Image]:
    """What a device executes of a file's bytes, one program per translation unit.

    code: "ptx" takes PTX, and machine code where there is no PTX that runs on the device; "sass" the other
        way round. Of either, the newest that runs.

    Raises:
        ImageError: the file is damaged, or holds nothing for this device.
        ToolkitError: what reads it is not installed.
    """
    images: list[Image] = []
    found: set[str] = set()
    order = (_best_ptx, _best_code) if code == "ptx" else (_best_code, _best_ptx)
    for unit, entries in enumerate(_fatbins(data, name)):
        best = (pick(entries, f"{name}[{unit}]", arch, found) for pick in order)
        if (image := next((each for each in best if each is not None), None)) is not None:
            later = isinstance(image, CubinModule) and arch_number(image.arch) > arch_number(code_arch(arch))
            own = _own_code(entries, f"{name}[{unit}]", arch) if later else None
            images.append(image if own is None else own)
    if not images and is_cubin(data):
        images, found = _of_cubin(data, name, arch, code)
    if images:
        return images
    number, _ = arch_number(arch)
    raise ImageError(
        f"{name}: holds {' and '.join(sorted(found)) or 'neither PTX nor machine code'}; needed for {arch} "
        f"is machine code for {code_needed(arch)}, or PTX for sm_{number} or older (nvcc -gencode "
        f"arch=compute_{number},code=sm_{arch_number(code_arch(arch))[0]})"
    )


def _best_ptx(entries: list[_Entry], name: str, arch: str, found: set[str]) -> Image | None:
    """The newest PTX of a unit that runs on a device; what else there is goes to `found`."""
    for entry in sorted(entries, key=lambda entry: -entry.arch):
        if entry.kind == _KIND_PTX:
            module = PtxModule.from_text(_text(entry, name), name)
            if module.runs_on(arch):
                return module if module.has_code else None
            found.add(f"PTX for {module.arch}")
    return None


def _best_code(entries: list[_Entry], name: str, arch: str, found: set[str]) -> Image | None:
    """As `_best_ptx`, of machine code; that for "sm_90a" before that for "sm_90", and a successor's last."""
    modules: list[CubinModule] = []
    number, _ = arch_number(code_arch(arch))
    for entry in entries:
        if entry.kind != _KIND_CODE:
            continue
        if not code_runs_on(f"sm_{entry.arch}", arch):
            found.add(f"machine code for sm_{entry.arch}")
            continue
        module = CubinModule.parse(_unpacked(entry, name), name)
        if module.runs_on(arch) and module.cubin.is_linked:
            modules.append(module)
        else:
            found.add(f"machine code for {module.arch}{'' if module.cubin.is_linked else ', not linked'}")
    best = max(
        modules,
        key=lambda module: (arch_number(module.arch)[0] <= number, arch_number(module.arch)),
        default=None,
    )
    return best if best is not None and best.cubin.kernels else None


def _own_code(entries: list[_Entry], name: str, arch: str) -> CubinModule | None:
    """Machine code of a device's own architecture, of PTX that was made for its successor; None if there is
    no such PTX, or no ptxas that accepts it."""
    own, later = code_arch(arch), successor_of(arch)
    for entry in entries:
        if entry.kind == _KIND_PTX and f"sm_{entry.arch}" == later:
            module = PtxModule.from_text(_text(entry, name), name).for_older(own, _VOLTAS_LAST_PTX)
            try:
                return CubinModule.parse(machine_code(module, own), name)
            except (CompileError, ToolkitError):
                return None
    return None


def _of_cubin(data: Buffer, name: str, arch: str, code: str) -> tuple[list[Image], set[str]]:
    """As `images_in`, of a cubin."""
    found: set[str] = set()
    if code == "ptx":
        units = [PtxModule.from_text(text, name) for text in _debug_ptx(data, name)]
        if units and all(unit.runs_on(arch) for unit in units) and _is_whole(units, data, name):
            return list(units), found
    cubin = CubinModule.parse(data[:], name)
    if cubin.runs_on(arch):
        return [cubin], found
    return [], {f"machine code for {cubin.arch}"}


def _fatbins(data: Buffer, name: str) -> Iterator[list[_Entry]]:
    """The entries of each fat binary in a file, in its order."""
    place = data.find(FATBIN_MAGIC)
    while place >= 0:
        _, size = _unpack(_HEADER, data, place, len(data), name)
        begin = place + _HEADER.size
        end = begin + size
        if end > len(data):
            raise PtxError(
                f"{name}: damaged: the fat binary at {place} ends at {end}, the file at {len(data)}"
            )
        yield list(_entries(data, begin, end, name))
        place = data.find(FATBIN_MAGIC, end)


def _entries(data: Buffer, place: int, end: int, name: str) -> Iterator[_Entry]:
    while place < end:
        kind, _, header, size, compressed, _, _, _, arch, _, _, flags, _, unpacked = _unpack(
            _ENTRY, data, place, end, name
        )
        begin = place + header
        if header < _ENTRY.size or begin + size > end or compressed > size:
            raise PtxError(
                f"{name}: damaged: the entry at {place} has a header of {header} bytes and {size} bytes of "
                f"payload, where {end - place} bytes are left"
            )
        if kind in (_KIND_PTX, _KIND_CODE):
            if not 10 <= arch <= 999:
                raise PtxError(
                    f"{name}: damaged: the entry at {place} is for sm_{arch}, expected two or three digits"
                )
            yield _Entry(kind, place, arch, data[begin : begin + (compressed or size)], flags, unpacked)
        place = begin + size


def _text(entry: _Entry, name: str) -> str:
    return _unpacked(entry, name).rstrip(b"\0").decode(errors="replace")


def _unpacked(entry: _Entry, name: str) -> bytes:
    if entry.unpacked > _MOST_TEXT:
        raise PtxError(
            f"{name}: damaged: the {entry.what} at {entry.place} would have {entry.unpacked} bytes"
        )
    if entry.flags & _FLAG_ZSTD:
        contents = _zstd(entry, name)
    elif entry.flags & _FLAG_LZ4:
        contents = _lz4(entry, name)
    else:
        return entry.payload
    if len(contents) != entry.unpacked:
        raise PtxError(
            f"{name}: damaged: the {entry.what} at {entry.place} unpacks to {len(contents)} bytes, not "
            f"{entry.unpacked}"
        )
    return contents


def _zstd(entry: _Entry, name: str) -> bytes:
    try:
        with zstandard.ZstdDecompressor().stream_reader(entry.payload) as reader:
            contents = bytearray()
            while len(contents) <= entry.unpacked and (piece := reader.read(_PIECE)):
                contents += piece
            return bytes(contents)
    except zstandard.ZstdError as error:
        raise PtxError(
            f"{name}: damaged: the {entry.what} at {entry.place} does not unpack: {error}"
        ) from None


def _lz4(entry: _Entry, name: str) -> bytes:
    try:
        import lz4.block
    except ImportError:
        raise ToolkitError(
            f"{name}: its {entry.what} is packed with LZ4, which is not installed: {INSTALL}"
        ) from None
    # A byte of LZ4 stands for at most 255, so a greater size is damage: do not set memory aside for it.
    if entry.unpacked > 255 * len(entry.payload):
        raise PtxError(
            f"{name}: damaged: the {entry.what} at {entry.place} would have {entry.unpacked} bytes"
        )
    try:
        return bytes(lz4.block.decompress(entry.payload, uncompressed_size=entry.unpacked))
    except lz4.block.LZ4BlockError as error:
        raise PtxError(
            f"{name}: damaged: the {entry.what} at {entry.place} does not unpack: {error}"
        ) from None


def is_cubin(data: Buffer) -> bool:
    """Whether these are the bytes of a file with machine code."""
    return data[:4] == ELF_MAGIC and data[18:20] == _CUDA_MACHINE.to_bytes(2, "little")


def _is_whole(units: list[PtxModule], data: Buffer, name: str) -> bool:
    """Whether the PTX that a cubin keeps is that of all its code: linked units may have been compiled without
    the options that keep theirs."""
    named = {function for unit in units for function in unit.functions}
    there = {function for unit in units for function, has_code in unit.functions.items() if has_code}
    kernels = {kernel for unit in units for kernel in unit.kernels}
    own = {
        title.removeprefix(_PARAMETERS)
        for title, _, _ in _sections(data, name)
        if title.startswith(_PARAMETERS)
    }
    functions = {function for function in named - there if function not in SYSTEM}
    return not functions and all(kernel in kernels or is_of_runtime(kernel) for kernel in own)


def _debug_ptx(data: Buffer, name: str) -> list[str]:
    """The PTX that `nvcc -G` and -lineinfo keep in a cubin, with NUL for line ends: a section for each linked
    unit; nvJitLink adds a number to the names of the sections."""
    return [
        data[offset : offset + size].replace(b"\0", b"\n").decode(errors="replace")
        for title, offset, size in _sections(data, name)
        if title == _DEBUG_PTX or title.startswith(f"{_DEBUG_PTX}.")
    ]


def _sections(data: Buffer, name: str) -> list[tuple[str, int, int]]:
    """The sections of a cubin, none of other files: name, offset and size of each."""
    if not is_cubin(data):
        return []
    end = len(data)
    (table,) = _unpack(struct.Struct("<Q"), data, 40, end, name)
    width, count, names = _unpack(struct.Struct("<HHH"), data, 58, end, name)
    section = struct.Struct(
        "<I20xQQ"
    )  # name, and the offset and size of the contents (ELF64, section header)
    rows = [_unpack(section, data, table + width * index, end, name) for index in range(count)]
    if names >= count:
        raise PtxError(f"{name}: damaged: section {names} should hold names, but there are {count}")
    found = []
    for title, offset, size in rows:
        begin = rows[names][1] + title
        found.append(
            (data[begin : max(begin, data.find(b"\0", begin))].decode(errors="replace"), offset, size)
        )
    return found


def _unpack(layout: struct.Struct, data: Buffer, place: int, end: int, name: str) -> tuple[int, ...]:
    if place + layout.size > end:
        raise PtxError(
            f"{name}: damaged: {layout.size} bytes expected at {place}, {max(end - place, 0)} left"
        )
    return layout.unpack(data[place : place + layout.size])
