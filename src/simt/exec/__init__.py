"""Runs unmodified CUDA programs: `simt exec`."""

from .run import Finished, ProgramInterrupted, libraries, numbered, run

__all__ = ["Finished", "ProgramInterrupted", "libraries", "numbered", "run"]
