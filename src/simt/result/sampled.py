"""Which part of a launch was simulated, if a controller did not simulate all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Sampled:
    """How a launch's values were obtained, other than by simulation in full detail.

    method: the controller's name.
    decision: `full`: it found no reason to simulate less; `stop`: simulated up to `at_cycle`, the rest
        projected; `skip`: some CTAs left out; `predict`: later CTAs took a predicted time.
    reason: explanation for users.
    at_cycle: core cycles from the first dispatch to the decision that counted; None for `full`.
    cycles: core cycles simulated in detail, launch latency included.
    ctas, warp_instructions, thread_instructions: simulated in detail; ctas are those finished.
    total_ctas: CTAs of the launch.
    projected: counter -> how its total was derived from the simulated part.
    unprojected: counter -> why it could not be derived; its value is NaN.
    rates: value per core cycle in the section that stands for the rest.
    half_widths: counter -> half width of the interval that its total lies in at the method's confidence,
        relative to the total; empty if the method states none.
    """

    method: str
    decision: Literal["full", "stop", "skip", "predict"]
    reason: str
    at_cycle: int | None
    cycles: int
    ctas: int
    warp_instructions: int
    thread_instructions: int
    total_ctas: int
    projected: Mapping[str, str] = field(default_factory=dict)
    unprojected: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    half_widths: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values; a rate that is not a number is null."""
        found = asdict(self)
        for name in ("rates", "half_widths"):
            found[name] = {k: v if math.isfinite(v) else None for k, v in found[name].items()}
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sampled:
        """The inverse of to_json. Raises TypeError for other fields."""
        values = dict(data)
        for name in ("rates", "half_widths"):
            values[name] = {k: math.nan if v is None else v for k, v in values.get(name, {}).items()}
        return cls(**values)
