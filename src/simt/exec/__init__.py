"""Runs unmodified CUDA programs: `simt exec`."""

from .run import Finished, libraries, numbered, run

__all__ = ["Finished", "libraries", "numbered", "run"]
