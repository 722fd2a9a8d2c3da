// Thrust: algorithms over device vectors.
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include "check.h"

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

int main() {
  const int n = 3000;
  thrust::host_vector<int> host(n);
  unsigned state = 1;
  for (int i = 0; i < n; ++i) host[i] = (state = state * 1664525u + 1013904223u) >> 20;
  thrust::device_vector<int> device = host;
  thrust::sort(device.begin(), device.end());
  thrust::sort(host.begin(), host.end());
  CHECK(thrust::equal(host.begin(), host.end(), thrust::host_vector<int>(device).begin()));
  thrust::device_vector<int> squares(n);
  thrust::transform(device.begin(), device.begin() + 1000, squares.begin(), Square());
  thrust::exclusive_scan(device.begin(), device.end(), squares.begin());
  const int total = thrust::reduce(device.begin(), device.end());
  CHECK(squares[n - 1] + device[n - 1] == total);
  std::puts("ok");
}
