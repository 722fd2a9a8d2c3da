"""The format of what a sampled run says of its accuracy (`Result.sampling`)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from simt.result.sampled import Signed
from simt.written import Amount, Count


class VerificationRecord(msgspec.Struct):
    launches: list[Any]
    candidates: Count
    share: Amount
    seed: int
    error: Signed
    mean_error: Amount
    worst_error: Amount
    half_width: Amount | None


class AgainstFullRecord(VerificationRecord):
    total_error: Signed | None


class PlanEnergyRecord(msgspec.Struct):
    total: Amount
    relative: Amount | None


class MakespanRecord(msgspec.Struct):
    total: Amount
    low: Amount
    high: Amount
    chain: Annotated[Amount, Meta(description="The longest chain of launches that wait for each other.")]
    sum: Annotated[Amount, Meta(description="Of all launches' times.")]


class PlanTotalsRecord(msgspec.Struct):
    population: Count
    cycles: Amount
    launches: Count
    method: str
    sampling_error: Amount
    confidence: Amount
    cut_short_share: Amount
    projection_error: Amount | None
    combined_error: Amount | None
    energy: PlanEnergyRecord | None = None
    makespan: Annotated[
        MakespanRecord | None,
        Meta(description="Core cycles from end to end, with launches of several streams that overlap."),
    ] = None
    overlap_unknown: Annotated[str | None, Meta(description="Why there is no makespan: cycles are sums.")] = (
        None
    )


class SamplingSummary(msgspec.Struct):
    launches: Count
    cut_short: Annotated[Count, Meta(description="Launches of which a controller left out some.")]
    simulated_warp_instructions: Count
    warp_instructions: Count | None
    speedup: Annotated[Amount | None, Meta(description="Warp instructions / those simulated in detail.")]
    verification: Annotated[
        VerificationRecord | None,
        Meta(
            description="Errors seen on launches that were simulated in full, too "
            "(simt.control.accuracy.Verification)."
        ),
    ] = None
    against_full: Annotated[AgainstFullRecord | None, Meta(description="The same against a full Result.")] = (
        None
    )
    plan: Annotated[
        PlanTotalsRecord | None, Meta(description="Totals of the plan's population and their error.")
    ] = None
