#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "machine/context.hpp"
#include "ptx/module.hpp"

/// Textures, samplers and surfaces: their descriptors, and how texels are addressed, decoded and filtered.
namespace simt::functional {

/// How a texture is read: the fields of PTX's samplers, in its numbering, and those CUDA adds.
struct Sampler {
  enum class Filter : uint8_t { Nearest, Linear };
  enum class Addressing : uint8_t { Wrap, Mirror, ClampOgl, ClampToEdge, ClampToBorder };

  Filter filter = Filter::Nearest;
  Filter level_filter = Filter::Nearest;
  std::array<Addressing, 3> addressing{Addressing::ClampToEdge, Addressing::ClampToEdge,
                                       Addressing::ClampToEdge};
  bool force_unnormalized = false;
  std::array<float, 4> border{};  ///< the value outside the texture under ClampToBorder
  float level_bias = 0, least_level = 0, most_level = 1000;
};

/// Texels in device memory, row by row; only rows may be padded.
struct TextureLevel {
  uint64_t address = 0;
  uint64_t pitch = 0, slice = 0;               ///< bytes between rows, between layers
  uint32_t width = 1, height = 1, layers = 1;  ///< texels; layers: array layers, cube faces, or depth
};

/// The target of a 64-bit handle, or of a .texref, .samplerref or .surfref variable. It is at the start of an
/// allocation in device memory.
struct TextureDescriptor {
  /// Pair: of machine code, which has one handle for a texture and a sampler of its own.
  enum class Kind : uint8_t { Texture, Sampler, Surface, Pair };
  enum class Geometry : uint8_t { D1, D2, D3, A1d, A2d, Cube, Acube };
  enum class Channel : uint8_t { Unsigned, Signed, Float };
  static constexpr uint64_t expected_magic = 0x6572757478657473;
  static constexpr uint32_t most_levels = 16;

  uint64_t magic = expected_magic;
  Kind kind = Kind::Texture;
  bool bound = false;  ///< false for a variable to which nothing is bound
  Geometry geometry = Geometry::D1;
  Channel channel = Channel::Float;
  uint8_t channels = 1, channel_bytes = 4;
  bool linear_memory = false;     ///< as for tex1Dfetch: reads outside return zero
  bool normalized = false;        ///< coordinates range from 0 to 1
  bool normalized_float = false;  ///< integers are read as numbers in [0, 1] or [-1, 1]
  bool srgb = false;              ///< 8-bit colours, except alpha, are decoded from sRGB
  uint8_t level_count = 1;
  bool mipmapped = false;
  Sampler sampler;
  std::array<uint64_t, 2> pair{};  ///< of a pair: where the descriptors of its texture and its sampler are
  std::array<TextureLevel, most_levels> levels{};

  uint32_t texel_bytes() const { return uint32_t{channels} * channel_bytes; }
  /// Whether fetches return integers.
  bool integer() const { return channel != Channel::Float && !normalized_float; }
  bool layered() const { return geometry >= Geometry::A1d; }
  bool cube() const { return geometry >= Geometry::Cube; }
  /// Number of coordinates within a layer or face.
  uint32_t dimensions() const;
  /// Why the descriptor cannot be used; empty if it can.
  std::string fault() const;
};
const char* name(TextureDescriptor::Geometry geometry);  ///< as PTX writes it

/// The initial value of a .texref, .samplerref or .surfref variable. Throws std::invalid_argument if its
/// initialiser is not supported.
TextureDescriptor initial_descriptor(const ptx::Variable& variable);

/// The descriptor at an address; nullptr if there is none.
const TextureDescriptor* descriptor_at(Context& context, uint64_t address);
/// The address of a descriptor, of which the lower half is given; that half if there is none. Device memory
/// has few descriptors, so it is unique in practice: the first of several is found.
uint64_t descriptor_address(Context& context, uint32_t lower_half);
/// The descriptor of the given kind at an address, checked for use. Throws Fault for `lane`.
const TextureDescriptor& find_descriptor(Context& context, uint64_t address, TextureDescriptor::Kind kind,
                                         int lane);

/// Where a lane reads a texture.
struct TextureCoordinates {
  std::array<float, 3> at{};        ///< for cubes: the direction
  std::array<int32_t, 3> texel{};   ///< used instead of `at` if `integer`
  std::array<int32_t, 3> offset{};  ///< texels
  uint32_t layer = 0;               ///< for arrays; a cube is one layer
  bool integer = false;
  float level = 0;
  bool has_level = false;  ///< otherwise the base level
};

/// What a fetch returns: four 32-bit integers or f32 numbers.
struct Texel {
  std::array<uint32_t, 4> bits{};
  /// Device address of the first texel read, the one with the lowest coordinates; 0 if it is outside.
  uint64_t address = 0;
};

/// Reads one texel, or a weighted mean of up to 16. Coordinates are scaled exactly. Linear filtering rounds
/// them to multiples of 1/256 of a texel, so weights have 8 fractional bits; the weighted sum is computed in
/// double precision and rounded once. Throws Fault for `lane` if texels are not in memory. Sources: CUDA C++
/// Programming Guide, "Texture Fetching"; Direct3D 11.3 functional specification, 7.18.8.
Texel sample(Context& context, const TextureDescriptor& texture, const Sampler& sampler,
             const TextureCoordinates& coordinates, int lane);
/// One component of the four texels that bilinear filtering would combine: lower left, lower right, upper
/// right, upper left, where y points down.
Texel gather(Context& context, const TextureDescriptor& texture, const Sampler& sampler,
             const TextureCoordinates& coordinates, uint32_t component, int lane);

/// The level of detail for the given derivatives of the coordinates: the base-2 logarithm of the longer of
/// the two vectors, in texels of the base level.
float level_of_gradients(const TextureDescriptor& texture, const Sampler& sampler,
                         const std::array<float, 3>& x, const std::array<float, 3>& y);

}  // namespace simt::functional
