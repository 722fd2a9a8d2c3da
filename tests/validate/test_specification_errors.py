"""Shipped specifications, compared with published data on their GPUs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from simt.cli.gpus import app
from simt.cuda import toolkit
from simt.errors import SimtError
from simt.spec import available, load_spec
from simt.validate.microbenchmark import microbenchmarks
from simt.validate.specification import (
    PROBES,
    Published,
    SpecComparison,
    compare,
    mean_error,
    origins,
    published_gpus,
    published_values,
    to_json,
)

needs_compiler = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
UNITS = {
    "cycle": {"cycle", "us"},
    "byte/cycle": {"byte/cycle", "GB/s"},
}


def value(low: float, high: float) -> Published:
    return Published("l1_latency", None, low, high, "cycle", "R", "somebody")


@pytest.mark.parametrize(
    ("low", "high", "found", "error"),
    [
        (100, 100, 110, 0.1),
        (100, 100, 75, -0.25),
        (100, 200, 150, 0),
        (100, 200, 250, 0.25),
        (100, 200, 50, -0.5),
    ],
)
def test_error_is_the_distance_to_what_was_seen(low: float, high: float, found: float, error: float) -> None:
    assert value(low, high).error(found) == pytest.approx(error)


def test_the_mean_counts_references_once() -> None:
    rows = [SpecComparison(value(100, 100), 110, True), SpecComparison(value(50, 50), 110, False)]
    rows.append(SpecComparison(value(100, 100), 70, True))
    assert mean_error(rows) == pytest.approx(0.2)
    assert mean_error([]) is None


def test_every_published_value_can_be_simulated_and_names_its_source() -> None:
    every = microbenchmarks()
    assert set(published_gpus()) <= set(available())
    for gpu in published_gpus():
        values = published_values(gpu)
        assert values
        for v in values:
            assert 0 < v.low <= v.high
            assert v.mark in ("P", "R", "C", "K")
            assert v.source
            if v.benchmark not in PROBES:
                assert v.unit in UNITS[every[v.benchmark].unit], v
                assert every[v.benchmark].sm_version <= load_spec(gpu).sm_version
            assert (v.bytes is not None) == (v.benchmark == "l2_load_latency"), v


def test_values_of_a_specification_are_counted_by_origin() -> None:
    for gpu in available():
        counted = origins(gpu)
        assert counted.published + counted.general + counted.others + counted.assumed == len(
            load_spec(gpu).sources
        )
    b200, sources = origins("b200"), load_spec("b200").sources
    assert b200.others == sum(source.startswith("as ") for source in sources.values()) > 100
    assert b200.published >= 20
    assert sources["sm.tensor_memory_latency"].startswith("unknown")


def test_of_some_gpus_nothing_is_known() -> None:
    assert published_values("r9nano") == []
    assert compare("r9nano") == []


def test_what_is_not_published_is_refused_by_name() -> None:
    with pytest.raises(SimtError, match="no value is published for fma_latency of titan, only for l1_"):
        compare("titan", ["fma_latency"])


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("gpu", ["qv100", "a100", "h100", "rtx3070"])
def test_silicon_specifications_meet_the_latencies_that_they_were_made_from(gpu: str) -> None:
    names = ["l1_latency", "shared_latency", "memory_load_latency", "fma_latency"]
    if gpu == "h100":
        names.remove("shared_latency")  # the published value contains its loop: see the specification
    rows = [row for row in compare(gpu, names) if row.reference]
    assert len(rows) == len(names)
    for row in rows:
        assert abs(row.error) < 0.02, row


@needs_compiler
def test_a_slower_cache_is_seen() -> None:
    (row, *_) = compare("qv100", ["l1_latency"], set={"l1.latency": 56})
    assert row.error == pytest.approx(1.0, abs=0.02)


@needs_compiler
def test_records() -> None:
    data = json.loads(to_json({"qv100": compare("qv100", ["fma_latency"])}))
    (gpu,) = data["gpus"]
    (entry,) = gpu["values"]
    assert (gpu["gpu"], gpu["mean_error"]) == ("qv100", 0)
    assert (entry["benchmark"], entry["simulated"], entry["unit"]) == ("fma_latency", 4.0, "cycle")


@needs_compiler
def test_command() -> None:
    done = CliRunner().invoke(app, ["errors", "qv100", "mi100", "-b", "shared_latency", "--quiet"])
    assert isinstance(done.exception, SimtError)  # there is no published value for one of them
    done = CliRunner().invoke(app, ["errors", "qv100", "-b", "shared_latency", "--quiet"])
    first, second = [line for line in done.stdout.splitlines() if line.startswith("qv100  ")]
    assert first.split()[:6] == ["qv100", "shared_latency", "19", "19", "cycle", "+0.0"]
    assert "-5.0 %" in second
    assert "qv100: mean error 0.0 % over 1 values\nqv100: whole programs: " in done.stdout
    done = CliRunner().invoke(app, ["errors", "mi100", "--quiet"])
    assert done.stdout.startswith("mi100: unknown")
