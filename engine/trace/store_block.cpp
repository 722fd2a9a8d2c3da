#include "trace/store_block.hpp"

#include <algorithm>
#include <cstring>

namespace simt {

StoreBlock::StoreBlock(const uint8_t* bytes, size_t size, const Dim3& grid) {
  // Coded differences are read eight bytes at a time, so some bytes beyond the end must be readable.
  constexpr size_t padding = 8;
  if (size > store::max_block_bytes) ByteReader::corrupted();
  bytes_ = std::make_unique<uint8_t[]>(size + padding);
  std::memcpy(bytes_.get(), bytes, size);
  ByteReader in(bytes_.get(), bytes_.get() + size);
  const uint64_t mask_count = in.varint();
  const uint64_t cta_count = in.varint();
  const uint64_t piece_count = in.varint();
  const uint64_t path_count = in.varint();
  const uint64_t first_count = in.varint();
  uint64_t sizes[6];
  for (uint64_t& n : sizes) n = in.varint();
  ByteReader columns[6];
  for (int i = 0; i < 6; ++i) {
    const uint8_t* start = in.take(sizes[i]);
    columns[i] = {start, start + sizes[i]};
  }
  auto& [masks, ctas, pieces, paths, bases, data] = columns;
  if (in.left() != 0 || mask_count > masks.left() || cta_count > ctas.left() || piece_count > pieces.left() ||
      path_count > paths.left() || first_count > bases.left())
    ByteReader::corrupted();
  data_ = data.position();
  data_size_ = data.left();

  masks_.resize(mask_count);
  for (uint64_t& m : masks_) m = masks.varint();

  paths_.resize(path_count);
  for (Path& p : paths_) {
    p.instructions = paths.varint();
    p.first_count = static_cast<uint32_t>(paths.count());
    p.first_slots = paths.take(p.first_count);
    p.run_bytes = static_cast<uint32_t>(paths.count());
    p.runs = paths.take(p.run_bytes);
  }

  ctas_.reserve(cta_count);
  pieces_.reserve(piece_count);
  first_bases_.reserve(first_count);
  store::FirstBasePredictor predictor;
  uint64_t number = ~uint64_t{0};
  uint64_t path = 0;
  uint64_t data_at = 0;
  for (uint64_t c = 0; c < cta_count; ++c) {
    Cta cta;
    const uint64_t count = ctas.varint();
    if (count == 0 || count > piece_count - pieces_.size()) ByteReader::corrupted();
    cta.first_piece = static_cast<uint32_t>(pieces_.size());
    cta.piece_count = static_cast<uint32_t>(count);
    number += static_cast<uint64_t>(ctas.signed_varint()) + 1;
    if (number >= grid.count()) ByteReader::corrupted();
    cta.position.cta = {static_cast<uint32_t>(number % grid.x),
                        static_cast<uint32_t>(number / grid.x % grid.y),
                        static_cast<uint32_t>(number / grid.x / grid.y)};
    if (ctas.varint() != 0) {
      for (uint32_t& n : cta.position.cluster) n = static_cast<uint32_t>(ctas.varint());
      for (uint32_t& n : cta.position.cta_in_cluster) n = static_cast<uint32_t>(ctas.varint());
      cta.position.rank_in_cluster = static_cast<uint32_t>(ctas.varint());
    }
    ctas_.push_back(cta);
    predictor.begin_cta();
    uint64_t warp = ~uint64_t{0};
    for (uint64_t p = 0; p < count; ++p) {
      Piece piece;
      warp += pieces.varint() + 1;
      path += static_cast<uint64_t>(pieces.signed_varint());
      const uint64_t bytes_of_piece = pieces.varint();
      if (warp >= store::max_warps || path >= path_count || bytes_of_piece > data_size_ - data_at)
        ByteReader::corrupted();
      piece.warp = static_cast<uint32_t>(warp);
      piece.path = static_cast<uint32_t>(path);
      piece.data = data_at;
      piece.data_bytes = static_cast<uint32_t>(bytes_of_piece);
      piece.first_bases = static_cast<uint32_t>(first_bases_.size());
      data_at += bytes_of_piece;
      const Path& its_path = paths_[path];
      if (its_path.first_count > first_count - first_bases_.size()) ByteReader::corrupted();
      for (uint32_t i = 0; i < its_path.first_count; ++i) {
        const uint32_t slot = its_path.first_slots[i];
        const uint64_t base =
            predictor.predict(piece.warp, slot) + static_cast<uint64_t>(bases.signed_varint());
        predictor.update(piece.warp, slot, base);
        first_bases_.push_back(base);
      }
      pieces_.push_back(piece);
    }
  }
  if (pieces_.size() != piece_count || first_bases_.size() != first_count || data_at != data_size_ ||
      ctas.left() || pieces.left() || paths.left() || bases.left() || masks.left())
    ByteReader::corrupted();
}

const StoreBlock::Piece* StoreBlock::find(uint64_t cta, uint32_t warp) const {
  const Cta& c = ctas_[cta];
  const auto begin = pieces_.begin() + c.first_piece;
  const auto end = begin + c.piece_count;
  const auto it = std::lower_bound(begin, end, warp, [](const Piece& p, uint32_t w) { return p.warp < w; });
  return it != end && it->warp == warp ? &*it : nullptr;
}

}  // namespace simt
