"""Choosing which launches to simulate: every method is a Sampler, and gives a Plan."""

from simt.sampling.checks import check_sampler
from simt.sampling.compare import Comparison, compare
from simt.sampling.first_n import FirstN
from simt.sampling.plan import Plan
from simt.sampling.random_sample import Random
from simt.sampling.sampler import Choice, Sampler

__all__ = ["Choice", "Comparison", "FirstN", "Plan", "Random", "Sampler", "check_sampler", "compare"]
