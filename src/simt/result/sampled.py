"""Which part of a launch was simulated, if a controller did not simulate all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from simt.written import Count, WrittenAs, written

Signed = Annotated[int, Meta(ge=-(2**53), le=2**53)] | Annotated[float, Meta(ge=-1e30, le=1e30)]


@dataclass(frozen=True)
class Sampled:
    """How a launch's values were obtained, other than by simulation in full detail.

    reason: explanation for users.
    unprojected: the value of such a counter is NaN.
    """

    method: Annotated[str, Meta(description="Name of the controller.")]
    decision: Annotated[
        Literal["full", "stop", "skip", "predict"],
        Meta(
            description="What it decided. full: nothing was left out; stop: simulated up to `at_cycle`, the "
            "rest projected; skip: some CTAs left out; predict: later CTAs took a predicted time."
        ),
    ]
    reason: str
    at_cycle: Annotated[
        Count | None,
        Meta(description="Core cycles from the first dispatch to the decision; null for `full`."),
    ]
    cycles: Annotated[Count, Meta(description="Core cycles simulated in detail, launch latency included.")]
    ctas: Annotated[Count, Meta(description="CTAs that finished in detail.")]
    warp_instructions: Annotated[Count, Meta(description="Simulated in detail.")]
    thread_instructions: Annotated[Count, Meta(description="Simulated in detail.")]
    total_ctas: Annotated[Count, Meta(description="CTAs of the launch.")]
    projected: Annotated[Mapping[str, str], Meta(description="Counter -> how its total was derived.")] = (
        field(default_factory=dict)
    )
    unprojected: Annotated[Mapping[str, str], Meta(description="Counter -> why it has none.")] = field(
        default_factory=dict
    )
    rates: Annotated[
        Mapping[str, float],
        WrittenAs(Mapping[str, Signed | None]),
        Meta(description="Per core cycle, in the section that stands for the rest."),
    ] = field(default_factory=dict)
    half_widths: Annotated[
        Mapping[str, float],
        WrittenAs(Mapping[str, Signed | None]),
        Meta(
            description="Counter -> half width of the interval of its total at the method's confidence, "
            "relative to it; empty if the method states none."
        ),
    ] = field(default_factory=dict)

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


SampledRecord = written(
    Sampled,
    optional=("projected", "unprojected", "rates", "half_widths"),
    forbid_unknown_fields=True,
)
"""It, as it is written."""
