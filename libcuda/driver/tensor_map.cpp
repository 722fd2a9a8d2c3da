#include <cstring>
#include <vector>

#include "process.hpp"

// Tensor maps. simt has its own encoding, which begins with the address.

using namespace simt::driver;

namespace {

struct Shape {
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> element_strides;

  Shape(cuuint32_t rank, const void* address, const cuuint64_t* dim, const cuuint64_t* stride,
        const cuuint32_t* step) {
    require(rank >= 1 && rank <= 5 && address != nullptr && dim != nullptr && step != nullptr);
    require(stride != nullptr || rank == 1);
    dims.assign(dim, dim + rank);
    strides.assign(stride, stride + (rank - 1));
    element_strides.assign(step, step + rank);
  }
};

/// Tensor maps need a device, but no context.
Device& any_device() {
  const auto& stack = Thread::get().stack;
  return stack.empty() ? Process::get().device(0) : current_context().device;
}

/// corners: for im2col.
template <class... Corners>
void encode(CUtensorMap* map, CUtensorMapDataType type, const void* address, const Shape& shape,
            const std::vector<uint32_t>& box, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
            CUtensorMapFloatOOBfill fill, const Corners&... corners) {
  require(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0);
  const Value reply = any_device().connection.call(
      "tensor_map", static_cast<unsigned>(type), reinterpret_cast<uint64_t>(address), shape.dims,
      shape.strides, box, shape.element_strides, static_cast<unsigned>(interleave),
      static_cast<unsigned>(swizzle), static_cast<unsigned>(fill), corners...);
  if (const Value* error = reply.find("error"))
    fail(static_cast<CUresult>(error->number()), reply.at("text").string());
  const std::string& bytes = reply.at("bytes").string();
  require(bytes.size() == sizeof *map, CUDA_ERROR_UNKNOWN);
  std::memcpy(map, bytes.data(), bytes.size());
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill fill) {
  return guarded([&] {
    require(box != nullptr);
    const Shape shape(rank, address, dims, strides, steps);
    encode(map, type, address, shape, {box, box + rank}, interleave, swizzle, fill);
  });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dims, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill fill) {
  return guarded([&] {
    require(lower != nullptr && upper != nullptr && rank >= 3);
    const Shape shape(rank, address, dims, strides, steps);
    const std::array<std::vector<int>, 2> corners{std::vector<int>(lower, lower + rank - 2),
                                                  std::vector<int>(upper, upper + rank - 2)};
    encode(map, type, address, shape, {channels, pixels}, interleave, swizzle, fill, corners);
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return guarded([&] {
    const auto place = reinterpret_cast<uint64_t>(address);
    require(map != nullptr && place != 0 && place % 16 == 0);
    std::memcpy(map, &place, sizeof place);
  });
}
