#include <cmath>
#include <cstdint>
#include <cstring>

#include "check.hpp"

// Texture and surface objects and references of all kinds of resources, against values computed here.

namespace {

const char* const ptx = R"(
.version 8.0
.target sm_70
.address_size 64
.global .texref bound;
.global .surfref drawn;
.visible .entry read_1d(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.f32 %x, [%c];
  tex.1d.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%x}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_2d(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %y, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v2.f32 {%x, %y}, [%c];
  tex.2d.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%x, %y}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_level(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %y, %l, %z, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v4.f32 {%x, %y, %l, %z}, [%c];
  tex.level.2d.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%x, %y}], %l;
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_3d(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %y, %z, %w, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v4.f32 {%x, %y, %z, %w}, [%c];
  tex.3d.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%x, %y, %z, %z}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_cube(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %y, %z, %w, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v4.f32 {%x, %y, %z, %w}, [%c];
  tex.cube.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%x, %y, %z, %w}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_layers(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n, %l; .reg .f32 %x, %y, %z, %w, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v4.f32 {%x, %y, %z, %w}, [%c];
  cvt.rzi.u32.f32 %l, %z; mov.b32 %z, %l;
  tex.a2d.v4.f32.f32 {%a, %b, %g, %d}, [%t, {%l, %x, %y, %y}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry read_integers(.param .u64 t, .param .u64 coordinates, .param .u64 out) {
  .reg .b64 %t, %c, %o, %i; .reg .b32 %n, %x, %a, %b, %g, %d;
  ld.param.u64 %t, [t]; ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %o, %o, %i;
  tex.1d.v4.u32.s32 {%a, %b, %g, %d}, [%t, {%n}];
  st.global.v4.u32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry double_surface(.param .u64 s, .param .u32 width) {
  .reg .b64 %s; .reg .b32 %n, %w, %x, %y, %v;
  ld.param.u64 %s, [s]; ld.param.u32 %w, [width];
  mov.u32 %n, %tid.x; rem.u32 %x, %n, %w; div.u32 %y, %n, %w; shl.b32 %x, %x, 2;
  suld.b.2d.b32.trap {%v}, [%s, {%x, %y}];
  shl.b32 %v, %v, 1;
  sust.b.2d.b32.trap [%s, {%x, %y}], {%v};
  ret; }
.visible .entry read_bound(.param .u64 coordinates, .param .u64 out) {
  .reg .b64 %c, %o, %i; .reg .b32 %n; .reg .f32 %x, %y, %a, %b, %g, %d;
  ld.param.u64 %c, [coordinates]; ld.param.u64 %o, [out];
  mov.u32 %n, %tid.x; mul.wide.u32 %i, %n, 16; add.u64 %c, %c, %i; add.u64 %o, %o, %i;
  ld.global.v2.f32 {%x, %y}, [%c];
  tex.2d.v4.f32.f32 {%a, %b, %g, %d}, [bound, {%x, %y}];
  st.global.v4.f32 [%o], {%a, %b, %g, %d};
  ret; }
.visible .entry draw(.param .u32 value) {
  .reg .b32 %n, %v;
  ld.param.u32 %v, [value]; mov.u32 %n, %tid.x; shl.b32 %n, %n, 2;
  sust.b.1d.b32.trap [drawn, {%n}], {%v};
  ret; }
)";

struct Float4 {
  float x = 0, y = 0, z = 0, w = 0;
};

CUmodule module;

/// What a kernel reads at these coordinates.
std::vector<Float4> read(const char* kernel, CUtexObject texture, const std::vector<Float4>& at) {
  const CUdeviceptr coordinates = upload(at), out = upload(std::vector<Float4>(at.size()));
  launch(function(module, kernel), static_cast<unsigned>(at.size()), texture, coordinates, out);
  const auto result = download<Float4>(out, at.size());
  OK(cuMemFree(coordinates));
  OK(cuMemFree(out));
  return result;
}

float read_one(const char* kernel, CUtexObject texture, Float4 at) {
  return read(kernel, texture, {at})[0].x;
}

bool near(float a, float b) {
  return std::fabs(a - b) < 1e-5f;
}

CUarray make_array(CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth,
                   unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = width;
  d.Height = height;
  d.Depth = depth;
  d.Format = format;
  d.NumChannels = channels;
  d.Flags = flags;
  CUarray array;
  OK(cuArray3DCreate(&array, &d));
  return array;
}

/// Copies dense rows of `row` bytes into an array or out of it.
void copy(CUarray array, void* host, size_t row, size_t height, size_t depth, bool out = false) {
  CUDA_MEMCPY3D c{};
  (out ? c.srcMemoryType : c.dstMemoryType) = CU_MEMORYTYPE_ARRAY;
  (out ? c.dstMemoryType : c.srcMemoryType) = CU_MEMORYTYPE_HOST;
  (out ? c.srcArray : c.dstArray) = array;
  if (out)
    c.dstHost = host;
  else
    c.srcHost = host;
  (out ? c.dstPitch : c.srcPitch) = row;
  (out ? c.dstHeight : c.srcHeight) = height;
  c.WidthInBytes = row;
  c.Height = height;
  c.Depth = depth;
  OK(cuMemcpy3D(&c));
}

CUDA_RESOURCE_DESC resource_of(CUarray array) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = array;
  return r;
}

CUDA_TEXTURE_DESC sampling_of(CUaddress_mode mode, CUfilter_mode filter, unsigned flags) {
  CUDA_TEXTURE_DESC t{};
  for (CUaddress_mode& m : t.addressMode) m = mode;
  t.filterMode = filter;
  t.flags = flags;
  t.maxMipmapLevelClamp = 100;
  return t;
}

CUtexObject make_texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling,
                         const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUtexObject texture;
  OK(cuTexObjectCreate(&texture, &resource, &sampling, view));
  return texture;
}

constexpr auto point = CU_TR_FILTER_MODE_POINT, linear = CU_TR_FILTER_MODE_LINEAR;
constexpr auto wrap = CU_TR_ADDRESS_MODE_WRAP, clamp = CU_TR_ADDRESS_MODE_CLAMP,
               mirror = CU_TR_ADDRESS_MODE_MIRROR, border = CU_TR_ADDRESS_MODE_BORDER;

void modes_and_filters() {
  constexpr int width = 5, height = 3;  // rows that are not whole multiples of the array's pitch
  std::vector<float> texels(width * height);
  for (size_t k = 0; k < texels.size(); ++k) texels[k] = static_cast<float>(k * k);
  CUarray array = make_array(CU_AD_FORMAT_FLOAT, 1, width, height, 0);
  copy(array, texels.data(), width * 4, height, 1);
  const auto at = [&](int x, int y) { return texels[static_cast<size_t>(y * width + x)]; };
  const CUDA_RESOURCE_DESC resource = resource_of(array);

  std::vector<Float4> all;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      all.push_back({static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f});
  CUtexObject texture = make_texture(resource, sampling_of(clamp, point, 0));
  const auto found = read("read_2d", texture, all);
  for (size_t k = 0; k < texels.size(); ++k) CHECK(found[k].x == texels[k] && found[k].w == 1);
  CHECK(read_one("read_2d", texture, {-7, 99}) == at(0, 2));
  CUDA_RESOURCE_DESC same{};
  OK(cuTexObjectGetResourceDesc(&same, texture));
  CHECK(same.resType == CU_RESOURCE_TYPE_ARRAY && same.res.array.hArray == array);
  CUDA_RESOURCE_VIEW_DESC none{};
  RETURNS(cuTexObjectGetResourceViewDesc(&none, texture), CUDA_ERROR_INVALID_VALUE);
  OK(cuTexObjectDestroy(texture));
  RETURNS(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);

  texture = make_texture(resource, sampling_of(clamp, linear, 0));
  CHECK(near(read_one("read_2d", texture, {2, 1}), (at(1, 0) + at(2, 0) + at(1, 1) + at(2, 1)) / 4));
  CUDA_TEXTURE_DESC sampling = sampling_of(border, point, 0);
  sampling.borderColor[0] = -3;
  texture = make_texture(resource, sampling);
  CHECK(read_one("read_2d", texture, {5.5f, 0}) == -3 &&
        read_one("read_2d", texture, {4.5f, 0.5f}) == at(4, 0));
  texture = make_texture(resource, sampling_of(wrap, point, CU_TRSF_NORMALIZED_COORDINATES));
  CHECK(read_one("read_2d", texture, {1.3f, 0.5f}) == at(1, 1));
  texture = make_texture(resource, sampling_of(mirror, point, CU_TRSF_NORMALIZED_COORDINATES));
  CHECK(read_one("read_2d", texture, {1.1f, 0.1f}) == at(4, 0));
  CUDA_TEXTURE_DESC asked{};
  OK(cuTexObjectGetTextureDesc(&asked, texture));
  CHECK(asked.addressMode[1] == mirror && asked.flags == CU_TRSF_NORMALIZED_COORDINATES);
}

void formats() {
  std::vector<uint8_t> bytes{0, 51, 102, 255, 255, 0, 188, 128};
  CUarray array = make_array(CU_AD_FORMAT_UNSIGNED_INT8, 4, 2, 0, 0);
  OK(cuMemcpyHtoA(array, 0, bytes.data(), bytes.size()));
  CUtexObject texture = make_texture(resource_of(array), sampling_of(clamp, point, 0));
  auto texel = read("read_1d", texture, {{0.5f}})[0];
  CHECK(texel.x == 0 && near(texel.y, 0.2f) && near(texel.z, 0.4f) && texel.w == 1);
  texture = make_texture(resource_of(array), sampling_of(clamp, point, CU_TRSF_SRGB));
  texel = read("read_1d", texture, {{1.5f}})[0];
  const float curve = std::pow((188.0f / 255 + 0.055f) / 1.055f, 2.4f);
  CHECK(texel.x == 1 && near(texel.z, curve) && near(texel.w, 128.0f / 255));
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  const CUDA_TEXTURE_DESC wrong = sampling_of(clamp, linear, CU_TRSF_READ_AS_INTEGER);
  RETURNS(cuTexObjectCreate(&texture, &resource, &wrong, nullptr), CUDA_ERROR_INVALID_VALUE);

  // As a view: the same bytes as one 32-bit integer.
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  view.width = 2;
  texture = make_texture(resource, sampling_of(clamp, point, CU_TRSF_READ_AS_INTEGER), &view);
  const auto integers = read("read_integers", texture, {{}, {}});
  uint32_t whole;
  std::memcpy(&whole, &integers[1].x, 4);
  CHECK(whole == 0x80bc00ff);
  view.width = 3;
  RETURNS(cuTexObjectCreate(&texture, &resource, &wrong, &view), CUDA_ERROR_INVALID_VALUE);

  std::vector<uint16_t> halves{0x3c00, 0xc000, 0x3800, 0x7bff};  // 1, -2, 0.5, 65504
  array = make_array(CU_AD_FORMAT_HALF, 2, 2, 0, 0);
  OK(cuMemcpyHtoA(array, 0, halves.data(), 8));
  texture = make_texture(resource_of(array), sampling_of(clamp, linear, 0));
  texel = read("read_1d", texture, {{1}})[0];
  CHECK(texel.x == 0.75f && texel.y == 32751 && texel.z == 0 && texel.w == 1);

  std::vector<int16_t> shorts{-32767, 16384};
  array = make_array(CU_AD_FORMAT_SIGNED_INT16, 1, 2, 0, 0);
  OK(cuMemcpyHtoA(array, 0, shorts.data(), 4));
  texture = make_texture(resource_of(array), sampling_of(clamp, point, 0));
  CHECK(read_one("read_1d", texture, {0.5f}) == -1);
  texture = make_texture(resource_of(array), sampling_of(clamp, point, CU_TRSF_READ_AS_INTEGER));
  int32_t value;
  std::memcpy(&value, &read("read_integers", texture, {{}})[0].x, 4);
  CHECK(value == -32767);
}

void memory() {
  std::vector<float> values{1, 2, 3, 4};
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  r.res.linear = {upload(values), CU_AD_FORMAT_FLOAT, 1, 12};
  CUtexObject texture = make_texture(r, sampling_of(clamp, point, 0));
  const auto found = read("read_integers", texture, std::vector<Float4>(4));
  CHECK(found[0].x == 1 && found[2].x == 3 && found[3].x == 0);  // the last one lies outside

  CUdeviceptr rows;
  size_t pitch;
  OK(cuMemAllocPitch(&rows, &pitch, 8, 2, 4));
  OK(cuMemcpyHtoD(rows, values.data(), 8));
  OK(cuMemcpyHtoD(rows + pitch, values.data() + 2, 8));
  r.resType = CU_RESOURCE_TYPE_PITCH2D;
  r.res.pitch2D = {rows, CU_AD_FORMAT_FLOAT, 1, 2, 2, pitch};
  texture = make_texture(r, sampling_of(clamp, linear, 0));
  CHECK(read_one("read_2d", texture, {1, 1}) == 2.5f && read_one("read_2d", texture, {9, 9}) == 4);
  r.res.pitch2D.pitchInBytes += 4;
  const CUDA_TEXTURE_DESC sampling = sampling_of(clamp, linear, 0);
  RETURNS(cuTexObjectCreate(&texture, &r, &sampling, nullptr), CUDA_ERROR_INVALID_VALUE);
  // Copies stay within arrays.
  CUarray array = make_array(CU_AD_FORMAT_FLOAT, 1, 2, 2, 0);
  RETURNS(cuMemcpyHtoA(array, 4, values.data(), 8), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemcpyHtoA(array, 4, values.data(), 4));
}

void levels_layers_and_cubes() {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = d.Height = 4;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  CUmipmappedArray mipmap;
  OK(cuMipmappedArrayCreate(&mipmap, &d, 9));  // three will do
  for (unsigned k = 0; k < 3; ++k) {
    CUarray level;
    OK(cuMipmappedArrayGetLevel(&level, mipmap, k));
    std::vector<float> texels(16, static_cast<float>(10 * k));
    copy(level, texels.data(), (4 >> k) * 4, 4 >> k, 1);
    RETURNS(cuArrayDestroy(level), CUDA_ERROR_INVALID_VALUE);
  }
  CUarray level;
  RETURNS(cuMipmappedArrayGetLevel(&level, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  r.res.mipmap.hMipmappedArray = mipmap;
  CUDA_TEXTURE_DESC sampling = sampling_of(clamp, linear, CU_TRSF_NORMALIZED_COORDINATES);
  sampling.mipmapFilterMode = linear;
  CUtexObject texture = make_texture(r, sampling);
  CHECK(read_one("read_level", texture, {0.5f, 0.5f, 1.5f}) == 15 &&
        read_one("read_level", texture, {0, 0, 7}) == 20);
  sampling.mipmapLevelBias = -1;
  texture = make_texture(r, sampling);
  CHECK(read_one("read_level", texture, {0, 0, 2}) == 10);
  CUDA_RESOURCE_VIEW_DESC view{};
  view.width = view.height = 4;
  view.firstMipmapLevel = 1;
  view.lastMipmapLevel = 2;
  sampling.mipmapLevelBias = 0;
  texture = make_texture(r, sampling, &view);
  CHECK(read_one("read_level", texture, {0, 0, 0}) == 10);
  OK(cuTexObjectDestroy(texture));
  OK(cuMipmappedArrayDestroy(mipmap));

  std::vector<float> faces(6 * 4);
  for (size_t k = 0; k < faces.size(); ++k) faces[k] = static_cast<float>(k / 4);
  CUarray array = make_array(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, CUDA_ARRAY3D_CUBEMAP);
  copy(array, faces.data(), 8, 2, 6);
  texture = make_texture(resource_of(array), sampling_of(clamp, point, 0));
  const auto sides = read("read_cube", texture, {{1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}});
  for (size_t k = 0; k < 6; ++k) CHECK(sides[k].x == static_cast<float>(k));

  array = make_array(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, CUDA_ARRAY3D_LAYERED);
  copy(array, faces.data(), 8, 2, 6);
  texture = make_texture(resource_of(array), sampling_of(clamp, linear, 0));
  CHECK(read_one("read_layers", texture, {1, 1, 4}) == 4);
  view = {};
  view.width = view.height = 2;
  view.depth = 6;
  view.firstLayer = 3;
  view.lastLayer = 4;
  texture = make_texture(resource_of(array), sampling_of(clamp, linear, 0), &view);
  CHECK(read_one("read_layers", texture, {1, 1, 0}) == 3 && read_one("read_layers", texture, {1, 1, 5}) == 4);

  array = make_array(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6);
  copy(array, faces.data(), 8, 2, 6);
  texture = make_texture(resource_of(array), sampling_of(clamp, linear, 0));
  CHECK(read_one("read_3d", texture, {1, 1, 3}) == 2.5f);
  CUDA_ARRAY3D_DESCRIPTOR uneven{2, 3, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
  RETURNS(cuArray3DCreate(&array, &uneven), CUDA_ERROR_INVALID_VALUE);
}

void surfaces() {
  constexpr unsigned width = 3, height = 4;
  std::vector<uint32_t> texels(width * height);
  for (size_t k = 0; k < texels.size(); ++k) texels[k] = static_cast<uint32_t>(k);
  CUarray array = make_array(CU_AD_FORMAT_UNSIGNED_INT32, 1, width, height, 0, CUDA_ARRAY3D_SURFACE_LDST);
  copy(array, texels.data(), width * 4, height, 1);
  const CUDA_RESOURCE_DESC resource = resource_of(array);
  CUsurfObject surface;
  OK(cuSurfObjectCreate(&surface, &resource));
  launch(function(module, "double_surface"), width * height, surface, width);
  copy(array, texels.data(), width * 4, height, 1, true);
  for (size_t k = 0; k < texels.size(); ++k) CHECK(texels[k] == 2 * k);
  CUDA_RESOURCE_DESC same{};
  OK(cuSurfObjectGetResourceDesc(&same, surface));
  CHECK(same.res.array.hArray == array);
  OK(cuSurfObjectDestroy(surface));
  OK(cuArrayDestroy(array));
}

void references() {
  CUtexref texture;
  RETURNS(cuModuleGetTexRef(&texture, module, "drawn"), CUDA_ERROR_NOT_FOUND);
  OK(cuModuleGetTexRef(&texture, module, "bound"));
  std::vector<float> texels{1, 2, 3, 4};
  CUarray array = make_array(CU_AD_FORMAT_FLOAT, 1, 2, 2, 0);
  copy(array, texels.data(), 8, 2, 1);
  OK(cuTexRefSetArray(texture, array, CU_TRSA_OVERRIDE_FORMAT));
  OK(cuTexRefSetFilterMode(texture, linear));
  OK(cuTexRefSetAddressMode(texture, 0, wrap));
  OK(cuTexRefSetFlags(texture, CU_TRSF_NORMALIZED_COORDINATES));
  const CUdeviceptr at = upload(std::vector<Float4>{{0.5f, 0.5f}, {1.25f, 0.25f}}),
                    out = upload(std::vector<Float4>(2));
  launch(function(module, "read_bound"), 2, at, out);
  const auto found = download<Float4>(out, 2);
  CHECK(found[0].x == 2.5f && found[1].x == 1);
  CUarray same;
  OK(cuTexRefGetArray(&same, texture));
  CHECK(same == array);

  CUsurfref surface;
  OK(cuModuleGetSurfRef(&surface, module, "drawn"));
  CUarray row = make_array(CU_AD_FORMAT_UNSIGNED_INT32, 1, 4, 0, 0, CUDA_ARRAY3D_SURFACE_LDST);
  OK(cuSurfRefSetArray(surface, row, 0));
  launch(function(module, "draw"), 4, 77u);
  std::vector<uint32_t> drawn(4);
  OK(cuMemcpyAtoH(drawn.data(), row, 0, 16));
  CHECK(drawn[0] == 77 && drawn[3] == 77);
}

}  // namespace

int main() {
  start();
  module = load(ptx);
  modes_and_filters();
  formats();
  memory();
  levels_layers_and_cubes();
  surfaces();
  references();
  std::puts("passed");
}
