"""Barriers, asynchronous copies, memory barriers, atomics; deadlocks and their explanation."""

from pathlib import Path
from typing import Any

import pytest

from simt import _engine
from simt.spec import available, load_spec
from simt.trace.writer import Warp
from support.tiny import GLOBAL, cycles, distance, run, warp_of, write_kernel

LANES = range(32)


def chain(w: Warp, length: int) -> None:
    for _ in range(length):
        w.op("FFMA", 8, (8, 2, 8))


def test_a_barrier_waits_for_the_slowest_warp(tmp_path: Path) -> None:
    def kernel(name: str, slow: int) -> int:
        def body(length: int):  # type: ignore[no-untyped-def]
            def build(w: Warp) -> None:
                chain(w, length)
                w.op("BAR.SYNC")
                chain(w, 10)

            return build

        warps = [warp_of(body(slow)), *[warp_of(body(2)) for _ in range(3)]]
        return cycles(write_kernel(tmp_path / name, [warps]))

    assert kernel("long", 100) - kernel("short", 50) == 50 * 7


def test_exited_warps_do_not_hold_a_barrier(tmp_path: Path) -> None:
    def build(w: Warp) -> None:
        chain(w, 4)
        w.op("BAR.SYNC")
        chain(w, 4)

    waits = [warp_of(build) for _ in range(2)]
    leaves = [warp_of(lambda w: chain(w, 2))]
    records = run(write_kernel(tmp_path / "t", [waits + leaves]))
    assert records[0]["counters"]["warp_instructions"] == 2 * 10 + 3


@pytest.mark.parametrize("gpu", ["qv100-accelsim", "a100"])
def test_a_barrier_that_a_warp_never_reaches_is_explained(gpu: str, tmp_path: Path) -> None:
    """Two warps wait at named barrier 1, which expects three."""
    warps = [warp_of(lambda w: w.op("BAR.SYNC")), warp_of(lambda w: w.op("BAR.SYNC"))]
    folder = write_kernel(tmp_path / "t", [warps], sm=90)
    text = (folder / "kernel-1.traceg").read_text()
    # Version 6 writes a barrier's number and its thread count.
    text = text.replace("accelsim tracer version = 5", "accelsim tracer version = 6")
    lines = []
    for line in text.splitlines():
        if "BAR.SYNC" in line:
            line = "0000 ffffffff 0 BAR.SYNC 0 0 1 96 NoVal "
        elif "EXIT" in line:
            line = "0010 ffffffff 0 EXIT 0 0 0 0 NoVal "
        elif line.startswith("thread block"):
            line += "\ncluster id = 0,0,0\ncluster cta = 0,0,0\ncluster rank = 0"
        lines.append(line)
    (folder / "kernel-1.traceg").write_text("\n".join(lines) + "\n")
    if gpu == "qv100-accelsim":  # sees barrier 0 of the whole CTA, whatever the trace says
        assert run(folder, gpu)[0]["counters"]["warp_instructions"] == 4
        return
    text = (folder / "kernel-1.traceg").read_text()
    (folder / "kernel-1.traceg").write_text(text.replace("block dim = (64,1,1)", "block dim = (96,1,1)"))
    with pytest.raises(_engine.DeadlockError) as error:
        run(folder, gpu)
    message = str(error.value)
    assert "launch 1" in message
    assert message.count("waits for barrier") == 2
    assert "barrier 1 still misses warps 2" in message
    assert "warp 0" in message and "warp 1" in message


@pytest.mark.parametrize("gpu", available())
def test_a_deadlock_is_found_whatever_the_number_of_ctas(gpu: str, tmp_path: Path) -> None:
    """The warps of each CTA wait at different barriers. Accel-Sim's model has one barrier, so they go on."""
    model = load_spec(gpu).sm.register_file.model
    for ctas in (1, 2, 9, 500):
        warps = [warp_of(lambda w, b=b: w.op("BAR.SYNC", immediate=b)) for b in (1, 1, 2, 2)]  # type: ignore[misc]
        folder = write_kernel(tmp_path / str(ctas), [warps] * ctas)
        if model == "operand_collector":
            assert run(folder, gpu, {"sm.count": 8})[0]["counters"]["warp_instructions"] == 8 * ctas
            continue
        with pytest.raises(_engine.DeadlockError) as error:
            run(folder, gpu, {"sm.count": 8})
        assert f"launch 1 (tiny): 0 of {ctas} CTAs done" in str(error.value)
        for barrier in (1, 2):
            assert f"barrier {barrier} still misses warps" in str(error.value)


def test_depbar_waits_for_the_groups_it_names(tmp_path: Path) -> None:
    """Of two copy groups, DEPBAR 1 waits for the first, DEPBAR 0 for both."""

    def kernel(name: str, open_groups: int, second_far: bool) -> int:
        w = Warp()
        w.memory("LDGSTS.E.128", [GLOBAL + 16 * lane for lane in LANES], 16, sources=(2, 3))
        w.op("LDGDEPBAR")
        chain(w, 60)
        base = GLOBAL + (1 << 26 if second_far else 0)
        w.memory("LDGSTS.E.128", [base + 16 * lane for lane in LANES], 16, sources=(2, 3))
        w.op("LDGDEPBAR")
        w.op("DEPBAR.LE", sources=(), immediate=open_groups)
        chain(w, 1)
        return cycles(write_kernel(tmp_path / name, [[w]], sm=80), "rtx3070-accelsim")

    waits_for_both = kernel("both", 0, True)
    waits_for_first = kernel("first", 1, True)
    assert waits_for_both - waits_for_first > 100


def test_membar_waits_for_loads_and_empties_the_l1(tmp_path: Path) -> None:
    def kernel(name: str, barrier: bool) -> dict[str, int]:
        w = Warp()
        for _ in range(2):
            w.memory("LDG.E.SYS", [GLOBAL + 4 * lane for lane in LANES], 4, 8, (2,))
            if barrier:
                w.op("MEMBAR.SC.GPU")
            else:
                w.op("FADD", 9, (8, 8))
        return run(write_kernel(tmp_path / name, [[w]]))[0]["l1"]["global_read"]

    assert kernel("without", False)["hit"] == 4
    assert kernel("with", True)["hit"] == 0


def test_atomics_on_one_address_are_one_transaction_per_lane(tmp_path: Path) -> None:
    def sectors(name: str, stride: int) -> int:
        w = warp_of(lambda w: w.memory("RED.E.ADD", [GLOBAL + stride * i for i in LANES], 4, sources=(2, 3)))
        return sum(run(write_kernel(tmp_path / name, [[w]]))[0]["l2"]["atomic"].values())

    assert sectors("same", 0) == 32
    assert sectors("words", 4) == 4


@pytest.mark.parametrize("opcode", ["LDS", "STS"])
@pytest.mark.parametrize(
    ("stride", "width", "passes"), [(4, 4, 1), (8, 4, 2), (128, 4, 32), (0, 4, 1), (8, 8, 2), (16, 16, 4)]
)
def test_shared_memory_passes(stride: int, width: int, passes: int, opcode: str, tmp_path: Path) -> None:
    destination, sources = (8, (2,)) if opcode == "LDS" else (None, (2, 8))
    addresses = [stride * lane for lane in LANES]
    w = warp_of(lambda w: w.memory(opcode, addresses, width, destination, sources))
    counters = run(write_kernel(tmp_path / "t", [[w]], shared_bytes=8192), "a100")[0]["counters"]
    assert counters["shared_wavefronts"] == passes
    assert counters["shared_bank_conflicts"] == passes - 1
    assert counters["shared_store_bank_conflicts"] == (passes - 1 if opcode == "STS" else 0)


@pytest.mark.parametrize(("warps", "expected"), [(1, 22), (2, 24), (8, 36), (32, 84)])
def test_a_barrier_takes_time_for_each_warp(warps: int, expected: int, tmp_path: Path) -> None:
    """Measured on a TU102 (connollydavid/tu102): 22.3, 24.3, 36.3 and 84.3 cycles."""

    def kernel(count: int) -> int:
        w = warp_of(lambda w: [w.op("BAR.SYNC") for _ in range(count)])
        return cycles(write_kernel(tmp_path / f"{count}", [[w] * warps]), "rtx2060")

    assert (kernel(120) - kernel(40)) / 80 == expected


@pytest.mark.parametrize(("stride", "lanes_of_a_bank"), [(4, 1), (8, 2), (0, 32), (128, 32)])
def test_lanes_of_a_shared_atomic_follow_each_other(
    stride: int, lanes_of_a_bank: int, tmp_path: Path
) -> None:
    """A TU102 takes 25 cycles for one lane of a word, and 2 for each further one (connollydavid/tu102);
    Ampere's SMs about half as much for 32 lanes."""

    def of(gpu: str, conflicts: int) -> float:
        addresses = [0] * 32 if conflicts == 0 else [conflicts * lane for lane in LANES]
        return distance(tmp_path, lambda w, i: w.memory("ATOMS.ADD", addresses, 4, 8, (8, 9)), gpu)

    assert of("rtx2060", stride) == of("rtx2060", 4) + 2 * (lanes_of_a_bank - 1)
    assert of("a100", stride) == of("a100", 4) + lanes_of_a_bank - 1
    # Accel-Sim: lanes at one word are served together.
    words = lanes_of_a_bank if stride else 1
    assert of("a100-accelsim", stride) == of("a100-accelsim", 4) + words - 1


def test_generic_addresses_go_where_their_window_says(tmp_path: Path) -> None:
    from simt.trace.writer import LOCAL_BASE, SHARED_BASE

    w = Warp()
    for base in (SHARED_BASE, LOCAL_BASE, GLOBAL):
        w.memory("LD.E", [base + 4 * lane for lane in LANES], 4, 8, (2,))
    record = run(write_kernel(tmp_path / "t", [[w]], shared_bytes=4096))[0]
    assert record["counters"]["shared_loads"] == 1
    assert record["counters"]["local_requests"] == 1
    assert record["counters"]["global_load_requests"] == 1


@pytest.mark.parametrize(("gpu", "more"), [("h100", 1), ("a100", 0)])
@pytest.mark.parametrize("conflicts", [4, 8])
def test_a_generic_access_to_shared_memory_takes_more_passes(
    conflicts: int, gpu: str, more: int, tmp_path: Path
) -> None:
    """Nsight Compute on an H100: the L1 is busy a cycle longer for each, and counts no wavefront for it."""
    from simt.trace.writer import SHARED_BASE

    def record(opcode: str, base: int, count: int) -> Any:
        addresses = [base + 4 * conflicts * lane for lane in LANES]
        w = warp_of(lambda w: [w.memory(opcode, addresses, 4, 8, (2,)) for _ in range(count)])
        folder = write_kernel(tmp_path / f"{opcode}{count}", [[w] * 16], shared_bytes=4096)
        return run(folder, gpu)[0]

    def passes(opcode: str, base: int) -> float:
        few, many = record(opcode, base, 40), record(opcode, base, 80)
        assert many["counters"]["shared_wavefronts"] == 16 * 80 * conflicts
        return float(many["end_cycle"] - few["end_cycle"]) / (16 * 40)

    assert passes("LDS", 0) == pytest.approx(conflicts, rel=0.02)
    assert passes("LD.E", SHARED_BASE) == pytest.approx(conflicts + more, rel=0.02)


def test_local_memory_of_a_warp_is_interleaved_into_full_sectors(tmp_path: Path) -> None:
    """All lanes access the same local address: 32 neighbouring words, four sectors."""
    w = warp_of(lambda w: w.memory("LDL", [64] * 32, 4, 8, (2,)))
    record = run(write_kernel(tmp_path / "t", [[w]]))[0]
    assert sum(record["l1"]["local_read"].values()) == 4


def test_empty_warps_and_ctas_run(tmp_path: Path) -> None:
    full = warp_of(lambda w: chain(w, 5))
    record = run(
        write_kernel(
            tmp_path / "t", [[full, Warp()], [Warp(), Warp()], [warp_of(lambda w: chain(w, 5)), Warp()]]
        )
    )[0]
    assert record["counters"]["warp_instructions"] == 12


def test_a_warp_without_exit_ends_with_its_last_instruction(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path / "t", [[warp_of(lambda w: chain(w, 5))]])
    file = folder / "kernel-1.traceg"
    lines = [line for line in file.read_text().splitlines() if "EXIT" not in line]
    file.write_text("\n".join(lines).replace("insts = 6", "insts = 5") + "\n")
    assert run(folder)[0]["counters"]["warp_instructions"] == 5


@pytest.mark.parametrize("gpu", ["qv100-accelsim", "a100"])
@pytest.mark.parametrize(
    "opcode", ["STG.E", "STS", "RED.E.ADD", "LDG.E", "LDS", "ATOMG.E.ADD", "LDGSTS.E.128"]
)
def test_accesses_without_lanes_end(opcode: str, gpu: str, tmp_path: Path) -> None:
    w = Warp()
    for _ in range(3):
        w.memory(opcode, [None] * 32, 4, None if opcode[0] in "SR" or "STS" in opcode else 8, (2, 3))
    w.op("MEMBAR.SC.GPU")
    chain(w, 2)
    assert run(write_kernel(tmp_path / "t", [[w]]), gpu)[0]["counters"]["warp_instructions"] == 7


@pytest.mark.parametrize("opcode", ["FENCE", "MEMBAR.SC.GPU", "STG.E", "STS"])
def test_a_destination_that_makes_no_sense_is_released(opcode: str, tmp_path: Path) -> None:
    """A trace may list a destination register of a store or barrier; instructions that read it must not
    deadlock.
    """
    w = Warp()
    if "ST" in opcode:
        w.memory(opcode, [64 * i for i in LANES], 4, 8, (2,))
    else:
        w.op(opcode, 8, (4,))
    chain(w, 2)
    assert run(write_kernel(tmp_path / "t", [[w]]))[0]["counters"]["warp_instructions"] == 4


def test_loads_that_bypass_the_l1_take_their_time_to_leave(tmp_path: Path) -> None:
    w = Warp()
    w.memory("LDG.E.STRONG.GPU", [GLOBAL + 4 * lane for lane in LANES], 4, 8, (2,))
    chain(w, 1)
    trace = write_kernel(tmp_path / "t", [[w]])
    early, late = (cycles(trace, "qv100", {"l1.bypass_latency": latency}) for latency in (10, 35))
    assert late - early == 25


def loads_of_lines(lines: int, destination: int, source: int) -> Warp:
    """Ten loads of the same `lines` lines, the first of which misses the L1."""
    w = Warp()
    for i in range(10):
        w.memory(
            "LDG.E", [GLOBAL + 512 * (lane % lines) for lane in LANES], 4, destination + i, (source + i,)
        )
    return w


@pytest.mark.parametrize("lines", [1, 2, 12, 32])
def test_lines_of_a_hit_leave_the_l1_in_two_steps(lines: int, tmp_path: Path) -> None:
    trace = write_kernel(tmp_path / "t", [[loads_of_lines(lines, destination=9, source=8)]])
    at_once, one_by_one = (cycles(trace, "h100", {"l1.line_interval": n}) for n in (0, 1))
    assert one_by_one - at_once == 9 * 2 * (lines - 1)


def test_lines_of_other_loads_leave_the_l1_meanwhile(tmp_path: Path) -> None:
    """Eight warps whose loads wait for none: lines pass the two steps as fast as they are looked up."""
    trace = write_kernel(tmp_path / "t", [[loads_of_lines(32, destination=40, source=8)] * 8])
    at_once, one_by_one = (cycles(trace, "h100", {"l1.line_interval": n}) for n in (0, 1))
    assert at_once > 8 * 10 * 32
    assert 0 < one_by_one - at_once <= 2 * 31


def test_shared_structures_accept_an_access_per_interval(tmp_path: Path) -> None:
    """A warp of each sub-core loads 30 times; a sub-core alone sends an access every 4 cycles."""

    def body(w: Warp) -> None:
        for i in range(30):
            w.memory("LDS", [4 * lane for lane in LANES], 4, 8 + i, (2,))

    trace = write_kernel(tmp_path / "t", [[warp_of(body) for _ in range(4)]], shared_bytes=1024)
    one, two, four = (
        cycles(trace, "qv100", {"shared_memory.access_interval": interval}) for interval in (1, 2, 4)
    )
    last = 4 * 30 - 1
    assert (two - one, four - one) == (last, 3 * last)
