"""A convolution: its sizes, its inputs and its expected values."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Convolution:
    """A convolution as layers compute it: `n` images of `c` channels with `h` rows and `w` columns, and `k`
    filters of `r` rows and `s` columns.

    y[n, k, p, q] is the sum over c, r, s of x[n, c, p * stride + r - pad_h, q * stride + s - pad_w] *
    w[k, c, r, s], where x is 0 outside.

    Raises LaunchError if a size is not positive, or filters are larger than the padded images.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    pad_h: int = 0
    pad_w: int = 0
    stride: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name.startswith("pad") else 1
            if value < least:
                raise LaunchError(f"a convolution with {field.name} = {value}, expected at least {least}")
        if self.p < 1 or self.q < 1:
            raise LaunchError(
                f"filters of {self.r} x {self.s} do not fit into images of {self.h} x {self.w} with a "
                f"padding of {self.pad_h} and {self.pad_w}; make the padding larger"
            )

    @property
    def p(self) -> int:
        """Rows of y."""
        return (self.h + 2 * self.pad_h - self.r) // self.stride + 1

    @property
    def q(self) -> int:
        """Columns of y."""
        return (self.w + 2 * self.pad_w - self.s) // self.stride + 1

    @property
    def x_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.c, self.h, self.w

    @property
    def w_shape(self) -> tuple[int, int, int, int]:
        return self.k, self.c, self.r, self.s

    @property
    def y_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.k, self.p, self.q

    @property
    def multiplications(self) -> int:
        """Of the definition, those with the padding included."""
        return self.n * self.k * self.p * self.q * self.c * self.r * self.s

    def inputs(self, seed: int = 0) -> tuple[Floats, Floats, Floats]:
        """Random x, w and dy, uniform between -1 and 1."""
        rng = np.random.default_rng(seed)
        x, w, dy = (
            (2 * rng.random(shape, np.float32) - 1).astype(np.float32)
            for shape in (self.x_shape, self.w_shape, self.y_shape)
        )
        return x, w, dy

    def forward(self, x: Floats, w: Floats) -> Doubles:
        """y in double precision."""
        windows, filters = self._windows(x), w.astype(np.float64)
        return np.asarray(np.einsum("ncpqrs,kcrs->nkpq", windows, filters, optimize=True))

    def backward_filter(self, x: Floats, dy: Floats) -> Doubles:
        """The gradient of the filters in double precision."""
        windows, gradients = self._windows(x), dy.astype(np.float64)
        return np.asarray(np.einsum("ncpqrs,nkpq->kcrs", windows, gradients, optimize=True))

    def backward_data(self, dy: Floats, w: Floats) -> Doubles:
        """The gradient of x in double precision."""
        dx = np.zeros((self.n, self.c, self.h + 2 * self.pad_h, self.w + 2 * self.pad_w))
        for r in range(self.r):
            for s in range(self.s):
                product = np.einsum("nkpq,kc->ncpq", dy.astype(np.float64), w[:, :, r, s], optimize=True)
                rows = slice(r, r + self.stride * self.p, self.stride)
                dx[:, :, rows, s : s + self.stride * self.q : self.stride] += product
        return dx[:, :, self.pad_h : self.pad_h + self.h, self.pad_w : self.pad_w + self.w]

    def _windows(self, x: Floats) -> Doubles:
        """x under the filter at each pixel of y, (n, c, p, q, r, s)."""
        padding = ((0, 0), (0, 0), (self.pad_h, self.pad_h), (self.pad_w, self.pad_w))
        padded = np.pad(x.astype(np.float64), padding)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.r, self.s), (2, 3))
        return windows[:, :, :: self.stride, :: self.stride]

    def __str__(self) -> str:
        padding = f"{self.pad_h}" if self.pad_h == self.pad_w else f"{self.pad_h}, {self.pad_w}"
        return (
            f"x {self.n} x {self.c} x {self.h} x {self.w}, "
            f"filters {self.k} x {self.c} x {self.r} x {self.s}, padding {padding}, stride {self.stride}"
        )
