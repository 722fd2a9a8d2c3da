"""Photon's decisions on hand-made signals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt._engine import MemorySpace, Operation
from simt.control import GO_ON, Interval, LaunchView, Predict
from simt.control.code import BlockTable, Preview, spread
from simt.control.controller import BLOCK, WARP
from simt.control.photon import Photon, PublishedPhoton
from simt.control.photon.analysis import load_analyses
from simt.errors import ParameterError, SimtError

LENGTH = np.array([4, 6, 2], np.uint32)


class Code:
    """A kernel of three blocks; each sampled warp executes them as often as its row of `counts` says."""

    def __init__(self, counts: list[list[int]], complete: bool = True) -> None:
        first = np.concatenate([[0], np.cumsum(LENGTH)[:-1]]).astype(np.uint32)
        self.blocks = BlockTable(first, LENGTH, np.array([11, 22, 33], np.uint64))
        self._preview = Preview((0,), np.array(counts, np.uint32), complete)
        self.asked = 0

    @property
    def instructions(self) -> list[dict[str, Any]]:
        plain = {"opcode": "FADD", "operation": Operation.Arithmetic, "space": MemorySpace.None_}
        load = {"opcode": "LDG", "operation": Operation.Load, "space": MemorySpace.Global}
        registers: dict[str, Any] = {"destinations": [], "sources": []}
        return [(load if i == 4 else plain) | registers for i in range(int(LENGTH.sum()))]

    def preview(self, fraction: float, at_least_ctas: int = 1, at_least_warps: int = 32) -> Preview:
        self.asked += 1
        return self._preview


def launch(code: Code, index: int = 0, ctas: int = 10_000, name: str = "k", **known: Any) -> LaunchView:
    return LaunchView(
        index=index,
        id=index + 1,
        name=name,
        grid=(ctas, 1, 1),
        block=(128, 1, 1),
        warps_per_cta=4,
        ctas_per_sm=2,
        sm_count=10,
        code=code,  # type: ignore[arg-type]
        **known,
    )


def interval(
    index: int, warps: Any = (), blocks: Any = (), l2_free_lines: int = 10**9, **rates: int
) -> Interval:
    """40 CTAs of 4 warps are resident; together they execute two instructions per cycle. A wave of 20 CTAs
    ends in each interval. rates: what else is counted in an interval of 500 cycles.
    """
    each = {
        "warp_instructions": 1000,
        "active_warp_cycles": 160 * 500,
        "l2.global_read.miss": 0,
        "l2.global_write.miss": 0,
        "l2.global_write.sector_miss": 0,
        "dram_reads": 0,
        "dram_writes": 0,
        "ctas_finished": 20,
        "finished_instructions": 20 * 4 * 66,
    } | rates
    counters = {name: n * (index + 1) for name, n in each.items()} | {"ctas": 40 + 20 * (index + 1)}
    of_sms = np.full(10, (index + 1) * 50, np.uint64)
    return Interval(
        index,
        500 * index,
        500 * (index + 1),
        counters,
        each,
        np.array(list(warps), WARP),
        np.array(list(blocks), BLOCK),
        sm_instructions=2 * of_sms,
        sm_warp_cycles=160 * of_sms,
        l2_free_lines=l2_free_lines,
    )


def result(cycles: int, l2: dict[str, dict[str, int]] | None = None, **engine: int) -> Any:
    return SimpleNamespace(
        start_cycle=100,
        launch_latency=50,
        end_cycle=150 + cycles,
        engine=engine,
        l1={},
        l2=l2 or {},
        stalls={},
        warp_stalls={},
        sampled=None,
    )


def l2_reads(hit: int, miss: int) -> dict[str, dict[str, int]]:
    outcomes = {"hit": hit, "hit_reserved": 0, "miss": miss, "sector_miss": 0}
    return {"global_read": outcomes, "global_write": dict.fromkeys(outcomes, 10**6)}


def warps_of(index: int, time: int, count: int = 10) -> list[tuple[int, int, int, int]]:
    """Warps that end in interval `index`, one every 50 cycles."""
    ends = [10_000 + 500 * index + 50 * i for i in range(count)]
    return [(0, 0, end - time, end) for end in ends]


def blocks_of(number: int, index: int, time: int, count: int = 10) -> list[tuple[int, int, int, int]]:
    ends = [10_000 + 500 * index + 50 * i for i in range(count)]
    return [(number, 0, end - time, end) for end in ends]


SAME = [[1, 10, 1]] * 40


def photon(**settings: Any) -> PublishedPhoton:
    rules: dict[str, Any] = {"small": "wave", "work": 0.1, "block_window": 20, "warp_window": 20}
    return PublishedPhoton(**{**rules, **settings}).start()


def test_warps_of_stable_time_predict_by_their_mean() -> None:
    p = photon(levels="warp")
    assert p.begin(launch(Code(SAME))) is GO_ON
    assert p.warps and not p.blocks
    for i in range(3):
        assert p.observe(interval(i, warps_of(i, 1000))) is GO_ON
    decision = p.observe(interval(3, warps_of(3, 1000)))
    assert isinstance(decision, Predict)
    assert decision.warp_cycles == 1000
    assert p.observe(interval(4, warps_of(4, 500))) is GO_ON


def test_warps_of_many_types_are_not_watched() -> None:
    p = photon(levels="warp")
    # 36 of 40 warps are alike: 90 %.
    assert p.begin(launch(Code([[1, 10, 1]] * 36 + [[1, 11 + i, 1] for i in range(4)]))) is GO_ON
    assert not p.warps
    assert photon(levels="warp", dominance=0.9).begin(launch(Code(SAME))) is GO_ON


def test_warps_whose_time_grows_never_predict() -> None:
    p = photon(levels="warp")
    p.begin(launch(Code(SAME)))
    for i in range(40):
        assert p.observe(interval(i, warps_of(i, 100 + 60 * i))) is GO_ON
    assert p.why_full == "the time of its warps was not stable in 400"


def test_blocks_predict_once_they_cover_enough_instructions() -> None:
    p = photon(levels="block")
    p.begin(launch(Code(SAME)))
    # Block 1 holds 60 of 66 instructions: not 95 %.
    for i in range(6):
        assert p.observe(interval(i, (), blocks_of(1, i, 30))) is GO_ON
    for i in range(6, 9):
        both = [*blocks_of(1, i, 30), *blocks_of(0, i, 12)]
        assert p.observe(interval(i, (), both)) is GO_ON
    decision = p.observe(interval(9, (), [*blocks_of(1, 9, 30), *blocks_of(0, 9, 12)]))
    assert isinstance(decision, Predict)
    assert decision.block_cycles is not None
    # The third was never executed: the interval model gives two independent instructions two cycles.
    assert decision.block_cycles.tolist() == [12, 30, 2]


def test_spans_of_time_and_a_scaled_model() -> None:
    p = Photon("block", block_window=8, coverage=0.85, error=9.0).start()
    p.begin(launch(Code(SAME), ctas=160))
    # Times of 400 cycles, an end every 5: windows of 81 executions. They contain 600 of the 1000 instructions
    # of an interval. The first 8 intervals are only observed.
    found = []
    for i in range(9):
        ends = [10_000 + 500 * i + 5 * k for k in range(100)]
        found.append(p.observe(interval(i, (), [(1, 1000, end - 400, end) for end in ends])))
    assert all(d is GO_ON for d in found[:7])
    decision = found[7]
    assert isinstance(decision, Predict) and decision.block_cycles is not None
    # 160 warps execute 2 instructions a cycle: 80 cycles each, while those that ended took 400 / 6.
    assert decision.block_cycles[1] == pytest.approx(6 * 80)
    # Its 6 independent instructions take 6 cycles in the model; the 4 and 2 cycles of the others are scaled
    # in the same way.
    assert decision.block_cycles.tolist() == pytest.approx([80 * 4, 80 * 6, 80 * 2])
    assert decision.contention is not None
    assert decision.contention.fastest == pytest.approx(80 * 6 / 400)
    assert not decision.contention.in_turn
    assert decision.contention.sm_warps.tolist() == [16] * 10


def test_a_trend_refuses_a_prediction() -> None:
    """As above, with traffic to DRAM that stays the same, and that grows."""
    for growing, trend, expected in ((False, 0.1, True), (True, 0.1, False), (True, 1.0, True)):
        p = Photon("block", block_window=8, coverage=0.85, trend=trend, error=9.0).start()
        p.begin(launch(Code(SAME), ctas=160, dram_bytes_per_cycle=640))
        found = []
        for i in range(9):
            ends = [10_000 + 500 * i + 5 * k for k in range(100)]
            blocks = [(1, 1000, end - 400, end) for end in ends]
            found.append(p.observe(interval(i, (), blocks, dram_reads=400 * i if growing else 400)))
        assert isinstance(found[7], Predict) == expected
        if not expected:
            assert p.why_full.startswith("DRAM utilisation went from")


def test_of_fewer_than_eight_waves_nothing_is_left_out() -> None:
    """Below a wave no CTA has been seen from beginning to end; of few waves mostly the end is left."""
    for ctas, decides in ((10, False), (20, False), (159, False), (160, True)):
        p = Photon("block", block_window=8, coverage=0.85, error=9.0).start()
        assert p.begin(launch(Code(SAME), ctas=ctas)) is GO_ON
        assert p.blocks == decides
        found = []
        for i in range(9):
            ends = [10_000 + 500 * i + 5 * k for k in range(100)]
            found.append(p.observe(interval(i, (), [(1, 1000, end - 400, end) for end in ends])))
        assert any(isinstance(d, Predict) for d in found) == decides
        if not decides:
            assert p.why_full.endswith("waves of CTAs: fewer than 8 leave nothing out")


def test_nothing_predicts_before_the_l2_is_full_if_its_stores_will_keep_the_memory_busy() -> None:
    known: dict[str, Any] = {"l2_lines": 10_000, "dram_bytes_per_cycle": 100.0}
    rates = {"l2.global_write.miss": 100, "l2.global_write.sector_miss": 300}

    def decided(free: int, bandwidth: float = 56.8, **counted: int) -> bool:
        p = Photon("block", block_window=8, coverage=0.85, error=9.0).start()
        p.begin(launch(Code(SAME), ctas=160, **known | {"dram_bytes_per_cycle": bandwidth}))
        # 160 CTAs of 4 warps of 66 instructions: 42.24 intervals, with a hundred lines each.
        events = []
        for i in range(9):
            ends = [10_000 + 500 * i + 5 * k for k in range(100)]
            blocks = [(1, 1000, end - 400, end) for end in ends]
            events.append(p.observe(interval(i, (), blocks, free, **rates | counted)))
        return any(d is not GO_ON for d in events)

    # After the first interval 4124 more lines are expected.
    assert decided(free=4125)
    assert not decided(free=700)
    # 400 sectors of 32 bytes in 500 cycles: 25.6 bytes per cycle, of which 45 % matter.
    assert not decided(free=700, bandwidth=56.8)
    assert decided(free=700, bandwidth=57.0)
    # No line is free: evicted lines were only read, until modified lines are written, too.
    assert not decided(free=0)
    assert not decided(free=0, dram_writes=199)
    assert decided(free=0, dram_writes=200)


def test_warps_are_waited_for_where_they_can_predict() -> None:
    p = Photon("block+warp").start()
    p.begin(launch(Code(SAME)))
    assert p.warps and not p.blocks
    p.begin(launch(Code([*SAME[:20], *[[2, 20, 1]] * 20]), 1))
    assert p.blocks and not p.warps
    # Blocks of the first wave (20 CTAs, 80 warps) are ignored.
    assert p.observe(interval(0, (), blocks_of(1, 0, 30))) is GO_ON
    assert p.why_full.startswith("stable basic blocks hold 0%")


def test_coverage_is_a_knob() -> None:
    p = photon(levels="block", coverage=0.9)
    p.begin(launch(Code(SAME)))
    found = [p.observe(interval(i, (), blocks_of(1, i, 30))) for i in range(4)]
    assert [type(d) for d in found[:3]] == [type(GO_ON)] * 3
    assert isinstance(found[3], Predict)


def test_without_residents_a_launch_of_one_wave_is_left_alone() -> None:
    p = photon(levels="block+warp", residents=False)
    assert p.begin(launch(Code(SAME), ctas=20)) is GO_ON
    assert not p.warps and not p.blocks
    assert "at once" in p.why_full


def test_warps_that_cannot_be_followed_mean_full_detail() -> None:
    p = photon()
    assert p.begin(launch(Code(SAME, complete=False))) is GO_ON
    assert not p.warps and not p.blocks
    p.end(launch(Code(SAME)), result(1000))
    # Nor does it represent others.
    assert p.begin(launch(Code(SAME), 1)) is GO_ON


def test_a_launch_like_an_earlier_one_is_predicted_whole() -> None:
    p = photon(levels="kernel")
    p.begin(launch(Code(SAME)))
    p.end(launch(Code(SAME)), result(12_000))
    same = p.begin(launch(Code(SAME), 1))
    assert isinstance(same, Predict)
    assert same.launch_cycles == 12_000
    # Twice the CTAs: twice the instructions at the same rate.
    twice = p.begin(launch(Code(SAME), 2, ctas=20_000))
    assert isinstance(twice, Predict)
    assert twice.launch_cycles == pytest.approx(24_000)
    # Other warps: 180 of 186 instructions in block 1, against 60 of 66; a distance of 0.12.
    assert p.begin(launch(Code([[1, 30, 1]] * 40), 3)) is GO_ON


def test_a_launch_like_an_earlier_one_states_an_interval() -> None:
    p = Photon("kernel").start()
    for index in range(2):  # the first launch of a function represents no other
        p.begin(launch(Code(SAME), index))
        p.end(launch(Code(SAME), index), result(12_000))
    now = interval(0)
    for ctas, other in ((10_000, 0.0), (12_000, math.log(1.2) / 2)):
        again = launch(Code(SAME), 2, ctas=ctas)
        assert isinstance(p.begin(again), Predict)
        found = p.extrapolate(again, now, 12_000)
        assert found.half_widths == {"cycles": pytest.approx(0.08 + other)}
        assert found.reason.startswith("kernel: ") and "; cycles ± " in found.reason


@pytest.mark.parametrize(
    ("hit", "miss", "cycles", "after"),
    [
        (900, 100, [8_000, 7_000, 6_900], [None, None, None, 6_900]),  # the third confirms the second
        (900, 100, [8_000, 7_900, 0], [None, None, 7_900, 7_900]),  # the second confirms the first
        (995, 5, [8_000, 0, 0], [None, 8_000, 8_000, 8_000]),  # the first found nearly all that it read
        (0, 4096, [8_000, 0, 0], [None, 8_000, 8_000, 8_000]),  # the first leaves nothing of use in the L2
    ],
)
def test_a_launch_represents_others_that_find_the_same_in_the_l2_or_if_another_took_as_long(
    hit: int, miss: int, cycles: list[int], after: list[int | None]
) -> None:
    p = Photon("kernel").start()
    outcomes = []
    launches = [(SAME, 20_000), (SAME, 9_000), *zip([[[1, 30, 1]] * 40] * 4, [*cycles, 0], strict=True)]
    for index, (counts, time) in enumerate(launches):  # one function, two kinds
        view = launch(Code(counts), index, l2_lines=4096)
        decision = p.begin(view)
        outcomes.append(decision.launch_cycles if isinstance(decision, Predict) else None)
        if outcomes[-1] is None:
            p.end(view, result(time, l2_reads(hit, miss)))
    assert outcomes == [None, None, *after]


def test_as_published_is_said_beside_each_prediction() -> None:
    for kind, noted in ((PublishedPhoton, True), (Photon, False)):
        p = kind("kernel").start()
        for index in range(2):
            p.begin(launch(Code(SAME), index))
            p.end(launch(Code(SAME), index), result(12_000))
        decision = p.begin(launch(Code(SAME), 2))
        assert isinstance(decision, Predict)
        assert ("as published, without an interval" in decision.reason) == noted


def test_the_nearest_number_of_warps_is_taken() -> None:
    p = photon(levels="kernel", distance=0.0001)
    for index, (ctas, cycles) in enumerate([(1000, 1000), (4000, 3000)]):
        view = launch(Code([[1, 10 + index, 1]] * 40), index, ctas)
        p.begin(view)
        p.end(view, result(cycles))
    p.kernels_.distance = 0.1
    near = p.begin(launch(Code(SAME), 2, ctas=3000))
    assert isinstance(near, Predict) and near.launch_cycles is not None
    # From the second one: 66 of 72 instructions per warp, 3000 of 4000 CTAs, 3000 cycles.
    assert near.launch_cycles == pytest.approx(3000 * 0.75 * 66 / 72)


def test_small_launches_need_the_same_number_of_warps() -> None:
    p = photon(levels="kernel")
    view = launch(Code(SAME), 0, ctas=2)  # 8 warps on 10 SMs
    p.begin(view)
    p.end(view, result(700))
    assert p.begin(launch(Code(SAME), 1, ctas=1)) is GO_ON
    assert isinstance(p.begin(launch(Code(SAME), 2, ctas=2)), Predict)


def test_launches_below_a_wave_need_the_same_number_of_warps_unless_asked_otherwise() -> None:
    for small, alike in (("wave", False), ("sms", True)):
        p = photon(levels="kernel", small=small)
        view = launch(Code(SAME), 0, ctas=15)  # 20 CTAs fit the GPU
        p.begin(view)
        p.end(view, result(700))
        assert isinstance(p.begin(launch(Code(SAME), 1, ctas=10)), Predict) == alike
        assert isinstance(p.begin(launch(Code(SAME), 2, ctas=15)), Predict)


def test_launches_with_longer_warps_are_not_alike_unless_asked_otherwise() -> None:
    for work, alike in ((0.1, False), (0.5, True), (None, True)):
        p = photon(levels="kernel", work=work)
        p.begin(launch(Code([[10, 100, 10]] * 40)))
        p.end(launch(Code(SAME)), result(12_000))
        # The same vector with 1.5 times the instructions per warp.
        assert isinstance(p.begin(launch(Code([[15, 150, 15]] * 20), 1)), Predict) == alike


def test_a_predicted_launch_stands_for_no_other() -> None:
    p = photon(levels="kernel")
    p.begin(launch(Code(SAME)))
    p.end(launch(Code(SAME)), result(12_000))
    p.begin(launch(Code(SAME), 1))
    p.end(launch(Code(SAME), 1), result(99_000))
    again = p.begin(launch(Code(SAME), 2))
    assert isinstance(again, Predict) and again.launch_cycles == 12_000


def test_an_analysis_is_saved_and_used_on_another_gpu(tmp_path: Path) -> None:
    p = photon()
    p.begin(launch(Code(SAME)))
    p.save(tmp_path / "analysis.json")
    code = Code([[9, 9, 9]])
    later = photon(analysis=tmp_path / "analysis.json")
    later.begin(launch(code))
    assert code.asked == 0
    assert later.warps
    later.begin(launch(code, name="other"))
    assert code.asked == 1


@given(data=st.data())
def test_a_damaged_analysis_is_refused_or_read(data: st.DataObject, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("analysis") / "a.json"
    p = photon()
    p.begin(launch(Code([[1, 2, 3], [4, 5, 6]])))
    p.save(path)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw))
    try:
        load_analyses(path)
    except SimtError as error:
        assert str(path) in str(error)


def test_an_analysis_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(SimtError, match="cannot read"):
        load_analyses(tmp_path / "none.json")
    (tmp_path / "x.json").write_text(json.dumps([1]))
    with pytest.raises(SimtError, match="not a Photon analysis by simt"):
        load_analyses(tmp_path / "x.json")


def test_counters_of_missing_blocks() -> None:
    p = photon(levels="block", coverage=0.9)
    view = launch(Code(SAME), ctas=25)
    p.begin(view)
    for i in range(4):
        p.observe(interval(i, (), [*blocks_of(1, i, 30), *blocks_of(0, i, 9, 1)]))
    # 40 executions of block 1 and 4 of block 0 were simulated: 256 instructions, 40 of them loads.
    now = interval(3)
    counted = {"warp_instructions": 256, "global_load_requests": 40, "shared_loads": 0, "dram_reads": 80}
    now = Interval(now.index, now.begin, 2000, counted, counted)
    found = p.extrapolate(view, now, 10_000)
    # 100 warps: 1000 executions of block 1, 100 of each of the other blocks.
    assert found.counters["warp_instructions"] == pytest.approx(6600)
    assert found.counters["global_load_requests"] == pytest.approx(1000)
    assert found.counters["dram_reads"] == pytest.approx(2000)
    assert found.counters["shared_loads"] == 0
    assert found.cycles == 10_000
    assert "by block type" in found.projected["dram_reads"]


def test_requests_of_blocks_that_have_not_ended_count() -> None:
    """Ten loads were issued in blocks that are still under way."""
    p = photon(levels="block", coverage=0.9)
    view = launch(Code(SAME), ctas=25)
    p.begin(view)
    for i in range(4):
        p.observe(interval(i, (), [*blocks_of(1, i, 30), *blocks_of(0, i, 9, 1)]))
    counted = {"warp_instructions": 256, "global_load_requests": 50, "dram_reads": 80}
    found = p.extrapolate(view, Interval(3, 0, 2000, counted, counted), 10_000)
    assert found.counters["global_load_requests"] == pytest.approx(1000)  # not 50 * 1000 / 40
    assert found.counters["dram_reads"] == pytest.approx(80 * 1000 / 50)


def test_bad_settings_are_refused() -> None:
    for settings in (
        {"levels": "kernel+grid"},
        {"levels": ()},
        {"sample": 0},
        {"coverage": 1.1},
        {"block_window": 1},
        {"delta": -1},
    ):
        for kind in (Photon, PublishedPhoton):
            with pytest.raises(ParameterError, match=next(iter(settings))):
                kind(**settings).start()  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="fidelity is 'best'"):
        PublishedPhoton(fidelity="best").start()  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="error is -1"):
        Photon(error=-1).start()


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 4))
def test_samples_are_spread_over_the_grid(groups: int, wanted: int, together: int) -> None:
    count = groups * together
    chosen = spread(count, wanted, together)
    assert len(chosen) == len(set(chosen)) >= min(wanted, count)
    assert chosen == sorted(chosen) and chosen[0] >= 0 and chosen[-1] < count
    starts = chosen[::together]
    assert all(s % together == 0 for s in starts)
    gaps = np.diff([*starts]) if len(starts) > 1 else np.array([0])
    assert gaps.max() - gaps.min() <= together
