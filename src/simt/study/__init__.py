"""Studies: many simulations described in one file, on one machine or a cluster. See docs/studies.md."""

from simt.study.expression import Expression
from simt.study.space import Point
from simt.study.study import Ran, Study

__all__ = ["Expression", "Point", "Ran", "Study"]
