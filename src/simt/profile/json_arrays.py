"""Reads large JSON files that consist mainly of a few arrays of objects: elements in batches, the rest at the
end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from simt.errors import ProfileError
from simt.profile.source import ProfileSource

T = TypeVar("T")
_MAX_ELEMENT = 64 << 20
_MAX_REST = 256 << 20
_GAP = 256  # bytes allowed between a key and its array
_NOT_A_NUMBER = re.compile(rb"([:\[,]\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[ord("{"), ord("[")]] = 1
_DEPTH[[ord("}"), ord("]")]] = -1


@dataclass(frozen=True)
class Batch:
    """Some elements of one array, in order.

    array: number of the array, from 0; in `JsonArrays.rest`, it is the array's only element.
    text: the elements as a JSON array.
    offset: position of `text` in the decompressed file.
    """

    key: str
    array: int
    text: bytes
    offset: int


@dataclass
class JsonArrays:
    """Iterates once over the elements of the arrays under `keys`.

    A key is recognised by its text `"key": [`, which valid JSON cannot contain within a string. Memory is
    bounded by a piece of the file, the largest element, and `rest`: the file without those elements, which is
    complete after the iteration. Raises ProfileError if the file ends within an array, an element is larger
    than 64 MiB, or the rest is larger than 256 MiB.
    """

    source: ProfileSource
    keys: Sequence[str]
    rest: bytearray = field(default_factory=bytearray)
    elements: int = 0  # batches may hold many; counted by the reader for messages

    def __iter__(self) -> Iterator[Batch]:
        names = b"|".join(re.escape(key.encode()) for key in self.keys)
        opening = re.compile(rb'"(' + names + rb')"\s*:\s*\[')
        buffer, base, arrays = b"", 0, 0
        inside: str | None = None
        first = False
        for piece in self.source.pieces():
            buffer += piece
            while True:
                if inside is None:
                    found = opening.search(buffer)
                    end = found.end() if found else max(len(buffer) - _GAP, 0)
                    self._keep(buffer[:end])
                    buffer, base = buffer[end:], base + end
                    if found is None:
                        break
                    self.rest += str(arrays).encode()
                    inside, arrays, first = found[1].decode(), arrays + 1, True
                cut, closed = _elements(buffer)
                if text := self._separated(buffer[:cut], base, first):
                    yield Batch(inside, arrays - 1, b"[" + text + b"]", base + cut - len(text) - 1)
                    first = False
                buffer, base = buffer[cut:], base + cut
                if not closed:
                    if len(buffer) > _MAX_ELEMENT:
                        raise ProfileError(
                            f"{self.source.name}: byte {base}: an element of `{inside}` is larger than "
                            f"{_MAX_ELEMENT >> 20} MiB"
                        )
                    break
                inside = None
        if inside is not None:
            raise ProfileError(
                f"{self.source.name}: the file ends at byte {base + len(buffer)}, in the middle of "
                f"`{inside}`, after {self.elements:,} complete entries; the profiler was stopped while it "
                f"wrote, or the copy is incomplete"
            )
        self._keep(buffer)

    def _keep(self, text: bytes) -> None:
        self.rest += text
        if len(self.rest) > _MAX_REST:
            raise ProfileError(
                f"{self.source.name}: more than {_MAX_REST >> 20} MiB beside {', '.join(self.keys)}; "
                f"this is not a profile"
            )

    def _separated(self, text: bytes, base: int, first: bool) -> bytes:
        """The elements without the comma before them."""
        stripped = text.strip()
        if not stripped or first:
            return stripped
        if not stripped.startswith(b","):
            raise ProfileError(f"{self.source.name}: byte {base}: found {stripped[:20]!r}, expected a comma")
        return stripped[1:]

    def decode(self, batch: Batch, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
        """The batch's elements. Raises ProfileError with the place of invalid JSON or of another structure.

        Numbers such as NaN, which are not valid JSON but are written by some versions of tools, become null.
        """
        try:
            elements = decoder.decode(batch.text)
        except _NO_JSON:
            text = _NOT_A_NUMBER.sub(rb"\1null", batch.text).decode("utf-8", "replace")
            try:
                elements = decoder.decode(text)
            except _NO_JSON as error:
                raise ProfileError(
                    f"{self.source.name}: `{batch.key}` from byte {batch.offset} on: {error}"
                ) from error
        self.elements += len(elements)
        return elements

    def decode_rest(self, kind: type[T]) -> T:
        """Everything except the elements of the arrays."""
        try:
            return msgspec.json.decode(self.rest, type=kind)
        except _NO_JSON:
            text = _NOT_A_NUMBER.sub(rb"\1null", bytes(self.rest)).decode("utf-8", "replace")
            try:
                return msgspec.json.decode(text, type=kind)
            except _NO_JSON as error:
                raise ProfileError(
                    f"{self.source.name}: outside of {', '.join(self.keys)}: {error}; the file is "
                    f"damaged, or was cut off"
                ) from error


def _elements(buffer: bytes) -> tuple[int, bool]:
    """Where the last whole element of an array ends, and whether the array's end follows.

    The buffer begins within the array, outside of an element. With the array's end, the first number is
    the position of its bracket.
    """
    data = np.frombuffer(buffer, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if b"\\" in buffer:
        quotes = quotes[~_escaped(data, quotes)]
    brackets = np.flatnonzero(_DEPTH[data])
    brackets = brackets[np.searchsorted(quotes, brackets) & 1 == 0]  # outside of strings
    steps = _DEPTH[data[brackets]]
    depth = np.cumsum(steps, dtype=np.int64)
    closing = np.flatnonzero(depth < 0)
    if len(closing):
        return int(brackets[closing[0]]), True
    ends = np.flatnonzero((depth == 0) & (steps < 0))
    return (int(brackets[ends[-1]]) + 1 if len(ends) else 0), False


def _escaped(data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which quotes have an odd number of backslashes before them."""
    slashes = np.flatnonzero(data == ord("\\"))
    starts = slashes[np.concatenate(([True], np.diff(slashes) != 1))]
    after = np.flatnonzero((quotes > 0) & (data[quotes - 1] == ord("\\")))
    run = starts[np.searchsorted(starts, quotes[after] - 1, "right") - 1]
    escaped = np.zeros(len(quotes), bool)
    escaped[after] = (quotes[after] - run) % 2 == 1
    return escaped
