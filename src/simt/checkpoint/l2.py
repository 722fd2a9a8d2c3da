"""What the L2 holds, in a checkpoint: tags, modified sectors and replacement order."""

from __future__ import annotations

from typing import Any

import msgspec

from simt.errors import CheckpointError
from simt.run.session import Session
from simt.spec import Spec, outside_policies

from .folder import CheckpointReader, CheckpointWriter, Natural, Span

FILE = "l2.zst"
_CACHE = ("sets", "ways", "line_bytes", "sectored", "replacement", "set_index")


class L2State(msgspec.Struct):
    """geometry: the fields of the specification that say where a line lies, by name. launches: how many the
    timing model had begun. slices: the lines of each, in the engine's form."""

    geometry: dict[str, Any]
    launches: Natural
    slices: list[list[Span]]


def _geometry(spec: Spec) -> dict[str, Any]:
    cache = {f"l2.slice.{name}": getattr(spec.l2.slice, name) for name in _CACHE}
    addresses = {f"address_map.{name}": value for name, value in spec.address_map.model_dump().items()}
    return {**cache, "l2.partitions": spec.l2.partitions, **addresses}


def require_l2(session: Session) -> None:
    """Raises CheckpointError if there is no L2 to keep."""
    if not session.timed:
        raise CheckpointError(
            "warm=True keeps what the L2 holds, and this GPU computes values only: make the checkpoint with "
            "a GPU that times at least the last launches before it (plan=)"
        )
    if own := [path for path in outside_policies(session.spec) if path in _geometry(session.spec)]:
        raise CheckpointError(
            f"warm=True cannot keep an L2 whose {own[0]} is a policy of your own: choose a built-in one, "
            "or begin with an empty L2"
        )


def save_l2(writer: CheckpointWriter, session: Session) -> L2State:
    """Writes what the L2 holds. Raises CheckpointError if no launch was timed."""
    launches, slices = session.l2_contents()
    if not launches:
        raise CheckpointError(
            "warm=True keeps what the L2 holds, and no launch before the checkpoint was timed: time at least "
            "the last ones (plan=)"
        )
    return L2State(_geometry(session.spec), launches, [writer.add(FILE, lines) for lines in slices])


def restore_l2(reader: CheckpointReader, state: L2State, session: Session) -> None:
    """Raises CheckpointError if this GPU's L2 is organised differently, or the checkpoint is damaged."""
    for name, value in _geometry(session.spec).items():
        if (was := state.geometry.get(name)) != value:
            raise CheckpointError(
                f"{reader.path}: what it keeps of the L2 does not fit {session.spec.name}: {name} is "
                f"{value!r}, was {was!r}; resume with warm=False to begin with an empty L2"
            )
    try:
        session.restore_l2(state.launches, [reader.read(FILE, spans) for spans in state.slices])
    except ValueError as error:
        reader.damaged(str(error))
