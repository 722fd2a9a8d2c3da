"""Estimates from parts, and sums of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simt.cli import app
from simt.errors import SimtError
from simt.network import Architecture, predict, works
from simt.network import scaled as scaled_launches
from simt.network.errors_of_parts import LEAST, half_width, interval
from simt.network.scaled import estimate
from simt.spec import load_spec

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")

FEW_SMS = {"sm.count": 4}
TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_the_last_cta_ends_when_slots_say() -> None:
    assert scaled_launches._makespan([(9, 3)], 4, 1.0, 2.0) == 3 * 7
    # Places take 5 and 5, then 3; the one that is free first takes 2 and 1.
    assert scaled_launches._makespan([(2, 5), (2, 3), (2, 1)], 2, 0.0, 1.0) == 9
    assert scaled_launches._makespan([(2, 5), (1, 3), (3, 1)], 2, 0.0, 1.0) == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda spec: works.product(8, 256, 8192, spec, "bfloat16"),
        lambda spec: works.norm(600, 1024, "bfloat16", True, False),
    ],
)
def test_parts_give_the_time_of_the_whole(make: object) -> None:
    spec = load_spec("h100", FEW_SMS)
    work = make(spec)  # type: ignore[operator]
    parts, whole = estimate(work, spec, "parts"), estimate(work, spec, "whole")
    assert parts.way == "parts" and parts.simulated < 0.8 and whole.simulated == 1
    assert parts.seconds == pytest.approx(whole.seconds, rel=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda spec: works.product(512, 2048, 512, spec, "bfloat16", tile=(64, 64, 64, 4, 3)),
        lambda spec: works.product(512, 2048, 2304, spec, "bfloat16", tile=(64, 64, 64, 4, 3)),
        lambda spec: works.prefill_attention(4, 512, 16, 4, 64, "bfloat16", spec),
        lambda spec: works.norm(1200, 1024, "bfloat16", True, False),
    ],
)
def test_launches_of_several_waves_run_on_a_scale_model(make: object) -> None:
    spec = load_spec("h100", {"sm.count": 12})
    work = make(spec)  # type: ignore[operator]
    found, whole = estimate(work, spec), estimate(work, spec, "whole")
    assert found.way == "scale model" and found.simulated < 0.6 and whole.way == "whole"
    low, high = interval(work.kind, found)
    assert low <= found.seconds <= high and low <= whole.seconds <= high < 1.5 * low
    assert found.joules == pytest.approx(whole.joules, rel=0.1)


def test_of_a_long_loop_a_scale_model_runs_few_passes() -> None:
    spec = load_spec("h100", {"sm.count": 12})
    long, longer = (
        estimate(works.product(512, 2048, 64 * passes, spec, "bfloat16", tile=(64, 64, 64, 4, 3)), spec)
        for passes in (64, 128)
    )
    assert long.way == longer.way == "scale model"
    assert longer.simulated == pytest.approx(long.simulated / 2)
    assert longer.seconds == pytest.approx(2 * long.seconds, rel=0.1)


def test_few_waves_and_kernels_that_need_values_have_no_scale_model() -> None:
    spec = load_spec("h100", FEW_SMS)
    few = works.norm(5 * 4 * 16 - 1, 1024, "bfloat16", True, False)  # an SM holds 16 CTAs of four warps
    assert estimate(few, spec).way == "parts"
    with pytest.raises(SimtError, match="fewer than 5 waves"):
        estimate(few, spec, "scale model")
    attention = works.decode_attention(32, 64, 2, 2, 64, "bfloat16", spec)[0]
    assert attention.grid >= 5 * 4 and estimate(attention, spec).way != "scale model"


def test_intervals_follow_from_errors_and_what_is_stated() -> None:
    assert half_width("product", "whole", 0.3) == LEAST
    assert half_width("product", "scale model", 0.3) == 0.3
    least = {way: half_width("product", way) for way in ("parts", "scale model")}
    assert LEAST < least["scale model"] < least["parts"]


def test_the_link_sets_the_pace_of_an_all_reduce() -> None:
    """Each of four GPUs reads three quarters of the sum's bytes twice. A small sum waits for a way there and
    back, and then for another."""
    facts = {"sm.count": 16, "peer_link.bandwidth": 100_000}
    large = estimate(
        works.all_reduce(1 << 22, 4, "bfloat16"),
        load_spec("h100", facts | {"peer_link.access_latency": 0}),
        "whole",
    )
    least = 2 * 3 / 4 * (8 << 20) / 100e9
    assert large.limit == "link" and least < large.seconds < 1.05 * least
    spec = load_spec("h100", facts | {"peer_link.access_latency": 2000})
    small = estimate(works.all_reduce(4096, 2, "bfloat16"), spec, "whole")
    far = load_spec(spec, {"peer_link.access_latency": 3000})
    assert small.seconds > 4e-6 and small.limit == "latency"
    farther = estimate(works.all_reduce(4096, 2, "bfloat16"), far, "whole")
    assert farther.seconds - small.seconds == pytest.approx(2e-6, rel=0.02)
    # Of a sum that is read in parts, both steps wait for both ways.
    two = [estimate(works.all_reduce(262144, 4, "bfloat16"), each, "whole").seconds for each in (spec, far)]
    assert 4e-6 <= two[1] - two[0] < 8e-6  # more than two for some of what they read


@pytest.mark.slow
def test_a_model_on_several_gpus(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    given = [str(tmp_path), "--prefill", "16", "--decode", "2", "--set", "sm.count=4"]
    found = CliRunner().invoke(app, ["model", *given, "--tensor-parallel", "2", "--json", "-"])
    assert found.exit_code == 0, found.output
    data = json.loads(found.stdout)
    assert data["tensor_parallel"] == 2 and data["model"]["heads"] == 4
    reduced = [row for row in data["operators"] if row["name"] == "all-reduce"]
    assert [row["count"] for row in reduced] == [3, 3] * 2
    two = predict(TINY, "h100", prefill=16, decode=2, set=FEW_SMS, tensor_parallel=2)
    one = predict(TINY, "h100", prefill=16, decode=2, set=FEW_SMS)
    assert two.title.endswith("on 2 x h100: batch 1, prefill 16, decode 2") and "Memory of each GPU" in str(
        two
    )
    assert two.memory["cache"] == one.memory["cache"] / 2
    step = sum(row.time.value for row in two.steps[0])
    assert two.time_per_token is not None and two.time_per_token.value == pytest.approx(step)
    each = sum(row.energy.value for row in two.operators if row.energy)
    assert two.joules is not None and two.joules.value == pytest.approx(2 * each)
    refused = CliRunner().invoke(app, ["model", *given, "--tensor-parallel", "3"])
    assert refused.exit_code != 0


@pytest.mark.slow
def test_a_model_is_predicted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    given = [str(tmp_path), "--batch", "2", "--prefill", "16", "--decode", "1", "--set", "sm.count=4"]
    found = CliRunner().invoke(
        app, ["model", *given, "--json", "-", "--parquet", str(tmp_path / "t.parquet")]
    )
    assert found.exit_code == 0, found.output
    data = json.loads(found.stdout)
    prefill = [row for row in data["operators"] if row["phase"] == "prefill"]
    first = data["time_to_first_token"]
    assert data["time_per_token"] is None
    assert first["value"] == pytest.approx(sum(row["count"] * row["seconds"] for row in prefill))
    assert first["low"] < first["value"] < first["high"]
    assert data["tokens_per_second"]["value"] == pytest.approx(2 / first["value"])
    assert {row["count"] for row in prefill} == {1, 3}

    # Everything comes from the cache: nothing is simulated.
    monkeypatch.setattr(scaled_launches, "_Simulated", None)
    again = predict(TINY, "h100", batch=2, prefill=16, decode=1, set=FEW_SMS)
    assert again.time_to_first_token.value == first["value"]
    one = predict(TINY, "h100", batch=2, prefill=16, decode=1, layers=1, set=FEW_SMS)
    assert one.time_to_first_token.value == pytest.approx(sum(row["seconds"] for row in prefill))
    assert one.title.startswith("configuration, 1 of 3 layers")
    assert again.to_polars().height == len(data["operators"])
    assert again.fits and "it fits" in str(again) and "gate, up" in again._repr_html_()
    assert again.joules is not None and again.joules.low < again.joules.value < again.joules.high


def test_sizes_out_of_bounds_are_refused() -> None:
    small = Architecture("small", 64, 128, 2, 4, 2, 16, 128, 64, False, "bfloat16")
    with pytest.raises(Exception, match="multiple of 16"):
        predict(small, prefill=17)
    with pytest.raises(Exception, match="at most 64 tokens here, found 79"):
        predict(small, prefill=64, decode=16)
    with pytest.raises(Exception, match="layers is 3, expected at most the 2 of small"):
        predict(small, prefill=16, layers=3)
    with pytest.raises(Exception, match="weights is 'int3'"):
        predict(small, prefill=16, decode=1, weights="int3")  # type: ignore[arg-type]


@pytest.mark.slow
def test_workers_find_what_one_process_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def found(workers: int) -> list[tuple[str, float, float]]:
        monkeypatch.setenv("SIMT_CACHE", str(tmp_path / str(workers)))
        one = predict(TINY, "h100", prefill=16, decode=1, set=FEW_SMS, workers=workers)
        return [(row.name, row.seconds, row.high) for row in one.operators]

    alone = found(1)
    with monkeypatch.context() as changed:
        # With two, this process simulates nothing.
        changed.setattr(scaled_launches, "_Simulated", None)
        assert found(2) == alone
