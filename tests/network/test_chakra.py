"""Chakra execution traces, read by a decoder of the wire format of Protocol Buffers that knows no field."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from simt.errors import SimtError
from simt.network import OperatorTime, Prediction, architecture, read_trace
from simt.network.chakra import launches, trace
from simt.spec import load_spec

TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64,
}  # fmt: skip


def operator(phase: str, tokens: int, name: str, count: int, microseconds: float) -> OperatorTime:
    t = microseconds * 1e-6
    return OperatorTime(
        phase, tokens, name, "kernel", count, t, t, t, None, "DRAM", 1e6, 300.0, 1, True, 1.0, 0.0, None  # type: ignore[arg-type]
    )  # fmt: skip


def prediction(decode: int, last: str = "attention") -> Prediction:
    rows = [
        operator("prefill", 16, "embedding", 1, 3.4),
        operator("prefill", 16, "norm", 3, 0.4),
        operator("prefill", 16, "attention", 3, 300.0),
        operator("prefill", 16, "head", 1, 2.0),
    ]
    if decode > 1:
        rows += [operator("decode", 17, "attention", 3, 10.0), operator("decode", 17, "head", 1, 2.0)]
    if decode > 2:
        end = 16 + decode - 1
        rows += [operator("decode", end, last, 3, 30.0), operator("decode", end, "head", 1, 2.0)]
    return Prediction(architecture(TINY), load_spec("h100"), 1, 16, decode, "same", tuple(rows))


def varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while data[at] & 0x80:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1


def messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield data[at : at + size]
        at += size


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value: int | bytes
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        else:
            assert key & 7 == 0
        found.append((key >> 3, value))
    return found


def test_layers_follow_each_other_and_steps_are_linear() -> None:
    order = [(name, round(seconds * 1e6, 6)) for name, seconds, _ in launches(prediction(4))]
    layer = [("prefill norm", 0.4), ("prefill attention", 300.0)]
    assert order[:8] == [("prefill embedding", 3.4), *layer * 3, ("prefill head", 2.0)]
    steps = order[8:]
    assert [seconds for name, seconds in steps if "attention" in name] == [10.0] * 3 + [20.0] * 3 + [30.0] * 3
    assert [name for name, _ in steps if "head" in name] == [f"decode {n} head" for n in (1, 2, 3)]
    total = prediction(4)
    assert sum(seconds for _, seconds in order) == pytest.approx(total.seconds.value * 1e6)
    assert list(launches(prediction(1)))[-1][0] == "prefill head"
    # A kernel that only longer sequences have: each step is as the nearer end.
    other = [seconds for _, seconds, _ in launches(prediction(4, "attention, split"))][8:]
    assert [round(s * 1e6) for s in other] == [10, 10, 10, 2, 30, 30, 30, 2, 30, 30, 30, 2]


def test_nodes_are_a_chain_in_whole_microseconds() -> None:
    first, *nodes = messages(trace(prediction(2)))
    assert fields(first) == [(1, b"0.0.4")]
    assert nodes[1] == (
        b"\x08\x02\x12\x0cprefill norm\x18\x04\x2a\x01\x01\x30\x03\x38\x01"
        b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
        b"\x52\x0d\x0a\x07num_ops\x48\xc0\x84\x3d"
        b"\x52\x10\x0a\x0btensor_size\x68\xac\x02"
    )
    read = [dict(fields(node)) for node in nodes]
    assert [node[1] for node in read] == list(range(1, len(nodes) + 1))
    assert [node.get(5) for node in read] == [None, *(bytes([n]) for n in range(1, len(nodes)))]
    assert {node[3] for node in read} == {4}
    for node, after in itertools.pairwise(read):
        assert node[6] + node[7] == after[6]  # type: ignore[operator]
    assert read[-1][6] + read[-1][7] == round(prediction(2).seconds.value * 1e6)  # type: ignore[operator]


def test_it_is_written(tmp_path: Path) -> None:
    prediction(1).write_chakra(tmp_path / "rank.0.et")
    assert (tmp_path / "rank.0.et").read_bytes() == trace(prediction(1))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = prediction(3)
    found.write_chakra(tmp_path / "rank.0.et")
    nodes = read_trace(tmp_path / "rank.0.et")
    assert [node.name for node in nodes] == [name for name, _, _ in launches(found)]
    assert {node.kind for node in nodes} == {"COMP_NODE"}
    assert nodes[0].data == () and nodes[5].data == (5,)
    assert nodes[5].attributes == {"is_cpu_op": False, "num_ops": 1_000_000, "tensor_size": 300}
    assert nodes[-1].start + nodes[-1].duration == round(found.seconds.value * 1e6)


def test_traces_of_other_tools_are_read(tmp_path: Path) -> None:
    """Fields in another order, unpacked and packed dependences, attributes of all types."""
    attributes = (
        (b"double", b"\x19" + struct.pack("<d", 0.5), 0.5),
        (b"float", b"\x2d" + struct.pack("<f", 0.25), 0.25),
        (b"int32", b"\x38" + b"\xff" * 9 + b"\x01", -1),
        (b"sint64", b"\x88\x01\x03", -2),
        (b"fixed32", b"\x9d\x01" + struct.pack("<I", 7), 7),
        (b"sfixed64", b"\xc9\x01" + struct.pack("<q", -7), -7),
        (b"text", b"\xea\x01\x02hi", "hi"),
        (b"list", b"\x52\x03\x0a\x01\x05", b"\x0a\x01\x05"),
        (b"none", b"", None),
    )
    node = b"\x18\x07\x08\x03\x22\x01\x01\x20\x02\x38\xac\x02"
    for name, value, _ in attributes:
        content = b"\x0a" + bytes([len(name)]) + name + value
        node += b"\x52" + bytes([len(content)]) + content
    data = [b"\x0a\x050.0.4", b"\x08\x01", b"\x08\x02\x12\x01a", node]
    path = tmp_path / "other.et"
    path.write_bytes(b"".join(size(one) + one for one in data))
    read = read_trace(path)
    assert [one.id for one in read] == [1, 2, 3] and read[1].name == "a"
    assert read[2].kind == "COMM_COLL_NODE" and read[2].control == (1, 2) and read[2].duration == 300
    assert read[2].attributes == {name.decode(): value for name, _, value in attributes}


def size(message: bytes) -> bytes:
    few, many = len(message) & 0x7F, len(message) >> 7
    return bytes([few | 0x80, many]) if many else bytes([few])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not of version 0.0.4"),
        (b"\x07\x0a\x050.0.3", "not of version 0.0.4"),
        (b"\x07\x0a\x050.0.4\x02\x08", "2 bytes are to follow byte 9 of 10"),
        (b"\x07\x0a\x050.0.4\x02\x18\x0b", "11 is the type of a node, expected at most 10"),
        (b"\x07\x0a\x050.0.4\x02\x08\x01\x02\x08\x01", "two nodes have one id"),
        (b"\x07\x0a\x050.0.4\x04\x08\x01\x28\x05", "node 1 depends on 5"),
        (b"\x07\x0a\x050.0.4\x02\x0a\x00", "field 1 has another type"),
        (b"\x07\x0a\x050.0.4\x01\x0b", "wire type 3"),
        (b"\x07\x0a\x050.0.4\x02\x08\x80", "ends within a number"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "x.et").write_bytes(data)
    with pytest.raises(SimtError, match=f"x.et: no Chakra execution trace: .*{why}"):
        read_trace(tmp_path / "x.et")
    with pytest.raises(SimtError, match="cannot be read"):
        read_trace(tmp_path / "none.et")


def test_collectives_are_nodes_of_their_own(tmp_path: Path) -> None:
    rows = [
        operator("prefill", 16, "attention output", 1, 3.0),
        replace(operator("prefill", 16, "all-reduce", 1, 5.0), kernel="all_reduce", nbytes=4096.0),
        replace(operator("prefill", 16, "scores of all", 1, 5.0), kernel="all_gather", nbytes=5000.0),
    ]
    found = Prediction(architecture(TINY), load_spec("h100"), 1, 16, 1, "same", tuple(rows), 4)
    (tmp_path / "t.et").write_bytes(trace(found))
    nodes = read_trace(tmp_path / "t.et")
    assert [node.kind for node in nodes] == ["COMP_NODE", "COMM_COLL_NODE", "COMM_COLL_NODE"]
    # What each of the four GPUs gives: half of what is read and written; one of five shares.
    assert nodes[1].attributes == {"is_cpu_op": False, "comm_type": 0, "comm_size": 2048}
    assert nodes[2].attributes == {"is_cpu_op": False, "comm_type": 2, "comm_size": 1000}
    assert (nodes[1].start, nodes[1].duration, nodes[1].data) == (3, 5, (1,))
