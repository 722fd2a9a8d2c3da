"""Which configuration of a kernel is fastest on a GPU that one need not have: `rank`."""

from .ranking import Ranked, Ranking
from .run import rank

__all__ = ["Ranked", "Ranking", "rank"]
