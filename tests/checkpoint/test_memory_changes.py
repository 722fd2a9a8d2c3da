"""Changes of memory that a launch makes: found in a copy, and made in another memory."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simt import _engine

SIZE = 40_000


def memory() -> tuple[_engine.functional.DeviceMemory, list[int]]:
    made = _engine.functional.DeviceMemory(1 << 30)
    # Neighbours in a page, several pages, and far apart.
    addresses = [made.allocate(size, "x") for size in (100, SIZE, 300 << 20, SIZE)]
    return made, addresses


write = st.tuples(st.integers(0, 3), st.integers(0, SIZE - 5000), st.binary(max_size=5000))


@pytest.mark.slow
@given(st.lists(write, max_size=6), st.lists(write, max_size=6), st.integers(1, 20_000))
@example([(1, 0, b"a" * 5000)], [(1, 0, b"a" * 4999 + b"b")], 1)
@settings(deadline=None, max_examples=60)
def test_changes_are_all_and_only_the_bytes_that_differ(
    before: list[tuple[int, int, bytes]], during: list[tuple[int, int, bytes]], limit: int
) -> None:
    original, addresses = memory()
    other, _ = memory()

    def put(to: _engine.functional.DeviceMemory, where: int, at: int, data: bytes) -> None:
        if where == 0:
            at, data = 0, data[:100]
        to.write(addresses[where] + at, data)

    for one in before:
        put(original, *one)
        put(other, *one)
    copy = original.copy_on_write()
    for one in during:
        put(copy, *one)
    sizes = (100, SIZE, SIZE, SIZE)
    expected = [copy.read(a, n) for a, n in zip(addresses, sizes, strict=True)]
    differing = sum(
        x != y
        for a, n, now in zip(addresses, sizes, expected, strict=True)
        for x, y in zip(original.read(a, n), now, strict=True)
    )
    found = _engine.functional.MemoryChanges(original, copy)
    pieces = []
    while piece := found.take(limit):
        assert len(piece) < limit + 8 + 512 + 4096
        pieces.append(piece)
        assert other.apply_changes(piece)
    for made in (original, other):
        assert [made.read(a, n) for a, n in zip(addresses, sizes, strict=True)] == expected
    whole = b"".join(pieces)
    pages = changed = at = 0
    while at < len(whole):
        count = int.from_bytes(whole[at + 8 : at + 520], "little").bit_count()
        pages, changed, at = pages + 1, changed + count, at + 520 + count
    assert changed == differing and at == len(whole)
    assert pages <= sum(2 + len(data) // 4096 for _, _, data in during)


@given(st.binary(max_size=6000))
def test_malformed_changes_are_refused(data: bytes) -> None:
    made, _ = memory()
    if data:
        assert not made.apply_changes(data[:519])
        outside = (made.base + made.capacity).to_bytes(8, "little")
        assert not made.apply_changes(outside + bytes(512) + data)
        assert not made.apply_changes(made.base.to_bytes(8, "little") + b"\xff" * 512 + data[:4000])
