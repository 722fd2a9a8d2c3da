// Adds what several groups of blocks summed: total[i] = sum of partial[split][i], in the order of the splits.
extern "C" __global__ void add_splits(const float* partial, float* total, int count, int splits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int split = 0; split < splits; split++) sum += partial[split * count + i];
  total[i] = sum;
}
