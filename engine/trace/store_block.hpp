#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/byte_coding.hpp"
#include "trace/store_format.hpp"
#include "trace/trace_sink.hpp"

namespace simt {

/// One decoded block of a trace store: the pieces of warps, ready to be traversed. Immutable, so threads may
/// share it.
class StoreBlock {
 public:
  struct Piece {
    uint32_t warp = 0;
    uint32_t path = 0;
    uint64_t data = 0;  ///< start of its data
    uint32_t data_bytes = 0;
    uint32_t first_bases = 0;  ///< index of its first base
  };
  struct Path {
    uint64_t instructions = 0;
    const uint8_t* runs = nullptr;
    uint32_t run_bytes = 0;
    uint32_t first_count = 0;
    const uint8_t* first_slots = nullptr;
  };
  struct Cta {
    CtaPosition position;
    uint32_t first_piece = 0;
    uint32_t piece_count = 0;
  };

  /// Takes a block's uncompressed bytes. Throws TraceError if they are invalid.
  StoreBlock(const uint8_t* bytes, size_t size, const Dim3& grid);

  const std::vector<Cta>& ctas() const { return ctas_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<Path>& paths() const { return paths_; }
  const std::vector<uint64_t>& masks() const { return masks_; }
  const std::vector<uint64_t>& first_bases() const { return first_bases_; }
  const uint8_t* data() const { return data_; }
  uint64_t data_size() const { return data_size_; }
  /// The piece of a warp in the `cta`-th CTA of the block; null if it has none.
  const Piece* find(uint64_t cta, uint32_t warp) const;

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  std::vector<uint64_t> masks_;
  std::vector<Cta> ctas_;
  std::vector<Piece> pieces_;
  std::vector<Path> paths_;
  std::vector<uint64_t> first_bases_;
  const uint8_t* data_ = nullptr;
  uint64_t data_size_ = 0;
};

}  // namespace simt
