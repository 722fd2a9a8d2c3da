"""simt simulates GPU programs: fast, in detail, deterministically. See docs/ for the tutorial."""

from typing import TYPE_CHECKING, Any

from simt import policy
from simt.errors import ProgramFault, SimtError
from simt.result import LaunchResult, Result
from simt.simulate import simulate
from simt.version import __version__

__all__ = ["GPU", "LaunchResult", "ProgramFault", "Result", "SimtError", "__version__", "policy", "simulate"]

if TYPE_CHECKING:
    from simt.gpu import GPU


def __getattr__(name: str) -> Any:
    # What needs the engine is imported when it is asked for: samplers and readers do without.
    if name == "GPU":
        from simt.gpu import GPU

        return GPU
    raise AttributeError(f"module 'simt' has no attribute {name!r}")
