"""The constants of systematic sampling, with their units, meanings and sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

Value = TypeVar("Value", int, float)

# The sets of kernels are those of the study (docs/records/systematic-sampling.md), on qv100, h100, r9nano and
# mi100.
_DEVELOPMENT = "fitted on the development half"
_UNRECORDED = "chosen on the development half; no other value is on record"
_FRESH = "chosen after the fresh kernels were measured; no launch is on record"


def _constant(value: Value, unit: str, meaning: str, source: str) -> Value:
    return field(default=value, metadata={"unit": unit, "meaning": meaning, "source": source})


@dataclass(frozen=True)
class SystematicConstants:
    """What the method takes as given. docs/control/systematic.md has the same table.

    Each field's metadata has its unit, its meaning, and its source: a publication, the launches that it was
    fitted on, or that there are none on record.
    """

    # What is simulated, and what is left out
    fewest_waves: int = _constant(
        5,
        "waves",
        "of a launch of which something is left out",
        "counted: two waves, a window and the end are simulated, and a wave must be left; with four, "
        "`spmv_ell` on h100 was off by 10 % for 1.3 times less work",
    )
    short_launch: int = _constant(
        16, "waves", "below which a launch is short, and one or two windows are enough", _UNRECORDED
    )
    waves_per_window: int = _constant(
        32,
        "waves",
        "for each window in launches that get more windows than planned",
        f"{_DEVELOPMENT}; 8 and 16 before windows were scaled by traffic",
    )
    steps_per_gap: int = _constant(
        5, "steps", "in which the CTAs of a gap are left out, after a first wave", f"{_UNRECORDED} than 4"
    )
    warm_up: float = _constant(
        0.5,
        "waves",
        "simulated between a gap and the next window",
        f"{_DEVELOPMENT}: without, `convolve` on qv100 was +2.3 % instead of +0.7 %; 1.5 was worse on mi100 "
        "and h100",
    )
    last_gap: float = _constant(
        0.5,
        "gaps",
        "length of the last gap, behind which no window lies, relative to the others",
        _UNRECORDED,
    )

    # How many windows are planned
    fewest_windows: int = _constant(
        2,
        "windows",
        "that are enough if they agree, in a short launch, or if DRAM alone sets the pace",
        f"{_DEVELOPMENT}: two in all launches, 66 of 74 intervals held instead of 73",
    )
    agreement: float = _constant(
        0.005,
        "of the rate",
        "difference of the last two windows up to which no more are needed at little use of DRAM",
        f"{_DEVELOPMENT}: with 1 % (and four windows at much use), 70 of 74 intervals held instead of 73",
    )
    loose_agreement: float = _constant(
        0.02,
        "of the rate",
        "the same of the first window and the cold one in a short launch, and of the last three windows at "
        "much use of DRAM",
        "chosen, as twice the usual spread, on the development half (short launches) and the fresh kernels "
        "(three windows); two that agree within 1 % at much use gave `laplace` on r9nano +4.8 % (± 2.5)",
    )
    windows_to_agree: int = _constant(
        3,
        "windows",
        "that have to agree loosely at much use of DRAM",
        "as `loose_agreement`: two were too few for `laplace` on r9nano",
    )
    windows_at_much_use: int = _constant(
        5,
        "windows",
        "planned at much use of DRAM",
        f"{_DEVELOPMENT}: with four (and an agreement of 1 %), 70 of 74 intervals held instead of 73",
    )
    much_use: float = _constant(
        0.45,
        "of DRAM's peak",
        "use from which the time of a wave varies much",
        f"{_DEVELOPMENT}: on h100, waves of `heat`, `relu` and `padded_copy` vary by up to 10 % between 45 "
        "and 75 %",
    )
    full_use: float = _constant(
        0.94, "of DRAM's peak", "use from which nothing but DRAM matters to the time", _UNRECORDED
    )

    # Regimes
    unsettled: float = _constant(
        0.1,
        "of the rate",
        "difference to the window that follows at once from which the first one after a gap is warm-up",
        "fitted on the development half (`gemv` and `heat`, AMD's GPUs) and the fresh kernels: with 5 %, "
        "`argmax_rows` on r9nano stated ± 3.7 % at an error of +5.8 %",
    )
    swing: float = _constant(
        0.03,
        "of the usual rate",
        "difference of the first window to the cold one and to later ones, on the same side, from which the "
        "first waves swing",
        _FRESH,
    )
    cold_decay: float = _constant(
        0.8,
        "per wave",
        "ratio of successive differences up to which a cold beginning is taken to decay",
        _UNRECORDED,
    )
    traffic_change: float = _constant(
        0.05, "of DRAM's peak", "change of the traffic to DRAM that makes another phase", _UNRECORDED
    )
    window_traffic_change: float = _constant(
        0.1,
        "of DRAM's peak",
        "difference between a window and the end of a gap next to it from which the window's traffic is "
        "where the phase begins or ends",
        "twice `traffic_change`; no launch is on record",
    )
    work_change: float = _constant(
        0.05, "of a CTA's instructions", "change of the CTAs' work that makes another phase", _UNRECORDED
    )

    # DRAM sets the pace
    pace_from: float = _constant(
        0.8,
        "of DRAM's peak",
        "use from which traffic to DRAM changes the time of a window, unless the windows show that it does",
        f"{_DEVELOPMENT}: `relu`, `padded_copy` and `haar` on qv100; no other value is on record",
    )
    pace_alone: float = _constant(
        0.9, "of DRAM's peak", "use from which the time is in proportion to the traffic", "as `pace_from`"
    )
    regression_from: float = _constant(
        0.8,
        "of the last window's use",
        "use of DRAM from which a window has the elasticity that the windows show",
        _UNRECORDED,
    )
    regression_ridge: float = _constant(
        0.003,
        "squared relative differences",
        "added to those of the traffic, so that small differences say little of the elasticity",
        _UNRECORDED,
    )
    regression_most: float = _constant(
        0.9, "of proportion", "the largest elasticity that the windows can show", _UNRECORDED
    )
    trusted_traffic: float = _constant(
        0.21,
        "of what the L2's tags show",
        "by which a window may exchange less or more with DRAM and still be scaled to it",
        "fitted on recorded windows of the development half, the fresh and the unseen kernels: with 0.4, "
        "`level_solve` on h100 was -10.5 % (± 8.7) and `color_round` on qv100 -11.0 % (± 10.2)",
    )

    # The interval
    usual_spread: float = _constant(
        0.01, "of the rate", "spread of windows in most launches", f"{_DEVELOPMENT}: the spread of most"
    )
    usual_cta_spread: float = _constant(
        0.1,
        "of the time of a CTA",
        "spread of CTAs; divided by the root of their number, it is that of a wave of few",
        "fitted on six sizes of one launch with eight CTAs in a wave, and no other",
    )
    prior_freedom: int = _constant(
        4, "degrees of freedom", "that the usual spread is worth beside that of the windows", _UNRECORDED
    )
    pair_freedom: int = _constant(
        2, "degrees of freedom", "that each pair of successive windows is worth", _UNRECORDED
    )
    uncertain_part: float = _constant(
        0.5,
        "of a difference",
        "that is uncertain: between the windows beside a gap, by scaling to traffic, by drift, and of work "
        "that no window had",
        "raised from 0.25 and 0.35 to widen intervals; no launch is on record",
    )


CONSTANTS = SystematicConstants()
