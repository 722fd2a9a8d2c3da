"""Why a launch takes its time, and what would help: `explain` and what it is made of."""

from .bounds import Bound, bounds
from .causes import CAUSES, Cause, Gain
from .chains import Chain, Link, chains
from .explain import explain
from .explanation import Explanation

__all__ = ["CAUSES", "Bound", "Cause", "Chain", "Explanation", "Gain", "Link", "bounds", "chains", "explain"]
