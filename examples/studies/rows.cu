// Matrix times vector, a thread for each row: its line is used for 32 steps, and must stay in the L1.
extern "C" __global__ void rows(const float* a, const float* x, float* y, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int c = 0; c < columns; c++) sum += a[row * columns + c] * x[c];
  y[row] = sum;
}
