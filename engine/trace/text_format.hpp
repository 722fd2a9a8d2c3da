#pragma once
#include <cstddef>
#include <cstdint>

/// Facts about the text format shared by its readers.
namespace simt {

constexpr size_t max_line_bytes = 1 << 20;  ///< far longer than lines in real traces
constexpr uint32_t first_without_prefix =
    3;  ///< first version whose instructions do not begin with CTA and warp

}  // namespace simt
