/* Two streams work on halves of one array, which overlap by an element.

x = gpu.array(integers(64))
want = 2 * x.numpy()
for i, stream in enumerate((gpu.stream(), gpu.stream())):
    module.double_them[1, 32, 0, stream](x[32 * i :], 33 if fault and i == 0 else 32)
gpu.synchronize()
same(x, want)
*/
extern "C" __global__ void double_them(int *x, int n) {
  for (int i = threadIdx.x; i < n; i += 32) x[i] *= 2;  // fault: race-launch
}
