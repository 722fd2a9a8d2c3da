/// Textures and surfaces: tex, tld4, txq, suld, sust, sured, suq, istypep.
#include <atomic>
#include <optional>

#include "functional/access.hpp"
#include "functional/fault.hpp"
#include "functional/floats.hpp"
#include "functional/instructions.hpp"
#include "functional/reductions.hpp"
#include "functional/texture.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using Channel = TextureDescriptor::Channel;
using Geometry = TextureDescriptor::Geometry;
using Kind = TextureDescriptor::Kind;

constexpr uint32_t most_elements = 4;

/// The operand in front of the coordinates: what holds the address of a descriptor.
struct Reference {
  Address address;
  bool given = false;
};

void reference_addresses(const Context& c, const Reference& r, uint64_t* out) {
  if (!r.address.entry_parameter) {
    lane_addresses(c, r.address.base, r.address.place, r.address.offset, out);
    return;
  }
  uint64_t value;
  std::memcpy(&value, c.grid->parameters() + r.address.offset, sizeof value);
  std::fill_n(out, warp_lanes, value);
}

/// The lanes' descriptors; mostly they all have the same.
class Descriptors {
 public:
  Descriptors(Context& c, const Reference& reference, Kind kind) : context_(c), kind_(kind) {
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
  Kind kind_;
  alignas(64) uint64_t addresses_[warp_lanes];
  uint64_t last_address_ = 0;
  const TextureDescriptor* last_ = nullptr;
};

/// Tells whoever asks which memory the lanes touch; those with address 0 touch none.
void record_touched(Context& c, const uint64_t* addresses) {
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

Reference take_reference(Translation& t, const ptx::Operand& operand) {
  Reference r;
  r.given = true;
  r.address = t.address(operand);
  if (r.address.base == Address::Base::Stack && !r.address.entry_parameter)
    t.unsupported("a reference that is a parameter of a function");
  return r;
}

Geometry take_geometry(Translation& t) {
  if (t.take("2dms") || t.take("a2dms")) t.unsupported("multi-sample textures, which only graphics can make");
  const int index = t.take_one_of({"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"});
  if (index < 0) t.unsupported("its geometry is missing");
  return static_cast<Geometry>(index);
}

uint32_t coordinate_count(Geometry g) {
  return g == Geometry::D1 || g == Geometry::A1d ? 1 : g == Geometry::D2 || g == Geometry::A2d ? 2 : 3;
}
bool is_layered(Geometry g) {
  return g == Geometry::A1d || g == Geometry::A2d || g == Geometry::Acube;
}

const ptx::Operand& element(const Translation& t, const ptx::Operand& vector, uint32_t index) {
  return vector.kind == OperandKind::Vector ? t.part(vector, index) : vector;
}

// --- fetches ---------------------------------------------------------------------------------------------

struct FetchDetail : Detail {
  enum class Level : uint8_t { Base, Given, Gradients };
  enum class Result : uint8_t { Words, Halves, PackedHalves };

  Reference texture, sampler;
  Geometry geometry = Geometry::D1;
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
  int component = -1;  ///< of tld4
};

TextureCoordinates coordinates_of(const Context& c, const FetchDetail& d, int lane) {
  TextureCoordinates at;
  at.integer = d.integer_coordinates;
  const auto lane_of = [&](Place p) { return c.lanes<const uint32_t>(p)[lane]; };
  for (uint32_t k = 0; k < 3; ++k) {
    if (d.coordinates[k] != place::none) {
      at.at[k] = std::bit_cast<float>(lane_of(d.coordinates[k]));
      at.texel[k] = static_cast<int32_t>(lane_of(d.coordinates[k]));
    }
    if (d.offsets[k] != place::none) at.offset[k] = static_cast<int32_t>(lane_of(d.offsets[k]));
  }
  if (d.layer != place::none) at.layer = lane_of(d.layer);
  if (d.level_from == FetchDetail::Level::Given) {
    at.level = d.integer_coordinates ? static_cast<float>(static_cast<int32_t>(lane_of(d.level)))
                                     : std::bit_cast<float>(lane_of(d.level));
    at.has_level = true;
  }
  return at;
}

uint16_t half_bits(uint32_t f32) {
  return static_cast<uint16_t>(nearest_code<Half, true>(std::bit_cast<float>(f32)));
}

void run_fetch(Context& c, const Op& op) {
  const auto& d = op.details<FetchDetail>();
  Descriptors textures(c, d.texture, Kind::Texture);
  std::optional<Descriptors> samplers;
  if (d.sampler.given) samplers.emplace(c, d.sampler, Kind::Sampler);
  alignas(64) uint64_t touched[warp_lanes] = {};
  alignas(64) uint32_t result[most_elements][warp_lanes];
  each_lane(c, [&](int i) {
    const TextureDescriptor& texture = textures.of(i);
    const Sampler& sampler = samplers ? samplers->of(i).sampler : texture.sampler;
    if (texture.geometry != d.geometry)
      throw Fault("invalid texture",
                  std::string("the texture is .") + name(texture.geometry) +
                      ", the instruction reads one of ." + name(d.geometry),
                  i);
    if (d.result != FetchDetail::Result::Words && texture.integer())
      throw Fault("invalid texture", "the texture holds integers, the instruction returns f16 numbers", i);
    TextureCoordinates at = coordinates_of(c, d, i);
    if (d.level_from == FetchDetail::Level::Gradients) {
      std::array<std::array<float, 3>, 2> g{};
      for (uint32_t k = 0; k < 2; ++k)
        for (uint32_t n = 0; n < texture.dimensions(); ++n)
          g[k][n] = std::bit_cast<float>(c.lanes<const uint32_t>(d.gradients[k][n])[i]);
      at.level = level_of_gradients(texture, sampler, g[0], g[1]);
      at.has_level = true;
    }
    const Texel texel = d.component >= 0
                            ? gather(c, texture, sampler, at, static_cast<uint32_t>(d.component), i)
                            : sample(c, texture, sampler, at, i);
    touched[i] = texel.address;
    for (uint32_t e = 0; e < most_elements; ++e) result[e][i] = texel.bits[e];
  });
  record_touched(c, touched);
  if (d.result == FetchDetail::Result::PackedHalves) {
    each_lane(c, [&](int i) {
      for (uint32_t e = 0; e < 2; ++e)
        c.lanes<uint32_t>(d.destinations[e])[i] =
            half_bits(result[2 * e][i]) | uint32_t{half_bits(result[2 * e + 1][i])} << 16;
    });
  } else {
    if (d.result == FetchDetail::Result::Halves)
      each_lane(c, [&](int i) {
        for (auto& e : result) e[i] = half_bits(e[i]);
      });
    for (uint32_t e = 0; e < most_elements; ++e)
      write_lanes(c, c.lanes<uint32_t>(d.destinations[e]), result[e]);
  }
  if (d.resident != place::none) write_predicate(c, d.resident, full_mask);
}

void translate_fetch(Translation& t, bool gathers) {
  FetchDetail d;
  if (gathers) {
    d.component = t.take_one_of({"r", "g", "b", "a"});
    if (d.component < 0) t.unsupported("its component is missing");
  } else {
    using Level = FetchDetail::Level;
    d.level_from = t.take("level") ? Level::Given : t.take("grad") ? Level::Gradients : Level::Base;
    t.take("base");
  }
  d.geometry = take_geometry(t);
  const uint32_t count = coordinate_count(d.geometry);
  const bool cube = d.geometry >= Geometry::Cube;
  if (gathers && d.geometry != Geometry::D2 && d.geometry != Geometry::A2d && !cube)
    t.unsupported("tld4 of this geometry");
  const int vector = t.take_one_of({"v4", "v2"});
  const Type type = t.take_type(), coordinate_type = t.take_type();
  if (type == Type::F16x2)
    d.result = FetchDetail::Result::PackedHalves;
  else if (type == Type::F16)
    d.result = FetchDetail::Result::Halves;
  else if (type != Type::F32 && type != Type::U32 && type != Type::S32)
    t.unsupported("this type of result");
  if (vector != (type == Type::F16x2 ? 1 : 0)) t.unsupported("this number of results");
  d.integer_coordinates = coordinate_type == Type::S32;
  if (coordinate_type != Type::F32 && (coordinate_type != Type::S32 || cube || gathers))
    t.unsupported("this type of coordinates");

  const ptx::Operand* results = &t.operand(0);
  if (results->kind == OperandKind::Pair) {
    d.resident = t.predicate_destination(t.part(*results, 1));
    results = &t.part(*results, 0);
  }
  const uint32_t elements = type == Type::F16x2 ? 2 : 4;
  for (uint32_t e = 0; e < elements; ++e) d.destinations[e] = t.destination(t.part(*results, e), type);

  const ptx::Operand& address = t.operand(1);
  if (address.kind != OperandKind::Address || address.part_count < 2 || address.part_count > 3)
    t.unsupported("an operand of this form");
  d.texture = take_reference(t, address);
  if (address.part_count == 3) d.sampler = take_reference(t, t.part(address, 1));
  const ptx::Operand& at = t.part(address, address.part_count - 1);
  const uint32_t first = is_layered(d.geometry) ? 1 : 0;
  if (first) d.layer = t.source(element(t, at, 0), Type::U32);
  for (uint32_t k = 0; k < count; ++k)
    d.coordinates[k] = t.source(element(t, at, first + k), coordinate_type);

  uint32_t next = 2;
  if (d.level_from == FetchDetail::Level::Given)
    d.level = t.source(next++, d.integer_coordinates ? Type::S32 : Type::F32);
  if (d.level_from == FetchDetail::Level::Gradients) {
    if (cube) t.unsupported("derivatives of directions");
    for (auto& gradient : d.gradients) {
      const ptx::Operand& o = t.operand(next++);
      for (uint32_t k = 0; k < count; ++k) gradient[k] = t.source(element(t, o, k), Type::F32);
    }
  }
  if (next < t.operand_count() && t.operand(next).kind == OperandKind::Vector) {
    if (cube) t.unsupported("offsets of directions");
    const ptx::Operand& o = t.operand(next++);
    for (uint32_t k = 0; k < count; ++k) d.offsets[k] = t.source(element(t, o, k), Type::S32);
  }
  if (next < t.operand_count()) t.unsupported("depth comparison: PTX does not say which comparison it is");
  t.emit(run_fetch);
  t.detail<FetchDetail>() = d;
}

// --- queries ---------------------------------------------------------------------------------------------

/// The numbering of OpenCL, to which PTX refers.
uint32_t channel_type_code(const TextureDescriptor& d) {
  if (d.channel == Channel::Float) return d.channel_bytes == 2 ? 0x10dd : 0x10de;
  const bool is_signed = d.channel == Channel::Signed;
  if (d.normalized_float) return (is_signed ? 0x10d0 : 0x10d2) + (d.channel_bytes == 2);
  return (is_signed ? 0x10d7 : 0x10da) + (d.channel_bytes == 1 ? 0 : d.channel_bytes == 2 ? 1 : 2);
}
uint32_t channel_order_code(const TextureDescriptor& d) {
  static constexpr uint32_t codes[] = {0x10b0, 0x10b2, 0x10b4, 0x10b5};
  return codes[d.channels - 1];
}

enum class Query : uint8_t {
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

struct QueryDetail : Detail {
  Reference reference;
  Kind kind = Kind::Texture;
  Query query = Query::Width;
  Place level = place::none;
  Place destination = place::none;
};

uint32_t answer(const TextureDescriptor& d, Query query, uint32_t level) {
  const bool has_level = level < d.level_count;
  const TextureLevel& l = d.levels[has_level ? level : 0];
  switch (query) {
    case Query::Width:
      return has_level ? l.width : 0;
    case Query::Height:
      return has_level && d.dimensions() > 1 ? l.height : 0;
    case Query::Depth:
      return has_level && d.geometry == Geometry::D3 ? l.layers : 0;
    case Query::ArraySize:
      return !is_layered(d.geometry) ? 0 : d.cube() ? l.layers / 6 : l.layers;
    case Query::ChannelType:
      return channel_type_code(d);
    case Query::ChannelOrder:
      return channel_order_code(d);
    case Query::Normalized:
      return d.normalized;
    case Query::Levels:
      return d.mipmapped ? d.level_count : 0;
    case Query::Samples:
      return 0;
    case Query::ForceUnnormalized:
      return d.sampler.force_unnormalized;
    case Query::Filter:
      return static_cast<uint32_t>(d.sampler.filter);
    case Query::Addressing0:
    case Query::Addressing1:
    case Query::Addressing2:
      return static_cast<uint32_t>(
          d.sampler.addressing[static_cast<uint32_t>(query) - static_cast<uint32_t>(Query::Addressing0)]);
    case Query::MemoryLayout:
      return d.linear_memory;
  }
  return 0;
}

void run_query(Context& c, const Op& op) {
  const auto& d = op.details<QueryDetail>();
  Descriptors descriptors(c, d.reference, d.kind);
  uint32_t* to = c.lanes<uint32_t>(d.destination);
  each_lane(c, [&](int i) {
    const uint32_t level = d.level == place::none ? 0 : c.lanes<const uint32_t>(d.level)[i];
    to[i] = answer(descriptors.of(i), d.query, level);
  });
}

void translate_query(Translation& t, bool surface) {
  QueryDetail d;
  d.kind = surface ? Kind::Surface : Kind::Texture;
  const bool has_level = !surface && t.take("level");
  const int query =
      t.take_one_of({"width", "height", "depth", "array_size", "channel_data_type", "channel_order",
                     "normalized_coords", "num_mipmap_levels", "num_samples", "force_unnormalized_coords",
                     "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "memory_layout"});
  if (query < 0) t.unsupported("this property");
  d.query = static_cast<Query>(query);
  if (d.query >= Query::ForceUnnormalized && d.query <= Query::Addressing2) d.kind = Kind::Sampler;
  if (surface ? d.query >= Query::Normalized && d.query != Query::MemoryLayout
              : d.query == Query::MemoryLayout)
    t.unsupported("this property");
  if (t.take_type() != Type::B32) t.unsupported("this type");
  d.destination = t.destination(0, Type::B32);
  d.reference = take_reference(t, t.operand(1));
  if (has_level) d.level = t.source(2, Type::U32);
  t.emit(run_query);
  t.detail<QueryDetail>() = d;
}

struct TypeQueryDetail : Detail {
  Kind kind = Kind::Texture;
  Place address = place::none;
  Place destination = place::none;
};

void run_type_query(Context& c, const Op& op) {
  const auto& d = op.details<TypeQueryDetail>();
  uint32_t holds = 0;
  const auto* addresses = c.lanes<const uint64_t>(d.address);
  record_access(c, AccessSpace::Global, addresses);
  each_lane(c, [&](int i) {
    const TextureDescriptor* descriptor = descriptor_at(c, addresses[i]);
    if (descriptor && descriptor->kind == d.kind) holds |= 1u << i;
  });
  write_predicate(c, d.destination, holds);
}

void translate_type_query(Translation& t) {
  TypeQueryDetail d;
  const int kind = t.take_one_of({"texref", "samplerref", "surfref"});
  if (kind < 0) t.unsupported("this type");
  d.kind = static_cast<Kind>(kind);
  d.destination = t.predicate_destination(t.operand(0));
  d.address = t.source(1, Type::U64);
  t.emit(run_type_query);
  t.detail<TypeQueryDetail>() = d;
}

// --- surfaces --------------------------------------------------------------------------------------------

/// What happens outside of a surface.
enum class Outside : uint8_t { Trap, Clamp, Zero };

struct SurfaceDetail : Detail {
  Reference surface;
  Geometry geometry = Geometry::D1;
  Outside outside = Outside::Trap;
  bool formatted = false;  ///< coordinates count texels, values are converted
  Type type = Type::B32;
  uint32_t elements = 1;
  Place layer = place::none;
  std::array<Place, 3> coordinates{place::none, place::none, place::none};
  std::array<Place, most_elements> places{};
  bool wide = false;  ///< 64-bit registers
};

/// Device address of what a lane accesses; 0: nothing.
uint64_t surface_address(Context& c, const SurfaceDetail& d, const TextureDescriptor& s, uint32_t bytes,
                         int lane) {
  // Faces of cubes are layers to surfaces.
  const bool layered = is_layered(d.geometry);
  const bool fits = s.geometry == d.geometry || (d.geometry == Geometry::A2d && s.cube());
  if (!fits)
    throw Fault("invalid surface",
                std::string("the surface is .") + name(s.geometry) + ", the instruction accesses one of ." +
                    name(d.geometry),
                lane);
  const TextureLevel& level = s.levels[0];
  const auto coordinate = [&](uint32_t k) {
    return d.coordinates[k] == place::none
               ? int64_t{0}
               : int64_t{static_cast<int32_t>(c.lanes<const uint32_t>(d.coordinates[k])[lane])};
  };
  const int64_t scale = d.formatted ? s.texel_bytes() : 1;
  std::array<int64_t, 3> at{coordinate(0) * scale, coordinate(1), coordinate(2)};
  if (layered) at[2] = c.lanes<const uint32_t>(d.layer)[lane];
  const std::array<int64_t, 3> last{int64_t{level.width} * s.texel_bytes() - bytes, int64_t{level.height} - 1,
                                    int64_t{level.layers} - 1};
  if (at[0] % bytes) {
    Fault fault("misaligned address",
                "surface access of " + std::to_string(bytes) + " bytes at byte " + std::to_string(at[0]) +
                    " of a row",
                lane);
    throw fault;
  }
  if (last[0] < 0)
    throw Fault("invalid surface",
                "an access of " + std::to_string(bytes) + " bytes to a surface whose rows have " +
                    std::to_string(last[0] + bytes),
                lane);
  for (uint32_t k = 0; k < 3; ++k) {
    if (at[k] >= 0 && at[k] <= last[k]) continue;
    if (d.outside == Outside::Zero) return 0;
    if (d.outside == Outside::Trap)
      throw Fault(
          "illegal address",
          "surface access of " + std::to_string(bytes) + " bytes at byte " + std::to_string(at[0]) +
              (s.dimensions() > 1 ? ", row " + std::to_string(at[1]) : std::string()) +
              (level.layers > 1 ? ", layer " + std::to_string(at[2]) : std::string()) + "; it has rows of " +
              std::to_string(last[0] + bytes) + " bytes" +
              (s.dimensions() > 1 ? ", " + std::to_string(level.height) + " of them" : std::string()) +
              (level.layers > 1 ? ", " + std::to_string(level.layers) + " layers" : std::string()),
          lane);
    at[k] = std::clamp<int64_t>(at[k], 0, last[k]);
  }
  at[0] -= at[0] % bytes;
  return level.address + static_cast<uint64_t>(at[2]) * level.slice +
         static_cast<uint64_t>(at[1]) * level.pitch + static_cast<uint64_t>(at[0]);
}

void surface_addresses(Context& c, const SurfaceDetail& d, Descriptors& surfaces, uint64_t* out) {
  std::fill_n(out, warp_lanes, 0);
  each_lane(c, [&](int i) {
    const TextureDescriptor& s = surfaces.of(i);
    const uint32_t bytes = d.formatted ? s.texel_bytes() : std::max(1u, ptx::bytes(d.type)) * d.elements;
    out[i] = surface_address(c, d, s, bytes, i);
  });
  record_touched(c, out);
}

void run_surface_load(Context& c, const Op& op) {
  const auto& d = op.details<SurfaceDetail>();
  Descriptors surfaces(c, d.surface, Kind::Surface);
  alignas(64) uint64_t address[warp_lanes];
  surface_addresses(c, d, surfaces, address);
  const uint32_t bytes = std::max(1u, ptx::bytes(d.type));
  each_lane(c, [&](int i) {
    const std::byte* at = address[i] ? c.global(address[i], bytes * d.elements, i) : nullptr;
    for (uint32_t e = 0; e < d.elements; ++e) {
      uint64_t value = 0;
      if (at) std::memcpy(&value, at + e * bytes, bytes);
      if (d.wide)
        c.lanes<uint64_t>(d.places[e])[i] = value;
      else
        c.lanes<uint32_t>(d.places[e])[i] = static_cast<uint32_t>(value);
    }
  });
}

/// A value of 32 bits in the format of a surface's channel; integers saturate.
uint32_t formatted(const TextureDescriptor& s, uint32_t value) {
  if (s.channel_bytes == 4) return value;
  if (s.channel == Channel::Float) return half_bits(value);
  const uint32_t bits = 8 * s.channel_bytes;
  if (s.channel == Channel::Unsigned) return std::min(value, (1u << bits) - 1);
  const int32_t most = (1 << (bits - 1)) - 1;
  return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(value), -most - 1, most));
}

void run_surface_store(Context& c, const Op& op) {
  const auto& d = op.details<SurfaceDetail>();
  Descriptors surfaces(c, d.surface, Kind::Surface);
  alignas(64) uint64_t address[warp_lanes];
  surface_addresses(c, d, surfaces, address);
  each_lane(c, [&](int i) {
    if (!address[i]) return;
    if (d.formatted) {
      const TextureDescriptor& s = surfaces.of(i);
      std::byte* at = c.global(address[i], s.texel_bytes(), i);
      for (uint32_t e = 0; e < s.channels; ++e) {
        const uint32_t value = e < d.elements ? formatted(s, c.lanes<const uint32_t>(d.places[e])[i]) : 0;
        std::memcpy(at + e * s.channel_bytes, &value, s.channel_bytes);
      }
      return;
    }
    const uint32_t bytes = std::max(1u, ptx::bytes(d.type));
    std::byte* at = c.global(address[i], bytes * d.elements, i);
    for (uint32_t e = 0; e < d.elements; ++e) {
      const uint64_t value =
          d.wide ? c.lanes<const uint64_t>(d.places[e])[i] : c.lanes<const uint32_t>(d.places[e])[i];
      std::memcpy(at + e * bytes, &value, bytes);
    }
  });
}

/// One lane after the other; CTAs that other host threads execute may reduce at the same place.
template <class F>
void reduce_at(Context& c, const uint64_t* address, const Lane<typename F::Value>* values) {
  using T = typename F::Value;
  each_lane(c, [&](int i) {
    if (!address[i]) return;
    auto& memory = *reinterpret_cast<T*>(c.global(address[i], sizeof(T), i));
    const T value = from_lane<T>(values[i]);
    if (!c.concurrent) {
      memory = F::apply(memory, value);
      return;
    }
    std::atomic_ref<T> shared(memory);
    T old = shared.load(std::memory_order_relaxed);
    while (!shared.compare_exchange_weak(old, F::apply(old, value), std::memory_order_relaxed)) {
    }
  });
}

template <class F>
void perform_reduction(Context& c, DeferredAccess& access) {
  alignas(64) Lane<typename F::Value> values[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i)
    values[i] = static_cast<Lane<typename F::Value>>(access.value[0][i]);
  reduce_at<F>(c, access.address.data(), values);
}

template <class F>
void run_surface_reduction(Context& c, const Op& op) {
  using L = Lane<typename F::Value>;
  const auto& d = op.details<SurfaceDetail>();
  Descriptors surfaces(c, d.surface, Kind::Surface);
  alignas(64) uint64_t address[warp_lanes];
  if (d.formatted)
    each_lane(c, [&](int i) {
      const TextureDescriptor& s = surfaces.of(i);
      if (s.texel_bytes() != sizeof(typename F::Value) || s.channel == Channel::Float)
        throw Fault("invalid surface",
                    "a reduction of " + std::to_string(8 * sizeof(typename F::Value)) +
                        "-bit integers on texels of another format",
                    i);
    });
  surface_addresses(c, d, surfaces, address);
  const L* values = c.lanes<const L>(d.places[0]);
  uint32_t inside = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) inside |= uint32_t{address[i] != 0} << i;
  if (!c.deferred) return reduce_at<F>(c, address, values);
  if (!(inside & c.mask)) return;
  DeferredAccess& access = defer(c, op, inside & c.mask, address, perform_reduction<F>);
  for (uint32_t i = 0; i < warp_lanes; ++i) access.value[0][i] = values[i];
}

/// .b32 of formatted reductions is signed or unsigned by the surface's format.
template <template <class> class Operation, class Signed>
void run_formatted_reduction(Context& c, const Op& op) {
  Descriptors surfaces(c, op.details<SurfaceDetail>().surface, Kind::Surface);
  if (surfaces.of(c.first_lane()).channel == Channel::Signed)
    run_surface_reduction<Operation<Signed>>(c, op);
  else
    run_surface_reduction<Operation<std::make_unsigned_t<Signed>>>(c, op);
}

template <template <class> class Operation>
Handler reduction_of(Type type, bool formatted) {
  if (formatted)
    return ptx::bytes(type) == 8 ? run_formatted_reduction<Operation, int64_t>
                                 : run_formatted_reduction<Operation, int32_t>;
  switch (type) {
    case Type::U32:
    case Type::B32:
      return run_surface_reduction<Operation<uint32_t>>;
    case Type::S32:
      return run_surface_reduction<Operation<int32_t>>;
    case Type::U64:
      return run_surface_reduction<Operation<uint64_t>>;
    case Type::S64:
      return run_surface_reduction<Operation<int64_t>>;
    default:
      return nullptr;
  }
}

/// What the three instructions have in common; `address` and `value` are numbers of operands.
SurfaceDetail take_surface(Translation& t, uint32_t address, uint32_t value, bool loads) {
  SurfaceDetail d;
  d.geometry = take_geometry(t);
  if (d.geometry >= Geometry::Cube) t.unsupported("this geometry");
  t.take_one_of({"ca", "cg", "cs", "cv", "wb", "wt"});
  d.formatted = !loads && t.take("p");
  if (!d.formatted && !t.take("b")) t.unsupported("it is neither .b nor .p");
  const int vector = t.take_one_of({"v2", "v4"});
  d.elements = vector < 0 ? 1 : 2u << vector;
  d.type = t.take_type();
  const int outside = t.take_one_of({"trap", "clamp", "zero"});
  if (outside < 0) t.unsupported("what it does outside of the surface is missing");
  d.outside = static_cast<Outside>(outside);
  const uint32_t bytes = std::max(1u, ptx::bytes(d.type));
  if (bytes * d.elements > 16) t.unsupported("an access of more than 16 bytes");

  const ptx::Operand& operand = t.operand(address);
  if (operand.kind != OperandKind::Address || operand.part_count != 2)
    t.unsupported("an operand of this form");
  d.surface = take_reference(t, operand);
  const ptx::Operand& at = t.part(operand, 1);
  const uint32_t first = is_layered(d.geometry) ? 1 : 0;
  if (first) d.layer = t.source(element(t, at, 0), Type::U32);
  for (uint32_t k = 0; k < coordinate_count(d.geometry); ++k)
    d.coordinates[k] = t.source(element(t, at, first + k), Type::S32);

  const ptx::Operand& values = t.operand(value);
  for (uint32_t e = 0; e < d.elements; ++e) {
    const ptx::Operand& o = element(t, values, e);
    uint32_t size = 0;
    d.places[e] = loads ? t.destination_of_any_size(o, d.type, size) : t.source_of_any_size(o, d.type, size);
    if (size < bytes) t.unsupported("a register that is narrower than the access");
    if (e > 0 && d.wide != (size == 8)) t.unsupported("registers of several sizes");
    d.wide = size == 8;
  }
  return d;
}

void translate_surface_load(Translation& t) {
  const SurfaceDetail d = take_surface(t, 1, 0, true);
  t.emit(run_surface_load);
  t.detail<SurfaceDetail>() = d;
}

void translate_surface_store(Translation& t) {
  const SurfaceDetail d = take_surface(t, 0, 1, false);
  if (d.formatted && (d.wide || ptx::bytes(d.type) != 4)) t.unsupported("this type");
  t.emit(run_surface_store);
  t.detail<SurfaceDetail>() = d;
}

void translate_surface_reduction(Translation& t) {
  const int operation = t.take_one_of({"add", "min", "max", "and", "or"});
  const SurfaceDetail d = take_surface(t, 0, 1, false);
  if (is_layered(d.geometry) || d.elements != 1) t.unsupported("this geometry");
  Handler handler = nullptr;
  switch (operation) {
    case 0:
      handler = reduction_of<reduction::Add>(d.type, d.formatted);
      break;
    case 1:
      handler = reduction_of<reduction::Min>(d.type, d.formatted);
      break;
    case 2:
      handler = reduction_of<reduction::Max>(d.type, d.formatted);
      break;
    case 3:
      handler = reduction_of<reduction::And>(d.type, d.formatted);
      break;
    case 4:
      handler = reduction_of<reduction::Or>(d.type, d.formatted);
      break;
    default:
      break;
  }
  const uint32_t bytes = ptx::bytes(d.type);
  if (!handler || (bytes != 4 && bytes != 8) || d.wide != (bytes == 8))
    t.unsupported("this operation on this type");
  t.emit(handler, Control::Deferred);
  t.detail<SurfaceDetail>() = d;
}

}  // namespace

void translate_istypep(Translation& t) {
  translate_type_query(t);
}
void translate_suld(Translation& t) {
  translate_surface_load(t);
}
void translate_sust(Translation& t) {
  translate_surface_store(t);
}
void translate_sured(Translation& t) {
  translate_surface_reduction(t);
}

void translate_tex(Translation& t) {
  translate_fetch(t, false);
}
void translate_tld4(Translation& t) {
  translate_fetch(t, true);
}
void translate_txq(Translation& t) {
  translate_query(t, false);
}
void translate_suq(Translation& t) {
  translate_query(t, true);
}

}  // namespace simt::functional
