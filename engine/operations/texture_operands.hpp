#pragma once
#include "machine/access.hpp"
#include "machine/fault.hpp"
#include "operations/floats.hpp"
#include "operations/texture.hpp"

/// Shared by the instructions on textures and surfaces.
namespace simt::functional {

constexpr uint32_t most_elements = 4;

/// The operand before the coordinates: the address of a descriptor.
struct TextureReference {
  Address address;
  bool given = false;
  bool lower_half = false;  ///< machine code: the lower 32 bits of the descriptor's address
};

inline void reference_addresses(Context& c, const TextureReference& r, uint64_t* out) {
  if (!r.address.entry_parameter) {
    lane_addresses(c, r.address.base, r.address.place, r.address.offset, out);
    if (r.lower_half)
      for (uint32_t i = 0; i < warp_lanes; ++i)
        out[i] = i > 0 && static_cast<uint32_t>(out[i - 1]) == out[i]
                     ? out[i - 1]
                     : descriptor_address(c, static_cast<uint32_t>(out[i]));
    return;
  }
  uint64_t value;
  std::memcpy(&value, c.grid->parameters() + r.address.offset, sizeof value);
  std::fill_n(out, warp_lanes, value);
}

/// Each lane's descriptor; usually they are all the same.
class Descriptors {
 public:
  Descriptors(Context& c, const TextureReference& reference, TextureDescriptor::Kind kind)
      : context_(c), kind_(kind) {
    reference_addresses(c, reference, addresses_);
  }
  const TextureDescriptor& of(int lane) {
    if (!last_ || addresses_[lane] != last_address_) {
      last_address_ = addresses_[lane];
      last_ = &find_descriptor(context_, last_address_, kind_, lane);
    }
    return *last_;
  }

 private:
  Context& context_;
  TextureDescriptor::Kind kind_;
  alignas(64) uint64_t addresses_[warp_lanes];
  uint64_t last_address_ = 0;
  const TextureDescriptor* last_ = nullptr;
};

/// Records the memory the lanes access, if recording; lanes with address 0 access none.
inline void record_touched(Context& c, const uint64_t* addresses) {
  if (!c.record) return;
  const uint32_t all = c.mask;
  for (uint32_t i = 0; i < warp_lanes; ++i)
    if (addresses[i] == 0) c.mask &= ~(1u << i);
  if (c.mask)
    record_access(c, AccessSpace::Global, addresses);
  else
    c.record->nothing = true;
  c.mask = all;
}

inline uint32_t coordinate_count(TextureDescriptor::Geometry g) {
  using enum TextureDescriptor::Geometry;
  return g == D1 || g == A1d ? 1 : g == D2 || g == A2d ? 2 : 3;
}
inline bool is_layered(TextureDescriptor::Geometry g) {
  using enum TextureDescriptor::Geometry;
  return g == A1d || g == A2d || g == Acube;
}

inline uint16_t half_bits(uint32_t f32) {
  return static_cast<uint16_t>(nearest_code<Half, true>(std::bit_cast<float>(f32)));
}

}  // namespace simt::functional
