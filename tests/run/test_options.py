"""The records of options, and what follows from them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

import simt
from simt.cli import exec as exec_command
from simt.cli import run as run_command
from simt.cli.record_options import read
from simt.errors import LaunchError, PlanError, SimtError
from simt.exec import run as exec_run
from simt.options import DEFAULT_GPU, ExecOptions, GpuOptions, Options, TraceOptions
from support.tiny import warp_of, write_kernel

RECORDS = {simt.simulate: TraceOptions, simt.GPU: GpuOptions, exec_run: ExecOptions}


@pytest.mark.parametrize("function", RECORDS, ids=lambda x: x.__name__)
def test_keywords_and_docstrings_follow(function: object) -> None:
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    record = RECORDS[function]  # type: ignore[index]
    named = [one.name for one in fields(record)]
    assert set(named) <= set(parameters) and len(parameters) == len(named) + (function is not simt.GPU)
    text = inspect.getdoc(function) or ""
    for one in fields(record):
        assert parameters[one.name].default == one.default
        assert f"\n{one.name}: {one.metadata['help'][:20]}" in text
    assert "{options}" not in text
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        function(*([] if function is simt.GPU else ["x"]), thread=2)  # type: ignore[operator]


def test_the_command_line_follows() -> None:
    for app, records in ((run_command.app, (TraceOptions, GpuOptions)), (exec_command.app, (ExecOptions,))):
        shown = {parameter.name for parameter in get_command(app).params}
        for record in records:
            assert {one.name for one in fields(record) if one.metadata["shell"]} <= shown


def test_what_a_command_was_not_given() -> None:
    """None for a program under `simt exec`, whose checkpoint may name the GPU; 0 for a share."""
    assert read({"gpu": None, "verify": None, "plan": None}) == {"gpu": None, "verify": 0.0, "plan": None}
    assert read({"controller": "pkp", "verify": "5%"})["verify"] == 0.05


def test_one_default_gpu() -> None:
    assert TraceOptions().gpu == GpuOptions().gpu == DEFAULT_GPU == simt.GPU(functional=True).name


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"threads": 0}, "threads is 0, expected 1 or more"),
        ({"timeline": 1.5}, "timeline is 1.5, expected a whole number"),
        ({"window": 1 << 32}, "window is 4294967296, expected 0 or more, up to 4,294,967,295"),
        ({"max_cycles": 0}, "max_cycles is 0, expected 1 or more"),
    ],
)
def test_values_out_of_bounds(values: dict[str, object], message: str) -> None:
    with pytest.raises(SimtError, match=message):
        Options(**values)  # type: ignore[arg-type]
    with pytest.raises(SimtError, match=message):
        simt.GPU("qv100", **values)  # type: ignore[arg-type]


def test_what_is_not_timed_has_no_limit_of_cycles() -> None:
    with pytest.raises(LaunchError, match="functional=True computes values only"):
        GpuOptions(functional=True, max_cycles=5)
    with pytest.raises(LaunchError, match="profile times no launch"):
        ExecOptions(profile="p.parquet", capture_range="x")
    assert GpuOptions(max_cycles=5, launches="1-3", capture_range="x").region == ["launches(1-3)", "range(x)"]


def test_keywords_are_what_differs_from_the_defaults() -> None:
    given = TraceOptions("a100", threads=2, verify=0.5, controller="pkp", timeout=3.0)
    assert given.keywords() == {
        "gpu": "a100",
        "threads": 2,
        "verify": 0.5,
        "controller": "pkp",
        "timeout": 3.0,
    }
    assert given.in_full() == TraceOptions("a100", threads=2)


def test_launches_of_a_plan_count_from_1(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_kernel(tmp_path, [[warp_of(lambda warp: warp.op("FADD", 8, (8, 9)))]], number)
    every = simt.simulate(tmp_path, "qv100-accelsim")
    third = simt.simulate(tmp_path, "qv100-accelsim", plan=[3])
    assert [x.id for x in third.launches] == [every.launches[2].id]
    with pytest.raises(PlanError, match="launch 0 is not among the 3 chosen"):
        simt.simulate(tmp_path, "qv100-accelsim", plan=[0])
