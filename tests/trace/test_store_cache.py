"""The cache of converted traces: its contents are complete, of this trace, and within its limit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from simt import cache
from simt.cli import main
from simt.errors import SimtError
from simt.trace import TraceKernel, open_trace
from simt.trace.cache import cached_store
from simt.trace.writer import Warp
from support.tiny import warp_of, write_kernel

pytestmark = pytest.mark.usefixtures("empty_cache")


def kernel(folder: Path, number: int = 1, opcode: str = "FFMA") -> TraceKernel:
    def chain(warp: Warp) -> None:
        for _ in range(40):
            warp.op(opcode, 8, (8, 2, 8))

    write_kernel(folder, [[warp_of(chain)]], number)
    return open_trace(folder / f"kernel-{number}.traceg").kernels[0]


def test_a_damaged_store_is_made_again(tmp_path: Path) -> None:
    first = kernel(tmp_path)
    whole, place = first.digest, cached_store(first.path)
    good = place.read_bytes()
    for at in range(16, len(good), 23):
        place.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        again = open_trace(first.path).kernels[0]
        assert again.digest == whole
        assert again.source().walk(True)[0] == again.counts["instructions"]
        assert place.read_bytes() == good


def test_a_change_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    first = kernel(tmp_path)
    digest, times = first.digest, (first.path.stat().st_atime_ns, first.path.stat().st_mtime_ns)
    first.path.write_text(first.path.read_text().replace("FFMA", "IMAD"))
    os.utime(first.path, ns=times)
    assert open_trace(first.path).kernels[0].digest != digest


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [kernel(tmp_path, number) for number in (1, 2, 3)]
    places = []
    for age, one in zip((5000, 9000, 7000), kernels, strict=True):
        one.stored()
        places.append(cached_store(one.path))
        os.utime(places[-1], (os.stat(places[-1]).st_mtime - age,) * 2)
    open_trace(kernels[1].path).kernels[0].stored()  # the oldest is used again
    monkeypatch.setenv("SIMT_CACHE_LIMIT", str(sum(place.stat().st_size for place in places[:2])))
    cache.evict()
    assert [place.exists() for place in places] == [True, True, False]
    assert kernels[2].source().walk(True)[0] == 41  # a run that has it open recreates it
    monkeypatch.setenv("SIMT_CACHE_LIMIT", "0")
    cache.evict()
    assert places[1].exists(), "used within the last hour"
    monkeypatch.setenv("SIMT_CACHE_LIMIT", "10G")
    with pytest.raises(SimtError, match="expected a number of bytes"):
        cache.evict()


def test_info_and_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel(tmp_path).stored()
    for command, words in (
        ("info", "traces: 1 files"),
        ("clear", "deleted 1 files"),
        ("info", " 0 of at most"),
    ):
        monkeypatch.setattr(sys, "argv", ["simt", "cache", command])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        assert words in capsys.readouterr().out
