"""Plans for other tools, and importing their results."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from simt.errors import PlanError
from simt.profile import Profile
from simt.sampling import Choice, Plan, Sampler, exports


class Rows(Sampler):
    method = "rows"

    def __init__(self, rows: tuple[int, ...]) -> None:
        self.rows = rows

    def choose(self, profile: Profile) -> Choice:
        rows = np.array(self.rows)
        weights = np.full(len(rows), len(profile) / len(rows))
        return Choice(
            np.zeros(len(profile), np.int64), rows, np.ones(len(rows), np.int64), weights, ["all"], [""]
        )


NAMES = ["a(int)", "ncclKernel", "b::c<float, 2>(x*)", "a(int)", "[CUDA memcpy HtoD]", "a(int)", "a(int)"]


def whole() -> Profile:
    return Profile(pl.DataFrame({"launch": range(7), "name": NAMES, "duration_ns": [1.0] * 7}))


def plan() -> Plan:
    """Of the kernels 0, 2, 3, 5, 6: launches 2, 3, 5."""
    return Rows((1, 2, 3)).fit_plan(whole().kernels())


LIST = """MemcpyHtoD,0x00007fb0fc400000,200000
kernel-1.traceg
kernel-2.traceg
MemcpyHtoD,0x00007fb0fc430e00,200000
kernel-3-ctx_0x5581.traceg.xz
kernel-4.traceg

kernel-6.traceg
"""


def test_a_launch_list_keeps_copies_and_chosen_kernels() -> None:
    assert exports.kernelslist(plan(), LIST).splitlines() == [
        "MemcpyHtoD,0x00007fb0fc400000,200000",
        "MemcpyHtoD,0x00007fb0fc430e00,200000",
        "kernel-3-ctx_0x5581.traceg.xz",
        "kernel-4.traceg",
        "",
        "kernel-6.traceg",
    ]


def test_a_launch_list_is_written_beside_the_full_one(tmp_path: Path) -> None:
    full = tmp_path / "kernelslist.g"
    full.write_text(LIST)
    path = exports.write_kernelslist(plan(), full, tmp_path / "subset.g")
    assert "kernel-6.traceg" in path.read_text()
    assert "kernel-1.traceg" not in path.read_text()
    for target in (tmp_path / "elsewhere" / "subset.g", full):
        with pytest.raises(PlanError):
            exports.write_kernelslist(plan(), full, target)
    with pytest.raises(PlanError, match="cannot be read"):
        exports.write_kernelslist(plan(), tmp_path / "no.g", tmp_path / "subset.g")


@pytest.mark.parametrize(
    ("text", "words"), [("kernel-x.traceg\n", "line 1"), ("kernel-3.traceg\n", "no kernel-4 for launch 3")]
)
def test_launch_lists_of_something_else_are_refused(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        exports.kernelslist(plan(), text, "list.g")


def test_tools_count_kernels_and_no_copies() -> None:
    assert exports.ordinals(plan()) == [2, 3, 5]
    assert exports.ordinals(plan(), whole()) == [2, 3, 4]
    assert exports.tracer_ranges(plan()) == "3-4 6"
    assert exports.tracer_ranges(plan(), whole()) == "3-5"
    with pytest.raises(PlanError, match="no kernel launch 2"):
        exports.ordinals(plan(), whole().take(pl.col("launch") > 2))


def test_nsight_compute_profiles_runs_of_launches() -> None:
    lines = exports.ncu_commands(plan(), ["./app", "a b"], metrics=["x.sum", "y.sum"])
    assert lines == [
        "ncu --launch-skip 2 --launch-count 2 --metrics x.sum,y.sum --export plan.1 ./app 'a b'",
        "ncu --launch-skip 5 --launch-count 1 --metrics x.sum,y.sum --export plan.2 ./app 'a b'",
    ]


def test_nsight_compute_profiles_invocations_of_names() -> None:
    lines = exports.ncu_commands(plan(), ["./app"], profile=whole(), by="name")
    filters = [shlex.split(line)[shlex.split(line).index("--kernel-id") + 1] for line in lines]
    assert [f.split(":")[-1] for f in filters] == ["^1$", "^2$|^3$"]
    for name, text in zip(("b::c<float, 2>(x*)", "a(int)"), filters, strict=True):
        context, stream, operator, pattern, _ = text.split(":")
        assert (context, stream, operator) == ("", "", "regex")
        assert re.search(pattern, name)
        assert sum(bool(re.search(pattern, other)) for other in set(NAMES)) == 1
    with pytest.raises(PlanError, match="profile"):
        exports.ncu_commands(plan(), ["./app"], by="name")
    with pytest.raises(PlanError, match="program"):
        exports.ncu_commands(plan(), "./app")


def test_results_of_just_the_chosen_launches_get_the_plans_ids() -> None:
    """Nsight Compute numbers profiled launches from 0, and writes names in its own way."""
    names = ["void b::c<float, (int)2>(x *)", "a", "a(int)"]
    measured = Profile(
        pl.DataFrame({"launch": range(3), "name": names, "duration_ns": [1.0, 2, 3], "x.sum": [1.0, 2, 4]})
    )
    matched = exports.in_order(plan(), measured)
    assert matched.launches["launch"].to_list() == [2, 3, 5]
    assert plan().estimate(matched, ["x.sum"])["x.sum"]["total"] == pytest.approx(7 * 5 / 3)
    with pytest.raises(PlanError, match="expected the 3"):
        exports.in_order(plan(), measured.take(pl.col("launch") < 2))
    other = Profile(measured.launches.with_columns(name=pl.Series(["z", "a", "a"])))
    with pytest.raises(PlanError, match="should be"):
        exports.in_order(plan(), other)


def test_csv_has_a_line_a_launch() -> None:
    lines = exports.to_csv(plan()).splitlines()
    assert lines[0] == "launch,position,name,stratum,draws,weight,time_ns"
    assert len(lines) == 4
