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

cudaError_t add(CUlinkState state, const void* image, const char* name) {
  const auto* header = static_cast<const FatBinaryHeader*>(image);
  return to_error(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, const_cast<void*>(image),
                                header->header_size + header->size, name, 0, nullptr, nullptr));
}

cudaError_t link(CUlinkState state, const FatBinary& program, void** image) {
  for (int file = 0; program.linked[file]; ++file) {
    char name[32];
    std::snprintf(name, sizeof name, "file %d", file + 1);
    RUNTIME_TRY(add(state, program.linked[file], name));
  }
  // What nvcc has linked: the machine code of all files, if it made any.
  if (program.data) RUNTIME_TRY(add(state, program.data, "device link"));
  size_t size = 0;
  return to_error(cuLinkComplete(state, image, &size));
}

}  // namespace

cudaError_t link_images(const FatBinary& program, CUlibrary* library) {
  if (!program.linked) return cudaErrorInvalidKernelImage;
  RUNTIME_TRY(enter());
  Linker linker;
  RUNTIME_TRY(cuLinkCreate(0, nullptr, nullptr, &linker.state));
  void* image = nullptr;
  RUNTIME_TRY(link(linker.state, program, &image));
  return to_error(cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace runtime
