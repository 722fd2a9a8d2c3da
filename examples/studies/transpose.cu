// Reads along rows, writes along columns.
extern "C" __global__ void transpose(const float* x, float* y, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i % width * width + i / width] = x[i];
}
