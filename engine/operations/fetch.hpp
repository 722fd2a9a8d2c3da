#pragma once
#include "operations/texture_operands.hpp"

/// Fetches from textures, for PTX and machine code.
namespace simt::functional {

struct FetchDetail : Detail {
  enum class Level : uint8_t { Base, Given, Gradients };
  enum class Result : uint8_t { Words, Halves, PackedHalves };

  TextureReference texture, sampler;
  TextureDescriptor::Geometry geometry = TextureDescriptor::Geometry::D1;
  bool also_flatter = false;  ///< machine code: 1D textures are read as 2D ones, with y = 0
  bool integer_coordinates = false;
  Place layer = place::none;
  std::array<Place, 3> coordinates{place::none, place::none, place::none};
  std::array<Place, 3> offsets{place::none, place::none, place::none};
  Level level_from = Level::Base;
  Place level = place::none;
  std::array<std::array<Place, 3>, 2> gradients{};
  Result result = Result::Words;
  std::array<Place, most_elements> destinations{};
  Place resident = place::none;
  int component = -1;  ///< for tld4
};

Handler fetch_handler();

}  // namespace simt::functional
