"""Inputs that are not files, lists that refer to other folders, stores whose index is wrong."""

from __future__ import annotations

import json
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from simt.errors import SimtError, TraceError
from simt.profile import read_profile
from simt.result import Result
from simt.sampling import Plan
from simt.spec import load_spec
from simt.trace import convert, open_trace
from simt.trace.check import check_trace
from simt.trace.writer import Warp
from support.hostile import mutant
from support.tiny import warp_of, write_kernel


def chain(warp: Warp) -> None:
    for _ in range(10):
        warp.op("FFMA", 8, (8, 2, 8))


@pytest.mark.parametrize("reader", [open_trace, read_profile, load_spec, Plan.load, Result.load])
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_never_ends_is_not_opened(tmp_path: Path, reader: object, kind: str) -> None:
    place = tmp_path / "endless.toml"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(SimtError, match=r"this is a (FIFO|device)"):
        reader(place)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["../kernel-9.traceg", "kernel-link.traceg"])
def test_a_list_names_files_of_its_folder(tmp_path: Path, name: str) -> None:
    write_kernel(tmp_path, [[warp_of(chain)]], 9)
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "kernel-link.traceg").symlink_to(tmp_path / "kernel-9.traceg")
    listing = folder / "kernelslist.g"
    listing.write_text(f"kernel/../{name}\n" if name.startswith("..") else f"{name}\n")
    (folder / "kernel").mkdir()
    if name.startswith(".."):
        listing.write_text("kernel/../../kernel-9.traceg\n")
    with pytest.raises(TraceError, match=r"line 1: .* is not in the list's folder; .*--outside"):
        open_trace(folder)
    assert open_trace(folder, outside=True).kernels[0].counts["instructions"] == 11


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    file = write_kernel(tmp_path, [[warp_of(chain)]], name="tiny") / "kernel-1.traceg"
    good = file.read_bytes()
    for name, fine in (
        (b"\xff", False),
        (b"\xc0\x80", False),
        (b"\xed\xa0\x80", False),
        ("é".encode(), True),
    ):
        file.write_bytes(good.replace(b"tiny", b"ti" + name))
        if fine:
            assert open_trace(file).kernels[0].name == "tié"
        else:
            with pytest.raises(TraceError, match="the kernel's name is not text in UTF-8"):
                open_trace(file)


def rewritten(folder: Path) -> tuple[Any, Callable[[Any], Path]]:
    """The index of a trace store, and what writes the store again with another one and correct checksums."""
    store, lying = folder / "good.simt", folder / "lying.simt"
    convert(write_kernel(folder / "t", [[warp_of(chain)]] * 3), store)
    data = store.read_bytes()
    trailer = struct.Struct("<QQQI4s")
    offset, size, _, _, end = trailer.unpack(data[-trailer.size :])

    def write(index: Any) -> Path:
        raw = json.dumps(index).encode()
        packed = zstandard.ZstdCompressor().compress(raw)
        crc = zlib.crc32(packed)
        lying.write_bytes(data[:offset] + packed + trailer.pack(offset, len(packed), len(raw), crc, end))
        return lying

    return json.loads(zstandard.ZstdDecompressor().decompress(data[offset : offset + size])), write


@pytest.mark.parametrize(("block", "fine"), [([1024 * 32, 1, 1], True), ([1024 * 32 + 1, 1, 1], False)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_block_of_too_many_warps(tmp_path: Path, block: list[int], fine: bool, place: int) -> None:
    """What a CTA takes in memory is bounded, whatever the launch says: 384 GiB were asked for."""
    index, write = rewritten(tmp_path)
    places = [x["launch"] for x in index["kernels"]]
    places[0]["block"] = [block[0] if i == place else 1 for i in range(3)]
    kernel = open_trace(write(index)).kernels[0]
    if fine:
        kernel.source()
    else:
        with pytest.raises(TraceError, match=r"lying\.simt.*corrupted"):
            kernel.source()


def test_an_index_that_lies(tmp_path: Path) -> None:
    """Correct checksums around wrong counts, launches and positions."""
    index, write = rewritten(tmp_path)
    chance, refused = random.Random(3), 0
    for _ in range(300):
        lying = write(mutant(index, chance))
        try:
            refused += any(report.problem for report in check_trace(lying)[0])
            for kernel in open_trace(lying).kernels:
                repr(kernel)
                kernel.source()
        except TraceError as error:
            refused += 1
            assert "lying.simt" in str(error)
    assert refused > 100
