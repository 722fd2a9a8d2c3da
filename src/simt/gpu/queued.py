"""Launches that wait for the timing engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simt.cuda import PtxModule
from simt.run.session import Facts

if TYPE_CHECKING:
    from simt.control.launch import LaunchControl
    from simt.result.listing import Origins

    from .arguments import Arguments
    from .module import Launcher


def _nothing() -> None:
    pass


@dataclass
class QueuedLaunch:
    """A launch that is queued: what must live until it is done, without what would keep the GPU alive. Only
    where somebody waits for it are there host arrays to be copied back."""

    facts: Facts
    ptx: PtxModule
    origins: Origins
    source: Any
    control: LaunchControl | None
    digest: str
    keeps: Any
    copy_back: Callable[[], None] = _nothing
    discard: Callable[[], None] = _nothing


def queued_launch(
    launch_id: int,
    launcher: Launcher,
    arguments: Arguments,
    source: Any,
    control: LaunchControl | None,
    digest: str,
) -> QueuedLaunch:
    """source: what the engine runs. digest: of what is launched."""
    kernel = launcher.kernel
    facts = Facts(
        index=launch_id - 1,
        id=launch_id,
        name=kernel.name,
        grid=launcher.grid,
        block=launcher.block,
        shared_bytes=kernel.facts.shared_bytes + launcher.shared,
        registers=kernel.facts.registers,
        sm_version=kernel.module.gpu.spec.sm_version,
    )
    keeps = [arguments.keeps, kernel.module.keeps]
    queued = QueuedLaunch(facts, kernel.module.ptx, kernel.module.origins, source, control, digest, keeps)
    if arguments.has_host_arrays:
        queued.copy_back, queued.discard = arguments.copy_back, arguments.discard
    return queued
