#include "operations/surfaces.hpp"

#include <atomic>

#include "operations/reductions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;
using Channel = TextureDescriptor::Channel;
using Geometry = TextureDescriptor::Geometry;
using Kind = TextureDescriptor::Kind;

/// Device address of a lane's access; 0 if there is none.
uint64_t surface_address(Context& c, const SurfaceDetail& d, const TextureDescriptor& s, uint32_t bytes,
                         int lane) {
  // Surfaces treat the faces of cubes as layers.
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

/// A 32-bit value in the format of a surface's channel; integers saturate.
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

/// One lane after another, atomically: other host threads may execute CTAs that reduce at the same address.
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
  alignas(64) L joined[warp_lanes];
  const L* values = c.lanes<const L>(d.places[0]);
  if (sizeof(L) == 8 && d.pairs) {
    const uint32_t* rows = c.lanes<const uint32_t>(d.places[0]);
    for (uint32_t i = 0; i < warp_lanes; ++i)
      joined[i] = static_cast<L>(rows[i] | uint64_t{rows[i + warp_lanes]} << 32);
    values = joined;
  }
  uint32_t inside = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) inside |= uint32_t{address[i] != 0} << i;
  if (!c.deferred) return reduce_at<F>(c, address, values);
  if (!(inside & c.mask)) return;
  DeferredAccess& access = defer(c, op, inside & c.mask, address, perform_reduction<F>);
  for (uint32_t i = 0; i < warp_lanes; ++i) access.value[0][i] = values[i];
}

/// Signedness of .b32 in formatted reductions depends on the surface's format.
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

}  // namespace

Handler surface_load_handler() {
  return run_surface_load;
}
Handler surface_store_handler() {
  return run_surface_store;
}
Handler surface_reduction_handler(int operation, Type type, bool formatted) {
  switch (operation) {
    case 0:
      return reduction_of<reduction::Add>(type, formatted);
    case 1:
      return reduction_of<reduction::Min>(type, formatted);
    case 2:
      return reduction_of<reduction::Max>(type, formatted);
    case 3:
      return reduction_of<reduction::And>(type, formatted);
    case 4:
      return reduction_of<reduction::Or>(type, formatted);
    default:
      return nullptr;
  }
}

}  // namespace simt::functional
