from .correlation import Correlation as Correlation
from .correlation import MeasuredProgram as MeasuredProgram
from .correlation import correlate as correlate
from .correlation import find_programs as find_programs
