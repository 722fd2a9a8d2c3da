#pragma once
#include "operations/texture_operands.hpp"

/// Accesses to surfaces, for PTX and machine code.
namespace simt::functional {

/// What accesses outside a surface do.
enum class Outside : uint8_t { Trap, Clamp, Zero };

struct SurfaceDetail : Detail {
  TextureReference surface;
  TextureDescriptor::Geometry geometry = TextureDescriptor::Geometry::D1;
  Outside outside = Outside::Trap;
  bool formatted = false;  ///< coordinates count texels, and values are converted
  ptx::Type type = ptx::Type::B32;
  uint32_t elements = 1;
  Place layer = place::none;
  std::array<Place, 3> coordinates{place::none, place::none, place::none};
  std::array<Place, most_elements> places{};
  bool wide = false;   ///< 64-bit registers
  bool pairs = false;  ///< 64-bit values to reduce are in two rows
};

Handler surface_load_handler();
Handler surface_store_handler();
/// 0 add, 1 min, 2 max, 3 and, 4 or; nullptr if there is none for the type.
Handler surface_reduction_handler(int operation, ptx::Type type, bool formatted);

}  // namespace simt::functional
