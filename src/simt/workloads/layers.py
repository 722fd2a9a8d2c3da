"""Layers of convolutional networks at batch 1, on a GPU and by NumPy.

A network is a function of `Layers`. It runs with `DeviceLayers`, one launch a layer, and with `HostLayers`,
which gives the expected values. Both draw the same random weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from simt.errors import LaunchError

if TYPE_CHECKING:
    from simt.gpu import GPU, DeviceArray

Floats = npt.NDArray[np.float32]
Tensor = TypeVar("Tensor")

EPSILON = 1e-5
SOURCE = """
// y[output][pixel] = sum of w[output][r][s][channel] * x[channel][pixel under r, s]: a matrix product whose
// right matrix is never stored. A block of 128 threads makes 64 outputs of 32 pixels, a thread 4 of 4.
// The number of channels is a multiple of 16, that of outputs one of 64. bias may be null.
extern "C" __global__ void __launch_bounds__(128)
conv_gemm(const float* x, const float* w, const float* bias, float* y, int channels, int height, int width,
          int out_height, int out_width, int side, int stride, int pad) {
  __shared__ __align__(16) float a[16][68], b[16][32];
  int t = threadIdx.x, pixels = out_height * out_width, plane = height * width;
  int first = blockIdx.x * 32, output = blockIdx.y * 64;
  int mine = first + t % 32, at = t / 32;  // what it loads: a pixel, every fourth channel
  int top = mine / out_width * stride - pad, left = mine % out_width * stride - pad;
  int k = t % 4 * 4, m = t / 4, inner = side * side * channels;  // and of two outputs four weights
  w += (output + m) * inner + k;
  int px = t % 8 * 4, py = t / 8 * 4;  // what it computes
  float sum[4][4] = {};
  for (int r = 0; r < side; r++)
    for (int s = 0; s < side; s++) {
      int row = top + r, column = left + s;
      bool inside = mine < pixels && row >= 0 && row < height && column >= 0 && column < width;
      const float* in = x + at * plane + row * width + column;
      for (int c = 0; c < channels; c += 16, w += 16, in += 16 * plane) {
        float4 u = *(const float4*)w, v = *(const float4*)(w + 32 * inner);
        a[k][m] = u.x, a[k + 1][m] = u.y, a[k + 2][m] = u.z, a[k + 3][m] = u.w;
        a[k][m + 32] = v.x, a[k + 1][m + 32] = v.y, a[k + 2][m + 32] = v.z, a[k + 3][m + 32] = v.w;
        for (int j = 0; j < 4; j++) b[at + 4 * j][t % 32] = inside ? in[4 * j * plane] : 0;
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 16; q++) {
          float4 f = *(float4*)&a[q][py], g = *(float4*)&b[q][px];
          float weight[4] = {f.x, f.y, f.z, f.w}, value[4] = {g.x, g.y, g.z, g.w};
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] += weight[i] * value[j];
        }
        __syncthreads();
      }
    }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      if (first + px + j < pixels)
        y[(output + py + i) * pixels + first + px + j] = sum[i][j] + (bias ? bias[output + py + i] : 0);
}
// The same for few channels: 128 pixels of 16 outputs, a pixel a thread, weights in shared memory.
extern "C" __global__ void __launch_bounds__(128)
conv_direct(const float* x, const float* w, const float* bias, float* y, int channels, int height, int width,
            int out_height, int out_width, int side, int stride, int pad) {
  extern __shared__ __align__(16) float weights[];
  int inner = side * side * channels, output = blockIdx.y * 16, pixels = out_height * out_width;
  for (int e = threadIdx.x; e < 16 * inner; e += blockDim.x)
    weights[e] = w[(output + e % 16) * inner + e / 16];
  __syncthreads();
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  int top = pixel / out_width * stride - pad, left = pixel % out_width * stride - pad;
  float sum[16] = {};
  const float4* weight = (const float4*)weights;
  for (int r = 0; r < side; r++)
    for (int s = 0; s < side; s++) {
      int row = top + r, column = left + s;
      bool inside = row >= 0 && row < height && column >= 0 && column < width;
      for (int c = 0; c < channels; c++, weight += 4) {
        float value = inside ? x[(c * height + row) * width + column] : 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float4 f = weight[i];
          sum[4 * i] += f.x * value, sum[4 * i + 1] += f.y * value;
          sum[4 * i + 2] += f.z * value, sum[4 * i + 3] += f.w * value;
        }
      }
    }
#pragma unroll
  for (int i = 0; i < 16; i++) y[(output + i) * pixels + pixel] = sum[i] + (bias ? bias[output + i] : 0);
}
// A block row for each channel. parameters: scale, shift, mean, variance of each channel.
extern "C" __global__ void batch_norm(const float* x, const float* parameters, float* y, int channels,
                                      int pixels, float epsilon) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y;
  if (pixel >= pixels) return;
  const float* p = parameters + channel;
  int i = channel * pixels + pixel;
  y[i] = (x[i] - p[2 * channels]) * rsqrtf(p[3 * channels] + epsilon) * p[0] + p[channels];
}
extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void add(const float* x, const float* other, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + other[i];
}
// A block row for each channel.
extern "C" __global__ void max_pool(const float* x, float* y, int height, int width, int out_height,
                                    int out_width, int side, int stride, int pad) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x, pixels = out_height * out_width;
  if (pixel >= pixels) return;
  int top = pixel / out_width * stride - pad, left = pixel % out_width * stride - pad;
  x += blockIdx.y * height * width;
  float best = -3.4e38f;
  for (int r = max(top, 0); r < min(top + side, height); r++)
    for (int s = max(left, 0); s < min(left + side, width); s++) best = fmaxf(best, x[r * width + s]);
  y[blockIdx.y * pixels + pixel] = best;
}
// The average of each channel; a thread a channel.
extern "C" __global__ void average_pool(const float* x, float* y, int channels, int pixels) {
  int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  float sum = 0;
  for (int i = 0; i < pixels; i++) sum += x[channel * pixels + i];
  y[channel] = sum / pixels;
}
// A block of 256 threads for each output. n is a multiple of 4.
extern "C" __global__ void __launch_bounds__(256)
dense(const float* x, const float* w, const float* bias, float* y, int n) {
  __shared__ float sums[256];
  int t = threadIdx.x;
  const float4 *row = (const float4*)(w + (size_t)blockIdx.x * n), *in = (const float4*)x;
  float sum = 0;
  for (int i = t; i < n / 4; i += 256) {
    float4 f = row[i], g = in[i];
    sum += f.x * g.x + f.y * g.y + f.z * g.z + f.w * g.w;
  }
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = sums[0] + bias[blockIdx.x];
}
"""


class Weights:
    """Random weights that keep the size of values about the same from layer to layer."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def image(self, size: int) -> Floats:
        return np.asarray(self._rng.random((3, size, size), np.float32) - 0.5, np.float32)

    def convolution(self, outputs: int, channels: int, side: int) -> Floats:
        return self._uniform((outputs, side, side, channels), channels * side * side)

    def dense(self, outputs: int, inputs: int) -> Floats:
        return self._uniform((outputs, inputs), inputs)

    def bias(self, outputs: int) -> Floats:
        return np.asarray(self._rng.random(outputs, np.float32) * 0.1, np.float32)

    def batch_norm(self, channels: int) -> Floats:
        """Scale, shift, mean and variance of each channel, (4, channels)."""
        low = np.array([[0.3], [-0.1], [-0.1], [0.5]], np.float32)
        high = np.array([[0.6], [0.1], [0.1], [1.5]], np.float32)
        return np.asarray(low + (high - low) * self._rng.random((4, channels)), np.float32)

    def _uniform(self, shape: tuple[int, ...], inputs: int) -> Floats:
        """Variance 2 / inputs, which ReLU calls for (He et al. 2015, section 2.2)."""
        values = self._rng.random(shape, np.float32)
        values -= np.float32(0.5)
        values *= np.float32((24 / inputs) ** 0.5)
        return values


class Layers(ABC, Generic[Tensor]):
    """The layers of a network. Tensors are channels, rows, columns, or a vector."""

    def __init__(self) -> None:
        self.weights = Weights()

    @abstractmethod
    def image(self, size: int) -> Tensor:
        """The input: 3 channels of size x size."""

    @abstractmethod
    def convolution(
        self, x: Tensor, outputs: int, side: int, stride: int = 1, pad: int = 0, bias: bool = False
    ) -> Tensor: ...

    @abstractmethod
    def batch_norm(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def relu(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def add(self, x: Tensor, other: Tensor) -> Tensor: ...

    @abstractmethod
    def max_pool(self, x: Tensor, side: int, stride: int, pad: int = 0) -> Tensor: ...

    @abstractmethod
    def average_pool(self, x: Tensor) -> Tensor:
        """The average of each channel, a vector."""

    @abstractmethod
    def dense(self, x: Tensor, outputs: int) -> Tensor:
        """A vector; x is taken as one."""


class DeviceLayers(Layers["DeviceArray"]):
    """Layers as launches on a GPU."""

    def __init__(self, gpu: GPU) -> None:
        super().__init__()
        self._gpu = gpu
        self._module = gpu.compile(SOURCE)

    def image(self, size: int) -> DeviceArray:
        return self._gpu.array(self.weights.image(size))

    def convolution(
        self, x: DeviceArray, outputs: int, side: int, stride: int = 1, pad: int = 0, bias: bool = False
    ) -> DeviceArray:
        channels, height, width = x.shape
        rows, columns = ((n + 2 * pad - side) // stride + 1 for n in (height, width))
        w = self._gpu.array(self.weights.convolution(outputs, channels, side))
        b = self._gpu.array(self.weights.bias(outputs)) if bias else None
        y = self._gpu.empty((outputs, rows, columns))
        if channels % 16 == 0 and outputs % 64 == 0:
            kernel = self._module.conv_gemm[(-(-rows * columns // 32), outputs // 64), 128]
        elif outputs % 16 == 0:
            shared = 4 * 16 * side * side * channels
            kernel = self._module.conv_direct[(-(-rows * columns // 128), outputs // 16), 128, shared]
        else:
            raise LaunchError(f"a convolution of {outputs} outputs, expected a multiple of 16")
        kernel(x, w, b, y, channels, height, width, rows, columns, side, stride, pad)
        return y

    def batch_norm(self, x: DeviceArray) -> DeviceArray:
        channels, height, width = x.shape
        parameters = self._gpu.array(self.weights.batch_norm(channels))
        y, pixels = self._gpu.empty(x.shape), height * width
        grid = (-(-pixels // 128), channels)
        self._module.batch_norm[grid, 128](x, parameters, y, channels, pixels, EPSILON)
        return y

    def relu(self, x: DeviceArray) -> DeviceArray:
        y = self._gpu.empty(x.shape)
        self._module.relu[-(-x.size // 256), 256](x, y, x.size)
        return y

    def add(self, x: DeviceArray, other: DeviceArray) -> DeviceArray:
        y = self._gpu.empty(x.shape)
        self._module.add[-(-x.size // 256), 256](x, other, y, x.size)
        return y

    def max_pool(self, x: DeviceArray, side: int, stride: int, pad: int = 0) -> DeviceArray:
        channels, height, width = x.shape
        rows, columns = ((n + 2 * pad - side) // stride + 1 for n in (height, width))
        y = self._gpu.empty((channels, rows, columns))
        grid = (-(-rows * columns // 128), channels)
        self._module.max_pool[grid, 128](x, y, height, width, rows, columns, side, stride, pad)
        return y

    def average_pool(self, x: DeviceArray) -> DeviceArray:
        channels, height, width = x.shape
        y = self._gpu.empty(channels)
        self._module.average_pool[-(-channels // 64), 64](x, y, channels, height * width)
        return y

    def dense(self, x: DeviceArray, outputs: int) -> DeviceArray:
        w = self._gpu.array(self.weights.dense(outputs, x.size))
        bias, y = self._gpu.array(self.weights.bias(outputs)), self._gpu.empty(outputs)
        self._module.dense[outputs, 256](x, w, bias, y, x.size)
        return y


class HostLayers(Layers[Floats]):
    """The same layers by NumPy."""

    def image(self, size: int) -> Floats:
        return self.weights.image(size)

    def convolution(
        self, x: Floats, outputs: int, side: int, stride: int = 1, pad: int = 0, bias: bool = False
    ) -> Floats:
        w = self.weights.convolution(outputs, x.shape[0], side)
        b = self.weights.bias(outputs) if bias else np.zeros(outputs, np.float32)
        y = np.tensordot(w, _windows(x, side, stride, pad, 0), ((3, 1, 2), (0, 3, 4)))
        return np.asarray(y + b[:, None, None], np.float32)

    def batch_norm(self, x: Floats) -> Floats:
        scale, shift, mean, variance = self.weights.batch_norm(x.shape[0])[:, :, None, None]
        return np.asarray((x - mean) / np.sqrt(variance + np.float32(EPSILON)) * scale + shift, np.float32)

    def relu(self, x: Floats) -> Floats:
        return np.maximum(x, 0)

    def add(self, x: Floats, other: Floats) -> Floats:
        return x + other

    def max_pool(self, x: Floats, side: int, stride: int, pad: int = 0) -> Floats:
        return np.asarray(_windows(x, side, stride, pad, -np.inf).max((3, 4)), np.float32)

    def average_pool(self, x: Floats) -> Floats:
        return np.asarray(x.mean((1, 2)), np.float32)

    def dense(self, x: Floats, outputs: int) -> Floats:
        w = self.weights.dense(outputs, x.size)
        return np.asarray(w @ x.ravel() + self.weights.bias(outputs), np.float32)


def _windows(x: Floats, side: int, stride: int, pad: int, outside: float) -> Floats:
    """What lies under each place of a window: channels, rows, columns, rows of the window, its columns."""
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=outside)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), (1, 2))
    return windows[:, ::stride, ::stride]
