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

void encode(CUtensorMap* map, CUtensorMapDataType type, const void* address, const Shape& shape,
            const std::vector<uint32_t>& box, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
            CUtensorMapFloatOOBfill fill, const std::optional<Corners>& corners) {
  require(map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0);
  const MadeBytes made =
      any_device().connection.call(TensorMapRequest{.type = static_cast<uint32_t>(type),
                                                    .address = reinterpret_cast<uint64_t>(address),
                                                    .dims = shape.dims,
                                                    .strides = shape.strides,
                                                    .box = box,
                                                    .element_strides = shape.element_strides,
                                                    .interleave = static_cast<uint32_t>(interleave),
                                                    .swizzle = static_cast<uint32_t>(swizzle),
                                                    .fill = static_cast<uint32_t>(fill),
                                                    .corners = corners});
  if (made.refusal) fail(static_cast<CUresult>(made.refusal->code), made.refusal->text);
  require(made.contents.size() == sizeof *map, CUDA_ERROR_UNKNOWN);
  std::memcpy(map, made.contents.data(), made.contents.size());
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
    encode(map, type, address, shape, {box, box + rank}, interleave, swizzle, fill, std::nullopt);
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
    const Corners corners{.lower = {lower, rank - 2}, .upper = {upper, rank - 2}, .wide = 0};
    encode(map, type, address, shape, {channels, pixels}, interleave, swizzle, fill, corners);
  });
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                     void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                     int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
                                     const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  return guarded([&] {
    require(rank >= 3 && mode <= CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
    const Shape shape(rank, address, dims, strides, steps);
    const Corners corners{.lower = {&lower, 1}, .upper = {&upper, 1}, .wide = mode + 1u};
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
