"""Result: counters by hand-computed cases, tables, JSON of the shipped schema, files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import polars as pl
import pytest

import simt
from simt.errors import ResultError
from simt.result import COUNTERS, Result
from support.fake_gpu import installed
from support.launches import MACHINE, launch

SCHEMA = json.loads((Path(simt.__file__).parent / "result" / "simt.result-1.schema.json").read_text())


@pytest.fixture
def result() -> Result:
    with installed():
        return simt.simulate("input", timeline=250)


def test_counters_by_hand() -> None:
    # 4 CTAs: 4500 cycles on 4 SMs at 1 GHz, 2560 warp instructions, 16000 SM cycles of 64000 warp-cycles.
    c = launch(ctas=4).counters
    assert c["gpc__cycles_elapsed.max"] == 4500
    assert c["gpu__time_duration.sum"] == 4500
    assert c["smsp__inst_executed.sum"] == 2560
    assert c["smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"] == 30
    assert c["sm__inst_executed.avg.per_cycle_elapsed"] == pytest.approx(2560 / (4 * 4500))
    assert c["sm__warps_active.avg.pct_of_peak_sustained_active"] == pytest.approx(100 * 4 / 64)
    assert c["smsp__issue_active.avg.pct_of_peak_sustained_active"] == pytest.approx(100 * 2560 / 64000)
    assert c["l1tex__t_sector_hit_rate.pct"] == pytest.approx(50)  # a merge is a hit
    assert c["lts__t_sectors_srcunit_tex_op_read.sum"] == 1200  # the 7 reservation failures are no look-ups
    assert c["lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"] == 240
    assert c["lts__t_sector_op_write_hit_rate.pct"] == pytest.approx(75)
    # The DRAM clock is half the core clock: 2250 cycles on each of 8 channels.
    assert c["dram__throughput.avg.pct_of_peak_sustained_elapsed"] == pytest.approx(100 * 1600 / (8 * 2250))
    assert c["simt__dram_efficiency.pct"] == pytest.approx(25)
    assert c["dram__bytes_read.sum"] == 32 * 1200
    assert c["smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"] == pytest.approx(4000 / 2560)
    assert c["launch__waves_per_multiprocessor"] == pytest.approx(4 / 32)


def test_a_ratio_without_denominator_is_none() -> None:
    c = launch(global_load_requests=0, l1={}, dram_pending_cycles=0).counters
    assert c["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"] is None
    assert c["l1tex__t_sector_hit_rate.pct"] is None
    assert c["simt__dram_efficiency.pct"] is None
    assert launch(occupancy_limited_by="grid").counters["launch__waves_per_multiprocessor"] is None


def test_every_counter_has_a_value_and_every_engine_counter_is_used() -> None:
    x = launch()
    undefined = [name for name, value in x.counters.items() if value is None]
    assert undefined == ["simt__energy.sum", "simt__power.avg"]  # of runs with power
    formulas = " ".join(counter.formula for counter in COUNTERS)
    derived = {"ctas", "warps"}
    derived |= {"ctas_finished", "finished_instructions"}  # of timelines alone
    assert [name for name in x.engine if name not in formulas and name not in derived] == []
    assert len({counter.name for counter in COUNTERS}) == len(COUNTERS)


def test_totals_add_up_and_do_not_count_overlap_twice() -> None:
    one, two = launch(0, start=0, ctas=4), launch(1, start=1000, ctas=4)
    with installed():
        provenance = simt.simulate("input").provenance
    totals = Result((one, two), MACHINE, provenance).totals
    assert totals.cycles == 5500
    assert totals.warp_instructions == 5120
    assert totals.counters["smsp__inst_executed.sum"] == 5120
    assert totals.counters["sm__inst_executed.avg.per_cycle_elapsed"] == pytest.approx(5120 / (4 * 5500))
    assert totals.counters["l1tex__t_sector_hit_rate.pct"] == pytest.approx(50)
    assert totals.counters["launch__registers_per_thread"] is None


def test_tables(result: Result) -> None:
    launches = result.to_polars()
    assert launches["name"].to_list() == ["vecadd", "gemm_128x64", "gemm_64x64", "reduce(float*, int)"]
    assert launches["cycles"].to_list() == [4500, 8500, 2500, 1500]
    assert launches["smsp__inst_executed.sum"].sum() == result.totals.warp_instructions
    stalls = result.to_polars("stalls").filter(launch_index=0)
    assert stalls["cycles"].sum() == 64000
    pc = result.to_polars("pc").filter(launch_id=2)
    assert pc["opcode"].to_list() == ["LDG.E", "FFMA", "EXIT"]
    timeline = result.to_polars("timeline").filter(launch_id=1)
    assert timeline["cycle"].to_list() == list(range(250, 4501, 250))
    dram = result.to_polars("dram").filter(launch_id=1, channel=3)
    assert dram["cycle"].to_list() == timeline["cycle"].to_list()
    assert timeline["stalls_wait"].to_list() == [10 * i for i in range(18)]
    assert timeline["warp_stalls_wait"].to_list() == [20 * i for i in range(18)]
    banks = result.to_polars("dram_banks").filter(launch_id=1)
    assert banks["cycle"].to_list() == timeline["cycle"].to_list()  # the fake uses a bank per interval
    assert banks.row(10, named=True) == {
        "launch_index": 0,
        "launch_id": 1,
        "interval": 10,
        "cycle": 2750,
        "channel": 2,
        "bank": 2,
        "bus_cycles": 1,
        "pending_cycles": 1,
    }
    with pytest.raises(ValueError, match="no table 'kernels': expected one of launches"):
        result.to_polars("kernels")


def test_timeline_rates() -> None:
    x = launch(ctas=2, interval=500, start=100)
    samples = x.samples()
    assert [(s.start, s.end) for s in samples[:2]] == [(100, 600), (600, 1100)]
    assert samples[0].ipc == pytest.approx(100 / (4 * 500))
    assert samples[0].occupancy == pytest.approx(100 * 100 / (4 * 64 * 500))
    assert samples[1].l1_hit_rate == pytest.approx(25)
    assert samples[1].l2_hit_rate == pytest.approx(100 * 1 / 30)
    assert samples[1].stalls["wait"] == pytest.approx(100 * 10 / (4 * 4 * 500))
    assert samples[0].lanes == 1
    assert launch().samples() == []


def test_dram_activity_by_hand() -> None:
    # Interval i: channel c is busy and pending for (i + c) % 9 of 250 command cycles; bank i % 4 of channel
    # i % 8 for i % 9.
    x = launch(ctas=2, interval=500, start=100)
    channels, banks = x.dram_activity(), x.dram_activity("bank")
    assert channels is not None and banks is not None
    assert channels.start.tolist() == [100, 600, 1100, 1600, 2100] and channels.end[-1] == 2600
    assert channels.utilisation.shape == (5, 8) and banks.utilisation.shape == (5, 8 * 4)
    assert channels.utilisation[2, 3] == pytest.approx(100 * 5 / 250)
    assert channels.efficiency[2, 3] == 100 and math.isnan(channels.efficiency[0, 0])
    assert banks.utilisation[3, 3 * 4 + 3] == pytest.approx(100 * 3 / 250)
    assert banks.utilisation.sum() == pytest.approx(100 * (1 + 2 + 3 + 4) / 250)
    assert math.isnan(banks.efficiency[3, 0]) and banks.efficiency[3, 15] == 100
    assert launch().dram_activity() is None
    with pytest.raises(ValueError, match="by is 'row': expected channel or bank"):
        x.dram_activity("row")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "rows", "problem"),
    [
        ("channel", [8, 0], "dram_banks has a row with channel 8, expected less than 8"),
        ("bank", [4, 0], "bank 4, expected less than 4"),
        ("interval", [0, 2], "interval 2, expected less than 2"),
        ("interval", [1, 0], "not in ascending order"),
        ("bus_cycles", [1], "different lengths"),
        ("bus_cycles", [1, 2**32], "Expected `int` <= 4294967295"),
    ],
)
def test_broken_banks_are_refused(result: Result, column: str, rows: list[int], problem: str) -> None:
    data = replace(result, launches=(launch(ctas=1, interval=750),)).to_json(detail=True)
    data["launches"][0]["timeline"]["dram_banks"][column] = rows
    with pytest.raises(ResultError, match=problem):
        Result.from_json(data)


def test_instructions_beyond_those_of_the_launch_are_refused(result: Result) -> None:
    data = replace(result, launches=(launch(ctas=1, interval=750),)).to_json(detail=True)
    data["launches"][0]["timeline"]["instructions"]["instruction"][1] = 3
    with pytest.raises(ResultError, match="instructions has a row with instruction 3, expected less than 3"):
        Result.from_json(data)


def test_instruction_activity_by_hand() -> None:
    # Interval i: instruction i % 3 is issued 10 * i times, and i % 5 samples find a warp waiting there.
    x = launch(ctas=2, interval=500, start=100)
    a, merged = x.instruction_activity(), x.instruction_activity(2)
    assert a is not None and merged is not None
    assert a.issued.tolist() == [[0, 0, 0], [0, 10, 0], [0, 0, 20], [30, 0, 0], [0, 40, 0]]
    assert a.waiting.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 2], [3, 0, 0], [0, 4, 0]]
    assert (merged.start.tolist(), merged.end.tolist()) == ([100, 1600], [1600, 2600])
    assert merged.issued.tolist() == [[0, 10, 20], [30, 40, 0]]
    assert launch().instruction_activity() is None


def test_timelines_of_earlier_versions_are_read(result: Result, tmp_path: Path) -> None:
    data = result.to_json(detail=True)
    del data["machine"]["dram_banks"]
    for x in data["launches"]:
        for name in ("stalls", "warp_stalls", "dram_banks", "instructions"):
            del x["timeline"][name]
    old = Result.from_json(data)
    assert Result.load(old.save(tmp_path / "old")) == old
    assert old.launches[0].samples()[0].stalls == {} and old.launches[0].dram_activity("bank") is None


@pytest.mark.parametrize("detail", [False, True])
def test_json_follows_the_schema(result: Result, detail: bool) -> None:
    data = json.loads(json.dumps(result.to_json(detail), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(data)
    assert data["schema"] == "simt.result/1"
    assert ("pc" in data["launches"][0]) == detail
    for name in ("id", "name", "cycles", "launch_latency", "warp_instructions", "thread_instructions"):
        assert name in data["launches"][0]
    assert set(data["launches"][0]["counters"]) == {counter.name for counter in COUNTERS}
    del data["launches"][0]["cycles"]
    with pytest.raises(jsonschema.ValidationError, match="'cycles' is a required property"):
        validator.validate(data)


@pytest.mark.parametrize("place", ["saved", "saved.json"])
def test_saved_and_loaded_is_the_same(result: Result, tmp_path: Path, place: str) -> None:
    path = result.save(tmp_path / place)
    loaded = Result.load(path)
    assert loaded == result
    assert loaded.totals == result.totals
    assert [x.counters for x in loaded.launches] == [x.counters for x in result.launches]
    assert not [p for p in tmp_path.rglob("*") if p.name.count(".") > 1]  # no temporary file is left


def test_saved_without_a_timeline_over_one_with(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    with installed():
        plain = simt.simulate("input")
    plain.save(tmp_path)
    assert not (tmp_path / "timeline.parquet").exists()
    assert Result.load(tmp_path) == plain


def test_directory_holds_parquet(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    frame = pl.read_parquet(tmp_path / "launches.parquet")
    assert frame["cycles"].to_list() == [4500, 8500, 2500, 1500]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "dram.parquet",
        "dram_banks.parquet",
        "launches.parquet",
        "pc.parquet",
        "result.json",
        "spread.parquet",
        "stalls.parquet",
        "timeline.parquet",
        "timeline_pc.parquet",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "schema is None, expected 'simt.result/1'"),
        ('{"schema": "simt.result/4"}', "schema is 'simt.result/4'"),
        ('{"schema": "simt.result/3", "launches": {}}', "broken Result: launches is not a list of blocks"),
        ('{"schema": "simt.result/3", "launches": [[]]}', "broken Result: launches is not an object"),
        pytest.param("9" * 10_000, "not a Result: Exceeds the limit", id="a long number"),
        ('{"schema": "simt.result/1", "machine": {}}', "broken Result"),
        ('{"schema": "simt.result/2", "launches": []}', "broken Result: launches is not an object"),
        (b"\xff\xfe", "cannot read"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for path in (file, tmp_path):
        with pytest.raises(ResultError, match=message) as caught:
            Result.load(path)
        assert str(path) in str(caught.value)


def test_broken_parquet_is_refused(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    (tmp_path / "pc.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ResultError, match=r"pc\.parquet: not a Parquet file"):
        Result.load(tmp_path)


def test_missing_and_unwritable_places(result: Result, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="no such file"):
        Result.load(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResultError, match="cannot save the Result"):
        result.save(tmp_path / "file")


def test_repr_and_html(result: Result) -> None:
    text = repr(result)
    assert text.startswith("Result: 4 launches on toy, 17,000 cycles (17 µs), 9,600 warp instructions")
    assert "gemm_128x64" in text and "memory latency" in text
    assert max(map(len, text.splitlines()[:6])) < 120
    page = result._repr_html_()
    assert "<table>" in page and "reduce(float*, int)" in page
    assert result[3].name == "gemm_64x64"
    with pytest.raises(KeyError):
        result[99]


def test_names_are_escaped_in_html() -> None:
    with installed():
        base = simt.simulate("input")
    evil = Result((launch(name="<script>alert(1)</script>"),), MACHINE, base.provenance)
    assert "<script>" not in evil._repr_html_()


def test_identity_depends_on_what_counters_depend_on(result: Result) -> None:
    with installed():
        again = simt.simulate("elsewhere", timeline=250, threads=2)
        other = simt.simulate("input", timeline=250, set={"sm.count": 2})
    assert again.provenance.identity == result.provenance.identity
    assert other.provenance.identity != result.provenance.identity
    assert again.launches == result.launches


def test_seconds() -> None:
    assert math.isclose(launch(ctas=4).seconds, 4.5e-6)
