// Element formats of arrays and textures.
#pragma once

#include "runtime.hpp"

namespace runtime {

struct ElementFormat {
  CUarray_format format;
  unsigned int channels;
};

cudaError_t driver_format(const cudaChannelFormatDesc& channels, ElementFormat* result);
cudaError_t runtime_format(const ElementFormat& format, cudaChannelFormatDesc* result);
// Bytes per channel; 0 for formats without simple elements.
size_t format_bytes(CUarray_format format);

}  // namespace runtime
