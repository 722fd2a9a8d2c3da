#include "link.hpp"

#include <cstdint>
#include <cstdio>

namespace runtime {
namespace {

// The header of a fat binary; `size` is that of the rest.
struct FatBinaryHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;
};

struct Linker {
  CUlinkState state = nullptr;
  ~Linker() {
    if (state) cuLinkDestroy(state);
  }
};

cudaError_t link(CUlinkState state, const void* const* images, void** image) {
  for (int file = 0; images[file]; ++file) {
    const auto* header = static_cast<const FatBinaryHeader*>(images[file]);
    char name[32];
    std::snprintf(name, sizeof name, "file %d", file + 1);
    RUNTIME_TRY(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, const_cast<void*>(images[file]),
                              header->header_size + header->size, name, 0, nullptr, nullptr));
  }
  size_t size = 0;
  return to_error(cuLinkComplete(state, image, &size));
}

}  // namespace

cudaError_t link_images(const void* const* images, CUlibrary* library) {
  if (!images) return cudaErrorInvalidKernelImage;
  RUNTIME_TRY(enter());
  Linker linker;
  RUNTIME_TRY(cuLinkCreate(0, nullptr, nullptr, &linker.state));
  void* image = nullptr;
  RUNTIME_TRY(link(linker.state, images, &image));
  return to_error(cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace runtime
