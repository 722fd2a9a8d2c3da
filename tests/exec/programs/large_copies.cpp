#include <cstring>
#include <vector>

#include "check.hpp"

// Copies around the size from which they bypass the caches, to and from any place in a cache line.

int main() {
  start();
  constexpr size_t threshold = size_t{4} << 20, room = threshold + 4096;
  std::vector<unsigned char> source(room), found(room), expected(room);
  for (size_t k = 0; k < room; ++k) source[k] = static_cast<unsigned char>(k * 2654435761u >> 24);
  CUdeviceptr first, second;
  OK(cuMemAlloc(&first, room));
  OK(cuMemAlloc(&second, room));
  size_t offset = 1;
  for (const size_t bytes : {threshold - 1, threshold, threshold + 1, threshold + 63, threshold + 1111}) {
    const size_t from = offset * 7 % 64, to = offset * 23 % 64, back = offset * 41 % 64;
    ++offset;
    std::fill(found.begin(), found.end(), 0);
    std::fill(expected.begin(), expected.end(), 0);
    std::memcpy(expected.data() + back, source.data() + from, bytes);
    OK(cuMemcpyHtoD(first + to, source.data() + from, bytes));
    OK(cuMemcpyDtoD(second + from, first + to, bytes));
    OK(cuMemcpyDtoH(found.data() + back, second + from, bytes));
    CHECK(found == expected);
  }
  std::puts("passed");
}
