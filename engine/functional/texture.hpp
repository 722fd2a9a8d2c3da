#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "functional/context.hpp"
#include "ptx/module.hpp"

/// Textures, samplers and surfaces: what describes them, and how texels are found, decoded and filtered.
namespace simt::functional {

/// How a texture is read: the fields of PTX's samplers, in its numbering, and those that CUDA adds.
struct Sampler {
  enum class Filter : uint8_t { Nearest, Linear };
  enum class Addressing : uint8_t { Wrap, Mirror, ClampOgl, ClampToEdge, ClampToBorder };

  Filter filter = Filter::Nearest;
  Filter level_filter = Filter::Nearest;
  std::array<Addressing, 3> addressing{Addressing::ClampToEdge, Addressing::ClampToEdge,
                                       Addressing::ClampToEdge};
  bool force_unnormalized = false;
  std::array<float, 4> border{};  ///< what lies outside under ClampToBorder
  float level_bias = 0, least_level = 0, most_level = 1000;
};

/// Texels in device memory, row by row, without gaps but between rows.
struct TextureLevel {
  uint64_t address = 0;
  uint64_t pitch = 0, slice = 0;               ///< bytes from one row, one layer to the next
  uint32_t width = 1, height = 1, layers = 1;  ///< texels; layers: of an array, faces of cubes, or the depth
};

/// What a 64-bit handle, or a .texref, .samplerref or .surfref variable, points to. It lies at the beginning
/// of an allocation of device memory.
struct TextureDescriptor {
  enum class Kind : uint8_t { Texture, Sampler, Surface };
  enum class Geometry : uint8_t { D1, D2, D3, A1d, A2d, Cube, Acube };
  enum class Channel : uint8_t { Unsigned, Signed, Float };
  static constexpr uint64_t expected_magic = 0x6572757478657473;
  static constexpr uint32_t most_levels = 16;

  uint64_t magic = expected_magic;
  Kind kind = Kind::Texture;
  bool bound = false;  ///< a variable to which nothing was bound is not
  Geometry geometry = Geometry::D1;
  Channel channel = Channel::Float;
  uint8_t channels = 1, channel_bytes = 4;
  bool linear_memory = false;     ///< as of tex1Dfetch: what is outside is zero
  bool normalized = false;        ///< coordinates go from 0 to 1
  bool normalized_float = false;  ///< integers are read as numbers from 0 or -1 to 1
  bool srgb = false;              ///< 8-bit colours but alpha are read through the curve of sRGB
  uint8_t level_count = 1;
  bool mipmapped = false;
  Sampler sampler;
  std::array<TextureLevel, most_levels> levels{};

  uint32_t texel_bytes() const { return uint32_t{channels} * channel_bytes; }
  /// Whether fetches return integers.
  bool integer() const { return channel != Channel::Float && !normalized_float; }
  bool layered() const { return geometry >= Geometry::A1d; }
  bool cube() const { return geometry >= Geometry::Cube; }
  /// Dimensions that have coordinates within a layer or face.
  uint32_t dimensions() const;
  /// Why it cannot be used; empty if it can.
  std::string fault() const;
};
const char* name(TextureDescriptor::Geometry geometry);  ///< as PTX writes it

/// What a .texref, .samplerref or .surfref variable holds when its module is loaded. Throws
/// std::invalid_argument where its initialiser cannot be followed.
TextureDescriptor initial_descriptor(const ptx::Variable& variable);

/// The descriptor at an address; nullptr if there is none.
const TextureDescriptor* descriptor_at(Context& context, uint64_t address);
/// The descriptor of the given kind at an address, ready to be used. Throws Fault for `lane`.
const TextureDescriptor& find_descriptor(Context& context, uint64_t address, TextureDescriptor::Kind kind,
                                         int lane);

/// Where a lane reads a texture.
struct TextureCoordinates {
  std::array<float, 3> at{};        ///< of cubes: the direction
  std::array<int32_t, 3> texel{};   ///< instead of `at`, where `integer`
  std::array<int32_t, 3> offset{};  ///< texels
  uint32_t layer = 0;               ///< of arrays; a cube is one layer
  bool integer = false;
  float level = 0;
  bool has_level = false;  ///< else the base level
};

/// What a fetch returns: four 32-bit integers or f32 numbers.
struct Texel {
  std::array<uint32_t, 4> bits{};
  /// Device address of the texel that it began with, that of the lowest coordinates; 0 where that lies
  /// outside.
  uint64_t address = 0;
};

/// One texel or a mean of up to 16. Coordinates are scaled exactly. Linear filtering rounds them to
/// multiples of 1/256 of a texel, by which the weights have 8 fractional bits; the weighted sum is formed in
/// double precision and rounded once. Sources: CUDA C++ Programming Guide, "Texture Fetching"; Direct3D 11.3
/// functional specification, 7.18.8.
/// Throws Fault for `lane` where the texels are not in memory.
Texel sample(Context& context, const TextureDescriptor& texture, const Sampler& sampler,
             const TextureCoordinates& coordinates, int lane);
/// One component of the four texels that linear filtering of two dimensions would combine: lower left, lower
/// right, upper right, upper left, y growing downwards.
Texel gather(Context& context, const TextureDescriptor& texture, const Sampler& sampler,
             const TextureCoordinates& coordinates, uint32_t component, int lane);

/// The level of detail that derivatives of the coordinates ask for: the logarithm of the longer one of the
/// two vectors, in texels of the base level.
float level_of_gradients(const TextureDescriptor& texture, const Sampler& sampler,
                         const std::array<float, 3>& x, const std::array<float, 3>& y);

}  // namespace simt::functional
