"""Tests of kernels: `assert_kernel`, and what simt's plug-in for pytest is made of (docs/testing.md)."""

from .kernels import assert_kernel

__all__ = ["assert_kernel"]
