#include "channel.hpp"

#include <iterator>

namespace runtime {
namespace {

struct Format {
  CUarray_format driver;
  cudaChannelFormatKind kind;
  int bits;
};

constexpr Format formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};

}  // namespace

size_t format_bytes(CUarray_format format) {
  for (const Format& entry : formats)
    if (entry.driver == format) return entry.bits / 8;
  return 0;
}

cudaError_t driver_format(const cudaChannelFormatDesc& channels, ElementFormat* result) {
  const int bits[] = {channels.x, channels.y, channels.z, channels.w};
  unsigned int count = 0;
  while (count < std::size(bits) && bits[count] == channels.x) ++count;
  for (unsigned int i = count; i < std::size(bits); ++i)
    if (bits[i] != 0) return cudaErrorInvalidChannelDescriptor;
  if (count == 3) return cudaErrorInvalidChannelDescriptor;
  for (const Format& entry : formats) {
    if (entry.kind != channels.f || entry.bits != channels.x) continue;
    *result = {entry.driver, count};
    return cudaSuccess;
  }
  return cudaErrorInvalidChannelDescriptor;
}

cudaError_t runtime_format(const ElementFormat& format, cudaChannelFormatDesc* result) {
  for (const Format& entry : formats) {
    if (entry.driver != format.format) continue;
    const auto bits = [&](unsigned int channel) { return channel < format.channels ? entry.bits : 0; };
    *result = {bits(0), bits(1), bits(2), bits(3), entry.kind};
    return cudaSuccess;
  }
  return cudaErrorInvalidChannelDescriptor;
}

}  // namespace runtime

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                       cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
