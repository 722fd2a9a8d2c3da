"""The sampling options of `simt run`: --sample, --plan, --verify, --full."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from simt.errors import ControlError
from simt.result import Result

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.sampling import Plan


@dataclass(frozen=True)
class SamplingOptions:
    """controller: of --sample. plan: of --plan. share, seed: of --verify. full: the Result of --full."""

    controller: Controller | None
    plan: Plan | None
    share: float
    seed: int
    full: Result | None

    def compared(self, result: Result) -> Result:
        """With errors against the full Result, where one was given."""
        if self.full is None:
            return result
        from simt.control.accuracy import with_accuracy

        found = with_accuracy(result, self.plan, full=self.full)
        return replace(found, sampling={**(found.sampling or {}), **(result.sampling or {})})


def parse(
    sample: str | None,
    settings: list[str] | None,
    plan: Path | None,
    verify: str | None,
    seed: int,
    full: Path | None,
) -> SamplingOptions:
    """From the options' texts. Raises ControlError, PlanError or ResultError."""
    if sample is None and (settings or verify or full):
        raise ControlError("--sample-set, --verify and --full need --sample")
    if sample is not None and sample.partition(":")[0] == "pka" and plan is None:
        raise ControlError("--sample pka needs --plan: a file that `simt sample --output` wrote")
    controller = chosen = None
    if sample is not None:
        from simt.control.registry import make

        controller = make(sample, settings or [])
    if plan is not None:
        from simt.sampling import Plan

        chosen = Plan.load(plan)
    return SamplingOptions(
        controller, chosen, share(verify), seed, None if full is None else Result.load(full)
    )


def share(text: str | None) -> float:
    """`5%` or `0.05`; 0 for None. Raises ControlError."""
    if text is None:
        return 0.0
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise ControlError(f"--verify {text}: expected a share above 0 and up to 1, such as 5% or 0.05")
    return found
