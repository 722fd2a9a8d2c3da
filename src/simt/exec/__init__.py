"""Runs CUDA programs as they are: `simt exec`."""

from .run import Finished, libraries, run

__all__ = ["Finished", "libraries", "run"]
