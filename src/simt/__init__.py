"""simt simulates GPU programs: fast, in detail, deterministically. See docs/ for the tutorial."""

from simt import policy
from simt.errors import SimtError
from simt.result import LaunchResult, Result
from simt.simulate import simulate
from simt.version import __version__

__all__ = ["LaunchResult", "Result", "SimtError", "__version__", "policy", "simulate"]
