"""Launches of a program in the form used by the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simt.run.facts import Facts
from simt.run.l2 import AccessWindow
from simt.run.session import QueuedLaunch

from .output import Output

if TYPE_CHECKING:
    from simt import _engine

    from .arguments import LaunchArguments
    from .module import Launcher


def queued_launch(
    launch_id: int,
    launcher: Launcher,
    arguments: LaunchArguments,
    source: _engine.functional.ExecutedSource,
    after: Sequence[int],
    digest: str,
    output: Output,
    annotation: str,
    window: AccessWindow | None,
) -> QueuedLaunch:
    """A launch for the session. It keeps alive what it needs until it is done, but not the GPU. It has host
    arrays to copy back only if the caller waits for it.

    source: what the engine runs. digest: of what is launched. annotation: of the launch.
    window: memory whose accesses have properties of their own in the L2.
    """
    kernel = launcher.kernel
    waited = arguments.has_host_arrays
    keeps = [arguments.keeps, kernel.module.keeps]
    copy_back = arguments.copy_back if waited else None
    discard = arguments.discard if waited else None

    def ended() -> None:
        output.write(source.printed)
        if copy_back is not None:
            copy_back()

    def dropped() -> None:
        output.write(source.printed)
        if discard is not None:
            discard()

    facts = Facts(
        index=launch_id - 1,
        id=launch_id,
        name=kernel.name,
        grid=launcher.grid,
        block=launcher.block,
        shared_bytes=kernel.facts.shared_bytes + launcher.shared,
        registers=kernel.facts.registers,
        sm_version=kernel.module.gpu.spec.sm_version,
        annotation=annotation,
    )
    return QueuedLaunch(
        facts,
        source,
        launch_id,
        after,
        digest=digest,
        window=window,
        origins=kernel.module.origins,
        source_text=kernel.module.image.source_text,
        keeps=keeps,
        ended=ended,
        dropped=dropped,
    )
