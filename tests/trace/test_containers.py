"""Compression, .tracez, un-grouped traces and launch lists."""

from __future__ import annotations

import gzip
import lzma
import random
import struct
from pathlib import Path

import pytest
import zstandard
from slow_reader import cta, header, read_file, read_text

from simt.errors import TraceError
from simt.trace import Copy, check_trace, convert, open_trace, to_text
from simt.trace.regroup import grouped_windows

LINES = [
    "0000 ffffffff 1 R1 MOV 0 0 0 ",
    "0010 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0 ",
    "0020 ffffffff 0 EXIT 0 0 0 ",
]
TEXT = header() + cta("0,0,0", LINES, LINES) + cta("1,0,0", LINES)

PACK = {
    ".traceg": lambda data: data,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("hidden", [False, True])
def test_compressed_text(suffix: str, hidden: bool, tmp_path: Path) -> None:
    # Also by content: a compressed file is recognised even if its name has no such suffix.
    path = tmp_path / ("k.traceg" if hidden else f"k.traceg{suffix}")
    path.write_bytes(PACK[suffix](TEXT.encode()))
    assert read_file(path) == read_text(TEXT)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_parts_one_after_the_other(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"k.traceg{suffix}"
    data = TEXT.encode()
    path.write_bytes(PACK[suffix](data[:100]) + PACK[suffix](data[100:]))
    assert read_file(path) == read_text(TEXT)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_every_truncation_is_an_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"k.traceg{suffix}"
    whole = PACK[suffix](TEXT.encode())
    for size in range(0, len(whole), 5):
        path.write_bytes(whole[:size])
        with pytest.raises(TraceError, match="traceg"):
            open_trace(path).kernels[0].source()


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_wrong_compression_is_an_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"k.traceg{suffix}"
    path.write_text(TEXT)
    with pytest.raises(TraceError, match=f"the name says {suffix[1:]}"):
        open_trace(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xz", ".zst", ".gz"])
def test_decompression_bombs_end_soon(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"k.traceg{suffix}"
    path.write_bytes(PACK[suffix](header().encode() + b"\0" * (256 << 20)))
    with pytest.raises(TraceError, match="longer than"):
        open_trace(path).kernels[0].source()


def tracez(head: str, ctas: list[tuple[tuple[int, ...], list[list[str]]]], per_chunk: int = 2) -> bytes:
    """The container of Accel-Sim 2.0, as far as defined by its public writer."""
    dictionary = zstandard.train_dictionary(
        1024, [f"{i:04x} ffffffff 1 R{i} LDG.E 1 R4 4 1 0x{i * 977:x} 4 0 ".encode() for i in range(800)]
    )
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    raw = dictionary.as_bytes()
    out = head.encode() + b"\0" + struct.pack("<II", len(raw), per_chunk) + raw
    index = struct.pack("<I", len(ctas))
    for position, warps in ctas:
        index += struct.pack("<11I", *position, len(warps))
        for lines in warps:
            chunks = [lines[i : i + per_chunk] for i in range(0, len(lines), per_chunk)]
            index += struct.pack("<IIQ", len(lines), len(chunks), len(out))
            index += struct.pack(f"<{len(chunks)}I", *map(len, chunks))
            out += struct.pack("<II", len(lines), len(chunks))
            for chunk in chunks:
                data = compressor.compress("\n".join(chunk).encode())
                out += struct.pack("<I", len(data)) + data
    return out + index + struct.pack("<Q", len(out))


V6 = [f"{line}0 NoVal" for line in LINES]
POSITION = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
TRACEZ = tracez(header(6), [(POSITION, [V6, V6[:1]]), ((1, 0, 0, 0, 0, 0, 1, 0, 0, 1), [V6])])


def test_tracez(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.tracez"
    path.write_bytes(TRACEZ)
    assert read_file(path) == read_text(header(6) + cta("0,0,0", V6, V6[:1]) + cta("1,0,0", V6))


@pytest.mark.slow
def test_damaged_tracez_is_an_error_or_reads(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.tracez"
    rng = random.Random(5)
    errors = 0
    for _ in range(300):
        data = bytearray(TRACEZ)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]))
        try:
            open_trace(path).kernels[0].source().walk(True)
        except TraceError:
            errors += 1
    assert errors > 100


def ungrouped(version: int, lines: dict[tuple[int, int], list[str]], prefix: str = "") -> str:
    """Lines of several warps in arrival order, as the tracer writes them."""
    rng = random.Random(1)
    queues = {key: list(value) for key, value in lines.items()}
    text = header(version)
    while queues:
        key = rng.choice(sorted(queues))
        clusters = " 0 0 0 0 0 0 0" if version >= 6 else prefix
        text += f"{key[0]} 0 0 {key[1]}{clusters} {queues[key].pop(0)}\n"
        if not queues[key]:
            del queues[key]
    return text


@pytest.mark.parametrize(("version", "prefix"), [(5, ""), (5, " 13 2"), (6, ""), (4, "")])
@pytest.mark.parametrize("buffer", [1 << 20, 200])
def test_ungrouped_traces_are_sorted(version: int, prefix: str, buffer: int, tmp_path: Path) -> None:
    lines = [f"{i * 16:04x} ffffffff 1 R{i} IADD3 1 R{i} 0 {i if version > 4 else ''}" for i in range(9)]
    warps = {(c, w): lines[: 3 + c + w] for c in (2, 0, 1) for w in (1, 0)}
    path = tmp_path / "kernel-1.trace"
    path.write_text(ungrouped(version, warps, prefix))
    grouped = b"".join(piece for piece, _ in grouped_windows(path, buffer)).decode()
    expected = header(version) + "".join(cta(f"{c},0,0", warps[c, 0], warps[c, 1]) for c in range(3))
    assert read_text(grouped) == read_text(expected)
    assert read_file(path) == read_text(expected)


def test_ungrouped_without_version_keeps_its_prefix(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.trace"
    path.write_text(ungrouped(2, {(0, 0): LINES[:1], (3, 1): LINES[:1]}))
    assert [position for position, _ in read_file(path)] == [(0, 0, 0), (3, 0, 0)]


@pytest.mark.parametrize("buffer", [1 << 20, 60])
def test_of_each_ldgsts_pair_the_second_stays(buffer: int, tmp_path: Path) -> None:
    shared = "0010 ffffffff 0 LDGSTS.E.128 2 R4 R6 16 1 0x0 16 0"
    far = "0010 ffffffff 0 LDGSTS.E.128 2 R4 R6 16 1 0x7f0000000000 16 0"
    arrives = "0020 ffffffff 0 ARRIVES.LDGSTSBAR 1 R4 0 0"
    path = tmp_path / "kernel-1.trace"
    path.write_text(ungrouped(5, {(c, 0): [shared, far, arrives, shared, far] for c in range(3)}))
    text = b"".join(piece for piece, _ in grouped_windows(path, buffer)).decode()
    assert read_text(text) == read_text(
        header() + "".join(cta(f"{c},0,0", [far, arrives, far]) for c in range(3))
    )


def test_launch_list(tmp_path: Path) -> None:
    (tmp_path / "kernel-1.traceg").write_text(TEXT)
    (tmp_path / "kernelslist.g").write_text(
        "MemcpyHtoD,0x00007fb0fc400000,200000\n\n# comment\nkernel-1.traceg\nMemcpyDtoH,0x1,4\n"
        "cudaMalloc,0x10,4\ncudaMalloc,0x20,4\nncclAllReduce\nkernel-1.traceg\n"
    )
    for path in (tmp_path, tmp_path / "kernelslist.g"):
        trace = open_trace(path)
        assert trace.commands[0] == Copy(0x7FB0FC400000, 200000)
        assert [k.name for k in trace.kernels] == ["k", "k"]
        assert trace.warnings == [
            "kernelslist.g: 2 lines with the unknown command 'cudaMalloc' skipped",
            "kernelslist.g: 1 line with the unknown command 'ncclAllReduce' skipped",
        ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("MemcpyHtoD,0x10", "line 2: found 'MemcpyHtoD,0x10', expected"),
        ("MemcpyHtoD,xyz,4", "expected 'MemcpyHtoD"),
        ("MemcpyHtoD,0x10,-4", "expected 'MemcpyHtoD"),
        ("MemcpyHtoD,0x1ffffffffffffffff,4", "expected 'MemcpyHtoD"),
        ("kernel-7.traceg", "kernel-7.traceg does not exist"),
        ("\x01\x02", "not a launch list"),
        ("MemcpyDtoH,0x1,4\nhello, kernel-1.traceg", "found 'hello' and no launch"),
    ],
)
def test_bad_launch_lists(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "kernelslist.g"
    path.write_text(f"\n{line}\n")
    with pytest.raises(TraceError) as caught:
        open_trace(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        open_trace(tmp_path / "nothing")
    with pytest.raises(TraceError, match="expected a launch list"):
        open_trace(tmp_path)
    (tmp_path / "kernel-1.traceg").mkdir()
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
    with pytest.raises(TraceError, match="does not exist"):
        open_trace(tmp_path)


def test_check_reports_each_kernel(tmp_path: Path) -> None:
    (tmp_path / "kernel-1.traceg").write_text(TEXT)
    (tmp_path / "kernel-2.traceg").write_text(TEXT[:-20])
    (tmp_path / "kernel-3.traceg").write_text(
        header(binary_version=95) + cta("0,0,0", ["0000 1 0 FROB 0 0 0"])
    )
    (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\nkernel-2.traceg\nkernel-3.traceg\n")
    reports, warnings = check_trace(tmp_path)
    assert warnings == []
    assert [r.problem is None for r in reports] == [True, False, True]
    assert reports[0].counts["instructions"] == 9
    assert reports[0].notes == ["2 of the grid's 4 thread blocks are not in the trace"]
    assert "truncated" in str(reports[1].problem)
    assert reports[2].notes == [
        "no opcode table for sm_95; the nearest, hopper (sm_90), is used",
        "3 of the grid's 4 thread blocks are not in the trace",
        "opcode FROB is unknown; simulated as an integer operation",
    ]


@pytest.mark.parametrize("name", ["kernelslist.g", "kernelslist-plan", "plan.g"])
def test_a_launch_list_of_any_usual_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "kernel-7.traceg").write_text(TEXT)
    (tmp_path / name).write_text("kernel-7.traceg\n")
    assert [k.path.name for k in open_trace(tmp_path / name).kernels] == ["kernel-7.traceg"]


@pytest.mark.parametrize("extra", ["", ".xz"])
def test_folders_of_contexts(extra: str, tmp_path: Path) -> None:
    """As Accel-Sim's tracer writes them: a folder for each context, with a launch list of its own."""
    for context, name in (("ctx_0x55d0c90b7720", "second"), ("ctx_0x55d0c8f0a1b0", "first")):
        folder = tmp_path / "traces" / context
        folder.mkdir(parents=True)
        text = (header(kernel_name=name) + cta("0,0,0", ["0000 1 0 EXIT 0 0 0"])).encode()
        (folder / f"kernel-1.traceg{extra}").write_bytes(lzma.compress(text) if extra else text)
        (folder / "kernelslist.g").write_text(f"MemcpyHtoD,0x10,64\nkernel-1.traceg{extra}\n{name}\n")
    trace = open_trace(tmp_path / "traces")
    assert [c.name if not isinstance(c, Copy) else c.bytes for c in trace.commands] == [
        64,
        "first",
        64,
        "second",
    ]
    assert trace.warnings == [
        "ctx_0x55d0c8f0a1b0: kernelslist.g: 1 line with the unknown command 'first' skipped",
        "ctx_0x55d0c90b7720: kernelslist.g: 1 line with the unknown command 'second' skipped",
        "the launches of 2 contexts (ctx_0x55d0c8f0a1b0, ctx_0x55d0c90b7720) follow one another, context by "
        "context",
    ]
    assert [k.counts["instructions"] for k in trace.kernels] == [1, 1]
    assert all(report.problem is None for report in check_trace(tmp_path / "traces")[0])
    # A list of its own comes first, and a context without one is an error that names it.
    (tmp_path / "traces" / "ctx_0x55d0c8f0a1b0" / "kernelslist.g").unlink()
    with pytest.raises(
        TraceError, match=r"ctx_0x55d0c8f0a1b0: expected a launch list.*such as kernel-1\.traceg"
    ):
        open_trace(tmp_path / "traces")
    (tmp_path / "traces" / "kernelslist.g").write_text("MemcpyHtoD,0x10,64\n")
    assert open_trace(tmp_path / "traces").commands == [Copy(16, 64)]


def test_negative_streams(tmp_path: Path) -> None:
    """Old tracers number the default stream -1; it is kept through the store and back to text."""
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header(cuda_stream_id=-1) + cta("0,0,0", ["0000 1 0 EXIT 0 0 0"]))
    assert open_trace(path).kernels[0].stream == (1 << 64) - 1
    convert(path, tmp_path / "a.simt")
    to_text(tmp_path / "a.simt", tmp_path / "text")
    again = tmp_path / "text" / "kernel-1.traceg"
    assert "-cuda stream id = -1\n" in again.read_text()
    assert open_trace(again).kernels[0].stream == (1 << 64) - 1
    path.write_text(header(cuda_stream_id="-") + cta("0,0,0", ["0000 1 0 EXIT 0 0 0"]))
    with pytest.raises(TraceError, match="found '-' where a stream number was expected"):
        open_trace(path)


def test_check_notes_null_addresses(tmp_path: Path) -> None:
    """Of global memory, in all forms of address lists; shared memory may begin at 0."""
    lines = [
        "0000 ffffffff 1 R4 LDG.E 1 R4 4 1 0x0 0 0",
        "0000 ffffffff 1 R4 LDG.E 1 R4 4 1 0xffc 4 0",
        "0000 ffffffff 1 R4 LDG.E 1 R4 4 1 0x1000 4 0",
        "0010 00000003 0 STG.E 2 R4 R1 4 0 0x0 0x0 0",
        "0020 00000003 1 R4 LD.E 1 R4 4 2 0x0 0 0",
        "0030 ffffffff 1 R4 LDS 1 R4 4 1 0x0 4 0",
        "0040 00000000 1 R4 LDG.E 1 R4 4 1 0x0 0 0",
        "0050 ffffffff 0 EXIT 0 0 0",
    ]
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header(grid_dim="(1,1,1)") + cta("0,0,0", lines))
    (report,), _ = check_trace(path)
    assert report.notes == [
        "4 accesses of global memory have null addresses (LDG.E: 2, STG.E: 1, LD.E: 1): the tracer did not "
        "record them; they all hit the same line, so cycles and misses are too low. Trace it again"
    ]
    convert(path, tmp_path / "a.simt")
    assert check_trace(tmp_path / "a.simt")[0][0].notes == report.notes
