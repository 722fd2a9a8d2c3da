"""The launches of an input that a Plan selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from simt.errors import PlanError
from simt.names import function_name

if TYPE_CHECKING:
    from simt.sampling import Plan


def planned(plan: Plan, names: Sequence[str], chosen: Collection[int]) -> list[int]:
    """Positions of a trace's kernels that the plan selects. names: of all kernels. chosen: positions that may
    be simulated.

    Raises PlanError if the plan's launches do not match.
    """
    from simt.sampling.located import located

    places = located(plan, dict(enumerate(names)), "the trace")
    there = frozenset(chosen)
    for launch, name in plan.launches.select("launch", "name").iter_rows():
        if places.get(launch) not in there:
            raise PlanError(
                f"plan: launch {launch} ({name}) is not among the {len(chosen)} chosen of the trace's "
                f"{len(names)} kernels"
            )
    return sorted(places.values())


def positions(wanted: Collection[int], chosen: Collection[int]) -> list[int]:
    """The wanted positions, in order. chosen: those that may be simulated. Raises PlanError for others."""
    there = frozenset(chosen)
    if outside := sorted(frozenset(wanted) - there):
        raise PlanError(f"plan: position {outside[0]} is not among the {len(there)} chosen launches")
    return sorted(frozenset(wanted))


class Timed:
    """Decides which launches of a program are timed: all, those of a plan, or those with the given
    numbers (from 1).

    A plan's launches are identified by order, and their names are checked.
    """

    def __init__(self, plan: Plan | Collection[int] | None) -> None:
        self._wanted: Mapping[int, str] | None = None
        if isinstance(plan, Collection):
            self._wanted = {int(number): "" for number in plan}
        elif plan is not None:
            # Positions count from 0, the numbers of launches from 1.
            rows = plan.launches.select("position", "name").iter_rows()
            self._wanted = {position + 1: name for position, name in rows}

    def includes(self, number: int, name: str) -> bool:
        """Whether a launch is timed. Raises PlanError if the plan has another kernel at this position."""
        if self._wanted is None:
            return True
        wanted = self._wanted.get(number)
        if wanted is None:
            return False
        if wanted and function_name(wanted) != function_name(name):
            raise PlanError(
                f"plan: launch {number - 1} (counted from 0) is {wanted!r}, the program launches "
                f"{name!r}: do they belong to the same run?"
            )
        return True
