"""Issue by control bits: stall counts, yield, dependence counters, reuse (Huerta et al., MICRO 2025).

Each program is a trace to which control bits are added. Cycles are those of `rtx3070`, whose core is the
paper's: fixed latency 4, LDG 32 and LDS 24 cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt import _engine
from simt._engine import testing
from simt.errors import TraceError
from simt.isa import table_for
from simt.spec import load_spec
from simt.trace import open_trace
from simt.trace.writer import Warp
from support.tiny import GLOBAL, MOST_CYCLES, finished, write_kernel

GENERAL, UNIFORM, PREDICATE = 0, 1, 2
NONE = 7
Row = tuple[Any, ...]


@dataclass
class Code:
    """A warp's instructions, each with control bits."""

    warp: Warp = field(default_factory=Warp)
    controls: list[int] = field(default_factory=list)
    changes: dict[int, Callable[[Row], Row]] = field(default_factory=dict)

    def add(
        self,
        opcode: str,
        destination: int | None = None,
        sources: Sequence[int] = (),
        *,
        stall: int = 1,
        yields: bool = False,
        write: int = NONE,
        read: int = NONE,
        waits: Sequence[int] = (),
        reuse: Sequence[int] = (),
        addresses: Sequence[int] | None = None,
        mask: int = 0xFFFFFFFF,
        immediate: int = 0,
        change: Callable[[Row], Row] | None = None,
    ) -> Code:
        if change is not None:
            self.changes[len(self.controls)] = change
        if addresses is None:
            self.warp.op(opcode, destination, sources, immediate, mask)
        else:
            self.warp.memory(opcode, addresses, 4, destination, sources, immediate)
        mask_of = lambda bits: sum(1 << b for b in bits)  # noqa: E731
        self.controls.append(
            stall | (not yields) << 4 | write << 5 | read << 8 | mask_of(waits) << 11 | mask_of(reuse) << 17
        )
        return self

    def end(self) -> Code:
        self.controls.append(1 | 1 << 4 | NONE << 5 | NONE << 8)
        return self


def rows_of(code: Code, rows: list[Row]) -> list[Row]:
    """The instruction table with control bits; every register is 32 bits wide, slots are in order."""
    result = []
    for i, (row, bits) in enumerate(zip(rows, code.controls, strict=True)):
        pc, opcode, immediate, immediate2, destinations, sources, _ = row
        sources = [(index, file, width, slot) for slot, (index, file, width, _) in enumerate(sources)]
        row = (pc, opcode, immediate, immediate2, destinations, sources, bits)
        result.append(code.changes[i](row) if i in code.changes else row)
    return result


def source_of(folder: Path, code: Code, warps: int = 1, ctas: int = 1) -> _engine.TraceSource:
    code.end()
    folder = write_kernel(folder, [[code.warp] * warps] * ctas, sm=86, shared_bytes=4096)
    kernel = open_trace(folder).kernels[0]
    reader, summary = kernel.stored()
    parts = reader.parts(summary)
    table = reader.part(parts.instructions, 1 << 20)
    rows = testing.instruction_rows(table, len(parts.opcodes))
    return _engine.TraceSource(
        kernel.launch,
        parts.opcodes,
        testing.with_instruction_rows(table, len(parts.opcodes), rows_of(code, rows)),
        [block for _, block in parts.blocks],
        summary.counts["ctas"],
        table_for(86)[0].native,
        lambda i: reader.part(parts.blocks[i][0], 1 << 23),
    )


def run(folder: Path, code: Code, gpu: str = "rtx3070", warps: int = 1) -> dict[str, Any]:
    together = {"sm.front_end.instruction_cache.perfect": True, "launch.warp_start_interval": 0}
    engine = _engine.Gpu(load_spec(gpu, together).native(), 1)
    engine.launch(source_of(folder, code, warps), 1)
    assert engine.run(MOST_CYCLES)
    (record,) = finished(engine)
    return record


def cycles(folder: Path, code: Code, warps: int = 1) -> int:
    record = run(folder, code, warps=warps)
    return int(record["end_cycle"] - record["start_cycle"] - record["launch_latency"])


def uncovered(folder: Path, code: Code) -> int:
    return int(run(folder, code)["counters"]["uncovered_dependences"])


def distance(
    tmp_path: Path, build: Callable[[Code], object], warps: int = 1, counts: tuple[int, int] = (10, 50)
) -> float:
    """Cycles by which one repetition lengthens a kernel."""
    times = []
    for count in counts:
        code = Code()
        for _ in range(count):
            build(code)
        folder = tmp_path / f"{count}-{len(list(tmp_path.iterdir()))}"
        times.append(cycles(folder, code, warps=warps))
    return (times[1] - times[0]) / (counts[1] - counts[0])


@pytest.mark.parametrize(
    ("stall", "yields", "expected"),
    [
        *((n, False, n) for n in (1, 2, 4, 11)),
        *((n, True, n) for n in (2, 4, 12, 15)),
        (1, True, 2),
        (0, False, 1),
        (0, True, 45),
        (12, False, 2),
        (15, False, 2),
    ],
)
def test_stall_counts(stall: int, yields: bool, expected: int, tmp_path: Path) -> None:
    assert distance(tmp_path, lambda c: c.add("FFMA", 8, stall=stall, yields=yields)) == expected


def test_another_warp_fills_the_bubble_of_a_yield(tmp_path: Path) -> None:
    """Warps 0 and 4 share a sub-core."""
    assert distance(tmp_path, lambda c: c.add("FFMA", 8, yields=True), warps=1) == 2
    assert distance(tmp_path, lambda c: c.add("FFMA", 8, yields=True), warps=5) == 2
    assert distance(tmp_path, lambda c: c.add("FFMA", 8), warps=5) == 2


def access(opcode: str, width: int, uniform: bool = False) -> Callable[..., object]:
    """Adds an access of all lanes to one place; registers of `width` hold the data."""
    store = opcode.startswith("ST")
    addresses = [GLOBAL if "G" in opcode else 0] * 32

    def change(row: Row) -> Row:
        pc, code, first, second, destinations, sources, bits = row
        if uniform:
            sources[0] = (4, UNIFORM, 2, 0)
        if store:
            sources[1] = (*sources[1][:2], width, 1)
        destinations = [(index, file, width, 0) for index, file, _, _ in destinations]
        return pc, code, first, second, destinations, sources, bits

    def add(code: Code, **control: Any) -> None:
        registers = (None, (2, 12)) if store else (12, (2,))
        code.add(opcode, *registers, addresses=addresses, change=change, **control)

    return add


@pytest.mark.parametrize(
    ("opcode", "width", "uniform", "expected"),
    [
        ("LDG.E", 1, False, 32), ("LDG.E.64", 2, False, 34), ("LDG.E.128", 4, False, 38),
        ("LDG.E", 1, True, 29), ("LDG.E.64", 2, True, 31), ("LDG.E.128", 4, True, 35),
        ("LDS", 1, False, 24), ("LDS.64", 2, False, 24), ("LDS.128", 4, False, 26),
        ("LDS", 1, True, 23),
    ],
)  # fmt: skip
def test_waits_for_results(opcode: str, width: int, uniform: bool, expected: int, tmp_path: Path) -> None:
    """MICRO'25, Table 2: RAW/WAW. The next access issues a cycle after the instruction that waits."""
    append = access(opcode, width, uniform)

    def build(code: Code) -> None:
        append(code, stall=2, write=0)
        code.add("FFMA", 8, (12,), waits=(0,))

    assert distance(tmp_path, build) == expected + 1


@pytest.mark.parametrize(
    ("opcode", "width", "uniform", "expected"),
    [
        ("LDG.E", 1, False, 11), ("LDG.E", 1, True, 9), ("LDS", 1, False, 9), ("LDS", 1, True, 9),
        ("STS", 1, False, 12), ("STS.64", 2, False, 14), ("STS.128", 4, False, 18),
        ("STS", 1, True, 10), ("STS.128", 4, True, 16),
        ("STG.E", 1, False, 14), ("STG.E.64", 2, False, 16), ("STG.E.128", 4, False, 20),
        ("STG.E", 1, True, 10), ("STG.E.64", 2, True, 12), ("STG.E.128", 4, True, 16),
    ],
)  # fmt: skip
def test_waits_for_reads(opcode: str, width: int, uniform: bool, expected: int, tmp_path: Path) -> None:
    """MICRO'25, Table 2: WAR."""
    append = access(opcode, width, uniform)

    def build(code: Code) -> None:
        append(code, stall=2, read=5)
        code.add("FFMA", 12, (8,), waits=(5,), stall=4)

    assert distance(tmp_path, build, counts=(100, 140)) == expected + 4  # beyond the first one's miss


@pytest.mark.parametrize(("opcode", "operands"), [("STG.E", (2, 8)), ("RED.E.ADD", (2, 8))])
def test_what_is_under_way_to_memory_holds_no_place(
    opcode: str, operands: Sequence[int], tmp_path: Path
) -> None:
    """An L2 that takes 100 cycles longer delays four CTAs in a row by that once, at the end of the launch."""

    def end(latency: int) -> int:
        code = Code().add(opcode, sources=operands, addresses=[GLOBAL] * 32, stall=2, read=0)
        one_at_a_time = {"sm.count": 1, "sm.max_ctas": 1, "sm.front_end.instruction_cache.perfect": True}
        engine = _engine.Gpu(load_spec("rtx3070", {**one_at_a_time, "l2.latency": latency}).native(), 1)
        engine.launch(source_of(tmp_path / str(latency), code, ctas=4), 1)
        assert engine.run(MOST_CYCLES)
        (record,) = finished(engine)
        return int(record["end_cycle"])

    assert end(400) - end(300) == 100


def test_a_raised_counter_is_seen_one_cycle_late(tmp_path: Path) -> None:
    def build(stall: int, yields: bool) -> Code:
        code = Code()
        access("LDS", 1)(code, stall=stall, yields=yields, write=0)
        return code.add("FFMA", 8, (12,), waits=(0,))

    found = {key: run(tmp_path / str(key), build(*key)) for key in ((1, False), (1, True), (2, False))}
    assert [r["counters"]["uncovered_dependences"] for r in found.values()] == [1, 0, 0]
    early, yielding, late = (r["end_cycle"] for r in found.values())
    assert early <= yielding == late


@pytest.mark.parametrize("counter", [0, 5])
def test_depbar_waits_until_a_counter_has_fallen_to_its_limit(counter: int, tmp_path: Path) -> None:
    """Three loads leave their sub-core four cycles apart."""

    def at(limit: int) -> int:
        code = Code()
        for _ in range(3):
            access("LDS", 1)(code, write=counter)
        change = lambda row: (*row[:3], counter, *row[4:])  # noqa: E731
        code.add("DEPBAR.LE", immediate=limit, change=change, stall=4)
        for i in range(20):
            code.add("FFMA", 20 + i)
        return cycles(tmp_path / str(limit), code)

    all_done, one_open, two_open, at_once = (at(limit) for limit in (0, 1, 2, 3))
    assert (all_done - one_open, one_open - two_open) == (4, 4)
    assert at_once < two_open - 10


def test_groups_of_asynchronous_copies_hold_a_counter(tmp_path: Path) -> None:
    def build(limit: int, groups: int = 2) -> Code:
        code = Code()
        for i in range(groups):
            addresses = [GLOBAL + (i << 20) + 4 * lane for lane in range(32)]
            code.add("LDGSTS.E", None, (2, 4), addresses=addresses, stall=4)
            code.add("LDGDEPBAR", write=0, stall=2)
        code.add("DEPBAR.LE", immediate=limit, stall=4)
        for _ in range(100):  # end later than the copies
            code.add("FFMA", 8, stall=10)
        return code

    none, one, both = (cycles(tmp_path / str(n), build(n)) for n in (2, 1, 0))
    assert none < one - 100 and one < both
    assert cycles(tmp_path / "one", build(0, groups=1)) == pytest.approx(one, abs=10)


@pytest.mark.parametrize(
    ("opcode", "stall", "expected"),
    [("FFMA", 3, 1), ("FFMA", 4, 0), ("STG.E", 4, 1), ("STG.E", 5, 0)],
)
def test_reads_before_a_result_are_reported(opcode: str, stall: int, expected: int, tmp_path: Path) -> None:
    """A fixed-latency result reaches memory instructions a cycle later than others."""
    code = Code().add("FFMA", 12, (4,), stall=stall)
    if opcode == "FFMA":
        code.add("FFMA", 8, (12,))
    else:
        access(opcode, 1)(code)
    assert uncovered(tmp_path, code) == expected


@pytest.mark.parametrize(("register", "stall", "expected"), [(12, 1, 1), (12, 2, 0), (13, 3, 1), (13, 4, 0)])
def test_the_halves_of_a_wide_product_are_ready_one_after_the_other(
    register: int, stall: int, expected: int, tmp_path: Path
) -> None:
    """R13 of `IMAD.WIDE R12` is written two cycles after R12."""

    def change(row: Row) -> Row:
        return (*row[:4], [(index, file, 2, slot) for index, file, _, slot in row[4]], *row[5:])

    code = Code().add("IMAD.WIDE", 12, (4,), stall=stall, change=change).add("IADD3", 8, (register,))
    assert uncovered(tmp_path, code) == expected


@pytest.mark.parametrize(("register", "stall", "expected"), [(12, 3, 1), (12, 4, 0), (13, 1, 1), (13, 2, 0)])
def test_the_upper_half_of_a_wide_sum_is_read_later(
    register: int, stall: int, expected: int, tmp_path: Path
) -> None:
    def change(row: Row) -> Row:
        return (*row[:5], [(12, file, 2, slot) for _, file, _, slot in row[5]], row[6])

    code = Code().add("FFMA", register, (4,), stall=stall).add("IMAD.WIDE", 8, (12,), change=change)
    assert uncovered(tmp_path, code) == expected


def check_distance(
    folder: Path, writer: str, reader: str, distance: int, register: tuple[int, int, int, int]
) -> None:
    """The reader of a register may issue so many cycles after its writer, and not a cycle sooner:
    `validation/distances.py`, the least distance in code of ptxas.
    """

    def writes(row: Row) -> Row:
        return (*row[:4], [register for _ in row[4]], *row[5:])

    def reads(row: Row) -> Row:
        return (*row[:5], [register, *row[5][1:]], row[6])

    for stall, expected in ((distance, 0), (distance - 1, 1)):
        code = Code().add(writer, 12, stall=stall, yields=stall > 11, change=writes)
        if reader == "STG.E":
            code.add(reader, None, (12, 14), addresses=[GLOBAL] * 32, change=reads)
        else:
            code.add(reader, 8, (12,), change=reads)
        found = run(folder / str(stall), code, gpu="h100")["counters"]["uncovered_dependences"]
        assert found == expected


@pytest.mark.parametrize(
    ("writer", "reader", "distance"),
    [
        ("UIADD3", "UIADD3", 4), ("UIADD3", "UMOV", 7), ("UIADD3", "FFMA", 6), ("UIADD3", "STG.E", 9),
        ("UIADD3", "SYNCS", 9), ("UIADD3", "HGMMA", 9),
        ("ULDC", "UIADD3", 2), ("ULDC", "FFMA", 2), ("ULDC", "STG.E", 2),
        ("UMOV", "UIADD3", 2), ("UMOV", "HGMMA", 2), ("VOTEU", "POPC", 2), ("ELECT", "FFMA", 2),
        ("R2UR", "UIADD3", 13), ("R2UR", "STG.E", 13),
    ],
)  # fmt: skip
def test_when_uniform_registers_can_be_read(writer: str, reader: str, distance: int, tmp_path: Path) -> None:
    check_distance(tmp_path, writer, reader, distance, (12, UNIFORM, 1, 0))


@pytest.mark.parametrize(
    ("writer", "reader", "distance"),
    [
        ("DADD", "DADD", 8), ("DADD", "STG.E", 7), ("DADD", "MUFU.RCP64H", 6), ("DSETP", "FSEL", 6),
        ("DSETP", "DADD", 6), ("R2UR", "PLOP3", 8),
    ],
)  # fmt: skip
def test_when_doubles_and_predicates_can_be_read(
    writer: str, reader: str, distance: int, tmp_path: Path
) -> None:
    file = GENERAL if writer == "DADD" else PREDICATE
    check_distance(tmp_path, writer, reader, distance, (5, file, 1, 0))


@pytest.mark.parametrize(
    ("gpu", "file", "expected"), [("b200", UNIFORM, 1), ("b200", PREDICATE, 0), ("h100", PREDICATE, 1)]
)
def test_a_vote_s_predicate_can_be_read_in_the_next_cycle(
    gpu: str, file: int, expected: int, tmp_path: Path
) -> None:
    """On Blackwell; its uniform register cannot."""
    register = (5, file, 1, 0)
    code = Code().add("VOTEU", 12, stall=1, change=lambda row: (*row[:4], [register], *row[5:]))
    code.add("PLOP3", 8, (12,), change=lambda row: (*row[:5], [register, *row[5][1:]], row[6]))
    assert run(tmp_path, code, gpu=gpu)["counters"]["uncovered_dependences"] == expected


def test_writes_in_the_wrong_order_are_reported(tmp_path: Path) -> None:
    assert uncovered(tmp_path / "late", Code().add("MUFU.RCP", 12).add("FFMA", 12)) == 1
    assert uncovered(tmp_path / "early", Code().add("FFMA", 12).add("MUFU.RCP", 12)) == 0


def test_lanes_that_do_not_overlap_need_no_order(tmp_path: Path) -> None:
    """`@P0 MUFU R12; @!P0 FFMA R12`."""
    code = Code().add("MUFU.RCP", 12, mask=0xFFFF0000).add("FFMA", 12, mask=0xFFFF)
    assert uncovered(tmp_path, code) == 0


def test_operands_marked_for_reuse_need_no_read_port(tmp_path: Path) -> None:
    """R2, R4 and R6 are in one bank, which delivers one value a cycle within a window of three."""

    def ffma(reuse: Sequence[int], *sources: int) -> Callable[[Code], object]:
        return lambda c: c.add("FFMA", 8, sources, reuse=reuse)

    assert distance(tmp_path, ffma((), 2, 4, 6)) == 3
    assert distance(tmp_path, ffma((0,), 2, 4, 6)) == 2
    assert distance(tmp_path, ffma((0, 1), 2, 4, 6)) == 1

    def moved(c: Code) -> None:  # in another slot, they have to be read again
        c.add("FFMA", 8, (2, 4, 6), reuse=(0, 1, 2)).add("FFMA", 9, (6, 2, 4), reuse=(0, 1, 2))

    assert distance(tmp_path, moved) == 6


def test_wide_operands_keep_their_slots(tmp_path: Path) -> None:
    """R2 and R3 of the first operand do not displace the second, R4."""

    def build(c: Code) -> None:
        def change(row: Row) -> Row:
            sources = [(index, file, 2 if slot == 0 else 1, slot) for index, file, _, slot in row[5]]
            return (*row[:5], sources, row[6])

        c.add("FFMA", 8, (2, 4, 6), reuse=(0, 1), change=change)

    assert distance(tmp_path, build) == 1


def test_collector_cores_use_their_scoreboard(tmp_path: Path) -> None:
    code = lambda: Code().add("FFMA", 8, stall=1).add("FFMA", 8, (8,), stall=1)  # noqa: E731
    folder = write_kernel(tmp_path / "plain", [[code().warp]], sm=86, shared_bytes=4096)
    engine = _engine.Gpu(load_spec("rtx3070-accelsim").native(), 1)
    engine.launch(open_trace(folder).kernels[0].source(), 1)
    assert engine.run(MOST_CYCLES)
    (plain,) = finished(engine)
    record = run(tmp_path / "controlled", code(), "rtx3070-accelsim")
    assert record["end_cycle"] == plain["end_cycle"]
    assert record["counters"]["uncovered_dependences"] == 0


registers = st.tuples(st.integers(0, 255), st.integers(0, 3), st.integers(1, 128), st.just(0))
sources = st.tuples(st.integers(0, 255), st.integers(0, 3), st.integers(1, 128), st.integers(0, 7))
int64 = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_instruction_tables_keep_everything(data: st.DataObject, tmp_path_factory: Any) -> None:
    rows = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 2**40), st.integers(0, 2), int64, int64,
                st.lists(registers, max_size=8), st.lists(sources, max_size=8), st.integers(0, 2**21 - 1),
            ),
            min_size=2, max_size=20,
        )
    )  # fmt: skip
    empty = len(rows).to_bytes(1, "little") + bytes(7 * len(rows))
    table = testing.with_instruction_rows(empty, 3, rows)
    assert testing.instruction_rows(table, 3) == rows
    without = [(*row[:6], None) for row in rows]
    plain = testing.instruction_rows(testing.with_instruction_rows(empty, 3, without), 3)
    assert [row[6] for row in plain] == [None] * len(rows)
    assert [[r[:2] for r in row[5]] for row in plain] == [[r[:2] for r in row[5]] for row in rows]
    with pytest.raises(TraceError):
        testing.instruction_rows(table[:-1], 3)
