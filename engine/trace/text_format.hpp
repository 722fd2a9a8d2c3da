#pragma once
#include <cstddef>
#include <cstdint>

/// Facts of the text format that more than one of its readers needs.
namespace simt {

constexpr size_t max_line_bytes = 1 << 20;  ///< far above that of real traces
constexpr uint32_t first_without_prefix =
    3;  ///< first version whose instructions do not begin with CTA and warp

}  // namespace simt
