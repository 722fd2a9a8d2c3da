"""The launches of an input that a Plan selects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simt.errors import PlanError, SelectionError
from simt.names import function_name
from simt.selection import Selection, canonical, matchers, name_matcher

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


def numbered(wanted: Collection[int], chosen: Collection[int]) -> list[int]:
    """Positions of a trace's kernels with these numbers, which count from 1. chosen: positions that may be
    simulated. Raises PlanError for others."""
    there, found = frozenset(chosen), sorted({number - 1 for number in wanted})
    if outside := [position for position in found if position not in there]:
        raise PlanError(f"plan: launch {outside[0] + 1} is not among the {len(there)} chosen launches")
    return found


PROFILER_RANGE = "cudaProfilerApi"
"""The range from cudaProfilerStart to cudaProfilerStop."""
_ANY_OTHER_RANGE = "nvtx"


class _Launch(NamedTuple):
    id: int
    name: str


class Timed:
    """Decides which launches of a program are timed: all, those of a plan, those with the given numbers
    (from 1), or those of a selection and within a range that the program opens.

    A plan's launches are identified by order, and their names are checked. launches: as in `select`.
    capture_range: the name of the range, or what `name_matcher` takes; "nvtx": any but PROFILER_RANGE.

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
            raise SelectionError(
                f"capture_range is empty, expected the name of a range, '{_ANY_OTHER_RANGE}' for any, or "
                f"'{PROFILER_RANGE}'"
            )
        text = canonical(launches)
        self._matchers = None if text is None else matchers(text, "launches")
        self._unmatched = dict.fromkeys(self._matchers or ())
        self._capture = capture_range
        self._captures: Callable[[str], bool] = lambda name: False
        if capture_range == _ANY_OTHER_RANGE:
            self._captures = lambda name: name != PROFILER_RANGE
        elif capture_range is not None:
            self._captures = name_matcher(capture_range, "capture_range")
        self._captured = False
        self._open: Counter[str] = Counter()
        """Of the ranges that are captured: how often each is open."""
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
            if not self._open:
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
                f"plan: launch {number} is {wanted!r}, the program launches "
                f"{name!r}: do they belong to the same run?"
            )
        return True

    def open(self, name: str) -> None:
        """The program opens a range, for the launches that follow; ranges of one name may be nested."""
        if self._captures(name):
            self._open[name] += 1

    def close(self, name: str) -> None:
        """The program closes the range of this name that it opened last; without one, nothing changes."""
        self._open -= Counter([name])  # keeps none of 0

    def warnings(self) -> list[str]:
        """What was chosen, and matched none of the launches so far."""
        if self._capture is not None and not self._captured:
            return [f"range {self._capture!r}: none of the program's {self._seen} launches is within it"]
        within = "" if self._capture is None else f" within range {self._capture!r}"
        return [
            f"launches: {part!r} matches none of the program's {self._seen} launches{within}"
            for part in self._unmatched
        ]
