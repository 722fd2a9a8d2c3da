"""The point of a checkpoint: at the beginning of a launch, or within one."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from simt import _engine
from simt.errors import CheckpointError

from .folder import CheckpointReader, Natural, Span

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.gpu.module import Launcher

CTAS = "ctas.zst"
"""The file of the state of CTAs that have begun."""
Size = tuple[Natural, Natural, Natural]


@dataclass(frozen=True)
class CheckpointPoint:
    """Launches before `launch` (from 1) have ended, and CTAs before `cta` of that one. Of the `ctas` CTAs
    that follow, each warp has executed `instruction` instructions, or fewer if it has ended or waits for a
    warp that has executed them. ctas: None for as many as the GPU holds at once.

    Raises CheckpointError if there is no such point.
    """

    launch: int
    cta: int = 0
    instruction: int = 0
    ctas: int | None = None

    def __post_init__(self) -> None:
        if (
            self.launch < 1
            or self.cta < 0
            or self.instruction < 0
            or (self.ctas is not None and (self.ctas < 1 or not self.instruction))
        ):
            raise _unexpected(", ".join(f"{k}={v}" for k, v in vars(self).items() if v is not None))

    @property
    def is_inside(self) -> bool:
        """Whether it is not at the beginning of the launch."""
        return bool(self.cta or self.instruction)

    def within(self, launcher: Launcher) -> tuple[int, int, int]:
        """CTAs to finish and to begin, and instructions. Raises CheckpointError if the launch has no such
        point."""
        name, count, size = launcher.kernel.name, math.prod(launcher.grid), math.prod(launcher.cluster)
        if self.cta >= count:
            raise CheckpointError(
                f"launch {self.launch}, `{name}`, has {count:,} CTAs, so none is number {self.cta:,}"
            )
        if launcher.cooperative:
            raise CheckpointError(
                f"launch {self.launch}, `{name}`, is cooperative: a checkpoint can only be made at its "
                "beginning"
            )
        if size > 1 and (self.instruction or self.cta % size):
            raise CheckpointError(
                f"launch {self.launch}, `{name}`, has clusters of {size} CTAs: a checkpoint can only be made "
                "where a cluster begins"
            )
        if not self.instruction:
            return self.cta, 0, 0
        gpu = launcher.kernel.module.gpu
        held = launcher.kernel.occupancy(launcher.block, launcher.shared).ctas * gpu.spec.sm.count
        return self.cta, min(count - self.cta, self.ctas or held), self.instruction


def parse_point(text: str) -> CheckpointPoint:
    """A point such as "launch=1200" or "launch=1200,cta=64,instruction=500,ctas=8".

    Raises CheckpointError.
    """
    given: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = (x.strip() for x in part.partition("="))
        if name not in ("launch", "cta", "instruction", "ctas") or name in given or not value.isdecimal():
            break
        given[name] = int(value)
    else:
        if "launch" in given:
            return CheckpointPoint(**given)
    raise _unexpected(text)


def _unexpected(text: str) -> CheckpointError:
    return CheckpointError(
        f"the point of the checkpoint is {text!r}, expected launch=N[,cta=M][,instruction=I[,ctas=T]]: "
        "launches before N (from 1) and CTAs before M (from 0) are executed, and I instructions of each warp "
        "of T CTAs"
    )


class Begun(msgspec.Struct):
    """The CTAs of a launch at a point within it.

    cta: those before it have finished. state: of those that have begun. engine, executed: what made the
        state, and `Module.executed`; no other can use it.
    """

    cta: Natural
    state: list[Span]
    engine: str
    executed: str

    def require_usable(self, reader: CheckpointReader, gpu: GPU) -> None:
        """Raises CheckpointError if the launch cannot be continued on this GPU."""
        if self.engine != engine_digest():
            raise CheckpointError(
                f"{reader.path}: made by another build of simt, which cannot be continued within a launch; "
                "make it again, or make one at the beginning of a launch"
            )
        if not gpu.functional and gpu.spec.sm.warp_size != 32:
            raise CheckpointError(
                f"{reader.path}: {gpu.name} has warps of {gpu.spec.sm.warp_size} lanes, expected 32"
            )

    def rest_of(self, launcher: Launcher, reader: CheckpointReader) -> Launcher:
        """What is left of the launch. Raises CheckpointError if this GPU executes other code."""
        module = launcher.kernel.module
        if module.executed != self.executed:
            raise CheckpointError(
                f"{reader.path}: within a launch of {self.executed}, and {module.gpu.name} executes "
                f"{module.executed} here; continue it with that code, or make it with PTX (`--code ptx`), "
                "which every GPU continues"
            )
        return replace(launcher, first=self.cta, state=reader.read(CTAS, self.state))


@cache
def engine_digest() -> str:
    """Identifies the build of the engine."""
    return hashlib.sha256(Path(_engine.__file__).read_bytes()).hexdigest()
