"""Which launches of a Result are the plan's."""

from __future__ import annotations

from collections.abc import Mapping

from simt.errors import PlanError
from simt.names import function_name
from simt.result import LaunchResult, Result
from simt.sampling.plan import Plan


def located(plan: Plan, there: Mapping[int, str | None], source: str, part: bool = False) -> dict[int, int]:
    """Plan's launch id -> position among the kernels of an input, for the launches that the input contains.

    there: name of the kernel at each position, None if unknown. In an input of the whole program, the plan's
        launches are at their `position`. An input with exactly as many kernels as the plan has launches, and
        with the same names, contains these in order.
    source: name of the input, for messages. part: `there` is only part of the input.

    Raises PlanError if the names differ under both interpretations.
    """
    rows = list(plan.launches.select("launch", "position", "name").iter_rows())
    found = {launch: position for launch, position, _ in rows if position in there}
    names = {launch: name for launch, _, name in rows}

    def other(pairs: Mapping[int, int]) -> list[int]:
        return [
            launch
            for launch, position in pairs.items()
            if (name := there[position]) is not None and function_name(name) != function_name(names[launch])
        ]

    wrong = other(found)
    if (wrong or len(found) < len(rows)) and not part and there.keys() == set(range(len(rows))):
        in_order = dict(zip(names, sorted(there), strict=True))
        if not other(in_order):
            return in_order
    if wrong:
        position = found[wrong[0]]
        raise PlanError(
            f"plan: launch {wrong[0]} is {names[wrong[0]]!r}, and at position {position} (counted from 0) of "
            f"{source} is {there[position]!r}: do they belong to the same run?"
        )
    return found


def launches_of(plan: Plan, result: Result) -> dict[int, LaunchResult]:
    """A Result's launches by the plan's ids, without launches that are not in the plan. Raises PlanError."""
    launches = {x.index: x for x in result.launches}
    there: dict[int, str | None] = dict.fromkeys(result.unfinished)
    there |= {index: x.name for index, x in launches.items()}
    # Launches chosen by number or name need not be those of a plan for a trace of the same length.
    part = result.provenance.kernels is not None and not result.provenance.method.startswith("plan(")
    places = located(plan, there, "the Result", part)
    return {launch: launches[at] for launch, at in places.items() if at in launches}
