"""Choosing which launches to simulate: every method is a Sampler, and gives a Plan."""

from simt.sampling.checks import check_sampler
from simt.sampling.compare import Comparison, compare
from simt.sampling.first_n import FirstN
from simt.sampling.neyman import Neyman
from simt.sampling.plan import Plan
from simt.sampling.random_sample import Random
from simt.sampling.root import Root
from simt.sampling.sampler import Choice, Sampler
from simt.sampling.stem import Stem

__all__ = [
    "Choice",
    "Comparison",
    "FirstN",
    "Neyman",
    "Plan",
    "Random",
    "Root",
    "Sampler",
    "Stem",
    "check_sampler",
    "compare",
]
