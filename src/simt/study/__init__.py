"""Studies: many simulations described in one file, on one machine or a cluster. See docs/studies.md."""

from simt.study.expression import Expression
from simt.study.space import StudyPoint
from simt.study.study import Ran, Study

__all__ = ["Expression", "Ran", "Study", "StudyPoint"]
