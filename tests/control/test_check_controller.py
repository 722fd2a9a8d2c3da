"""The common check accepts simt's controllers, and detects faulty ones."""

from __future__ import annotations

from typing import Any

import pytest

from simt.control import (
    GO_ON,
    PKP,
    Controller,
    Decision,
    FirstInstructions,
    Interval,
    LaunchView,
    Photon,
    Predict,
    Projection,
    PublishedPhoton,
    Stop,
    TBPointRegions,
    check_controller,
    registry,
)
from simt.errors import ControlError
from simt.parameter_checks import real


class Settled(Controller):
    """Stops when two intervals have about the same number of instructions. Subclasses break it."""

    method = "settled"
    interval = 100

    def __init__(self, near: float = 0.1) -> None:
        self.near = near

    def validate(self) -> None:
        real("near", self.near, 0)

    def begin(self, launch: LaunchView) -> Decision:
        self.last = 0.0
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        before, self.last = self.last, interval.difference["warp_instructions"]
        if interval.counters["ctas_finished"] > 0 and abs(self.last - before) < self.near * self.last:
            return Stop(self.reason(interval))
        return GO_ON

    def reason(self, interval: Interval) -> str:
        return f"{self.last} instructions"


class NoParameters(Controller):
    """Has neither a constructor nor a name."""

    def observe(self, interval: Interval) -> Decision:
        return Predict(warp_cycles=300.0, reason="a guess") if interval.index == 3 else GO_ON


class Unstored(Settled):
    def __init__(self, near: float = 0.1, other: int = 3) -> None:
        super().__init__(near)


class Accepts(Settled):
    def validate(self) -> None:
        pass

    def observe(self, interval: Interval) -> Decision:
        return GO_ON


class Remembers(Settled):
    """Carries state from one run to the next."""

    def __init__(self, near: float = 0.1) -> None:
        super().__init__(near)
        self.seen: list[int] = []

    def observe(self, interval: Interval) -> Decision:
        self.seen.append(interval.index)
        enough = len(self.seen) > 40 and interval.counters["ctas_finished"] > 0
        return Stop("enough") if enough else GO_ON


class Alternates(Settled):
    """Decides by more than what it observes."""

    runs = 0

    def start(self) -> Alternates:
        Alternates.runs += 1
        return super().start()

    def observe(self, interval: Interval) -> Decision:
        now = self.runs % 2 and interval.counters["ctas_finished"] > 0
        return Stop("every second run") if now else GO_ON


class Changes(Settled):
    def start(self) -> Changes:
        super().start()
        self.near = self.near / 2
        return self


class NoReason(Settled):
    def reason(self, interval: Interval) -> str:
        return ""


class Fails(Settled):
    def observe(self, interval: Interval) -> Decision:
        raise KeyError("what is not there")


class Negative(Settled):
    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end, {**now.counters, "ctas": launch.cta_count, "dram_reads": -1})


@pytest.mark.slow
@pytest.mark.parametrize(
    "controller",
    [
        PKP(threshold=5, window=400, interval=100),
        PKP(**PKP.presets["artifact"]),
        FirstInstructions(20_000),
        TBPointRegions(interval=50, tolerance=0.5),
        Photon(interval=50, delta=0.3),
        PublishedPhoton("block+warp", delta=20, warp_window=16, block_window=16, interval=50),
        Settled(),
        NoParameters(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sound_controllers_pass(controller: Controller) -> None:
    check_controller(controller)


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (Unstored(), "takes other and must store it"),
        (Accepts(), "near=.* is accepted"),
        (Remembers(), "a second run decides differently"),
        (Alternates(), "decides differently"),
        (Changes(), "a run changes the parameters"),
        (NoReason(), "stop without a reason"),
        (Fails(), "controller settled, launch 1 .work.: observe: KeyError"),
        (Negative(), "dram_reads is projected to -1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_controller_is_found_out(controller: Controller, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_controller(controller)


@pytest.mark.parametrize("name", registry.METHODS)
def test_every_method_has_documented_parameters_with_defaults(name: str) -> None:
    kind: type[Controller] = type(registry.make(name))
    assert kind.method == name or name == "pka"
    for parameter in kind.parameters().values():
        assert parameter.default is not parameter.empty and parameter.name in (kind.__doc__ or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pkp:artifact", {"latched": True, "below_wave": 0.3}),
        ("first-n:1e6", {"instructions": 1e6}),
        ("photon:block+warp", {"levels": "block+warp", "small": "wave"}),
        ("photon-published", {"fidelity": "paper", "small": "sms", "work": None}),
        ("photon-published:artifact", {"fidelity": "artifact", "coverage": 0.95}),
        ("photon-published:kernel", {"levels": "kernel"}),
    ],
)
def test_methods_and_variants_by_text(text: str, expected: dict[str, Any]) -> None:
    found = registry.make(text).get_params()
    assert {name: found[name] for name in expected} == expected


def test_a_controller_without_a_constructor_has_no_parameters_on_the_command_line() -> None:
    name = f"{__name__}:NoParameters"
    assert registry.make(name).get_params() == {} and registry.make(name).label() == "NoParameters"
    for setting in ("args=1", "interval=100"):
        with pytest.raises(ControlError, match=r"no parameter .*, it has none"):
            registry.make(name, [setting])
