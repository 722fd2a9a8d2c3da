"""Distances between dependent instructions, to the cycle: Accel-Sim's stock Volta and silicon models."""

from itertools import pairwise
from pathlib import Path

import pytest

from simt.spec import load_spec
from simt.trace.writer import Warp
from support.tiny import CODE_AT_ONCE, GLOBAL, cycles, distance, warp_of, write_kernel

LANES = range(32)


def arithmetic(opcode: str):  # type: ignore[no-untyped-def]
    return lambda w, i: w.op(opcode, 8, (8, 2, 8))


def load(opcode: str, stride: int, base: int = 0, step: int = 0):  # type: ignore[no-untyped-def]
    return lambda w, i: w.memory(opcode, [base + i * step + stride * lane for lane in LANES], 4, 8, (8,))


# Accel-Sim's values for chains of one warp (measured: shared/data/traces/accelsim-reference.csv).
ACCELSIM = {
    "FFMA": (arithmetic("FFMA"), 7),
    "IMAD": (arithmetic("IMAD"), 7),
    "HMMA": (arithmetic("HMMA.884.F32.F32.STEP0"), 7),
    "DFMA": (arithmetic("DFMA"), 13),
    "MUFU": (lambda w, i: w.op("MUFU.RCP", 8, (8,)), 25),
    "LDS": (load("LDS.U", 4), 25),
    "LDS with 8 conflicts": (load("LDS.U", 32), 32),
    "LDG that hits the L1": (load("LDG.E.SYS", 4, GLOBAL), 24),
    "LDG of 4 sectors that hits the L2": (load("LDG.E.STRONG.GPU", 4, GLOBAL), 175),
    "BAR of one warp": (lambda w, i: w.op("BAR.SYNC"), 1),
    "8 independent FFMA": (lambda w, i: w.op("FFMA", 8 + i % 8, (8 + i % 8, 2, 8 + i % 8)), 2.475),
}


@pytest.mark.parametrize("name", ACCELSIM)
def test_distance_as_in_accelsim(name: str, tmp_path: Path) -> None:
    append, expected = ACCELSIM[name]
    assert distance(tmp_path, append, "qv100-accelsim", counts=(100, 300)) == pytest.approx(
        expected, abs=1e-9
    )


def test_dram_distance_as_in_accelsim(tmp_path: Path) -> None:
    append = load("LDG.E.SYS", 0, GLOBAL, 3 << 20)
    assert distance(tmp_path, append, "qv100-accelsim", counts=(100, 300)) == pytest.approx(346.9, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["qv100", "rtx3070", "a100", "h100"])
@pytest.mark.parametrize(
    ("opcode", "unit"), [("FFMA", "fp32"), ("IADD3", "int"), ("DFMA", "fp64"), ("MUFU.RCP", "sfu")]
)
def test_silicon_distance_is_the_units_latency(gpu: str, opcode: str, unit: str, tmp_path: Path) -> None:
    spec = load_spec(gpu)
    expected = getattr(spec.sm.units, unit)
    assert distance(tmp_path, arithmetic(opcode), gpu) == max(expected.latency, expected.initiation_interval)


@pytest.mark.parametrize("opcode", ["I2F.U32", "F2I.TRUNC.NTZ", "POPC", "FLO.U32"])
def test_conversions_take_their_latency_on_the_special_function_unit(opcode: str, tmp_path: Path) -> None:
    convert = lambda w, i: w.op(opcode, 8, (8,))  # noqa: E731
    independent = lambda w, i: w.op(opcode, 8 + 2 * (i % 8), (60,))  # noqa: E731
    assert distance(tmp_path, convert, "a100") == 15
    assert distance(tmp_path, convert, "a100", {"sm.conversion_latency": 16}) == 16
    assert distance(tmp_path, independent, "a100") == 8
    # Without it they are integer work.
    assert distance(tmp_path, convert, "a100", {"sm.conversion_latency": 0}) == 4


@pytest.mark.parametrize(
    ("stride", "rate", "expected"),
    [
        (4, 3200, 10),  # 32 words, four sectors of which a slice has all, at 3.2 a cycle
        (4, 1600, 20),
        (4, 3000, 32 / 3),  # no whole number of cycles a sector
        (4, 8000, 4),  # at most a request a cycle
        (0, 3200, 32),  # a request for each lane, as all are at one word
        (0, 0, 32),
    ],
)
def test_an_l2_slice_takes_its_time_for_atomics(
    stride: int, rate: int, expected: float, tmp_path: Path
) -> None:
    add = lambda w, i: w.memory("RED.E.ADD", [GLOBAL + stride * lane for lane in LANES], 4, None, (8, 9))  # noqa: E731
    found = distance(tmp_path, add, "qv100", {"l2.atomic_rate": rate}, (400, 1000))
    # A part of a cycle is lost where the slice waits for a request in between.
    assert expected <= found + 1e-9 and found <= 1.04 * expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("IMAD", "FFMA", 4),  # one pipe of 16 lanes
        ("IMAD", "IADD3", 2),
        ("FMNMX", "IADD3", 4),
        ("FMNMX", "FFMA", 2),
    ],
)
def test_integer_multiplications_share_the_pipe_of_fp32(
    first: str, second: str, expected: int, tmp_path: Path
) -> None:
    """Pairs of independent instructions; a pipe takes one in two cycles."""

    def pair(w: Warp, i: int) -> None:
        w.op(first, 8 + 2 * (i % 8), (60, 61, 62))
        w.op(second, 9 + 2 * (i % 8), (63, 64, 65))

    assert distance(tmp_path, pair, "qv100") == expected
    other = {"sm.multiplications_on_fp32": False}
    assert distance(tmp_path, pair, "qv100", other) == 6 - expected


@pytest.mark.parametrize("gpu", ["qv100", "rtx2060", "a100", "rtx3070", "h100"])
@pytest.mark.parametrize(("opcode", "expected"), [("IMAD", 2), ("IMAD.HI", 4), ("IMAD.WIDE.U32", 4)])
def test_wide_products_take_their_pipe_twice_as_long(
    gpu: str, opcode: str, expected: int, tmp_path: Path
) -> None:
    """As far apart as in code of ptxas for each generation (`validation/intervals.py`)."""
    product = lambda w, i: w.op(opcode, 8 + 2 * (i % 8), (60, 61, 62))  # noqa: E731
    assert distance(tmp_path, product, gpu) == expected


def test_conversions_of_fp64_share_its_unit_where_that_is_slow(tmp_path: Path) -> None:
    """Two lanes for the four sub-cores of an RTX 2060; a V100's unit is no slower than its conversions."""
    convert = lambda w, i: w.op("F2F.F64.F32", 8 + 2 * (i % 8), (60,))  # noqa: E731
    assert distance(tmp_path, convert, "rtx2060") == load_spec("rtx2060").sm.units.fp64.initiation_interval
    assert distance(tmp_path, convert, "qv100") == load_spec("qv100").sm.units.sfu.initiation_interval


@pytest.mark.parametrize(("latency", "expected"), [(0, 6), (1, 6), (2, 7), (12, 17)])
def test_the_target_of_a_taken_branch_issues_after_its_latency(
    latency: int, expected: int, tmp_path: Path
) -> None:
    """A loop of six instructions, of which the last jumps back. They issue one a cycle."""

    def loop(w: Warp, i: int) -> None:
        w.pc = 0
        for k in range(5):
            w.op("FFMA" if k % 2 else "IADD3", 8 + 2 * k, (60, 61, 62))
        w.op("BRA")

    overrides = {"sm.front_end.branch_latency": latency, "sm.front_end.instruction_cache.perfect": True}
    assert distance(tmp_path, loop, "a100", overrides) == expected


def test_a_branch_that_falls_through_costs_nothing(tmp_path: Path) -> None:
    def pair(w: Warp, i: int) -> None:
        w.op("BRA")
        w.op("FFMA", 8 + 2 * (i % 8), (60, 61, 62))

    assert distance(tmp_path, pair, "a100") == distance(
        tmp_path, pair, "a100", {"sm.front_end.branch_latency": 0}
    )


@pytest.mark.parametrize("gpu", ["qv100", "rtx3070", "a100", "h100"])
def test_silicon_loads_take_their_specified_latency(gpu: str, tmp_path: Path) -> None:
    spec = load_spec(gpu)
    assert distance(tmp_path, load("LDG.E.SYS", 4, GLOBAL), gpu) == pytest.approx(spec.l1.latency, abs=0.02)
    assert distance(tmp_path, load("LDS", 4), gpu) == spec.shared_memory.latency


@pytest.mark.parametrize(("latency", "expected"), [(4, 4), (5, 5), (9, 9)])
def test_one_more_cycle_of_latency_is_one_more_cycle(latency: int, expected: int, tmp_path: Path) -> None:
    assert distance(tmp_path, arithmetic("FFMA"), "a100", {"sm.units.fp32.latency": latency}) == expected


def test_reads_of_one_bank_are_spread_over_cycles(tmp_path: Path) -> None:
    """MICRO'25, section 4: two operands in one bank cost one bubble, three cost two; the operand cache avoids
    them.
    """

    def independent(sources):  # type: ignore[no-untyped-def]
        return lambda w, i: w.op("FFMA", 16 + i % 32, sources)

    plain = {"sm.register_file.operand_cache": False, "sm.units.fp32.initiation_interval": 1}
    cached = {"sm.register_file.operand_cache": True, "sm.units.fp32.initiation_interval": 1}
    assert distance(tmp_path, independent((2, 3)), "a100", plain) == pytest.approx(1, abs=0.05)
    assert distance(tmp_path, independent((2, 4)), "a100", plain) == pytest.approx(2, abs=0.05)
    assert distance(tmp_path, independent((2, 4, 6)), "a100", plain) == pytest.approx(3, abs=0.05)
    assert distance(tmp_path, independent((2, 4, 6)), "a100", cached) == pytest.approx(1, abs=0.05)


def test_tensor_interval_follows_shape_and_type(tmp_path: Path) -> None:
    """A100: 1,024 FP16 multiply-adds per cycle and SM, so m16n8k16 occupies a tensor core for 8 cycles."""

    def interval(opcode: str) -> float:
        return distance(tmp_path, lambda w, i: w.op(opcode, 16 + 4 * (i % 24), (2,)), "a100")

    assert interval("HMMA.16816.F32") == pytest.approx(8, abs=0.1)
    assert interval("HMMA.1688.F32") == pytest.approx(4, abs=0.1)
    assert interval("HMMA.1688.F32.TF32") == pytest.approx(8, abs=0.1)
    assert interval("IMMA.16832.S8.S8") == pytest.approx(8, abs=0.1)


@pytest.mark.parametrize(
    ("gpu", "opcode", "cycles"),
    [
        ("rtx3090", "HMMA.16816.F32", 32),
        ("rtx3090", "HMMA.16816.F16", 16),
        ("rtx3090", "IMMA.16832.S8.S8", 16),
        ("a6000", "HMMA.16816.F32", 16),
        ("a6000", "HMMA.16816.F16", 16),
        ("a6000", "IMMA.16832.S8.S8", 16),
        ("rtx2080ti", "HMMA.1688.F16", 8),
        ("rtx2080ti", "HMMA.1688.F32", 16),
    ],
)
def test_geforce_cards_accumulate_in_fp32_at_half_the_rate(
    gpu: str, opcode: str, cycles: int, tmp_path: Path
) -> None:
    """White papers of Turing and GA102: 512 FP16 multiply-adds per cycle and SM, 256 if they accumulate in
    FP32 on a GeForce card; 1,024 of INT8."""
    found = distance(tmp_path, lambda w, i: w.op(opcode, 16 + 4 * (i % 24), (2,)), gpu)
    assert found == pytest.approx(cycles, abs=0.1)


@pytest.mark.parametrize(
    ("gpu", "results"), [("qv100", 128), ("rtx2060", 128), ("rtx3090", 128), ("rtx4090", 128), ("a100", 256)]
)
def test_rate_of_half_precision(gpu: str, results: int, tmp_path: Path) -> None:
    """CUDA programming guide, arithmetic instructions: results of FP16 a cycle and SM, two in each lane."""
    found = distance(tmp_path, lambda w, i: w.op("HFMA2", 16 + i % 32, (2, 5)), gpu)
    assert found == pytest.approx(4 * 32 * 2 / results, abs=0.05)


def test_wgmma_holds_the_tensor_cores_for_half_its_columns(tmp_path: Path) -> None:
    def interval(columns: int) -> float:
        return distance(tmp_path, lambda w, i: w.op(f"HGMMA.64x{columns}x16.F32", 24, (2,)), "h100")

    assert interval(256) == pytest.approx(128, abs=0.5)
    assert interval(128) == pytest.approx(64, abs=0.5)


def group_cycles(folder: Path, columns: int, count: int, a: tuple[int, ...] = (), loads: int = 0) -> int:
    """Cycles of a warpgroup that multiplies `count` times, beside a warp that loads from shared memory."""

    def multiply(w: Warp) -> None:
        registers = columns // 2  # accumulators: others each time, so that no sum waits for the one before
        for i in range(count):
            d = 24 + registers * (i % (200 // registers))
            w.op(f"HGMMA.64x{columns}x16.F32", d, (*a, d))

    def load_words(w: Warp) -> None:
        for i in range(loads):
            w.memory("LDS", [4 * lane for lane in LANES], 4, 8 + i % 100, (2,))

    warps = [warp_of(multiply) for _ in range(4)] + ([warp_of(load_words)] if loads else [])
    trace = write_kernel(folder, [warps], sm=90, shared_bytes=8192)
    return cycles(trace, "h100")


@pytest.mark.parametrize(
    ("columns", "a", "interval"),
    [(8, (), 18), (16, (), 20), (32, (), 24), (64, (), 32), (128, (), 64), (8, (4,), 4), (32, (4,), 16)],
)
def test_wgmma_fetches_its_operands_at_128_bytes_a_cycle(
    columns: int, a: tuple[int, ...], interval: int, tmp_path: Path
) -> None:
    """64 x 16 halves of A, unless they are in registers, and 16 x columns of B for the whole warpgroup."""
    few, many = (group_cycles(tmp_path / str(n), columns, n, a) for n in (20, 60))
    assert (many - few) / 40 == pytest.approx(interval, abs=0.3)


def test_accesses_take_bandwidth_from_operands(tmp_path: Path) -> None:
    """A load takes at least a cycle from operands that need all of them, hardly any if they need half."""
    loads = 200

    def taken(a: tuple[int, ...]) -> int:
        alone, beside = (group_cycles(tmp_path / f"{len(a)}-{n}", 64, 60, a, n) for n in (0, loads))
        return beside - alone

    assert loads <= taken(()) <= 1.5 * loads  # a tensor core that has waited cannot catch up
    assert taken((4,)) <= loads / 4


def test_a_tensor_core_holds_six_products_of_a_warpgroup(tmp_path: Path) -> None:
    """A warp goes on when it has handed over its last one: the seventh waits for the end of the first."""

    def total(products: int) -> int:
        def body(w: Warp) -> None:
            for i in range(products):
                w.op("HGMMA.64x64x16.F16", 24 + 16 * i, (2,))
            for _ in range(500):  # takes longer than the products
                w.op("FFMA", 8, (8, 9, 8))

        folder = write_kernel(tmp_path / str(products), [[warp_of(body)]], sm=90)
        return cycles(folder, "h100", CODE_AT_ONCE)

    five, six, seven, eight = (total(n) for n in (5, 6, 7, 8))
    assert six - five <= 2
    assert seven - six == pytest.approx(32 - 5, abs=2)
    assert eight - seven == pytest.approx(32, abs=2)


@pytest.mark.parametrize(("banks", "more"), [(16, 0), (8, 1), (4, 3)])
def test_registers_of_one_bank_are_written_in_turn(banks: int, more: int, tmp_path: Path) -> None:
    """A load of four consecutive registers, on a quarter of the banks, against a load of one register."""

    def load_vector(warp: Warp, i: int) -> None:
        warp.memory("LDS.128", [0] * 32, 16, 8, (8,))
        warp.lines[-1] = warp.lines[-1].replace(" 1 R8 ", " 4 R8 R9 R10 R11 ", 1)

    spec = {"sm.register_file.banks": banks}
    one = distance(tmp_path, lambda w, i: w.memory("LDS.128", [0] * 32, 16, 8, (8,)), "qv100-accelsim", spec)
    assert distance(tmp_path, load_vector, "qv100-accelsim", spec) == one + more


def test_a_chain_is_exact_from_the_first_instruction(tmp_path: Path) -> None:
    """Every additional FFMA adds 7 cycles, starting with the first."""
    totals = []
    for count in (2, 3, 4):
        warp = Warp()
        for _ in range(count):
            warp.op("FFMA", 8, (8, 2, 8))
        totals.append(cycles(write_kernel(tmp_path / str(count), [[warp]])))
    assert [b - a for a, b in pairwise(totals)] == [7, 7]
