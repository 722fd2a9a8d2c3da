"""simulate on the real engine with the traces in examples/demo."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import simt
import simt.run.slices
from simt.errors import SimulationError
from simt.result import Result, perfetto, report
from simt.trace import convert, open_trace

DEMO = Path(__file__).parents[2] / "examples" / "demo"


@pytest.fixture(scope="module")
def result() -> Result:
    return simt.simulate(DEMO, "qv100", timeline=200)


def test_all_launches_are_there(result: Result) -> None:
    assert [(x.id, simt.names.short_name(x.name)) for x in result.launches] == [
        (1, "saxpy"),
        (2, "stencil"),
        (3, "gemm"),
        (4, "spmv"),
    ]
    assert result.status == "complete"
    for x in result.launches:
        assert x.cycles > x.launch_latency > 0
        assert x.engine["ctas"] == math.prod(x.grid)
        assert x.engine["warps"] == math.prod(x.grid) * math.prod(x.block) // 32


def test_counters_fit_each_other(result: Result) -> None:
    for x in result.launches:
        c = x.counters
        assert c["smsp__inst_executed.sum"] == sum(x.pc["issued"])
        assert sum(x.stalls["selected"]) == x.warp_stalls["selected"] == x.warp_instructions
        assert sum(x.warp_stalls.values()) == pytest.approx(x.engine["active_warp_cycles"], rel=0.001)
        for name, value in c.items():
            if value is not None and name.endswith(".pct"):
                assert 0 <= value <= 100, name
        busy = sum(map(sum, x.timeline["dram_bus_cycles"])) if x.timeline else 0
        assert busy >= x.engine["dram_bus_cycles"]
        assert x.engine["dram_pending_cycles"] >= x.engine["dram_bus_cycles"]


def test_timeline_adds_up(result: Result) -> None:
    for x in result.launches:
        assert x.timeline is not None
        assert sum(x.timeline["warp_instructions"]) == x.warp_instructions
        assert sum(x.timeline["active_warps"]) == x.engine["active_warp_cycles"]
        samples = x.samples()
        assert 0 <= samples[0].start - x.start_cycle < 200
        assert all(a.end == b.start for a, b in itertools.pairwise(samples))
        assert all(0 <= s.occupancy <= 100 and 0 <= s.dram_busy <= 100 for s in samples)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"threads": 2}, {"window": 1}, {"window": 5, "threads": 2}, {"timeline": None}],
    ids=str,
)
def test_counters_do_not_depend_on_how_it_is_computed(result: Result, options: dict[str, Any]) -> None:
    other = simt.simulate(DEMO, "qv100", **({"timeline": 200} | options))
    assert [x.cycles for x in other.launches] == [x.cycles for x in result.launches]
    assert [x.engine for x in other.launches] == [x.engine for x in result.launches]
    assert [x.counters for x in other.launches] == [x.counters for x in result.launches]
    if options.get("timeline", 200):
        assert other.launches == result.launches
        assert other.provenance.identity == result.provenance.identity


@pytest.mark.slow
@pytest.mark.parametrize("slice_seconds", [1e-9, 1e-3])
def test_counters_do_not_depend_on_slices(
    result: Result, slice_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simt.run.slices, "SLICE_SECONDS", slice_seconds)
    other = simt.simulate(DEMO, "qv100", kernels="1-2", timeline=200)
    assert other.launches == result.launches[:2]


def test_resuming_gives_the_same_instructions(result: Result) -> None:
    first = simt.simulate(DEMO, "qv100", max_cycles=result.launches[1].end_cycle + 200, timeline=200)
    assert first.launches == result.launches[:2]
    second = simt.simulate(DEMO, "qv100", resume=first, timeline=200)
    assert [x.warp_instructions for x in second.launches] == [x.warp_instructions for x in result.launches]
    assert second.launches[2].start_cycle == first.launches[1].end_cycle


def test_a_launch_that_no_sm_can_hold_is_refused() -> None:
    with pytest.raises(SimulationError, match="launch 1: a CTA of 256 threads needs 8 warps") as caught:
        simt.simulate(DEMO, "qv100", set={"sm.max_warps": 4})
    assert caught.value.result.status == "failed" and caught.value.result.launches == ()


def test_a_store_damaged_in_the_middle_gives_what_is_finished(tmp_path: Path) -> None:
    store = tmp_path / "demo.simt"
    convert(DEMO, store)
    reader, summary = open_trace(store).kernels[3].stored()
    (offset, *_), _ = reader.parts(summary).blocks[-1]
    content = bytearray(store.read_bytes())
    content[offset] ^= 1
    store.write_bytes(content)
    with pytest.raises(SimulationError, match="does not match its checksum") as caught:
        simt.simulate(store, "qv100")
    assert [x.id for x in caught.value.result.launches] == [1, 2, 3]


def test_forms_of_the_result(result: Result, tmp_path: Path) -> None:
    assert Result.load(result.save(tmp_path / "saved")) == result
    schema = Path(simt.__file__).parent / "result" / "simt.result-1.schema.json"
    jsonschema.validate(json.loads(json.dumps(result.to_json(detail=True))), json.loads(schema.read_text()))
    assert perfetto.events(result)["traceEvents"]
    assert "stencil" in report.page(result)


@pytest.mark.slow
def test_command(tmp_path: Path) -> None:
    code = "import sys; from simt.cli import main; main()"
    arguments = ["run", str(DEMO), "--kernels", "saxpy", "--json", "-", "--set", "sm.count=40"]
    environment = {**os.environ, "PYTHONPATH": str(Path(simt.__file__).parents[1])}
    command = [sys.executable, "-c", code, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout)
    assert data["machine"]["sm_count"] == 40
    assert data["launches"][0]["warp_instructions"] == 7936
    assert "saxpy" in run.stderr and "bound by" in run.stderr
