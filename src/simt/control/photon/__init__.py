"""Photon: basic blocks, warps and whole launches of stable times predict the rest, without a profile."""

from .photon import Photon
from .published import PublishedPhoton

__all__ = ["Photon", "PublishedPhoton"]
