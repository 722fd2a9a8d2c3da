#include "texture.hpp"

#include <algorithm>
#include <string>

// What textures and surfaces read, and how.

namespace simt::driver {
namespace {

constexpr size_t pitch_alignment = 32;  ///< CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT
constexpr unsigned texture_flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                   CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;

std::array<uint64_t, 6> level_of(const Array& a) {
  return {a.address, a.pitch, a.slice, a.descriptor.Width, a.rows(), a.layers()};
}

Image image_of_array(const Array& base) {
  Image image;
  image.geometry = base.geometry();
  image.format = base.format;
  image.channels = base.descriptor.NumChannels;
  image.levels.push_back(level_of(base));
  return image;
}

Image image_of_memory(CUdeviceptr address, CUarray_format format, unsigned channels) {
  require(address != 0 && (channels == 1 || channels == 2 || channels == 4));
  Image image;
  image.format = format_of(format);
  image.channels = channels;
  return image;
}

/// Elements as defined by a view. View formats are unsigned and signed 8-, 16- and 32-bit integers, then
/// floats, each with 1, 2 and 4 channels.
void reformat(Image& image, CUresourceViewFormat view) {
  if (view == CU_RES_VIEW_FORMAT_NONE) return;
  if (view > CU_RES_VIEW_FORMAT_FLOAT_4X32) {
    say_once("resource views of block-compressed formats are not supported");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  static constexpr Format formats[] = {{"unsigned", 1, false}, {"signed", 1, false},   {"unsigned", 2, false},
                                       {"signed", 2, false},   {"unsigned", 4, false}, {"signed", 4, false},
                                       {"float", 2, false},    {"float", 4, false}};
  const unsigned number = view - CU_RES_VIEW_FORMAT_UINT_1X8;
  const Format format = formats[number / 3];
  const unsigned channels = 1u << number % 3;
  require(format.bytes * channels == image.format.bytes * image.channels);
  image.format = format;
  image.channels = channels;
}

void take_view(Image& image, const CUDA_RESOURCE_VIEW_DESC& view, bool layered) {
  reformat(image, view.format);
  const auto& base = image.levels[0];
  require(view.width == base[3] && std::max<size_t>(1, view.height) == base[4]);
  require(view.firstMipmapLevel <= view.lastMipmapLevel && view.lastMipmapLevel < image.levels.size());
  image.levels.erase(image.levels.begin() + view.lastMipmapLevel + 1, image.levels.end());
  image.levels.erase(image.levels.begin(), image.levels.begin() + view.firstMipmapLevel);
  if (!layered) return;
  require(view.firstLayer <= view.lastLayer && view.lastLayer < base[5]);
  for (auto& level : image.levels) {
    level[0] += view.firstLayer * level[2];
    level[5] = view.lastLayer - view.firstLayer + 1;
  }
}

}  // namespace

Image image_of(const CUDA_RESOURCE_DESC& resource, const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto& r = resource.res;
  require(resource.flags == 0);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const Array& array = object_of<Array>(r.array.hArray);
      Image image = image_of_array(array);
      if (view) take_view(image, *view, array.layered());
      return image;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const auto& levels = object_of<MipmappedArray>(r.mipmap.hMipmappedArray).levels;
      Image image = image_of_array(*levels[0]);
      image.mipmapped = true;
      for (size_t k = 1; k < levels.size(); ++k) image.levels.push_back(level_of(*levels[k]));
      if (view) take_view(image, *view, levels[0]->layered());
      return image;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      require(view == nullptr);
      Image image = image_of_memory(r.linear.devPtr, r.linear.format, r.linear.numChannels);
      const uint64_t width = r.linear.sizeInBytes / (image.format.bytes * image.channels);
      require(width > 0);
      image.linear_memory = true;
      image.levels.push_back({r.linear.devPtr, r.linear.sizeInBytes, r.linear.sizeInBytes, width, 1, 1});
      return image;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      require(view == nullptr);
      const auto& p = r.pitch2D;
      Image image = image_of_memory(p.devPtr, p.format, p.numChannels);
      require(p.width > 0 && p.height > 0 && p.pitchInBytes >= p.width * image.format.bytes * image.channels);
      require(p.pitchInBytes % pitch_alignment == 0);
      image.geometry = "2d";
      image.levels.push_back({p.devPtr, p.pitchInBytes, p.pitchInBytes * p.height, p.width, p.height, 1});
      return image;
    }
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

uint64_t describe(Device& device, const Image& image, const CUDA_TEXTURE_DESC* sampling, uint64_t place) {
  CUDA_TEXTURE_DESC s{};
  if (sampling) s = *sampling;
  if (s.flags & ~texture_flags) {
    say_once("textures with flags " + std::to_string(s.flags & ~texture_flags) + " are not supported");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  if (s.maxAnisotropy > 1)
    say_once("textures are filtered alike in all directions: maxAnisotropy has no effect");
  const std::string channel = image.format.channel;
  const bool normalized_coordinates = s.flags & CU_TRSF_NORMALIZED_COORDINATES;
  const bool promoted =
      image.format.normalized ||
      (sampling && channel != "float" && image.format.bytes < 4 && !(s.flags & CU_TRSF_READ_AS_INTEGER));
  const bool linear = s.filterMode == CU_TR_FILTER_MODE_LINEAR && !image.linear_memory;
  const bool between_levels = image.mipmapped && s.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  // Integers cannot be filtered, and mipmaps require normalised coordinates.
  require(!(linear || between_levels) || channel == "float" || promoted);
  require(!sampling || !image.mipmapped || normalized_coordinates);
  for (const unsigned mode : s.addressMode) require(mode <= CU_TR_ADDRESS_MODE_BORDER);
  const bool srgb = (s.flags & CU_TRSF_SRGB) && promoted && channel == "unsigned" && image.format.bytes == 1;
  TextureRequest request{.place = place,
                         .image = {.geometry = image.geometry,
                                   .channel = channel,
                                   .channels = image.channels,
                                   .channel_bytes = image.format.bytes,
                                   .linear_memory = image.linear_memory,
                                   .normalized_float = promoted,
                                   .srgb = srgb,
                                   .mipmapped = image.mipmapped,
                                   .levels = image.levels},
                         .sampling = std::nullopt};
  if (sampling) {
    const auto& border = s.borderColor;
    request.sampling = SamplingRecord{.normalized = normalized_coordinates,
                                      .linear = linear,
                                      .between_levels = between_levels,
                                      .modes = {s.addressMode[0], s.addressMode[1], s.addressMode[2]},
                                      .border = {border[0], border[1], border[2], border[3]},
                                      .level_bias = s.mipmapLevelBias,
                                      .least_level = s.minMipmapLevelClamp,
                                      .most_level = s.maxMipmapLevelClamp};
  }
  const PlacedTexture placed = device.connection.call(request);
  if (!placed.problem.empty()) fail(CUDA_ERROR_INVALID_VALUE, placed.problem);
  require(placed.address != 0, CUDA_ERROR_OUT_OF_MEMORY);
  return placed.address;
}

}  // namespace simt::driver
