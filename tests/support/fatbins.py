"""Fat binaries and cubins like nvcc's, built in memory."""

import struct

import lz4.block
import zstandard

PTX_KIND, CODE_KIND = 1, 2
PACKINGS = ("none", "lz4", "zstd")


def ptx(kernel: str, arch: str = "sm_80") -> str:
    return f".version 8.0\n.target {arch}\n.address_size 64\n.visible .entry {kernel}()\n{{\n\tret;\n}}\n"


def entry(text: str | bytes, arch: int, packing: str = "none", kind: int = PTX_KIND) -> bytes:
    plain = text.encode() if isinstance(text, str) else text
    if kind == PTX_KIND:
        plain += b"\0"
    flags, size, unpacked, payload = 0x11, 0, 0, plain
    if packing != "none":
        if packing == "lz4":
            flags, payload = flags | 0x2000, lz4.block.compress(plain, store_size=False)
        else:
            flags, payload = flags | 0x8000, zstandard.ZstdCompressor().compress(plain)
        size, unpacked = len(payload), len(plain)
    payload += bytes(-len(payload) % 8)
    header = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), size, 0, 0, 8, arch, 0, 0, flags, 0, unpacked
    )
    return header + payload


def fatbin(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def cubin(*texts: str, section: bytes = b".nv_debug_ptx_txt") -> bytes:
    """An ELF file for NVIDIA's machine with a section of names and a section for each text."""
    parts = [text.replace("\n", "\0").encode() for text in texts]
    contents = b"".join(parts)
    names = b"\0.shstrtab\0" + section + b"\0"
    begin = 64
    table = begin + len(contents) + len(names)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, 2 + len(parts), 1)
    rows = [(0, 0, 0), (1, begin + len(contents), len(names))]
    for part in parts:
        rows.append((11, begin, len(part)))
        begin += len(part)
    return (
        head
        + contents
        + names
        + b"".join(
            struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0) for name, offset, size in rows
        )
    )
