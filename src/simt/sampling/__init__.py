"""Choosing which launches to simulate: every method is a Sampler, and gives a Plan."""

from simt.sampling.plan import Plan
from simt.sampling.sampler import Choice, Sampler

__all__ = ["Choice", "Plan", "Sampler"]
