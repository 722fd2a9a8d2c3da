#include <algorithm>

#include "array.hpp"

// Mipmapped arrays.

namespace simt::driver {
namespace {

constexpr uint64_t alignment = 512;

/// A level of a mipmapped array: every dimension except layers is halved at each level.
CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& base, bool layered, unsigned level) {
  const auto halved = [level](size_t n) { return n ? std::max<size_t>(1, n >> level) : 0; };
  CUDA_ARRAY3D_DESCRIPTOR d = base;
  d.Width = halved(base.Width);
  d.Height = halved(base.Height);
  if (!layered) d.Depth = halved(base.Depth);
  return d;
}

}  // namespace

MipmappedArray::MipmappedArray(Device& of, const CUDA_ARRAY3D_DESCRIPTOR& base, unsigned count)
    : Handle(tag), device(of) {
  require(count > 0);
  const bool layered = base.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  const size_t longest = std::max({base.Width, base.Height, layered ? 0 : base.Depth});
  // The levels are laid out starting at `alignment`, and moved once memory has been allocated.
  uint64_t end = alignment;
  for (unsigned k = 0; k < count && longest >> k > 0; ++k) {
    levels.push_back(&all<Array>().make(of, level_of(base, layered, k), end));
    end += (levels.back()->bytes() + alignment - 1) / alignment * alignment;
  }
  require(!levels.empty());
  address = of.allocate(end - alignment, Origin::Device, 0, "mipmapped array");
  for (Array* level : levels) level->address += address - alignment;
}

MipmappedArray::~MipmappedArray() {
  for (Array* level : levels) all<Array>().destroy(*level);
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* base,
                                unsigned levels) {
  return guarded([&] {
    require(array != nullptr && base != nullptr);
    *array =
        handle_of<CUmipmappedArray>(&all<MipmappedArray>().make(current_context().device, *base, levels));
  });
}

CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray array, unsigned number) {
  return guarded([&] {
    const auto& levels = object_of<MipmappedArray>(array).levels;
    require(level != nullptr && number < levels.size());
    *level = handle_of<CUarray>(levels[number]);
  });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return guarded([&] {
    MipmappedArray& a = object_of<MipmappedArray>(array);
    synchronize(a.device);
    a.device.free(a.address);
    all<MipmappedArray>().destroy(a);
  });
}
