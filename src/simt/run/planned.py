"""The launches of an input that a Plan selects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simt.errors import PlanError, SelectionError
from simt.names import function_name
from simt.selection import Selection, canonical, matchers

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


class _Launch(NamedTuple):
    id: int
    name: str


class Timed:
    """Decides which launches of a program are timed: all, those of a plan, those with the given numbers
    (from 1), or those of a selection and within a range that the program opens.

    A plan's launches are identified by order, and their names are checked. launches: as in `select`.
    capture_range: the name of the range.

    Raises SelectionError for an invalid selection or name, and where a plan is given too.
    """

    def __init__(
        self,
        plan: Plan | Collection[int] | None,
        launches: Selection = None,
        capture_range: str | None = None,
    ) -> None:
        if plan is not None and (launches is not None or capture_range is not None):
            raise SelectionError("a plan chooses what is timed: leave out launches and capture_range")
        if capture_range is not None and not capture_range.strip():
            raise SelectionError("capture_range is empty, expected the name of a range or 'cudaProfilerApi'")
        text = canonical(launches)
        self._matchers = None if text is None else matchers(text)
        self._unmatched = dict.fromkeys(self._matchers or ())
        self._capture = capture_range
        self._captured = False
        self._open: Counter[str] = Counter()
        self._seen = 0
        self._wanted: Mapping[int, str] | None = None
        if isinstance(plan, Collection):
            self._wanted = {int(number): "" for number in plan}
        elif plan is not None:
            # Positions count from 0, the numbers of launches from 1.
            rows = plan.launches.select("position", "name").iter_rows()
            self._wanted = {position + 1: name for position, name in rows}

    def includes(self, number: int, name: str) -> bool:
        """Whether a launch is timed. Raises PlanError if the plan has another kernel at this position."""
        self._seen += 1
        if self._capture is not None:
            if not self._open[self._capture]:
                return False
            self._captured = True
        if self._matchers is not None:
            launch = _Launch(number, name)
            matching = [part for part, matches in self._matchers.items() if matches(launch)]
            for part in matching:
                self._unmatched.pop(part, None)
            return bool(matching)
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

    def open(self, name: str) -> None:
        """The program opens a range, for the launches that follow; ranges of one name may be nested."""
        self._open[name] += 1

    def close(self, name: str) -> None:
        """The program closes the range of this name that it opened last; without one, nothing changes."""
        self._open[name] = max(0, self._open[name] - 1)

    def warnings(self) -> list[str]:
        """What was chosen, and matched none of the launches so far."""
        if self._capture is not None and not self._captured:
            return [f"range {self._capture!r}: none of the program's {self._seen} launches is within it"]
        within = "" if self._capture is None else f" within range {self._capture!r}"
        return [
            f"launches: {part!r} matches none of the program's {self._seen} launches{within}"
            for part in self._unmatched
        ]
