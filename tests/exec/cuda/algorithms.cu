// CUB's device-wide algorithms and Thrust's keyed ones, over iterators that compute their values.
#include <thrust/device_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

#include "check.h"

struct Square {
  __host__ __device__ long operator()(int x) const { return long(x) * x; }
};

template <class Call>
void with_storage(const Call& call) {
  size_t bytes = 0;
  CUDA(call(nullptr, bytes));
  void* storage;
  CUDA(cudaMalloc(&storage, bytes));
  CUDA(call(storage, bytes));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(storage));
}

int main() {
  const int n = 3000;
  std::vector<int> host(n);
  unsigned state = 1;
  for (int& x : host) x = (state = state * 1664525 + 1013904223) >> 20;
  thrust::device_vector<int> in = host, out(n);
  const int* from = thrust::raw_pointer_cast(in.data());
  int* to = thrust::raw_pointer_cast(out.data());

  with_storage([&](void* s, size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, from, to, n); });
  std::vector<int> expected(n), got(n);
  std::exclusive_scan(host.begin(), host.end(), expected.begin(), 0);
  thrust::copy(out.begin(), out.end(), got.begin());
  CHECK(got == expected);

  thrust::device_vector<int> values(n), sorted_values(n);
  thrust::sequence(values.begin(), values.end());
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceRadixSort::SortPairsDescending(s, b, from, to, thrust::raw_pointer_cast(values.data()),
                                                     thrust::raw_pointer_cast(sorted_values.data()), n);
  });
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return host[a] > host[b]; });
  thrust::copy(sorted_values.begin(), sorted_values.end(), got.begin());
  CHECK(got == order);

  thrust::device_vector<int> bins(16);
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, from, thrust::raw_pointer_cast(bins.data()), 17, 0, 4096,
                                               n);
  });
  std::vector<int> counts(16), found(16);
  for (const int x : host) ++counts[x / 256];
  thrust::copy(bins.begin(), bins.end(), found.begin());
  CHECK(found == counts);

  thrust::device_vector<int> keys(n), sums(n), unique(n);
  for (int i = 0; i < n; ++i) expected[i] = i / 100;
  thrust::copy(expected.begin(), expected.end(), keys.begin());
  const auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), in.begin(), unique.begin(), sums.begin());
  CHECK(ends.first - unique.begin() == n / 100);
  for (int k = 0; k < n / 100; ++k)
    CHECK(sums[k] == std::accumulate(host.begin() + 100 * k, host.begin() + 100 * (k + 1), 0));

  const auto squares = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Square());
  CHECK(thrust::reduce(squares, squares + n, 0L) == long(n - 1) * n * (2L * n - 1) / 6);
  CHECK(thrust::inner_product(in.begin(), in.end(), in.begin(), 0L) ==
        std::inner_product(host.begin(), host.end(), host.begin(), 0L));
  thrust::sort_by_key(in.begin(), in.end(), values.begin(), thrust::greater<int>());
  CHECK(thrust::is_sorted(in.begin(), in.end(), thrust::greater<int>()));
  std::puts("ok");
}
