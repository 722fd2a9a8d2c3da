#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "image.hpp"
#include "modules.hpp"

// cuLink: links several programs into one image for cuModuleLoadData. The linking is done by simt.

using namespace simt::driver;

namespace simt::driver {
namespace {

struct Linker : Handle {
  static constexpr uint64_t tag = 0x73696d745f6c6e6b;
  Linker(Device& of, JitOptions given) : Handle(tag), device(of), options(given) {}

  Device& device;
  JitOptions options;
  // For each input:
  std::vector<unsigned> types;
  std::vector<Bytes> data;
  std::vector<std::string> names;
  std::string image;  ///< a cubin, or text with its final NUL
};

constexpr const char* kinds[] = {"cubin", "PTX", "fatbin", "object", "library"};

void add(Linker& linker, CUjitInputType type, Bytes data, std::string name) {
  require(type <= CU_JIT_INPUT_NVVM);
  if (type > CU_JIT_INPUT_LIBRARY) {
    const std::string text = name + ": NVVM code cannot be linked: simt links PTX, and what holds it";
    linker.options.put(text);
    fail(CUDA_ERROR_NOT_SUPPORTED, text);
  }
  if (type == CU_JIT_INPUT_CUBIN &&
      (data.size() < SELFMAG || std::memcmp(data.data(), ELFMAG, SELFMAG) != 0)) {
    const std::string text = name + ": not a cubin";
    linker.options.put(text);
    fail(CUDA_ERROR_INVALID_IMAGE, text);
  }
  linker.types.push_back(type);
  linker.data.push_back(std::move(data));
  linker.names.push_back(std::move(name));
}

void complete(Linker& linker) {
  const MadeBytes made = linker.device.connection.call(
      LinkRequest{.types = linker.types, .data = linker.data, .names = linker.names});
  if (made.refusal) {
    linker.options.put(made.refusal->text);
    fail(static_cast<CUresult>(made.refusal->code), made.refusal->text);
  }
  linker.image.assign(reinterpret_cast<const char*>(made.contents.data()), made.contents.size());
}

}  // namespace
}  // namespace simt::driver

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return guarded([&] {
    require(state != nullptr && (count == 0 || (options != nullptr && values != nullptr)));
    *state = handle_of<CUlinkState>(
        &all<Linker>().make(current_context().device, JitOptions(count, options, values)));
  });
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned, CUjit_option*, void**) {
  return guarded([&] {
    Linker& linker = object_of<Linker>(state);
    require(data != nullptr);
    auto bytes = std::span(static_cast<const std::byte*>(data), size);
    if (type == CU_JIT_INPUT_FATBINARY)
      bytes = image_bytes(data);  // or its wrapper, without a meaningful size
    add(linker, type, Bytes(bytes.begin(), bytes.end()),
        name ? name : std::string(kinds[std::min<size_t>(type, std::size(kinds) - 1)]));
  });
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*,
                       void**) {
  return guarded([&] {
    Linker& linker = object_of<Linker>(state);
    add(linker, type, file_bytes(path), path);
  });
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  return guarded([&] {
    Linker& linker = object_of<Linker>(state);
    require(image != nullptr);
    if (linker.image.empty()) complete(linker);
    *image = linker.image.data();
    if (size) *size = linker.image.size() + 1;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return guarded([&] { all<Linker>().destroy(object_of<Linker>(state)); });
}
