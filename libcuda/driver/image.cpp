#include "image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "failure.hpp"

namespace simt::driver {
namespace {

constexpr uint32_t wrapper_magic = 0x466243b1, fatbin_magic = 0xba55ed50;

struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* rest;
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};

size_t elf_bytes(const std::byte* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  uint64_t end = std::max(header.e_shoff + uint64_t{header.e_shentsize} * header.e_shnum,
                          header.e_phoff + uint64_t{header.e_phentsize} * header.e_phnum);
  for (uint16_t k = 0; k < header.e_shnum; ++k) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + uint64_t{k} * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

std::span<const std::byte> image_bytes(const void* image) {
  require(image != nullptr);
  const auto* bytes = static_cast<const std::byte*>(image);
  uint32_t magic = 0;
  // Text may be shorter than four bytes.
  for (size_t k = 0; k < sizeof magic; ++k) {
    if (k > 0 && bytes[k - 1] == std::byte{0}) break;
    std::memcpy(reinterpret_cast<std::byte*>(&magic) + k, bytes + k, 1);
  }
  if (magic == wrapper_magic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    return image_bytes(wrapper.data);
  }
  if (magic == fatbin_magic) {
    FatbinHeader header;
    std::memcpy(&header, image, sizeof header);
    return {bytes, header.header_bytes + header.bytes};
  }
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return {bytes, elf_bytes(bytes)};
  const size_t length = std::strlen(static_cast<const char*>(image));
  require(length > 0, CUDA_ERROR_INVALID_IMAGE);
  return {bytes, length};
}

Bytes file_bytes(const char* path) {
  require(path != nullptr);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace simt::driver
