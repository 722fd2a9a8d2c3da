"""Text of every tracer version against a slow reader; errors with line and reason."""

import lzma
from pathlib import Path

import pytest
from slow_reader import cta, header, read_file, read_source, read_text

from simt import _engine
from simt.errors import TraceError
from simt.isa import table_for
from simt.trace import open_trace

BODIES = {
    0: ["0 0 0 0 0008 ffffffff 1 R1 MOV 0 0", "0 0 0 0 0010 0000000f 1 R2 LDG.E.SYS 1 R4 4 1 0x7f00 4"],
    2: ["1 0 0 1 0008 ffffffff 0 BRA 0 0 ", "1 0 0 1 0010 00000003 0 STG.E 2 R4 R5 4 2 0x100 -8 "],
    3: ["0000 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0 ", "0010 80000001 1 R0 LDG.E.U8 1 R4 1 2 0x10 64 "],
    5: [
        "00a0 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0 ",
        "00b0 00000000 0 EXIT 0 0 0 ",
        "00c0 00000000 1 R4 LDG.E 1 R4 4 2 0xdeadbeef 7 ",
        "00d0 00010000 1 R4 LDG.E 1 R4 4 2 0x123456789abc 0 ",
        "00e0 00000007 1 R4 LDG.E 1 R4 4 0 0x0000000000000010 0x0000000000000030 0xffffffffffffff00 0 ",
        "00f0 0000000f 0 STS.128 2 R10 R24 16 2 0x40 16 -16 4096 0 ",
        "0100 ffffffff 1 R0 MOV 0 0 18446744073709551615 ",
        "0110 ffffffff 0 ISETP.GE.AND 1 R0 0 -5",
        "0120 00000001 0 UTMALDG.2D 0 16 4 0x1000 4 128 128 256 0 ",
        "0130 00000001 0 UTMALDG.2D 0 16 3 2 0x1000 0x2000 0 ",
    ],
    6: [
        "0000 ffffffff 2 R1 P0 IADD3.X 3 R2 UR4 UP1 0 5 6 NoVal",
        "0010 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR8 1 0 0 0 Val 1 0xff 1 0x7 1 0x123456",
        "0020 00000001 0 UTMALDG.2D 1 UR8 0 0x3f0 1 0xff 16384 0 4 0x7f0000001000 3 64 64 0 0 NoVal",
        "0030 00000001 0 UBLKCP.S.G 0 0 0x3f0 0 512 0 3 2 0x1000 0x3000 0 0 NoVal",
        "0040 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7000 4 0 0 NoVal",
    ],
}


@pytest.mark.parametrize("version", BODIES)
def test_versions_are_read_as_the_slow_reader_reads_them(version: int, tmp_path: Path) -> None:
    text = (
        header(version or None)
        + cta("1,0,0", BODIES[version], BODIES[version][:1])
        + cta("3,0,0", BODIES[version])
    )
    path = tmp_path / "kernel-1.traceg"
    path.write_text(text)
    expected = read_text(text)
    got = read_file(path)
    for (_, warps), (_, slow) in zip(got, expected, strict=True):
        for lines in (*warps.values(), *slow.values()):
            for i, line in enumerate(lines):  # immediates beyond 63 bits keep their bits
                lines[i] = line.__class__(**{**line.__dict__, "immediate": line.immediate % (1 << 64)})
    assert got == expected


def test_line_numbers_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "k.traceg"
    path.write_text(
        header(4, enable_lineinfo=1)
        + cta("0,0,0", ["17 0000 ffffffff 1 R1 MOV 0 0", "18 0008 ffffffff 0 EXIT 0 0"])
    )
    source = open_trace(path).kernels[0].source()
    assert [i["source_line"] for i in source.instructions()] == [17, 18]


def test_real_traces_are_read_as_the_slow_reader_reads_them(shared_data: Path) -> None:
    for name in ("vectoradd_100_sm61/kernel-1.traceg", "bfs_graph4096_sm80/kernel-10.traceg.xz",
                 "matrixmul_32_sm61/kernel-1.traceg"):  # fmt: skip
        path = shared_data / "traces" / name
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        assert read_file(path) == read_text(data.decode())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_pieces_of_any_size_give_the_same(size: int) -> None:
    text = (header() + cta("0,0,0", BODIES[5], BODIES[5]) + cta("2,0,0", BODIES[5])).encode()

    def blocks(step: int) -> list[bytes]:
        converter = _engine.TraceConverter()
        for i in range(0, len(text), step):
            converter.feed(text[i : i + step])
        converter.finish()
        return [data for _, data in converter.take_blocks()]

    assert blocks(size) == blocks(len(text))


def test_empty_warps_and_ctas_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "k.traceg"
    line = BODIES[5][0]
    path.write_text(
        header() + cta("0,0,0") + cta("1,0,0", [], [line]) + cta("2,0,0", [], []) + cta("3,0,0", [line])
    )
    kernel = open_trace(path).kernels[0]
    assert kernel.counts == {"ctas": 2, "empty_ctas": 2, "warps": 2, "empty_warps": 3, "instructions": 2}
    source = kernel.source()
    assert [source.cta_position(i) for i in range(2)] == [[1, 0, 0], [3, 0, 0]]
    assert [len(w) for w in source.read_cta(0)] == [0, 1]


def test_header_only_kernel_has_no_ctas(tmp_path: Path) -> None:
    path = tmp_path / "k.traceg"
    path.write_text(header())
    source = open_trace(path).kernels[0].source()
    assert (source.cta_count, source.walk()) == (0, (0, 0, {}))


def test_warps_are_those_of_the_block_even_where_the_last_have_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "k.traceg"
    path.write_text(header(block_dim="(256,1,1)") + cta("0,0,0", BODIES[5]))
    assert len(open_trace(path).kernels[0].source().read_cta(0)) == 8


LINE = "0000 ffffffff 1 R1 MOV 0 0 0"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "empty or not a kernel trace"),
        ("hello\n", 1, "where a header line"),
        ("\x00\x01\x02\n", 1, "where a header line"),
        (header(7), 11, "newer than any known"),
        (header(5, grid_dim="(4,1)"), 3, "size such as (8,1,1)"),
        (header(5, grid_dim="(4,0,1)"), 3, "has a zero"),
        (header(5, shmem="lots"), 5, "bytes of shared memory"),
        (header(5, nregs=1 << 40), 6, "registers per thread"),
        (header() + "junk\n", 14, "#BEGIN_TB"),
        (header() + "#BEGIN_TB\nwarp = 0\n", 15, "before the 'thread block"),
        (header() + cta("9,0,0", [LINE]), 16, "outside the grid"),
        (header() + cta("0,0", [LINE]), 16, "position"),
        (header() + cta("0,0,0", [LINE])[:-12], 20, "truncated"),
        (
            header() + cta("0,0,0", [LINE]).replace("insts = 1", "insts = 2"),
            21,
            "before the announced number",
        ),
        (header() + cta("0,0,0", [LINE, LINE]).replace("insts = 2", "insts = 1"), 21, "after the announced"),
        (header() + cta("0,0,0", [LINE]).replace("insts = 1", "insts = -1"), 19, "number of instructions"),
        (header() + cta("0,0,0", [LINE]).replace("warp = 0", "warp = 99999"), 18, "warp number"),
        (header() + cta("0,0,0", [LINE], [LINE]).replace("warp = 1", "warp = 0"), 22, "rising order"),
        (header() + cta("0,0,0", ["0000 ffffffff 9 R1 MOV 0 0 0"]), 20, "destination registers"),
        (header() + cta("0,0,0", ["0000 ffffffff 1 X1 MOV 0 0 0"]), 20, "register such as R12"),
        (header() + cta("0,0,0", ["0000 ffffffff 1 R1 123 0 0 0"]), 20, "an opcode"),
        (header() + cta("0,0,0", ["zzzz ffffffff 1 R1 MOV 0 0 0"]), 20, "PC in hexadecimal"),
        (header() + cta("0,0,0", ["0000 fffffffff00000000 0 NOP 0 0 0"]), 20, "active mask"),
        (header() + cta("0,0,0", ["0000 ffffffff 1 R1 LDG 1 R2 4 9 0x0 0"]), 20, "address mode"),
        (header() + cta("0,0,0", ["0000 ffffffff 1 R1 LDG 1 R2 4 2 0x0 4 4 0"]), 20, "address difference"),
        (header() + cta("0,0,0", ["0000 00000001 1 R1 LDG 1 R2 4 1 5g 4 0"]), 20, "base address"),
        (header() + cta("0,0,0", [LINE + " 1"]), 20, "after the end of the instruction"),
        (header() + cta("0,0,0", ["0000 ffffffff"]), 20, "the line ends"),
        (header(6) + cta("0,0,0", ["0000 ffffffff 0 NOP 0 0 0 0 Maybe"]), 20, "Val or NoVal"),
        (header() + "#BEGIN_TB\n" + cta("0,0,0", [LINE]), 15, "inside another"),
        (header() + "x" * (2 << 20), 14, "longer than"),
        (header() + "\n" * (3 << 20), 1048590, "too many blank lines"),
    ],
)
def test_errors_name_line_and_reason(text: str, line: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.traceg"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        open_trace(path).kernels[0].source()
    message = str(caught.value)
    assert message.startswith(f"{path}: line {line}: ")
    assert reason in message


def test_a_failed_conversion_leaves_nothing_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + cta("0,0,0", [LINE])[:-12])
    with pytest.raises(TraceError):
        open_trace(path).kernels[0].source()
    assert list((tmp_path / "cache" / "traces").iterdir()) == []


def test_text_from_the_file_cannot_drive_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.traceg"
    path.write_text("\x1b[31mred\n")
    with pytest.raises(TraceError) as caught:
        open_trace(path)
    assert "\x1b" not in str(caught.value)


def test_many_distinct_instructions_at_one_pc_stay_apart() -> None:
    lines = [f"0010 ffffffff 1 R{i % 200} IADD3 1 R{i % 7} 0 {i} " for i in range(3000)]
    text = header() + cta("0,0,0", lines)
    converter = _engine.TraceConverter()
    converter.feed(text.encode())
    converter.finish()
    blocks = converter.take_blocks()
    source = _engine.TraceSource(
        converter.launch,
        converter.opcodes,
        converter.instructions,
        [summary for summary, _ in blocks],
        1,
        table_for(80)[0].native,
        lambda i: blocks[i][1],
    )
    assert read_source(source) == read_text(text)
