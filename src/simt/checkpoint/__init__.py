"""Checkpoints: the state of a simulated GPU on disk (docs/checkpoints.md)."""
