"""A predicted model as a Chakra execution trace (MLCommons, `schema/protobuf/et_def.proto`), which ASTRA-sim
and other simulators of systems read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prediction import OperatorTime, Prediction

VERSION = "0.0.4"
_COMPUTE = 4
"""Number of COMP_NODE among the types of nodes."""


def launches(prediction: Prediction) -> Iterator[tuple[str, float, OperatorTime]]:
    """Name, seconds and operator of each launch of prefill and decoding, in their order. Between the first
    and the last decoding step times are linear in the number of cached tokens.
    """
    for row in _in_order(prediction.rows("prefill")):
        yield f"prefill {row.name}", row.seconds, row
    steps = prediction.steps
    for token in range(1, prediction.decode):
        first, last = steps[0], steps[-1]
        share = (token - 1) / max(1, prediction.decode - 2)
        if [row.name for row in first] != [row.name for row in last]:  # other kernels for longer sequences
            first = last = first if share < 0.5 else last
        times = {id(a): a.seconds + share * (b.seconds - a.seconds) for a, b in zip(first, last, strict=True)}
        for row in _in_order(first):
            yield f"decode {token} {row.name}", times[id(row)], row


def _in_order(rows: list[OperatorTime]) -> Iterator[OperatorTime]:
    """Operators of the layers follow each other, layer by layer."""
    for count, group in groupby(rows, key=lambda row: row.count):
        layer = list(group)
        for _ in range(count):
            yield from layer


def trace(prediction: Prediction) -> bytes:
    """A trace of one rank: a COMP_NODE for each launch, each of which depends on the one before, with its
    start and duration in whole microseconds (together they take as long as the launches, rounded), `num_ops`
    (floating-point operations) and `tensor_size` (bytes that it needs at least).
    """
    found = [_delimited(_text(1, VERSION))]
    seconds = 0.0
    for number, (name, duration, row) in enumerate(launches(prediction), 1):
        start, end = round(seconds * 1e6), round((seconds + duration) * 1e6)
        seconds += duration
        node = _number(1, number) + _text(2, name) + _number(3, _COMPUTE)
        if number > 1:
            node += _field(5, _varint(number - 1))
        node += _number(6, start) + _number(7, end - start)
        node += _field(10, _text(1, "is_cpu_op") + _number(27, 0))
        node += _field(10, _text(1, "num_ops") + _number(9, round(row.flops)))
        node += _field(10, _text(1, "tensor_size") + _number(13, round(row.nbytes)))
        found.append(_delimited(node))
    return b"".join(found)


# --- the wire format of Protocol Buffers -------------------------------------------------------------------


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _delimited(content)


def _text(field: int, value: str) -> bytes:
    return _field(field, value.encode())


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content
