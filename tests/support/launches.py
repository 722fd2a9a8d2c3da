"""Launches of a Result as the fake engine would report them."""

from __future__ import annotations

from typing import Any

from simt.result import LaunchResult, Machine, timeline
from support.fake_gpu import SPEC, finished_launch

MACHINE = Machine.from_spec(SPEC)


def launch(index: int = 0, name: str = "kernel", **options: Any) -> LaunchResult:
    raw = finished_launch(index + 1, **options)
    raw["engine"] = raw.pop("counters")
    raw["warnings"] = tuple(raw["warnings"])
    raw["timeline"] = timeline.from_engine(raw["timeline"], 0)
    shape = {"grid": (4, 1, 1), "block": (256, 1, 1), "shared_bytes": 0, "registers": 32, "sm_version": 70}
    return LaunchResult(index=index, name=name, machine=MACHINE, **(shape | raw))
