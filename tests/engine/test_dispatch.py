"""Occupancy, carve-out, launch latency and the order of CTAs."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from simt.trace.writer import Warp
from support.tiny import GLOBAL, cycles, run, warp_of, write_kernel


def chain(w: Warp, length: int) -> None:
    for _ in range(length):
        w.op("FFMA", 8, (8, 2, 8))


def one_op(w: Warp) -> None:
    w.op("FFMA", 8, (8, 2, 8))


def record(
    folder: Path,
    gpu: str,
    ctas: int = 2000,
    warps: int = 8,
    overrides: dict[str, object] | None = None,
    **shape: int,
):  # type: ignore[no-untyped-def]
    trace = write_kernel(folder, [[warp_of(one_op) for _ in range(warps)] for _ in range(ctas)], **shape)
    return run(trace, gpu, overrides or {})[0]


# QV100: 2,048 threads, 65,536 registers, 96 KB of shared memory and 32 CTAs per SM.
@pytest.mark.parametrize(
    ("warps", "registers", "shared", "ctas", "why"),
    [
        (8, 32, 0, 8, "warps"),
        (8, 33, 0, 7, "registers"),
        (2, 16, 0, 32, "warps"),
        (1, 16, 0, 32, "CTAs"),
        (8, 32, 16384, 6, "shared memory"),
        (8, 32, 16385, 5, "shared memory"),
        (32, 64, 0, 1, "registers"),
    ],
)
def test_ctas_per_sm(warps: int, registers: int, shared: int, ctas: int, why: str, tmp_path: Path) -> None:
    # 80 SMs: enough CTAs for the grid not to be the limit.
    grid = 80 * ctas + 1
    r = record(tmp_path / "t", "qv100-accelsim", grid, warps, registers=registers, shared_bytes=shared)
    assert (r["occupancy_limit_ctas"], r["occupancy_limited_by"]) == (ctas, why)


def test_a_small_grid_is_spread_over_the_sms(tmp_path: Path) -> None:
    assert record(tmp_path / "a", "qv100-accelsim", 80, 1)["occupancy_limit_ctas"] == 1
    assert record(tmp_path / "b", "qv100-accelsim", 81, 1)["occupancy_limit_ctas"] == 2


@pytest.mark.parametrize(
    ("shared", "ctas", "carve_out", "l1"), [(0, 640, 0, 128), (8192, 640, 64, 64), (8193, 640, 96, 32)]
)
def test_carve_out(shared: int, ctas: int, carve_out: int, l1: int, tmp_path: Path) -> None:
    """Performance model section 4: 8 CTAs of 8 KB need 64 KB, and leave 64 of 128 KB to the L1."""
    r = record(tmp_path / "t", "qv100-accelsim", ctas, 8, registers=16, shared_bytes=shared)
    assert r["shared_carve_out_bytes"] == carve_out * 1024
    assert r["l1_bytes"] == l1 * 1024


def test_silicon_reserves_a_kilobyte_per_cta(tmp_path: Path) -> None:
    """A100: 164 KB hold 9 CTAs of 16 KB, which take 17 KB each."""
    r = record(tmp_path / "t", "a100", 108 * 9 + 1, 1, shared_bytes=16384)
    assert r["occupancy_limit_ctas"] == 164 // 17


def test_registers_are_given_to_warps_in_units(tmp_path: Path) -> None:
    """A100: 33 registers for 32 lanes are 1,056, rounded to 1,280 per warp; 65,536 / (1,280 x 8)."""
    r = record(tmp_path / "t", "a100", 108 * 6 + 1, 8, registers=33)
    assert r["occupancy_limit_ctas"] == 65536 // (1280 * 8)


def test_a_kernel_that_needs_more_than_an_sm_has_still_runs(tmp_path: Path) -> None:
    r = record(tmp_path / "t", "qv100-accelsim", 3, 4, shared_bytes=200 * 1024)
    assert r["counters"]["ctas"] == 3
    assert any("shared memory" in warning for warning in r["warnings"])


def test_more_warps_than_an_sm_holds_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="64 warps, but an SM of qv100-accelsim holds 32"):
        record(tmp_path / "t", "qv100-accelsim", 1, 64, {"sm.max_warps": 32}, threads=2048)


def test_launch_latency_is_part_of_the_cycles(tmp_path: Path) -> None:
    short = run(write_kernel(tmp_path / "a", [[warp_of(one_op)]]), overrides={"launch.kernel_latency": 1000})[
        0
    ]
    long = run(write_kernel(tmp_path / "b", [[warp_of(one_op)]]), overrides={"launch.kernel_latency": 1001})[
        0
    ]
    assert short["launch_latency"] == 1000
    assert (long["end_cycle"] - long["start_cycle"]) - (short["end_cycle"] - short["start_cycle"]) == 1


def test_latency_per_cta(tmp_path: Path) -> None:
    ctas = [[warp_of(one_op)] for _ in range(10)]
    r = run(write_kernel(tmp_path / "a", ctas), overrides={"launch.cta_latency": 7})[0]
    assert r["launch_latency"] == 5000 + 70


def test_launches_follow_each_other_to_the_cycle(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_kernel(tmp_path / "t", [[warp_of(one_op)]], number)
    records = run(tmp_path / "t")
    assert [r["id"] for r in records] == [1, 2, 3]
    for before, after in pairwise(records):
        assert after["start_cycle"] == before["end_cycle"]
    assert len({r["end_cycle"] - r["start_cycle"] for r in records}) == 1


def test_a_freed_place_is_taken_after_the_dispatch_latency(tmp_path: Path) -> None:
    """81 CTAs, one at a time on each of 80 SMs: the last starts when the first place is free."""

    def total(latency: int) -> int:
        def body(w: Warp) -> None:
            for _ in range(20):
                w.op("FFMA", 8, (8, 2, 8))

        trace = write_kernel(tmp_path / str(latency), [[warp_of(body)] for _ in range(81)], registers=16)
        return cycles(trace, overrides={"sm.max_ctas": 1, "launch.dispatch_latency": latency})

    assert total(9) - total(8) == 1
    assert total(1) - total(0) == 1


@pytest.mark.parametrize(("ffmas", "accelsim"), [(4, 161), (40, 1401), (100, 3522)])
def test_waves_of_short_ctas_take_as_long_as_in_accelsim(tmp_path: Path, ffmas: int, accelsim: int) -> None:
    """4,096 CTAs of 16 threads on QV100, 2,560 at a time, if places are given away at once. The cycles are
    those of Accel-Sim (gpgpu-sim 667834c), after 5,000 of launch latency."""

    def body(w: Warp) -> None:
        half = 0xFFFF
        w.op("MOV", 1, mask=half)
        w.op("S2R", 2, mask=half)
        w.op("ISETP.GE.AND", None, (2,), mask=half)
        w.op("EXIT", mask=0)
        for _ in range(ffmas):
            w.op("FFMA", 3, (3, 0), mask=half)

    trace = write_kernel(tmp_path / "t", [[warp_of(body)]] * 4096, threads=16, registers=24)
    assert cycles(trace, overrides={"launch.dispatch_latency": 0}) == accelsim


ONE_CTA = {"sm.count": 1, "sm.max_ctas": 1, "sm.front_end.instruction_cache.perfect": True}


def storing(w: Warp, opcode: str = "STG.E.SYS") -> None:
    chain(w, 4)
    w.memory(opcode, [GLOBAL + 4 * lane for lane in range(32)], 4, sources=(2, 8))


def storing_ctas(folder: Path, body: Callable[[Warp], None], gpu: str, ctas: int, latency: int) -> int:
    """Cycles of CTAs that store, one at a time."""
    trace = write_kernel(folder, [[warp_of(body)] for _ in range(ctas)], sm=80)
    return cycles(trace, gpu, {**ONE_CTA, "l2.latency": latency})


@pytest.mark.parametrize(
    ("gpu", "opcode", "waiting"),
    [("a100", "STG.E.SYS", 1), ("a100", "RED.E.ADD", 1), ("qv100-accelsim", "STG.E.SYS", 4)],
)
def test_a_place_is_taken_though_stores_are_under_way(
    gpu: str, opcode: str, waiting: int, tmp_path: Path
) -> None:
    """Stores that take 100 cycles longer delay four CTAs in a row by that once, at the end of the launch; by
    Accel-Sim's rule, four times.
    """

    def body(w: Warp) -> None:
        storing(w, opcode)

    near, far = (storing_ctas(tmp_path / str(n), body, gpu, 4, n) for n in (300, 400))
    assert far - near == waiting * 100


def test_a_launch_lasts_until_its_last_store_is_acknowledged(tmp_path: Path) -> None:
    """As long as with a final memory barrier, whose warp then takes a few cycles to end."""

    def with_barrier(w: Warp) -> None:
        storing(w)
        w.op("MEMBAR.SC.GPU")

    ends = []
    for latency in (300, 400):
        plain, barrier = (
            storing_ctas(tmp_path / f"{body.__name__}-{latency}", body, "a100", 1, latency)
            for body in (storing, with_barrier)
        )
        ends.append((plain, barrier - plain))
    (near, more), (far, same) = ends
    assert far - near == 100
    assert more == same
    assert 0 < more < 10


def test_the_next_launch_of_a_stream_begins_after_the_stores(tmp_path: Path) -> None:
    for number in (1, 2):
        write_kernel(tmp_path / "t", [[warp_of(storing)]], number, sm=80)
    for gpu in ("a100", "qv100-accelsim"):
        near, far = (run(tmp_path / "t", gpu, {**ONE_CTA, "l2.latency": n}) for n in (300, 400))
        assert near[1]["start_cycle"] == near[0]["end_cycle"]
        assert far[1]["start_cycle"] == near[1]["start_cycle"] + 100


def test_the_warps_of_a_cta_start_one_after_the_other(tmp_path: Path) -> None:
    """The last of eight has the most to do: it starts seven intervals later, in every CTA of a place."""

    def total(name: str, interval: int, ctas: int) -> int:
        warps = [warp_of(lambda w: chain(w, 1))] * 7 + [warp_of(lambda w: chain(w, 200))]
        trace = write_kernel(tmp_path / name, [warps] * ctas, sm=80)
        return cycles(trace, "a100", {**ONE_CTA, "launch.warp_start_interval": interval})

    for ctas in (1, 3):
        some, more = (total(f"{interval}-{ctas}", interval, ctas) for interval in (50, 51))
        assert more - some == 7 * ctas


def test_every_unit_can_be_missing(tmp_path: Path) -> None:
    """A trace of a newer GPU on one without its units: they fall back to others instead of failing."""

    def body(w: Warp) -> None:
        for opcode in ("UIADD3", "HMMA.16816.F32", "DFMA", "MUFU.RCP", "TEX", "BRA", "IMAD", "FFMA", "REDUX"):
            w.op(opcode, 8, (8, 2))

    missing = {f"sm.units.{u}.count": 0 for u in ("int", "fp64", "tensor", "branch", "texture", "uniform")}
    r = run(write_kernel(tmp_path / "t", [[warp_of(body)]], sm=80), overrides=missing)[0]
    assert r["counters"]["warp_instructions"] == 10


def test_a_shared_unit_serves_the_sub_cores_in_turn(tmp_path: Path) -> None:
    """Two warps of each sub-core alternate FP64 and what depends on it: no interval makes the unit idle, and
    none a multiple of the number of sub-cores leaves one of them to the end."""

    def body(w: Warp) -> None:
        for _ in range(40):
            w.op("DFMA", 8, (2, 4, 6))
            w.op("IADD3", 10, (8, 2))
            w.op("IADD3", 10, (10, 2))

    trace = write_kernel(tmp_path / "t", [[warp_of(body) for _ in range(8)]])
    taken = {n: cycles(trace, "rtx3070", {"sm.units.fp64.initiation_interval": n}) for n in range(13, 21)}
    for n in range(14, 21):
        assert 0 < taken[n] - taken[n - 1] <= 8 * 40 * 1.1


def test_ctas_begin_at_two_sub_cores_in_turn(tmp_path: Path) -> None:
    """In each CTA one of four warps works: of two CTAs each in a sub-core of its own, of four two in each."""

    def works(w: Warp) -> None:
        for i in range(300):
            w.op("MUFU.RCP", 8 + i % 16, (2,))

    cta = [warp_of(works), *[warp_of(lambda w: w.op("IADD3", 8, (2,))) for _ in range(3)]]
    taken = {
        n: cycles(write_kernel(tmp_path / str(n), [cta] * n), "rtx3070", {"sm.count": 1}) for n in (1, 2, 4)
    }
    assert taken[2] - taken[1] < 100
    assert taken[4] - taken[2] > 300 * 7
