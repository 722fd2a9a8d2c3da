"""Choosing which launches to simulate: every method is a Sampler that makes a Plan."""

from simt.extras import explained

try:
    from simt.sampling.adaptive import Adaptive
    from simt.sampling.checks import check_sampler
    from simt.sampling.compare import SamplerComparison, compare
    from simt.sampling.estimate import Estimate
    from simt.sampling.first_n import FirstN
    from simt.sampling.neyman import Neyman
    from simt.sampling.pks import PKS
    from simt.sampling.plan import Plan
    from simt.sampling.random_sample import Random
    from simt.sampling.root import Root
    from simt.sampling.sampler import Choice, Sampler
    from simt.sampling.sieve import Sieve
    from simt.sampling.single_iteration import SingleIteration
    from simt.sampling.stem import Stem
    from simt.sampling.tbpoint import TBPoint
    from simt.sampling.two_level import TwoLevel
except ModuleNotFoundError as error:
    raise explained(error, "simt.sampling") from error

__all__ = [
    "PKS",
    "Adaptive",
    "Choice",
    "Estimate",
    "FirstN",
    "Neyman",
    "Plan",
    "Random",
    "Root",
    "Sampler",
    "SamplerComparison",
    "Sieve",
    "SingleIteration",
    "Stem",
    "TBPoint",
    "TwoLevel",
    "check_sampler",
    "compare",
]
