#pragma once
#include <cstring>

#include "machine/cta.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/observer.hpp"

namespace simt::functional {

/// A matrix in a CTA's shared memory, as defined by a descriptor of wgmma or tcgen05: tiles of 8 rows of 16
/// bytes. By default, the rows of a tile are rows of the matrix (columns for B), along k; in a transposed
/// matrix, each has a single k and extends along the rows of A or columns of B.
class SharedMatrix {
 public:
  static constexpr uint32_t rows = 8, row_bytes = 16;
  static bool is_swizzled(uint64_t descriptor) { return descriptor >> 61 != 0; }

  /// cta: whose shared memory it is.
  SharedMatrix(Context& c, Cta& cta, uint64_t descriptor, bool transposed)
      : context_(c),
        memory_(cta.shared()),
        bytes_(cta.shared_bytes()),
        own_(&cta == c.cta),
        start_(field(descriptor, 0)),
        base_(static_cast<uint32_t>(descriptor >> 49) & 7) {
    const uint32_t leading = field(descriptor, 16), stride = field(descriptor, 32);
    const auto mode = static_cast<uint32_t>(descriptor >> 61);
    wide_atoms_ = mode == 1;
    absolute_ = descriptor >> 52 & 1;
    next_ = leading;
    if (absolute_ && (mode != 2 || transposed || base_ != 0))
      throw Fault("illegal instruction",
                  "a matrix descriptor with an absolute leading dimension (bit 52), which needs 128-byte "
                  "swizzling, a K-major matrix and a base offset of 0");
    // Swizzled patterns are 32, 64 or 128 bytes wide.
    width_ = mode == 0 ? 1 : wide_atoms_ ? 8 : 16u >> mode / 2;
    row_step_ = width_ * row_bytes;
    if (!transposed) {
      inner_step_ = mode == 0 ? leading : row_bytes;
      outer_step_ = stride;
      inner_count_ = UINT32_MAX;
    } else {
      inner_step_ = row_bytes;
      inner_count_ = width_;
      wide_step_ = mode == 0 ? stride : leading;
      outer_step_ = mode == 0 ? leading : stride;
    }
    // A pattern with atoms of 32 bytes has four rows.
    pattern_rows_ = wide_atoms_ && transposed ? rows / 2 : rows;
  }

  /// Copies a tile. `outer` counts tiles across a tile's rows, `inner` along them.
  void read(uint32_t outer, uint32_t inner, std::byte* tile) const {
    const uint32_t patterns = rows / pattern_rows_;
    uint32_t along = inner % inner_count_ * inner_step_ + inner / inner_count_ * wide_step_, from = start_;
    if (absolute_ && start_ % line_bytes + along >= line_bytes) {
      along -= line_bytes - start_ % line_bytes;
      from = next_;
    }
    const uint32_t first = from + outer * patterns * outer_step_ + along;
    for (uint32_t i = 0; i < rows; ++i) {
      const uint32_t at = first + i % pattern_rows_ * row_step_ + i / pattern_rows_ * outer_step_;
      std::memcpy(tile + i * row_bytes, host(swizzled(at)), row_bytes);
    }
  }

 private:
  static constexpr uint32_t line_bytes = 128;
  /// 14 bits, in units of 16 bytes.
  static uint32_t field(uint64_t descriptor, uint32_t bit) {
    return static_cast<uint32_t>(descriptor >> bit & 0x3fff) * 16;
  }
  /// Each swizzle pattern permutes the columns of 16 bytes, or of 32, depending on the 128-byte line.
  uint32_t swizzled(uint32_t address) const {
    if (wide_atoms_) return address ^ (((address >> 7) - base_) & 3) << 5;
    return address ^ (((address >> 7) - base_) & (width_ - 1)) << 4;
  }
  const std::byte* host(uint32_t address) const {
    if (address + row_bytes > bytes_) [[unlikely]]
      beyond(address);
    if (context_.observer && own_) [[unlikely]]
      context_.observer->touches(context_, window::shared + context_.own_shared + address, row_bytes, 0,
                                 false);
    return memory_ + address;
  }
  [[noreturn]] void beyond(uint32_t address) const {
    Fault fault("illegal address", "a matrix descriptor leads to byte " + std::to_string(address) + " of " +
                                       std::to_string(bytes_) + " of shared memory");
    fault.address = window::shared + address;
    fault.has_address = true;
    throw fault;
  }

  Context& context_;
  const std::byte* memory_;
  uint32_t bytes_;
  bool own_, wide_atoms_ = false;
  bool absolute_ = false;  ///< what lies beyond a line of 128 bytes begins at `next_`
  uint32_t start_, base_, next_ = 0, width_ = 1, pattern_rows_ = rows;
  uint32_t row_step_ = 0;  ///< bytes between rows of a tile
  uint32_t inner_step_ = 0, inner_count_ = 1, wide_step_ = 0, outer_step_ = 0;
};

}  // namespace simt::functional
