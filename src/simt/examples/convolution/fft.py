"""Convolution by Fourier transforms of whole images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .algorithm import Algorithm, ceil_divide, ints
from .problem import Convolution

if TYPE_CHECKING:
    from simt.gpu import DeviceArray

SIZES = (16, 32, 64)  # of the transforms that fft.cu has
THREADS = 256
NEAR, ROWS = 8, 32  # as in fft_multiply


@dataclass(frozen=True)
class _Windows:
    """F x F windows of images: `count` rows and columns of them, `step` pixels apart, the first at `origin`.
    Of each, `extent` rows and columns are used.
    """

    size: tuple[int, int]  # of an image
    count: tuple[int, int]
    step: tuple[int, int]
    origin: tuple[int, int]
    extent: tuple[int, int]

    @property
    def tiles(self) -> int:
        return self.count[0] * self.count[1]

    @property
    def packed(self) -> bytes:
        return ints(*self.size, *self.count, *self.step, *self.origin, *self.extent)


class FFT(Algorithm):
    """Transforms of whole images, with the smallest power of two that holds them; products are pointwise in
    the frequencies and matrix products in the channels.
    """

    name = "fft"
    summary = "Fourier transforms of whole images"
    supports = f"stride 1; sides of x and y, with that of the filters added, up to {SIZES[-1] + 1}"
    source = "fft.cu"

    @classmethod
    def can_compute(cls, problem: Convolution) -> bool:
        return problem.stride == 1 and cls._needed(problem) <= SIZES[-1]

    def _instances(self) -> list[str]:
        z = self._problem
        columns = {
            "forward": z.n * self._data_windows((z.p, z.q), (z.h, z.w), (0, 0)).tiles,
            "backward_data": z.n * self._data_windows((z.h, z.w), (z.p, z.q), (0, 0)).tiles,
            "backward_filter": z.c,
        }
        products = {_product(direction != "backward_data", n) for direction, n in columns.items()}
        return [f"fft_forward<{self._side}>", f"fft_inverse<{self._side}>", *sorted(products)]

    @staticmethod
    def _needed(z: Convolution) -> int:
        return max(max(z.p, z.h) + z.r - 1, max(z.q, z.w) + z.s - 1)

    @property
    def _side(self) -> int:
        """F, the side of the transforms."""
        return next(size for size in SIZES if size >= self._needed(self._problem))

    @property
    def _step(self) -> tuple[int, int]:
        """Outputs that a window gives: its other elements are wrong because a transform is circular."""
        return self._side - self._problem.r + 1, self._side - self._problem.s + 1

    @property
    def _frequencies(self) -> int:
        return self._side * (self._side // 2 + 1)

    def _forward(self, x: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        data = self._data_windows((z.p, z.q), (z.h, z.w), (-z.pad_h, -z.pad_w))
        t = data.tiles
        spectra = self._empty((z.n * z.k * t, self._frequencies, 2))
        self._multiply(
            (self._spectra(w, self._filter_windows()), (1, z.c, 0), (1, 1, 0)),
            (self._spectra(x, data), (1, t, 0), (t, z.c * t, 1)),
            (spectra, (1, t, 0), (t, z.k * t, 1)),
            (z.k, z.n * t, z.c),
            conjugate=True,
        )
        return self._images(spectra, z.y_shape, self._output_windows((z.p, z.q), data.count), (0, 0))

    def _backward_data(self, dy: DeviceArray, w: DeviceArray) -> DeviceArray:
        z = self._problem
        data = self._data_windows((z.h, z.w), (z.p, z.q), (z.pad_h - z.r + 1, z.pad_w - z.s + 1))
        t = data.tiles
        spectra = self._empty((z.n * z.c * t, self._frequencies, 2))
        self._multiply(
            (self._spectra(w, self._filter_windows()), (1, 1, 0), (1, z.c, 0)),
            (self._spectra(dy, data), (1, t, 0), (t, z.k * t, 1)),
            (spectra, (1, t, 0), (t, z.c * t, 1)),
            (z.c, z.n * t, z.k),
            conjugate=False,
        )
        windows = self._output_windows((z.h, z.w), data.count)
        return self._images(spectra, z.x_shape, windows, (z.r - 1, z.s - 1))

    def _backward_filter(self, x: DeviceArray, dy: DeviceArray) -> DeviceArray:
        z = self._problem
        data = self._data_windows((z.p, z.q), (z.h, z.w), (-z.pad_h, -z.pad_w))
        t = data.tiles
        spectra = self._empty((z.k * z.c, self._frequencies, 2))
        self._multiply(
            (self._spectra(dy, self._output_windows((z.p, z.q), data.count)), (1, t, 0), (t, z.k * t, 1)),
            (self._spectra(x, data), (t, z.c * t, 1), (1, t, 0)),
            (spectra, (1, z.c, 0), (1, 1, 0)),
            (z.k, z.c, z.n * t),
            conjugate=True,
        )
        return self._images(spectra, z.w_shape, self._filter_windows(), (0, 0))

    def _data_windows(
        self, outputs: tuple[int, int], size: tuple[int, int], origin: tuple[int, int]
    ) -> _Windows:
        """Windows of images of this size that give so many outputs."""
        step = self._step
        count = (ceil_divide(outputs[0], step[0]), ceil_divide(outputs[1], step[1]))
        return _Windows(size, count, step, origin, (self._side, self._side))

    def _output_windows(self, size: tuple[int, int], count: tuple[int, int]) -> _Windows:
        """The outputs that windows give, or the gradients that belong to them."""
        return _Windows(size, count, self._step, (0, 0), self._step)

    def _filter_windows(self) -> _Windows:
        size = (self._problem.r, self._problem.s)
        return _Windows(size, (1, 1), size, (0, 0), size)

    def _spectra(self, images: DeviceArray, windows: _Windows) -> DeviceArray:
        count = images.shape[0] * images.shape[1] * windows.tiles
        spectra = self._empty((count, self._frequencies, 2))
        self._module[f"fft_forward<{self._side}>"][count, THREADS](images, spectra, windows.packed)
        return spectra

    def _images(
        self, spectra: DeviceArray, shape: tuple[int, int, int, int], windows: _Windows, skip: tuple[int, int]
    ) -> DeviceArray:
        images = self._empty(shape)
        kernel = self._module[f"fft_inverse<{self._side}>"]
        kernel[spectra.shape[0], THREADS](spectra, images, windows.packed, *skip)
        return images

    def _multiply(
        self,
        a: tuple[DeviceArray, tuple[int, int, int], tuple[int, int, int]],
        b: tuple[DeviceArray, tuple[int, int, int], tuple[int, int, int]],
        c: tuple[DeviceArray, tuple[int, int, int], tuple[int, int, int]],
        size: tuple[int, int, int],
        conjugate: bool,
    ) -> None:
        """Matrix products at each frequency. a, b, c: spectra, and the Steps of rows and columns of fft.cu.
        size: rows, columns and depth.
        """
        rows, columns, depth = size
        kernel = self._module[_product(conjugate, columns)]
        grid = (self._frequencies // NEAR, ceil_divide(rows, ROWS), ceil_divide(columns, 4 * _width(columns)))
        arguments = [part for array, row, column in (a, b, c) for part in (array, ints(*row, *column))]
        kernel[grid, THREADS](*arguments, rows, columns, depth, self._frequencies)


def _width(columns: int) -> int:
    """Columns of a thread of fft_multiply."""
    return 1 if columns <= 4 else 4


def _product(conjugate: bool, columns: int) -> str:
    return f"fft_multiply<{str(conjugate).lower()}, {_width(columns)}>"
