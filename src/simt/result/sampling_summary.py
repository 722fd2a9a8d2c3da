"""Describes how much of a sampled Result was simulated, and how wrong it may be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simt.result.result import Result

_DECISIONS = {
    "stop": "stopped and projected",
    "skip": "simulated without some CTAs",
    "predict": "predicted",
    "full": "in full",
}


def sampling_sentences(result: Result) -> list[str]:
    """Sentences for users; none if nothing was sampled."""
    lines = []
    decisions: Counter[str] = Counter()
    method, done, every, without = "", 0, 0, 0
    for x in result.launches:
        if x.sampled is not None:
            decisions[x.sampled.decision] += 1
            method = method or x.sampled.method
            done += x.sampled.warp_instructions
            every += x.warp_instructions
            without += x.sampled.decision != "full" and "cycles" not in x.sampled.half_widths
    if sampled := decisions.total():
        how = ", ".join(f"{decisions[key]:,} {text}" for key, text in _DECISIONS.items() if decisions[key])
        speedup = f"{every / done:,.1f} times fewer" if done else "none"
        lines.append(
            f"Sampled by {method}: {sampled:,} launch{'es' * (sampled != 1)}, {how}; "
            f"{done:,} of {every:,} warp instructions simulated in detail ({speedup})."
        )
        if without:
            which = "It" if without == sampled - decisions["full"] else f"For {without:,} launches it"
            lines[-1] += (
                f" {which} states no interval: nothing says how far these cycles are off "
                "(--verify 5% measures it)."
            )
        if decisions["full"] == sampled:
            lines[-1] += " Nothing could be skipped: all values are those of full detail."
    facts = result.sampling
    if not facts:
        return lines
    a, b = result.provenance.wall_seconds, result.provenance.full_wall_seconds
    if a and b:
        exact = "took" if "against_full" in facts else "would take about"
        lines.append(f"Host time {a:,.1f} s; full detail {exact} {b:,.1f} s ({b / a:,.1f} times as long).")
    if "against_full" in facts:
        seen = facts["against_full"]
        total = "" if seen["total_error"] is None else f"{100 * seen['total_error']:+.2f} % of the cycles; "
        lines.append(
            f"Error against the full simulation: {total}launches cut short {100 * seen['mean_error']:.2f} % "
            f"on average, {100 * seen['worst_error']:.2f} % at most."
        )
    if "verification" in facts:
        lines.append(_verified(facts["verification"]))
    if "plan" in facts:
        lines += _plan(facts["plan"])
    return lines


def _verified(seen: dict[str, Any]) -> str:
    count = len(seen["launches"])
    if not count:
        return "Nothing to verify: no launch was cut short."
    half = seen["half_width"]
    spread = "" if half is None else f" (± {100 * half:.2f} % for all {seen['candidates']:,}, 95 %)"
    return (
        f"Verified: {count:,} of the {seen['candidates']:,} launches cut short were also simulated in full: "
        f"observed error {100 * seen['error']:+.2f} % of their cycles{spread}, "
        f"{100 * seen['mean_error']:.2f} % on average, {100 * seen['worst_error']:.2f} % at most."
    )


def _plan(plan: dict[str, Any]) -> list[str]:
    lines = [
        f"All {plan['population']:,} launches of the program: {plan['cycles']:,.0f} cycles, from "
        f"{plan['launches']:,} launches by the plan's weights ({plan['method']})."
    ]
    if unknown := plan.get("overlap_unknown"):
        lines.append(f"{unknown[0].upper()}{unknown[1:]}.")
    elif (whole := plan.get("makespan")) and whole["chain"] < whole["sum"]:
        lines.append(
            f"From end to end, as launches of several streams overlap: {whole['total']:,.0f} cycles, "
            f"{whole['low']:,.0f} to {whole['high']:,.0f} ({plan['confidence']:.0%} confidence)."
        )
    error, confidence = 100 * plan["sampling_error"], plan["confidence"]
    sampling = f"choice of launches ± {error:.2f} % ({confidence:.0%} confidence)"
    if plan["projection_error"] is None:
        lines.append(
            f"Error: {sampling}; that of projecting launches is not known: {plan['cut_short_share']:.0%} of "
            f"these cycles are of launches cut short, and none was verified (--verify 5%)."
        )
    else:
        lines.append(
            f"Error: {sampling}, projection {100 * plan['projection_error']:.2f} % (observed, no bound); "
            f"together {100 * plan['combined_error']:.2f} %."
        )
    return lines
