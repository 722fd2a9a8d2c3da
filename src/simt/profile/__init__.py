"""Profiles of real programs: a table of launches with times and counters, read from what tools write."""

from simt.profile.profile import LeftOut, Profile, kind_of
from simt.profile.read import read_profile

__all__ = ["LeftOut", "Profile", "kind_of", "read_profile"]
