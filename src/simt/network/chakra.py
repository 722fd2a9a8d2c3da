"""Chakra execution traces (MLCommons, `schema/protobuf/et_def.proto`), which ASTRA-sim and other simulators
of systems read: a predicted model as one, and the nodes of one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import SimtError

if TYPE_CHECKING:
    from .prediction import OperatorTime, Prediction

VERSION = "0.0.4"
_COMPUTE, _COLLECTIVE = 4, 7
"""Numbers of COMP_NODE and COMM_COLL_NODE among the types of nodes."""
_COLLECTIVES = {"all_reduce": 0, "all_gather": 2}
"""Numbers of the schema's collectives, by kernel."""


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
    """A trace of one rank: a COMP_NODE for each launch, or a COMM_COLL_NODE for a collective of several GPUs,
    each of which depends on the one before, with its start and duration in whole microseconds (together they
    take as long as the launches, rounded). A launch has `num_ops` (floating-point operations) and
    `tensor_size` (bytes that it needs at least), a collective `comm_type` and `comm_size` (bytes that each
    GPU gives).
    """
    found = [_delimited(_text(1, VERSION))]
    seconds = 0.0
    for number, (name, duration, row) in enumerate(launches(prediction), 1):
        start, end = round(seconds * 1e6), round((seconds + duration) * 1e6)
        seconds += duration
        collective = _COLLECTIVES.get(row.kernel)
        kind = _COMPUTE if collective is None else _COLLECTIVE
        node = _number(1, number) + _text(2, name) + _number(3, kind)
        if number > 1:
            node += _field(5, _varint(number - 1))
        node += _number(6, start) + _number(7, end - start)
        node += _field(10, _text(1, "is_cpu_op") + _number(27, 0))
        if collective is None:
            node += _field(10, _text(1, "num_ops") + _number(9, round(row.flops)))
            node += _field(10, _text(1, "tensor_size") + _number(13, round(row.nbytes)))
        else:
            node += _field(10, _text(1, "comm_type") + _number(9, collective))
            # A sum is read and written once; what is gathered is read once and written for each GPU.
            times = 2 if row.kernel == "all_reduce" else 1 + prediction.tensor_parallel
            node += _field(10, _text(1, "comm_size") + _number(9, round(row.nbytes / times)))
        found.append(_delimited(node))
    return b"".join(found)


@dataclass(frozen=True)
class Node:
    """A node of a trace.

    kind: as in the schema: "COMP_NODE", "COMM_COLL_NODE" and so on. control, data: ids of nodes that it
    depends on. start, duration: microseconds. attributes: by name.
    """

    id: int
    name: str
    kind: str
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    start: int = 0
    duration: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)


def read_trace(path: str | os.PathLike[str]) -> list[Node]:
    """The nodes of a Chakra execution trace of version 0.0.4 of the schema, in their order.

    Fields that are not those of `Node` are left out, among them inputs and outputs.

    Raises SimtError: the file cannot be read, or is no such trace; the message says where.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SimtError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        messages = list(_messages(data))
        if not messages or _last(_fields(messages[0]), 1, b"").decode() != VERSION:
            raise ValueError(f"the first message is not of version {VERSION}")
        nodes = [_node(message) for message in messages[1:]]
        ids = [node.id for node in nodes]
        if len(set(ids)) < len(ids):
            raise ValueError("two nodes have one id")
        for node in nodes:
            if unknown := {*node.control, *node.data}.difference(ids):
                raise ValueError(f"node {node.id} depends on {min(unknown)}, which is not there")
    except (ValueError, TypeError, struct.error) as error:
        raise SimtError(f"{path}: no Chakra execution trace: {error}") from None
    return nodes


_KINDS = (
    *("INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE"),
    *("COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE", "BATCH_NODE", "CHECKPOINT_NODE"),
)
"""Types of nodes by their number."""


def _node(message: bytes) -> Node:
    fields = _fields(message)
    kind = _last(fields, 3, 0)
    if kind >= len(_KINDS):
        raise ValueError(f"{kind} is the type of a node, expected at most {len(_KINDS) - 1}")
    return Node(
        _last(fields, 1, 0),
        _last(fields, 2, b"").decode(),
        _KINDS[kind],
        _numbers(fields, 4),
        _numbers(fields, 5),
        _last(fields, 6, 0),
        _last(fields, 7, 0),
        dict(_attribute(value) for number, value in fields if number == 10),
    )


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _unfolded(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def _unpacked(form: str) -> Callable[[bytes], Any]:
    return lambda raw: struct.unpack(form, raw)[0]


_VALUES: dict[int, Callable[[Any], Any]] = {
    **{3: _unpacked("<d"), 5: _unpacked("<f"), 7: _signed, 9: _signed, 11: int, 13: int},
    **{15: _unfolded, 17: _unfolded, 19: _unpacked("<I"), 21: _unpacked("<Q"), 23: _unpacked("<i")},
    **{25: _unpacked("<q"), 27: bool, 29: lambda raw: raw.decode(), 31: bytes},
}
"""Of the fields of an attribute with one value: what makes it from what is in the file."""


def _attribute(message: bytes) -> tuple[str, Any]:
    """Name and value; a list stays as its bytes, an attribute without a value is None."""
    fields = _fields(message)
    found = [(number, raw) for number, raw in fields if number > 2]
    number, raw = found[-1] if found else (0, None)
    return _last(fields, 1, b"").decode(), _VALUES.get(number, lambda value: value)(raw)


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


def _number_at(data: bytes, at: int) -> tuple[int, int]:
    """A varint and the place behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it ends within a number")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def _content_at(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise ValueError(f"{size} bytes are to follow byte {at} of {len(data)}")
    return data[at : at + size], at + size


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = _number_at(data, at)
        message, at = _content_at(data, at, size)
        yield message


def _fields(message: bytes) -> list[tuple[int, Any]]:
    """Number and content of each field: an int, or bytes of what is fixed or has a length."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(message):
        key, at = _number_at(message, at)
        content: int | bytes
        if key & 7 == 0:
            content, at = _number_at(message, at)
        elif key & 7 in (1, 5):
            content, at = _content_at(message, at, 8 if key & 7 == 1 else 4)
        elif key & 7 == 2:
            size, at = _number_at(message, at)
            content, at = _content_at(message, at, size)
        else:
            raise ValueError(f"a field has wire type {key & 7}")
        found.append((key >> 3, content))
    return found


def _last(fields: list[tuple[int, Any]], number: int, default: Any) -> Any:
    """The last content of a field; a message has the default where it is missing."""
    content = next((content for own, content in reversed(fields) if own == number), default)
    if type(content) is not type(default):
        raise ValueError(f"field {number} has another type than in the schema")
    return content


def _numbers(fields: list[tuple[int, Any]], number: int) -> tuple[int, ...]:
    """Of a repeated field, packed or not."""
    found: list[int] = []
    for own, content in fields:
        if own == number and isinstance(content, int):
            found.append(content)
        elif own == number:
            at = 0
            while at < len(content):
                value, at = _number_at(content, at)
                found.append(value)
    return tuple(found)
