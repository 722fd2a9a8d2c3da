#include "operations/texture.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "machine/fault.hpp"
#include "operations/floats.hpp"

namespace simt::functional {
namespace {

using Addressing = Sampler::Addressing;
using Channel = TextureDescriptor::Channel;
using Filter = Sampler::Filter;
using Geometry = TextureDescriptor::Geometry;
using Kind = TextureDescriptor::Kind;

constexpr int64_t outside = -1;
constexpr int64_t fraction = 256;  ///< steps per texel in filtering

// Limits on descriptors, so that texel offsets cannot overflow.
constexpr uint32_t most_width = 1u << 28, most_height = 1u << 17, most_layers = 1u << 16;
constexpr uint64_t most_pitch = uint64_t{1} << 33, most_slice = uint64_t{1} << 40;

[[noreturn]] void invalid(const std::string& what, int lane) {
  throw Fault("invalid texture", what, lane);
}

bool repeats(Addressing mode) {
  return mode == Addressing::Wrap || mode == Addressing::Mirror;
}

/// The texel (of n) that index i refers to, or `outside`.
int64_t resolve(Addressing mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case Addressing::Wrap:
      return (i % n + n) % n;
    case Addressing::Mirror: {
      const int64_t p = (i % (2 * n) + 2 * n) % (2 * n);
      return p < n ? p : 2 * n - 1 - p;
    }
    case Addressing::ClampToBorder:
      return outside;
    default:
      return i < 0 ? 0 : n - 1;
  }
}

/// A coordinate in texels. Values too large for integers are reduced to others with the same texel.
double in_texels(Addressing mode, double x, int64_t n, bool normalized) {
  constexpr double limit = 0x1p40;
  const double u = normalized ? x * static_cast<double>(n) : x;
  if (std::fabs(u) <= limit) return u;
  if (u != u) return 0;
  if (!repeats(mode)) return std::copysign(limit, u);
  return std::isinf(u) ? 0 : std::fmod(u, 2 * static_cast<double>(n));
}

/// One or two texels along a dimension, and the weight of the second, in units of 1 / `fraction`.
struct Taps {
  int64_t index[2] = {0, 0};
  int64_t weight = 0;
};

Taps taps(Addressing mode, const TextureCoordinates& c, uint32_t axis, double x, int64_t n, bool linear,
          bool normalized) {
  Taps t;
  if (c.integer) {
    t.index[0] =
        resolve(repeats(mode) ? Addressing::ClampToEdge : mode, int64_t{c.texel[axis]} + c.offset[axis], n);
    return t;
  }
  const double u = in_texels(mode, x, n, normalized);
  if (!linear) {
    t.index[0] = resolve(mode, static_cast<int64_t>(std::floor(u)) + c.offset[axis], n);
    return t;
  }
  const auto fixed = static_cast<int64_t>(std::floor((u - 0.5) * static_cast<double>(fraction) + 0.5));
  const int64_t i = (fixed >> 8) + c.offset[axis];
  t.weight = fixed & (fraction - 1);
  t.index[0] = resolve(mode, i, n);
  t.index[1] = resolve(mode, i + 1, n);
  return t;
}

double from_srgb(double v) {
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

/// Inverse of the unit of which all values of a component are integer multiples: sums of these multiples are
/// exact. 1 if there is no such unit.
double whole(const TextureDescriptor& t, uint32_t component) {
  const bool is_signed = t.channel == Channel::Signed;
  if (t.channel == Channel::Float || (t.srgb && component < 3 && !is_signed)) return 1;
  return static_cast<double>((uint64_t{1} << (8 * t.channel_bytes - is_signed)) - 1);
}

/// Reads components of texels as bits or as numbers.
class Reader {
 public:
  Reader(Context& context, const TextureDescriptor& texture, const Sampler& sampler, uint32_t level, int lane)
      : texture_(texture), sampler_(sampler), level_(texture.levels[level]), bytes_(texture.texel_bytes()) {
    const uint64_t all = (level_.layers - 1) * level_.slice + (level_.height - 1) * level_.pitch +
                         uint64_t{level_.width} * bytes_;
    texels_ = context.global(level_.address, all, lane);
  }
  const TextureLevel& level() const { return level_; }
  uint64_t offset(int64_t x, int64_t y, int64_t z) const {
    return static_cast<uint64_t>(z) * level_.slice + static_cast<uint64_t>(y) * level_.pitch +
           static_cast<uint64_t>(x) * bytes_;
  }
  /// Device address of a texel; 0 if it is outside.
  uint64_t address(int64_t x, int64_t y, int64_t z) const {
    return x == outside || y == outside || z == outside ? 0 : level_.address + offset(x, y, z);
  }

  uint32_t integer(int64_t x, int64_t y, int64_t z, uint32_t component) const {
    if (component >= texture_.channels) return component == 3;
    if (x == outside || y == outside || z == outside) {
      const float colour = sampler_.border[component];
      const double border = texture_.linear_memory || colour != colour ? 0 : colour;
      if (texture_.channel == Channel::Signed)
        return static_cast<uint32_t>(static_cast<int32_t>(std::clamp(border, -0x1p31, 0x1p31 - 1)));
      return static_cast<uint32_t>(std::clamp(border, 0.0, 0x1p32 - 1));
    }
    const std::byte* at = texels_ + offset(x, y, z) + component * texture_.channel_bytes;
    const auto read = [&](auto value) {
      std::memcpy(&value, at, sizeof value);
      return static_cast<uint32_t>(value);
    };
    const bool is_signed = texture_.channel == Channel::Signed;
    switch (texture_.channel_bytes) {
      case 1:
        return is_signed ? read(int8_t{}) : read(uint8_t{});
      case 2:
        return is_signed ? read(int16_t{}) : read(uint16_t{});
      default:
        return read(uint32_t{});
    }
  }

  /// The result of an unfiltered fetch: integers, or an f32 number as stored in memory.
  uint32_t bits(int64_t x, int64_t y, int64_t z, uint32_t component) const {
    const bool inside = component < texture_.channels && x != outside && y != outside && z != outside;
    const bool exact = texture_.channel == Channel::Float && texture_.channel_bytes == 4 && inside;
    if (texture_.integer() || exact) return integer(x, y, z, component);
    const double number = multiple(x, y, z, component) / whole(texture_, component);
    return std::bit_cast<uint32_t>(static_cast<float>(number));
  }

  /// The number times `whole`.
  double multiple(int64_t x, int64_t y, int64_t z, uint32_t component) const {
    const double most = whole(texture_, component);
    if (component >= texture_.channels) return component == 3 ? most : 0;
    if (x == outside || y == outside || z == outside)
      return texture_.linear_memory ? 0 : sampler_.border[component] * most;
    const uint32_t bits = integer(x, y, z, component);
    if (texture_.channel == Channel::Float)
      return texture_.channel_bytes == 2 ? Half::widen_one(static_cast<uint16_t>(bits))
                                         : std::bit_cast<float>(bits);
    if (texture_.channel == Channel::Signed)
      return std::max(-most, static_cast<double>(static_cast<int32_t>(bits)));
    return texture_.srgb && component < 3 ? from_srgb(bits / 255.0) : bits;
  }

 private:
  const TextureDescriptor& texture_;
  const Sampler& sampler_;
  const TextureLevel& level_;
  uint32_t bytes_;
  const std::byte* texels_;
};

/// The face that a direction points to, and coordinates from 0 to 1 on it. CUDA's table does not define the
/// edges between faces; here, z takes precedence over y, and y over x, as in Direct3D.
struct Face {
  uint32_t number = 0;
  double s = 0, t = 0;
};
Face face_of(const std::array<float, 3>& direction) {
  const double x = direction[0], y = direction[1], z = direction[2];
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  Face face;
  double m, s, t;
  if (az >= ax && az >= ay) {
    face.number = z < 0 ? 5 : 4;
    m = az;
    s = z < 0 ? -x : x;
    t = -y;
  } else if (ay >= ax) {
    face.number = y < 0 ? 3 : 2;
    m = ay;
    s = x;
    t = y < 0 ? -z : z;
  } else {
    face.number = x < 0 ? 1 : 0;
    m = ax;
    s = x < 0 ? z : -z;
    t = -y;
  }
  face.s = (s / m + 1) / 2;
  face.t = (t / m + 1) / 2;
  return face;
}

/// The texels of a fetch in one level.
struct Footprint {
  std::array<Taps, 3> taps;  ///< layers and faces are an unfiltered third dimension
  uint32_t dimensions = 1;   ///< number of filtered dimensions
};

Footprint footprint(const TextureDescriptor& t, const Sampler& s, const TextureCoordinates& c,
                    const TextureLevel& level, bool linear) {
  Footprint f;
  f.dimensions = t.dimensions();
  std::array<double, 3> at{c.at[0], c.at[1], c.at[2]};
  bool normalized = t.normalized && !s.force_unnormalized;
  auto modes = s.addressing;
  if (t.linear_memory) modes.fill(Addressing::ClampToBorder);
  if (!normalized)
    for (Addressing& mode : modes)
      if (repeats(mode)) mode = Addressing::ClampToEdge;
  uint32_t layer = c.layer, layers = level.layers;
  if (t.cube()) {
    const Face face = face_of(c.at);
    at = {face.s, face.t, 0};
    normalized = true;
    modes.fill(Addressing::ClampToEdge);  // texels of other faces are not read
    layer = std::min(t.geometry == Geometry::Acube ? c.layer : 0, level.layers / 6 - 1) * 6 + face.number;
  }
  const std::array<uint32_t, 3> size{level.width, level.height, level.layers};
  for (uint32_t d = 0; d < f.dimensions; ++d)
    f.taps[d] = taps(modes[d], c, d, at[d], size[d], linear, normalized);
  if (t.layered()) f.taps[2].index[0] = std::min(layer, layers - 1);
  return f;
}

/// Calls f(x, y, z, weight) for the texels of a footprint with nonzero weight, and always for the first.
template <class F>
void each_tap(const Footprint& p, F f) {
  const auto weight = [&](uint32_t d, uint32_t k) {
    const auto w = static_cast<double>(p.taps[d].weight) / static_cast<double>(fraction);
    return k ? w : 1 - w;
  };
  const auto count = [&](uint32_t d) { return p.taps[d].weight ? 2u : 1u; };
  for (uint32_t k = 0; k < count(2); ++k)
    for (uint32_t j = 0; j < count(1); ++j)
      for (uint32_t i = 0; i < count(0); ++i)
        f(p.taps[0].index[i], p.taps[1].index[j], p.taps[2].index[k],
          weight(0, i) * weight(1, j) * weight(2, k));
}

void check_access(const TextureDescriptor& t, bool linear, int lane) {
  if (linear && t.integer())
    invalid("linear filtering of a texture whose elements are read as integers", lane);
}

}  // namespace

uint32_t TextureDescriptor::dimensions() const {
  switch (geometry) {
    case Geometry::D1:
    case Geometry::A1d:
      return 1;
    case Geometry::D3:
      return 3;
    default:
      return 2;
  }
}

std::string TextureDescriptor::fault() const {
  if (geometry > Geometry::Acube || channel > Channel::Float) return "its format is unknown";
  if (channels == 0 || channels > 4 || (channel_bytes != 1 && channel_bytes != 2 && channel_bytes != 4) ||
      (channel == Channel::Float && channel_bytes == 1))
    return "its format is unknown";
  if (level_count == 0 || level_count > most_levels)
    return "it has " + std::to_string(level_count) + " levels";
  for (uint32_t k = 0; k < level_count; ++k) {
    const TextureLevel& l = levels[k];
    if (l.width == 0 || l.height == 0 || l.layers == 0 || l.width > most_width || l.height > most_height ||
        l.layers > most_layers || l.pitch > most_pitch || l.slice > most_slice)
      return "its size is " + std::to_string(l.width) + " x " + std::to_string(l.height) + " x " +
             std::to_string(l.layers);
    if (cube() && (l.width != l.height || l.layers % 6)) return "its faces are not six squares";
  }
  for (const Addressing mode : sampler.addressing)
    if (mode > Addressing::ClampToBorder) return "its address mode is unknown";
  return {};
}

const char* name(Geometry geometry) {
  static constexpr const char* names[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
  return names[static_cast<size_t>(geometry)];
}

TextureDescriptor initial_descriptor(const ptx::Variable& variable) {
  TextureDescriptor d;
  if (variable.type == ptx::Type::Surfref) d.kind = TextureDescriptor::Kind::Surface;
  if (variable.type == ptx::Type::Samplerref) {
    d.kind = TextureDescriptor::Kind::Sampler;
    d.bound = true;
  }
  if (variable.size != ptx::bytes(variable.type)) throw std::invalid_argument("an array of references");
  for (const auto& [property, value] : variable.properties) {
    const auto refuse = [&property, &value] {
      throw std::invalid_argument(std::string(property) + " = " + std::string(value));
    };
    if (property == "filter_mode") {
      if (value != "nearest" && value != "linear") refuse();
      d.sampler.filter = value == "linear" ? Filter::Linear : Filter::Nearest;
    } else if (property == "force_unnormalized_coords" || property == "normalized_coords") {
      if (value != "0" && value != "1") refuse();
      (property[0] == 'f' ? d.sampler.force_unnormalized : d.normalized) = value == "1";
    } else if (property == "addr_mode_0" || property == "addr_mode_1" || property == "addr_mode_2") {
      Addressing& mode = d.sampler.addressing[static_cast<size_t>(property.back() - '0')];
      if (value == "wrap")
        mode = Addressing::Wrap;
      else if (value == "mirror")
        mode = Addressing::Mirror;
      else if (value == "clamp_to_edge")
        mode = Addressing::ClampToEdge;
      else if (value == "clamp_to_border")
        mode = Addressing::ClampToBorder;
      else
        refuse();
    } else {
      refuse();
    }
  }
  return d;
}

const TextureDescriptor* descriptor_at(Context& context, uint64_t address) {
  if (address % alignof(TextureDescriptor)) return nullptr;
  const std::byte* at = context.one_piece(address, sizeof(TextureDescriptor));
  const auto* d = reinterpret_cast<const TextureDescriptor*>(at);
  const bool known = d && d->magic == TextureDescriptor::expected_magic && d->kind <= Kind::Pair;
  return known ? d : nullptr;
}

uint64_t descriptor_address(Context& context, uint32_t lower_half) {
  constexpr uint64_t half = uint64_t{1} << 32;
  constexpr uint32_t named = 1u << 31;  // ptxas sets it in handles that it makes of references
  const uint64_t end = window::global + context.memory->capacity();
  for (const uint32_t handle : {lower_half, lower_half & ~named})
    for (uint64_t address = window::global + handle; address < end; address += half)
      if (descriptor_at(context, address)) return address;
  return lower_half;
}

const TextureDescriptor& find_descriptor(Context& context, uint64_t address, Kind kind, int lane) {
  static constexpr const char* kinds[] = {"texture", "sampler", "surface", "texture with a sampler"};
  const std::string wanted = kinds[static_cast<size_t>(kind)];
  const auto refuse = [&](const std::string& why) {
    char hex[19];
    std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(address));
    Fault fault("invalid " + wanted, std::string(hex) + " is no " + wanted + ": " + why, lane);
    fault.address = address;
    fault.has_address = true;
    throw fault;
  };
  const TextureDescriptor* d = descriptor_at(context, address);
  if (!d) refuse(context.memory->describe(address));
  if (d->kind == Kind::Pair && kind != Kind::Surface)
    return find_descriptor(context, d->pair[kind == Kind::Sampler], kind, lane);
  // In unified mode a texture contains its sampler.
  if (d->kind != kind && !(kind == Kind::Sampler && d->kind == Kind::Texture))
    refuse("it is a " + std::string(kinds[static_cast<size_t>(d->kind)]));
  if (!d->bound) refuse("nothing is bound: " + context.memory->describe(address));
  if (const std::string why = d->fault(); !why.empty()) refuse(why);
  return *d;
}

Texel sample(Context& context, const TextureDescriptor& t, const Sampler& s, const TextureCoordinates& c,
             int lane) {
  const bool linear = s.filter == Filter::Linear && !c.integer && !t.linear_memory;
  check_access(t, linear, lane);
  // Levels: one, or two and the weight of the second.
  uint32_t first = 0;
  double between = 0;
  if (t.level_count > 1) {
    double lod = c.has_level ? double{c.level} + s.level_bias : 0;
    lod = lod == lod ? std::clamp<double>(lod, s.least_level, std::max(s.least_level, s.most_level)) : 0;
    lod = std::clamp(lod, 0.0, t.level_count - 1.0);
    if (s.level_filter == Filter::Linear && !t.integer()) {
      const double fixed =
          std::floor(lod * static_cast<double>(fraction) + 0.5) / static_cast<double>(fraction);
      first = static_cast<uint32_t>(fixed);
      between = fixed - first;
    } else {
      first = static_cast<uint32_t>(lod + 0.5);
    }
  }
  Texel result;
  result.bits[3] = t.integer() ? 1 : std::bit_cast<uint32_t>(1.0f);
  std::array<double, 4> sum{};
  for (uint32_t k = 0; k < (between > 0 ? 2u : 1u); ++k) {
    const Reader reader(context, t, s, first + k, lane);
    const Footprint area = footprint(t, s, c, reader.level(), linear);
    const double share = k ? between : 1 - between;
    if (k == 0)
      result.address = reader.address(area.taps[0].index[0], area.taps[1].index[0], area.taps[2].index[0]);
    if (!linear && between == 0) {
      const auto& taps = area.taps;
      for (uint32_t e = 0; e < t.channels; ++e)
        result.bits[e] = reader.bits(taps[0].index[0], taps[1].index[0], taps[2].index[0], e);
      return result;
    }
    each_tap(area, [&](int64_t x, int64_t y, int64_t z, double weight) {
      for (uint32_t e = 0; e < t.channels; ++e) sum[e] += share * weight * reader.multiple(x, y, z, e);
    });
  }
  for (uint32_t e = 0; e < t.channels; ++e)
    result.bits[e] = std::bit_cast<uint32_t>(static_cast<float>(sum[e] / whole(t, e)));
  return result;
}

Texel gather(Context& context, const TextureDescriptor& t, const Sampler& s, const TextureCoordinates& c,
             uint32_t component, int lane) {
  const Reader reader(context, t, s, 0, lane);
  const Footprint area = footprint(t, s, c, reader.level(), true);
  const auto &x = area.taps[0].index, &y = area.taps[1].index;
  const int64_t z = area.taps[2].index[0];
  Texel result;
  const std::array<std::array<int64_t, 2>, 4> order{{{x[0], y[1]}, {x[1], y[1]}, {x[1], y[0]}, {x[0], y[0]}}};
  for (uint32_t e = 0; e < 4; ++e) {
    const auto [i, j] = order[e];
    result.bits[e] = reader.bits(i, j, z, component);
  }
  result.address = reader.address(x[0], y[0], z);
  return result;
}

float level_of_gradients(const TextureDescriptor& t, const Sampler& s, const std::array<float, 3>& x,
                         const std::array<float, 3>& y) {
  const TextureLevel& base = t.levels[0];
  const bool scales = t.normalized && !s.force_unnormalized;
  const std::array<double, 3> size{scales ? base.width : 1.0, scales ? base.height : 1.0,
                                   scales ? base.layers : 1.0};
  double longest = 0;
  for (const auto& gradient : {x, y}) {
    double square = 0;
    for (uint32_t d = 0; d < t.dimensions(); ++d) square += gradient[d] * size[d] * gradient[d] * size[d];
    longest = std::max(longest, square);
  }
  return static_cast<float>(std::log2(longest) / 2);
}

}  // namespace simt::functional
