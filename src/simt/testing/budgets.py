"""Budgets of kernels: `saxpy <= 4000 cycles`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from simt.errors import SimtError
from simt.formatting import format_time
from simt.names import names_of, short_name
from simt.result import LaunchResult

_FORM = re.compile(
    r"\s*(?P<kernel>.*?)\s*(?P<than><=|<)\s*(?P<most>[\d_,.]+(?:e[+-]?\d+)?)\s*(?P<unit>\S+)\s*"
)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Budget:
    """What each launch of a kernel may take at most.

    kernel: a name or pattern, as for `--launches`; empty: every kernel. unit: cycles, ns, us, ms, s, or a
    counter.
    """

    text: str
    kernel: str
    less: bool
    most: float
    unit: str

    @classmethod
    def read(cls, text: str) -> Budget:
        """Raises SimtError for text of another form."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise SimtError(
                f"budget {text!r}: expected KERNEL <= NUMBER UNIT, such as 'saxpy <= 4000 cycles', with "
                f"cycles, ns, us, "
                "ms, s, or a counter as the unit"
            )
        most = float(found["most"].replace(",", "").replace("_", ""))
        return cls(text, found["kernel"], found["than"] == "<", most, found["unit"])

    def applies(self, launch: LaunchResult) -> bool:
        return not self.kernel or any(fnmatchcase(name, self.kernel) for name in names_of(launch.name))

    def value(self, launch: LaunchResult) -> float:
        """What the launch takes, in the budget's unit. Raises SimtError for an unknown unit."""
        if self.unit in ("cycles", "cycle"):
            return float(launch.cycles)
        if self.unit in _SECONDS:
            return launch.seconds / _SECONDS[self.unit]
        if self.unit not in launch.counters:
            raise SimtError(
                f"budget {self.text!r}: unknown unit {self.unit!r}: expected cycles, ns, us, ms, s or a "
                f"counter"
            )
        return float(launch.counters[self.unit] or 0.0)

    def problem(self, launches: Sequence[LaunchResult]) -> str:
        """Why the launches do not keep the budget; empty if they do. A budget that no launch has is one,
        too."""
        own = [x for x in launches if self.applies(x)]
        if not own:
            names = ", ".join(dict.fromkeys(short_name(x.name) for x in launches)) or "none"
            return f"budget {self.text!r}: no launch of this kernel was timed; there are: {names}"
        worst = max(own, key=self.value)
        value = self.value(worst)
        if value < self.most or (value == self.most and not self.less):
            return ""
        gpu = "" if worst.machine is None else f" on {worst.machine.name}"
        return (
            f"budget {self.text!r}: {short_name(worst.name)} (launch {worst.id}) takes {value:,.6g} "
            f"{self.unit}{gpu}, "
            f"{value / self.most - 1:.1%} more ({worst.cycles:,} cycles, {format_time(worst.seconds)})"
        )
