"""The trace store: round trips, long CTAs, damage, conversion and cache."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow_reader import cta, header, read_file, read_source, read_text

from simt import _engine
from simt.errors import TraceError
from simt.isa import table_for
from simt.trace import Copy, check_trace, convert, open_trace, regroup, streams, to_text
from simt.trace.convert import convert_kernel
from simt.trace.store import _HEADER, FORMAT_VERSION, MAGIC, StoreWriter

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def blocks_of(text: str) -> tuple[_engine.TraceConverter, list[tuple[tuple[int, int, int, int, int], bytes]]]:
    converter = _engine.TraceConverter()
    converter.feed(text.encode())
    converter.finish()
    return converter, converter.take_blocks()


def source_of(text: str) -> tuple[_engine.TraceSource, int]:
    """An instruction source straight from the encoder, and its number of blocks."""
    converter, blocks = blocks_of(text)
    source = _engine.TraceSource(
        converter.launch,
        converter.opcodes,
        converter.instructions,
        [summary for summary, _ in blocks],
        converter.counts.ctas,
        table_for(80)[0].native,
        lambda i: blocks[i][1],
    )
    return source, len(blocks)


masks = st.one_of(
    st.just(0xFFFFFFFF), st.integers(0, 0xFFFFFFFF), st.integers(0, 31).map(lambda lane: 1 << lane)
)
addresses = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 1 << 20),
    st.integers(0, 300).map(lambda i: 0x7F0000000000 + 32 * i),
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    pc = draw(st.integers(0, 12)) * 16
    mask = draw(masks)
    head = f"{pc:04x} {mask:08x} "
    if draw(st.booleans()):
        return head + f"1 R{pc % 7} FFMA 2 R1 R2 0 {draw(st.integers(-3, 3))}"
    count = bin(mask).count("1")
    head += "1 R4 LDG.E 1 R2 4 "
    base = draw(addresses)
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return head + f"1 0x{base:x} {draw(st.integers(-(1 << 40), 1 << 40))} 0"
    if kind == 1:
        return head + " ".join(["0", *(f"0x{draw(addresses):x}" for _ in range(count)), "0"])
    step = draw(st.sampled_from([0, 4, -32, 1 << 33, (1 << 63) - 1]))
    deltas = [str(step + (i % 3 if kind == 2 else 0)) for i in range(max(count - 1, 0))]
    return head + " ".join([f"2 0x{base:x}", *deltas, "0"])


kernels = st.lists(st.lists(st.lists(lines(), max_size=8), max_size=3), min_size=0, max_size=4)


def text_of(ctas: list[list[list[str]]]) -> str:
    return header(5) + "".join(cta(f"{i},0,0", *warps) for i, warps in enumerate(ctas))


@pytest.mark.slow
@quick
@given(kernels)
def test_any_trace_comes_back(ctas: list[list[list[str]]]) -> None:
    text = text_of(ctas)
    assert read_source(source_of(text)[0]) == read_text(text)


@pytest.mark.slow
@quick
@given(kernels)
def test_text_written_back_says_the_same(ctas: list[list[list[str]]]) -> None:
    text = text_of(ctas)
    writer = _engine.TextWriter(source_of(text)[0])
    again = b"".join(iter(writer.next_piece, b"")).decode()
    assert read_text(again) == read_text(text)


def long_cta(warps: int, instructions: int, seed: int = 0) -> str:
    """CTAs that fill several blocks: irregular addresses, which do not compress."""
    rng = random.Random(seed)

    def line() -> str:
        if rng.random() < 0.4:
            return f"{rng.randrange(40) * 16:04x} {rng.getrandbits(32):08x} 1 R1 FFMA 2 R1 R2 0 0"
        where = " ".join(f"0x{rng.getrandbits(40):x}" for _ in range(32))
        return f"{1024 + rng.randrange(300) * 16:04x} ffffffff 1 R4 LDG.E 1 R2 4 0 {where} 0"

    counts = [instructions, *(rng.randrange(1, instructions) for _ in range(warps - 1))]
    return header(5) + "".join(
        cta(f"{i},0,0", *([line() for _ in range(n)] for n in counts[: warps - i])) for i in range(2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("warps", [1, 5])
def test_a_cta_longer_than_a_block(warps: int) -> None:
    text = long_cta(warps, 6000)
    source, blocks = source_of(text)
    assert blocks >= 3
    assert read_source(source) == read_text(text)
    # Interleaving the warps, so that several blocks are open at once, gives the same number.
    assert source.walk(True)[0] == sum(len(w) for _, ws in read_text(text) for w in ws.values())


def test_blocks_are_fetched_again_only_when_needed() -> None:
    line = "0000 ffffffff 1 R4 LDG.E 1 R2 4 1 0x{:x} 4 0"
    text = header(5, grid_dim="(40000,1,1)") + "".join(
        cta(f"{i},0,0", [line.format(i * 128)], [line.format(i * 77)]) for i in range(40000)
    )
    converter, blocks = blocks_of(text)
    fetched: list[int] = []

    def fetch(index: int) -> bytes:
        fetched.append(index)
        return blocks[index][1]

    source = _engine.TraceSource(
        converter.launch, converter.opcodes, converter.instructions, [s for s, _ in blocks], 40000,
        table_for(80)[0].native, fetch,
    )  # fmt: skip
    assert source.walk()[0] == 80000
    assert len(blocks) > 2
    assert fetched == list(range(len(blocks)))


def test_regular_warps_cost_next_to_nothing(tmp_path: Path) -> None:
    body = ["0000 ffffffff 1 R1 MOV 0 0 0"] * 10
    text = header(5, grid_dim="(2000,1,1)") + "".join(
        cta(
            f"{c},0,0",
            *([*body, f"0010 ffffffff 1 R4 LDG.E 1 R4 4 1 0x{(c * 8 + w) * 128:x} 4 0"] for w in range(8)),
        )
        for c in range(2000)
    )
    path = tmp_path / "kernel-1.traceg"
    path.write_text(text)
    convert(path, tmp_path / "k.simt")
    assert (tmp_path / "k.simt").stat().st_size < 2000 * 8 * 11 * 0.05


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    (folder / "kernel-1.traceg").write_text(long_cta(3, 300))
    (folder / "kernel-2.traceg").write_text(header(5, kernel_id=2) + cta("0,0,0", ["0000 1 0 NOP 0 0 0"]))
    (folder / "kernelslist.g").write_text("MemcpyHtoD,0x100,32\nkernel-1.traceg\nkernel-2.traceg\n")
    convert(folder, folder / "all.simt")
    return folder / "all.simt"


def test_a_store_holds_the_whole_list(store: Path) -> None:
    text, stored = open_trace(store.parent / "kernelslist.g"), open_trace(store)
    assert stored.commands[0] == text.commands[0]
    for a, b in zip(text.kernels, stored.kernels, strict=True):
        assert (a.id, a.name, a.grid, a.block, a.registers) == (b.id, b.name, b.grid, b.block, b.registers)
        assert read_source(a.source()) == read_source(b.source())


def test_a_store_converts_into_the_same_store(store: Path, tmp_path: Path) -> None:
    convert(store, tmp_path / "again.simt")
    assert (tmp_path / "again.simt").read_bytes() == store.read_bytes()


def test_store_to_text_and_back(store: Path, tmp_path: Path) -> None:
    written = to_text(store, tmp_path / "text")
    convert(written, tmp_path / "again.simt")
    a, b = open_trace(store), open_trace(tmp_path / "again.simt")
    assert a.commands[0] == b.commands[0]
    for k, m in zip(a.kernels, b.kernels, strict=True):
        assert read_source(k.source()) == read_source(m.source())


def test_a_damaged_store_is_an_error(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.simt"
    whole = store.read_bytes()
    rng = random.Random(3)
    positions = {
        *range(16),
        *range(len(whole) - 32, len(whole)),
        *(rng.randrange(len(whole)) for _ in range(200)),
    }
    for position in sorted(positions - set(range(12, 16))):  # bytes 12 to 15 are unused
        data = bytearray(whole)
        data[position] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        with pytest.raises(TraceError):
            reports, _ = check_trace(path)
            for report in reports:
                if report.problem is not None:
                    raise TraceError(report.problem)


def test_a_truncated_store_is_an_error(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.simt"
    whole = store.read_bytes()
    for size in (9, 16, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(TraceError, match="damaged"):
            open_trace(path)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_blocks_never_crash(data: st.DataObject) -> None:
    # With a valid checksum: the decoder itself must withstand any content.
    converter, blocks = _DAMAGED
    changed = []
    for summary, raw in blocks:
        bad = bytearray(raw)
        for _ in range(data.draw(st.integers(0, 4))):
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
        changed.append((summary, bytes(bad[: data.draw(st.sampled_from([len(bad), len(bad) // 2]))])))
    source = _engine.TraceSource(
        converter.launch, converter.opcodes, converter.instructions, [s for s, _ in changed],
        converter.counts.ctas, table_for(80)[0].native, lambda i: changed[i][1],
    )  # fmt: skip
    try:
        count, *_ = source.walk(True)
    except TraceError as error:
        assert "corrupted" in str(error)
    else:
        assert count >= 0


_DAMAGED = blocks_of(long_cta(2, 60))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64), st.integers(0, 200))
def test_damaged_instruction_tables_never_crash(noise: bytes, at: int) -> None:
    converter, blocks = _DAMAGED
    table = converter.instructions[:at] + noise + converter.instructions[at + len(noise) :]
    try:
        source = _engine.TraceSource(
            converter.launch, converter.opcodes, table, [s for s, _ in blocks], converter.counts.ctas,
            table_for(80)[0].native, lambda i: blocks[i][1],
        )  # fmt: skip
        assert len(source.instructions()) >= 0
        source.walk(True)
    except TraceError as error:
        assert "corrupted" in str(error)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\x01", 0),
        (b"\xe1\x02", 0x160),
        (b"\x80\x80\x04", 65535),
        (b"\x81\x80\x04", "corrupted"),
        (b"\x80", "corrupted"),
        (b"\x00\x00", "corrupted"),
    ],
)
def test_constant_operands_are_a_column_that_may_be_missing(
    column: bytes, expected: int | str | None
) -> None:
    converter, blocks = blocks_of(header() + cta("0,0,0", ["0000 1 1 R1 FADD 1 R2 0 0"]))
    arguments = (
        converter.launch, converter.opcodes, converter.instructions + column, [s for s, _ in blocks],
        converter.counts.ctas, table_for(80)[0].native, lambda i: blocks[i][1],
    )  # fmt: skip
    if expected == "corrupted":
        with pytest.raises(TraceError, match="corrupted"):
            _engine.TraceSource(*arguments)
        return
    (instruction,) = _engine.TraceSource(*arguments).instructions()
    assert instruction["constant_operand"] == expected


def test_the_cache_is_used_and_notices_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + cta("0,0,0", ["0000 1 0 NOP 0 0 0"]))
    open_trace(path).kernels[0].source()
    (cached,) = (tmp_path / "cache" / "traces").iterdir()
    before = cached.stat().st_mtime_ns
    assert open_trace(path).kernels[0].counts["instructions"] == 1
    assert cached.stat().st_mtime_ns == before
    cached.write_bytes(cached.read_bytes()[:50])  # a damaged entry is rewritten
    assert open_trace(path).kernels[0].counts["instructions"] == 1
    path.write_text(header() + cta("0,0,0", ["0000 1 0 NOP 0 0 0"] * 2))
    assert open_trace(path).kernels[0].counts["instructions"] == 2


def test_a_cache_that_cannot_be_written_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("SIMT_CACHE", str(blocked / "cache"))
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + cta("0,0,0", ["0000 1 0 NOP 0 0 0"]))
    assert open_trace(path).kernels[0].source().walk()[0] == 1


def test_several_at_once_fill_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "kernel-1.traceg"
    path.write_text(long_cta(2, 200))
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(open_trace(path).kernels[0].source().walk()[0]))
        for _ in range(6)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(counts) == 6
    assert len(set(counts)) == 1
    assert len(list((tmp_path / "cache" / "traces").iterdir())) == 1


def test_convert_leaves_nothing_where_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + "#BEGIN_TB\n")
    with pytest.raises(TraceError):
        convert(path, tmp_path / "out" / "k.simt")
    assert list((tmp_path / "out").iterdir()) == []


def test_convert_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + cta("0,0,0", ["0000 1 0 NOP 0 0 0"]))
    calls: list[tuple[int, int]] = []
    convert(path, tmp_path / "k.simt", lambda done, total: calls.append((done, total)))
    size = os.path.getsize(path)
    assert calls[-1] == (size, size)


@pytest.fixture
def twenty_kernels(tmp_path: Path) -> Path:
    """Kernels of one to twenty blocks' worth, the longest first, with a copy between any two."""
    folder = tmp_path / "twenty"
    folder.mkdir()
    for i in range(20):
        text = header(5, kernel_id=i) + cta("0,0,0", ["0000 1 0 NOP 0 0 0"] * (20 - i) * 500)
        (folder / f"kernel-{i}.traceg").write_text(text)
    (folder / "kernelslist.g").write_text(
        "".join(f"MemcpyHtoD,0x{256 * i:x},32\nkernel-{i}.traceg\n" for i in range(20))
    )
    return folder


def test_kernels_converted_side_by_side_are_as_one_after_the_other(
    twenty_kernels: Path, tmp_path: Path
) -> None:
    done: list[tuple[int, int]] = []
    convert(twenty_kernels, tmp_path / "all.simt", lambda *position: done.append(position))
    trace = open_trace(twenty_kernels)
    with StoreWriter(tmp_path / "each.simt") as writer:
        for command in trace.commands:
            if isinstance(command, Copy):
                writer.add_copy(command)
            else:
                convert_kernel(command.path, writer)
        writer.finish(trace.warnings)
    assert (tmp_path / "all.simt").read_bytes() == (tmp_path / "each.simt").read_bytes()
    total = sum(k.path.stat().st_size for k in trace.kernels)
    assert done == sorted(done)
    assert done[-1] == (total, total)


def test_of_several_bad_kernels_the_first_is_named(twenty_kernels: Path, tmp_path: Path) -> None:
    for i in (15, 7, 12):
        (twenty_kernels / f"kernel-{i}.traceg").write_text(header(5) + "#BEGIN_TB\n")
    with pytest.raises(TraceError, match=r"kernel-7\.traceg"):
        convert(twenty_kernels, tmp_path / "out" / "all.simt")
    assert list((tmp_path / "out").iterdir()) == []


def test_several_kernels_are_parsed_at_once(
    twenty_kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["simt.trace.convert"], "_KERNELS_AT_ONCE", 3)
    met = threading.Barrier(3, timeout=60)  # broken unless three kernels are read at the same time
    read = streams.text_windows

    def meet(path: Path) -> Iterator[tuple[bytes, int]]:
        if path.stem in ("kernel-0", "kernel-1", "kernel-2"):
            met.wait()
        return read(path)

    monkeypatch.setattr(regroup, "text_windows", meet)
    convert(twenty_kernels, tmp_path / "all.simt")
    assert len(open_trace(tmp_path / "all.simt").kernels) == 20


@pytest.mark.slow
def test_real_traces_survive_the_round_trip(shared_data: Path, tmp_path: Path) -> None:
    for name in ("bfs_graph4096_sm80", "vectoradd_50k_sm80", "ffma_1x32_10_sm90"):
        original = open_trace(shared_data / "traces" / name)
        written = open_trace(to_text(shared_data / "traces" / name, tmp_path / name))
        for a, b in zip(original.kernels, written.kernels, strict=True):
            assert a.source().walk(True) == b.source().walk(True)

    # Version 5 text is restored line by line as the tracer wrote it.
    def body(path: Path) -> list[str]:
        text = path.read_text()
        return [line for line in text[text.index("#BEGIN_TB") :].splitlines() if line]

    real = shared_data / "traces" / "vectoradd_50k_sm80" / "kernel-1.traceg"
    assert body(tmp_path / "vectoradd_50k_sm80" / "kernel-1.traceg") == body(real)
    assert read_file(real)[0][0] == (0, 0, 0)


def test_a_store_of_a_later_format_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "later.simt"
    path.write_bytes(_HEADER.pack(MAGIC, FORMAT_VERSION + 1, 0) + bytes(64))
    with pytest.raises(TraceError, match=rf"later\.simt: the store has format version {FORMAT_VERSION + 1}"):
        open_trace(path)
