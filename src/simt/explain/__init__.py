"""Why a launch takes its time, and what would help: `explain` and what it is made of."""

from .bounds import Bound, bounds
from .chains import Chain, Link, chains
from .explanation import Explanation
from .explain import explain
from .causes import CAUSES, Cause, Gain

__all__ = ["CAUSES", "Bound", "Cause", "Chain", "Explanation", "Gain", "Link", "bounds", "chains", "explain"]
