"""Photon: predicts the rest from basic blocks, warps or whole launches with stable times; no profile."""

from .photon import Photon
from .published import PublishedPhoton

__all__ = ["Photon", "PublishedPhoton"]
