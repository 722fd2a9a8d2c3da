"""The launches of a run in bounded memory: those that finished last as objects, the others compressed in a
temporary file."""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, overload

import zstandard

from simt.errors import ResultError
from simt.result.launch import PACKED, LaunchResult, Machine

if TYPE_CHECKING:
    from simt.power import Energies
    from simt.result.launch import PackedCounts

BLOCK = 64
"""Launches compressed together, and read back together."""
_DECODED_BYTES = 2 << 20
"""Of blocks that are kept as objects, before they are compressed; the objects take some twenty times as
much."""
_LEVEL = 1
_FIELDS = tuple(f.name for f in fields(LaunchResult) if f.name not in ("machine", "energies"))
_KNOWN = tuple(name for name in _FIELDS if name not in PACKED)
_fields, _known = itemgetter(*_FIELDS), itemgetter(*_KNOWN)


class LaunchStore(Mapping[int, LaunchResult]):
    """Launches by their position in the input (`LaunchResult.index`), in the order in which they finished.

    The file has no name, and lies where temporary files do (TMPDIR). Threads may read while one adds.
    """

    def __init__(self, machine: Machine, energies: Energies | None = None) -> None:
        self._machine, self._energies = machine, energies
        self._ordinals: dict[int, int] = {}
        self._latest: list[LaunchResult] = []
        self._file: Any = None
        self._ends = array("q", [0])  # of the blocks in the file, and where the first begins
        self._sizes = array("q")
        self._decoded: OrderedDict[int, list[LaunchResult]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, launch: LaunchResult) -> None:
        """Raises ResultError if the temporary file cannot be written."""
        with self._lock:
            self._latest.append(launch)
            self._ordinals[launch.index] = len(self._ordinals)
            if len(self._latest) >= BLOCK:
                self._spill()

    def __len__(self) -> int:
        return len(self._ordinals)

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._ordinals))

    def __contains__(self, index: object) -> bool:
        return index in self._ordinals

    def __getitem__(self, index: int) -> LaunchResult:
        return self._at(self._ordinals[index])

    def in_order(self) -> Sequence[LaunchResult]:
        """All launches so far, by position: a tuple, or a sequence that reads them from the file."""
        order = list(self._ordinals)
        if order != sorted(order):
            order.sort()
        if len(order) < BLOCK:
            return tuple(self[index] for index in order)
        return StoredLaunches(self, array("q", (self._ordinals[index] for index in order)))

    def _at(self, ordinal: int) -> LaunchResult:
        with self._lock:
            block, place = divmod(ordinal, BLOCK)
            if block == len(self._sizes):
                return self._latest[place]
            return self._block(block)[place]

    def _spill(self) -> None:
        block = self._latest[:BLOCK]
        rows = [_row(launch) for launch in block]
        raw = pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
        data = zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            at = self._ends[-1]
            while data:
                written = os.pwrite(self._file.fileno(), data, at)
                data, at = data[written:], at + written
        except OSError as error:
            raise ResultError(
                f"{tempfile.gettempdir()}: cannot keep finished launches there: {error.strerror}; free some "
                "space, or set TMPDIR to another directory"
            ) from error
        self._ends.append(at)
        self._keep(len(self._sizes), block, len(raw))
        self._latest = self._latest[BLOCK:]

    def _block(self, number: int) -> list[LaunchResult]:
        if (found := self._decoded.get(number)) is not None:
            self._decoded.move_to_end(number)
            return found
        begin, end = self._ends[number : number + 2]
        data = os.pread(self._file.fileno(), end - begin, begin)
        rows = pickle.loads(zstandard.ZstdDecompressor().decompress(data))  # of this process
        found = [self._launch(*row) for row in rows]
        self._keep(number, found, self._sizes[number])
        return found

    def _launch(self, packed: PackedCounts | None, values: tuple[Any, ...]) -> LaunchResult:
        known: dict[str, Any] = {"machine": self._machine, "energies": self._energies}
        known.update(zip(_FIELDS if packed is None else _KNOWN, values, strict=True))
        return LaunchResult(**known) if packed is None else LaunchResult.of_packed(packed, known)

    def _keep(self, number: int, launches: list[LaunchResult], size: int) -> None:
        if number == len(self._sizes):
            self._sizes.append(size)
        self._decoded[number] = launches
        total = sum(self._sizes[each] for each in self._decoded)
        while total > _DECODED_BYTES and len(self._decoded) > 1:
            oldest, _ = self._decoded.popitem(last=False)
            total -= self._sizes[oldest]


def _row(launch: LaunchResult) -> tuple[PackedCounts | None, tuple[Any, ...]]:
    """A launch as it is compressed: its packed counts, if it has them, and the other fields."""
    packed = launch.packed
    return packed, (_fields if packed is None else _known)(vars(launch))


class StoredLaunches(Sequence[LaunchResult]):
    """Launches of a store, as a tuple has them; it is equal to one with the same launches."""

    def __init__(self, store: LaunchStore, ordinals: array[int]) -> None:
        self._store, self._ordinals = store, ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    @overload
    def __getitem__(self, place: int) -> LaunchResult: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[LaunchResult, ...]: ...

    def __getitem__(self, place: int | slice) -> LaunchResult | tuple[LaunchResult, ...]:
        if isinstance(place, slice):
            return tuple(map(self._store._at, self._ordinals[place]))
        return self._store._at(self._ordinals[place])

    def __iter__(self) -> Iterator[LaunchResult]:
        return map(self._store._at, self._ordinals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, list, StoredLaunches)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)

    def __repr__(self) -> str:
        return f"<{len(self):,} launches>"
