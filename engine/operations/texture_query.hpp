#pragma once
#include <array>

#include "operations/texture.hpp"

/// Queries of textures, surfaces and samplers, for PTX and machine code.
namespace simt::functional {

enum class TextureQuery : uint8_t {
  Width,
  Height,
  Depth,
  ArraySize,
  ChannelType,
  ChannelOrder,
  Normalized,
  Levels,
  Samples,
  ForceUnnormalized,
  Filter,
  Addressing0,
  Addressing1,
  Addressing2,
  MemoryLayout
};

/// A property of what a descriptor describes; 0 for one that it does not have. level: of Width, Height and
/// Depth.
uint32_t answer(const TextureDescriptor& d, TextureQuery query, uint32_t level);

/// Width, height, depth or number of layers, and number of levels.
std::array<uint32_t, 4> dimensions_of(const TextureDescriptor& texture, uint32_t level);

}  // namespace simt::functional
