#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.hpp"
#include "operations/tensor_map.hpp"
#include "operations/texture.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

void bind_tensor_maps(nb::module_& m) {
  m.def(
      "encode_tensor_map",
      [](uint32_t type, uint64_t address, std::vector<uint64_t> dims, std::vector<uint64_t> strides,
         std::vector<uint32_t> box, std::vector<uint32_t> element_strides, uint32_t interleave,
         uint32_t swizzle, uint32_t fill,
         std::optional<std::pair<std::vector<int32_t>, std::vector<int32_t>>> corners, bool along_w,
         bool of_128) {
        TensorMapParameters p;
        p.element = type;
        p.address = address;
        p.dims = std::move(dims);
        p.strides = std::move(strides);
        p.box = std::move(box);
        p.element_strides = std::move(element_strides);
        p.interleave = interleave;
        p.swizzle = swizzle;
        p.fill = fill;
        using Pixels = TensorMap::Pixels;
        if (corners) p.pixels = !along_w ? Pixels::All : of_128 ? Pixels::Row128 : Pixels::Row;
        if (corners) {
          p.lower = std::move(corners->first);
          p.upper = std::move(corners->second);
        }
        try {
          const auto map = encode_tensor_map(p).packed();
          return nb::bytes(reinterpret_cast<const char*>(map.data()), map.size());
        } catch (const std::invalid_argument& e) {
          throw nb::value_error(e.what());
        }
      },
      "type"_a, "address"_a, "dims"_a, "strides"_a, "box"_a, "element_strides"_a, "interleave"_a = 0,
      "swizzle"_a = 0, "fill"_a = 0, "corners"_a = nb::none(), "along_w"_a = false, "of_128"_a = false,
      "The 128 bytes of a tensor map, from what cuTensorMapEncodeTiled takes, in its order and numbering: "
      "dims and box in elements, strides in bytes, the innermost dimension first. With `corners`, the lower "
      "and upper ones, as cuTensorMapEncodeIm2col; box is then (channels per pixel, pixels per column). With "
      "`along_w`, as cuTensorMapEncodeIm2colWide, with corners along W alone; of_128: in its mode W128. "
      "Raises ValueError.");
}

void bind_textures(nb::module_& m) {
  m.def(
      "encode_texture",
      [](const std::string& kind, const simt::python::TextureFields& fields) {
        const auto choice = [](const std::string& value, std::initializer_list<const char*> names) {
          const auto it = std::find(names.begin(), names.end(), value);
          if (it == names.end()) throw nb::value_error(("unknown: " + value).c_str());
          return static_cast<uint8_t>(it - names.begin());
        };
        const auto text = [&](const char* key) { return nb::cast<std::string>(fields[key]); };
        TextureDescriptor d;
        d.bound = true;
        d.kind = static_cast<TextureDescriptor::Kind>(choice(kind, {"texture", "sampler", "surface"}));
        if (fields.contains("levels")) {
          d.geometry = static_cast<TextureDescriptor::Geometry>(
              choice(text("geometry"), {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"}));
          d.channel = static_cast<TextureDescriptor::Channel>(
              choice(text("channel"), {"unsigned", "signed", "float"}));
          d.channels = nb::cast<uint8_t>(fields["channels"]);
          d.channel_bytes = nb::cast<uint8_t>(fields["channel_bytes"]);
          d.linear_memory = nb::cast<bool>(fields["linear_memory"]);
          d.normalized_float = nb::cast<bool>(fields["normalized_float"]);
          d.srgb = nb::cast<bool>(fields["srgb"]);
          d.mipmapped = nb::cast<bool>(fields["mipmapped"]);
          using Level = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, uint32_t>;
          const auto levels = nb::cast<std::vector<Level>>(fields["levels"]);
          if (levels.empty() || levels.size() > d.levels.size())
            throw nb::value_error((std::to_string(levels.size()) + " levels").c_str());
          d.level_count = static_cast<uint8_t>(levels.size());
          for (size_t k = 0; k < levels.size(); ++k) {
            TextureLevel& l = d.levels[k];
            std::tie(l.address, l.pitch, l.slice, l.width, l.height, l.layers) = levels[k];
          }
        }
        if (fields.contains("filter")) {
          d.normalized = nb::cast<bool>(fields["normalized"]);
          d.sampler.force_unnormalized =
              d.kind == TextureDescriptor::Kind::Sampler && nb::cast<bool>(fields["force_unnormalized"]);
          d.sampler.filter = static_cast<Sampler::Filter>(choice(text("filter"), {"point", "linear"}));
          d.sampler.level_filter =
              static_cast<Sampler::Filter>(choice(text("level_filter"), {"point", "linear"}));
          const auto modes = nb::cast<std::array<std::string, 3>>(fields["address"]);
          for (size_t k = 0; k < modes.size(); ++k)
            d.sampler.addressing[k] = static_cast<Sampler::Addressing>(
                choice(modes[k], {"wrap", "mirror", "clamp_ogl", "clamp", "border"}));
          d.sampler.border = nb::cast<std::array<float, 4>>(fields["border"]);
          d.sampler.level_bias = nb::cast<float>(fields["level_bias"]);
          d.sampler.least_level = nb::cast<float>(fields["least_level"]);
          d.sampler.most_level = nb::cast<float>(fields["most_level"]);
        }
        if (const std::string why = d.fault(); !why.empty()) throw nb::value_error(why.c_str());
        return nb::bytes(reinterpret_cast<const char*>(&d), sizeof d);
      },
      "kind"_a, "fields"_a,
      "What a texture, sampler or surface handle points to, for src/simt/gpu/texture.py. levels: (address, "
      "bytes from row to row, bytes from layer to layer, width, height, layers or depth). Raises "
      "ValueError.");
}
