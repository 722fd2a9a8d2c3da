"""Triton's access to cuBLAS, which its tutorials compare with: products of the operator cache here."""

from __future__ import annotations

import torch

_ROWS, _COLUMNS = 128, 4
"""A tile of scale factors; cuBLAS keeps each as 32 x 4 x 4: rows modulo 32, rows by 32, columns (cuBLAS's
manual, "1D Block Scaling Factors Layout").
"""
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Of 4-bit numbers without their sign (OCP Microscaling Formats 1.0, section 5.3.3)."""


class CublasLt:
    """Triton's `nvidia.cublas.CublasLt`. Matrices are row by row; the second is the transpose of what is
    multiplied.
    """

    def __init__(self, workspace: torch.Tensor) -> None:
        pass

    def matmul(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        """c = a b^T."""
        c.copy_(_wide(a) @ _wide(b).T)

    def gemm(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, alpha: float, beta: float
    ) -> None:
        """d = alpha a b^T + beta c."""
        d.copy_(alpha * (_wide(a) @ _wide(b).T) + beta * c)

    def block_scaled_matmul_mxfp8(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        a_scales: torch.Tensor,
        b_scales: torch.Tensor,
    ) -> None:
        """c = a b^T of 8-bit numbers, each 32 of a row with a power of two, 127 more than its exponent."""
        scaled = [
            values.float() * _each(torch.exp2(scales.view(torch.uint8).float() - 127), values, 32)
            for values, scales in ((a, a_scales), (b, b_scales))
        ]
        c.copy_(scaled[0] @ scaled[1].T)

    def block_scaled_matmul_nvfp4(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        a_scales: torch.Tensor,
        b_scales: torch.Tensor,
    ) -> None:
        """c = a b^T of 4-bit numbers, two in a byte, each 16 of a row with an 8-bit number."""
        scaled = []
        for packed, scales in ((a, a_scales), (b, b_scales)):
            values = _unpacked(packed)
            scaled.append(values * _each(scales.view(torch.float8_e4m3fn).float(), values, 16))
        c.copy_(scaled[0] @ scaled[1].T)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Operators have no products of 8-bit numbers."""
    return tensor.half() if tensor.dtype.itemsize == 1 else tensor


def _unpacked(packed: torch.Tensor) -> torch.Tensor:
    """4-bit numbers, the first in the lower half of a byte."""
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).int()
    sizes = torch.tensor(_E2M1, device=packed.device)[codes & 7]
    return torch.where(codes > 7, -sizes, sizes)


def _each(scales: torch.Tensor, values: torch.Tensor, block: int) -> torch.Tensor:
    """The scale factor of each value. block: how many of a row share one."""
    rows, columns = values.shape[0], -(-values.shape[1] // block)
    tiles = scales.reshape(-(-rows // _ROWS), -(-columns // _COLUMNS), 32, 4, 4)
    found = tiles.permute(0, 3, 2, 1, 4).reshape(tiles.shape[0] * _ROWS, tiles.shape[1] * _COLUMNS)
    return found.repeat_interleave(block, 1)[:rows, : values.shape[1]]
