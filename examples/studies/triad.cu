extern "C" __global__ void triad(const float4* a, const float4* b, float4* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 u = a[i], v = b[i];
  c[i] = make_float4(u.x + 3 * v.x, u.y + 3 * v.y, u.z + 3 * v.z, u.w + 3 * v.w);
}
