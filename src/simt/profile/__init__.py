"""Profiles of real programs: tables of launches with times and counters, read from profilers' files."""

from simt.profile.profile import LeftOut, Profile, kind_of
from simt.profile.read import read_profile

__all__ = ["LeftOut", "Profile", "kind_of", "read_profile"]
