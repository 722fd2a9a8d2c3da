#include "operations/tensor_copies.hpp"

#include "machine/access.hpp"
#include "operations/element_reduction.hpp"
#include "operations/mbarrier.hpp"
#include "operations/reductions.hpp"
#include "operations/tensor_map.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// The copy requested by one lane.
struct Request {
  TensorMap map;
  std::array<int64_t, 5> start{};
  std::array<int64_t, 3> offset{};
  std::array<int64_t, 4> rows{};  ///< of four_rows
  bool four_rows = false;
  uint32_t halo = 0;  ///< pixels after each column, or each 32 pixels of ::w::128
};

using Pixels = TensorMap::Pixels;
bool along_w(const TensorMap& m) {
  return m.pixels == Pixels::Row || m.pixels == Pixels::Row128;
}
constexpr uint32_t pixels_before_halo = 32;  ///< of ::w::128
constexpr uint32_t halo_bits = 11;           ///< in machine code

Request read_request(Context& c, const TensorCopy& d, uint64_t map_address, int lane) {
  Request r;
  if (map_address % 64) misaligned(map_address, 64, lane);
  r.map = TensorMap::unpacked(c.generic(map_address, TensorMap::memory_bytes, lane));
  const auto refuse = [&](const std::string& why) {
    Fault fault("invalid tensor map", why, lane);
    fault.address = map_address;
    fault.has_address = true;
    throw fault;
  };
  if (const std::string why = r.map.fault(); !why.empty()) refuse(why);
  if (r.map.rank() != d.rank)
    refuse("its rank is " + std::to_string(r.map.rank()) + ", the instruction's is " +
           std::to_string(d.rank));
  if (r.map.pixels != d.pixels) {
    constexpr const char* modes[] = {"tile", "im2col", "im2col::w", "im2col::w::128"};
    refuse(std::string("it was encoded for ") + modes[static_cast<size_t>(r.map.pixels)] +
           " mode, the instruction is of " + modes[static_cast<size_t>(d.pixels)] + " mode");
  }
  const auto coordinate = [&](uint32_t k) {
    return static_cast<int32_t>(c.lanes<const uint32_t>(d.coordinates[k])[lane]);
  };
  for (uint32_t k = 0; k < d.rank; ++k) r.start[k] = coordinate(k);
  r.four_rows = d.four_rows;
  if (d.four_rows) {
    if (r.map.count(1) != 1)
      refuse("its box has " + std::to_string(r.map.count(1)) +
             " rows; for four rows of a tensor, expected 1");
    for (uint32_t k = 0; k < r.rows.size(); ++k) r.rows[k] = coordinate(k + 1);
  }
  if (along_w(r.map)) {
    uint32_t both[2];  // halo, offset
    for (uint32_t k = 0; k < 2; ++k)
      both[k] = d.packed != place::none ? c.lanes<const uint32_t>(d.packed)[lane] >> (k ? halo_bits : 0)
                                        : static_cast<uint16_t>(c.lanes<const uint32_t>(d.offsets[k])[lane]);
    if (d.packed != place::none) {
      both[0] &= (1u << halo_bits) - 1;
      both[1] &= 31;
    }
    const uint32_t most_halo = r.map.pixels == Pixels::Row ? 512 : 32;
    if (both[0] >= most_halo || both[1] >= 32)
      refuse("the instruction has a halo of " + std::to_string(both[0]) + " and an offset of " +
             std::to_string(both[1]) + ", expected less than " + std::to_string(most_halo) + " and 32");
    r.halo = both[0];
    r.offset[0] = both[1];
    return r;
  }
  const uint32_t offsets = d.pixels == Pixels::All ? d.rank - 2 : 0;
  for (uint32_t k = 0; k < offsets; ++k) {
    if (d.packed != place::none) {
      const uint32_t bits = 16 / offsets;
      r.offset[k] = c.lanes<const uint32_t>(d.packed)[lane] >> k * bits & ((1u << bits) - 1);
    } else if (d.offsets[k] != place::none) {
      r.offset[k] = static_cast<uint16_t>(c.lanes<const uint32_t>(d.offsets[k])[lane]);
    }
  }
  return r;
}

uint32_t rows_of(const Request& r) {
  if (r.four_rows) return static_cast<uint32_t>(r.rows.size());
  if (r.map.pixels == Pixels::Row128) return r.map.column() + r.map.column() / pixels_before_halo * r.halo;
  if (r.map.im2col()) return r.map.column() + r.halo;
  uint32_t rows = 1;
  for (uint32_t d = 1; d < r.map.rank(); ++d) rows *= r.map.count(d);
  return rows;
}

/// The pixels of im2col::w and ::w::128: along W, then along W of the next image. Halos are the pixels that
/// follow along W. Throws Fault where they leave the bounding box.
template <class Row>
void each_pixel_along_w(const Request& r, Row row) {
  const TensorMap& m = r.map;
  const uint32_t last = m.rank() - 1;
  const int64_t first_w = m.lower[0] + r.offset[0],
                last_w = static_cast<int64_t>(m.dim(1)) - 1 + m.upper[0] + r.offset[0];
  std::array<int64_t, 5> at = r.start;
  at[1] += r.offset[0];
  uint32_t n = 0;
  const auto pixel = [&](int64_t w) {
    bool inside = true;
    uint64_t address = m.address;
    for (uint32_t d = 1; d <= last; ++d) {
      const int64_t x = d == 1 ? w : at[d];
      inside &= x >= 0 && x < static_cast<int64_t>(m.dim(d));
      address += static_cast<uint64_t>(x) * m.strides[d - 1];
    }
    row(n++, inside ? address : 0);
  };
  const uint32_t group = m.pixels == Pixels::Row128 ? pixels_before_halo : m.column();
  for (uint32_t i = 0; i < m.column(); ++i) {
    pixel(at[1]);
    if ((i + 1) % group == 0)
      for (uint32_t k = 1; k <= r.halo; ++k) {
        const int64_t w = at[1] + int64_t{k} * m.element_strides[1];
        if (w > last_w)
          throw Fault(
              "invalid tensor map",
              "a halo of im2col::w beyond the bounding box: which pixels it has is in no public text");
        pixel(w);
      }
    at[1] += m.element_strides[1];
    if (at[1] <= last_w) continue;
    at[1] = first_w;
    ++at[last];
  }
}

/// Calls row(number, address) for each row of the box, in the order of shared memory. `address` is that of
/// coordinate 0 in the innermost dimension; 0 if the row is outside the tensor.
template <class Row>
void each_row(const Request& r, Row row) {
  const TensorMap& m = r.map;
  if (along_w(m)) return each_pixel_along_w(r, row);
  const uint32_t rank = m.rank();
  std::array<int64_t, 5> at = r.start;
  std::array<uint32_t, 5> step{};
  if (m.im2col())
    for (uint32_t d = 1; d + 1 < rank; ++d) at[d] += r.offset[d - 1];
  const uint32_t rows = rows_of(r);
  for (uint32_t n = 0; n < rows; ++n) {
    if (r.four_rows) at[1] = r.rows[n];
    bool inside = true;
    uint64_t address = m.address;
    for (uint32_t d = 1; d < rank; ++d) {
      inside &= at[d] >= 0 && at[d] < static_cast<int64_t>(m.dim(d));
      address += static_cast<uint64_t>(at[d]) * m.strides[d - 1];
    }
    row(n, inside ? address : 0);
    for (uint32_t d = 1; d < rank; ++d) {
      at[d] += m.element_strides[d];
      if (!m.im2col()) {
        if (++step[d] < m.count(d)) break;
        step[d] = 0;
        at[d] = r.start[d];
      } else if (d + 1 < rank) {
        // Pixels traverse the bounding box, then continue in the next image.
        const int64_t offset = r.offset[d - 1];
        if (at[d] < static_cast<int64_t>(m.dim(d)) + m.upper[d - 1] + offset) break;
        at[d] = m.lower[d - 1] + offset;
      }
    }
  }
}

/// The part of a row inside the tensor, in elements of the box.
struct Part {
  uint32_t begin = 0, end = 0;
};
Part inside_of_row(const Request& r) {
  const auto size = static_cast<int64_t>(r.map.dim(0)), start = r.start[0];
  const auto clip = [&](int64_t x) { return static_cast<uint32_t>(std::clamp<int64_t>(x, 0, r.map.box[0])); };
  return {clip(-start), std::max(clip(-start), clip(size - start))};
}

/// Converts f32 elements in transit, depending on their type, as the hardware does.
void convert(TensorMap::Element element, std::byte* row, uint32_t bytes) {
  using Element = TensorMap::Element;
  const bool flushes = element == Element::F32Ftz || element == Element::TF32Ftz;
  const bool rounds = element == Element::TF32 || element == Element::TF32Ftz;
  if (!flushes && !rounds) return;
  for (uint32_t k = 0; k < bytes; k += 4) {
    uint32_t bits;
    std::memcpy(&bits, row + k, 4);
    if (flushes) bits = std::bit_cast<uint32_t>(reduction::flushed(std::bit_cast<float>(bits)));
    // To nearest, ties away from zero, as cvt.rna.tf32.f32.
    if (rounds && (bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & 0xffffe000;
    std::memcpy(row + k, &bits, 4);
  }
}

void fill(const TensorMap& m, std::byte* to, uint32_t bytes) {
  std::memset(to, 0, bytes);
  if (m.fill != TensorMap::Fill::Nan) return;
  const uint32_t size = m.element_bits() / 8;
  const uint64_t nan = size == 2 ? 0x7fff : size == 4 ? 0x7fffffff : 0x7fffffffffffffff;
  for (uint32_t k = 0; k < bytes; k += size) std::memcpy(to + k, &nan, size);
}

/// A box in one CTA's shared memory.
class SharedBox {
 public:
  SharedBox(Context& c, const Request& r, uint64_t address, int lane)
      : map_(r.map), offset_(address & window::own_shared) {
    if (address % 128) misaligned(address, 128, lane);
    const uint64_t bytes = uint64_t{map_.pitch()} * (rows_of(r) - 1) + map_.shared_row_bytes();
    base_ = c.shared(address, bytes, lane);
    // Swizzling permutes bytes within spans of the pitch.
    if (map_.swizzle != TensorMap::Swizzle::None)
      c.shared(address, uint64_t{map_.pitch()} * rows_of(r), lane);
  }
  /// Calls f(host address, offset in the row, bytes) for each contiguous piece. Offsets are those of the row
  /// in global memory.
  template <class F>
  void each_piece(uint32_t row, uint32_t begin, uint32_t end, F f) const {
    if (!map_.padded()) {
      each_piece_between(row, begin, end, f);
      return;
    }
    const uint32_t group = 2 * map_.element_bits();  // bytes of 16 elements
    for (uint32_t at = begin; at < end;) {
      const uint32_t bytes = std::min(end - at, group - at % group), gaps = at / group * (16 - group);
      each_piece_between(row, at + gaps, at + gaps + bytes,
                         [&](auto* to, uint32_t k, uint32_t count) { f(to, k - gaps, count); });
      at += bytes;
    }
  }

 private:
  /// The same, with offsets of the row in shared memory.
  template <class F>
  void each_piece_between(uint32_t row, uint32_t begin, uint32_t end, F f) const {
    const uint64_t start = offset_ + uint64_t{row} * map_.pitch();
    if (map_.swizzle == TensorMap::Swizzle::None) {
      if (begin < end) f(base_ + (start - offset_) + begin, begin, end - begin);
      return;
    }
    for (uint32_t at = begin; at < end;) {
      const uint32_t bytes = std::min(end, (at | (map_.piece() - 1)) + 1) - at;
      f(base_ + (map_.swizzled(start + at) - offset_), at, bytes);
      at += bytes;
    }
  }

  const TensorMap& map_;
  uint64_t offset_;
  std::byte* base_;
};

constexpr uint32_t max_row_bytes = 256 * 8;

void load_box(Context& c, const Request& r, uint64_t address, int lane) {
  const SharedBox box(c, r, address, lane);
  const Part part = inside_of_row(r);
  const uint32_t bytes = r.map.row_bytes();
  const uint32_t first = static_cast<uint32_t>(r.map.bytes_of(part.begin)),
                 inside = static_cast<uint32_t>(r.map.bytes_of(part.end - part.begin));
  std::byte row[max_row_bytes];
  each_row(r, [&](uint32_t n, uint64_t from) {
    if (from == 0 || part.begin == part.end) {
      fill(r.map, row, bytes);
    } else {
      const uint64_t at = from + static_cast<uint64_t>(r.map.bytes_of(r.start[0] + part.begin));
      fill(r.map, row, first);
      std::memcpy(row + first, c.global(at, inside, lane), inside);
      convert(r.map.element, row + first, inside);
      fill(r.map, row + first + inside, bytes - first - inside);
    }
    box.each_piece(n, 0, bytes,
                   [&](std::byte* to, uint32_t k, uint32_t count) { std::memcpy(to, row + k, count); });
  });
}

void store_box(Context& c, const Request& r, uint64_t address, const ElementReduction& reduction, int lane) {
  const SharedBox box(c, r, address, lane);
  const Part part = inside_of_row(r);
  if (part.begin == part.end) return;
  if (r.map.atomicity == TensorMap::Atomicity::B32Flip8)
    throw Fault("invalid tensor map", "a swizzle that exchanges 8 bytes is one of loads only", lane);
  if (r.map.element == TensorMap::Element::B4x16Padded)
    throw Fault("invalid tensor map", "padded elements of 4 bits are loaded only", lane);
  const uint32_t first = static_cast<uint32_t>(r.map.bytes_of(part.begin)),
                 inside = static_cast<uint32_t>(r.map.bytes_of(part.end - part.begin));
  each_row(r, [&](uint32_t n, uint64_t to) {
    if (to == 0) return;
    std::byte* at =
        c.global(to + static_cast<uint64_t>(r.map.bytes_of(r.start[0] + part.begin)), inside, lane);
    box.each_piece(n, first, first + inside, [&](const std::byte* from, uint32_t k, uint32_t count) {
      if (reduction.combine)
        reduction.combine(at + (k - first), from, count * 8 / r.map.element_bits());
      else
        std::memcpy(at + (k - first), from, count);
    });
  });
}

/// Address of the first element of the box that is inside the tensor.
uint64_t first_address(const Request& r) {
  const TensorMap& m = r.map;
  uint64_t address = m.address;
  for (uint32_t d = 0; d < m.rank(); ++d) {
    int64_t at = r.start[d];
    if (m.im2col() && d > 0 && d + 1 < m.rank()) at += r.offset[d - 1];
    at = std::clamp<int64_t>(at, 0, static_cast<int64_t>(m.dim(d)) - 1);
    address += d ? static_cast<uint64_t>(at) * m.strides[d - 1] : static_cast<uint64_t>(m.bytes_of(at));
  }
  return address;
}

/// The rows of the box as far as they are inside the tensor; as one part where they follow each other.
void record_rows(AccessRecord& record, const Request& r) {
  std::vector<uint64_t>& rows = record.bulk_parts;
  rows.clear();
  record.bulk = true;
  record.bulk_bytes = 0;
  const Part part = inside_of_row(r);
  if (part.begin == part.end) return;
  const auto inside = static_cast<uint32_t>(r.map.bytes_of(part.end - part.begin));
  bool contiguous = true;
  each_row(r, [&](uint32_t, uint64_t from) {
    if (from == 0) return;
    const uint64_t at = from + static_cast<uint64_t>(r.map.bytes_of(r.start[0] + part.begin));
    contiguous &= rows.empty() || at == rows.back() + inside;
    rows.push_back(at);
  });
  record.bulk_bytes = static_cast<uint32_t>(rows.size()) * inside;
  if (contiguous && !rows.empty()) rows.resize(1);
}

/// Tells the observer what a copy reads and writes.
void observe_box(Context& c, const Request& r, uint64_t shared, bool loads, int lane) {
  AccessRecord rows;
  record_rows(rows, r);
  const uint32_t parts = static_cast<uint32_t>(rows.bulk_parts.size());
  for (const uint64_t at : rows.bulk_parts) c.observer->touches(c, at, rows.bulk_bytes / parts, lane, !loads);
  c.observer->touches(c, shared + window::shared, rows_of(r) * r.map.shared_row_bytes(), lane, loads);
}

void run_tensor(Context& c, const Op& op) {
  const auto& d = op.details<TensorCopy>();
  uint64_t maps[warp_lanes], shared[warp_lanes] = {}, mbarrier[warp_lanes] = {}, global[warp_lanes] = {};
  lane_addresses(c, d.map, maps);
  const bool signals = d.move == TensorCopy::Move::Load;
  if (d.move != TensorCopy::Move::Prefetch) lane_addresses(c, d.shared, shared);
  if (signals) lane_addresses(c, d.mbarrier, mbarrier);
  const int first = c.first_lane();
  if (c.record) {
    each_lane(c, [&](int i) { global[i] = first_address(read_request(c, d, maps[i], i)); });
    record_rows(*c.record, read_request(c, d, maps[first], first));
    c.record->mbarrier = signals ? mbarrier[first] + window::shared : 0;
    record_access(c, AccessSpace::Global, global);
  }
  each_lane(c, [&](int i) {
    const Request r = read_request(c, d, maps[i], i);
    const int64_t bytes = int64_t{rows_of(r)} * r.map.row_bytes();
    ElementReduction reduction;
    switch (d.move) {
      case TensorCopy::Move::Prefetch:
        break;
      case TensorCopy::Move::Reduce:
        reduction = element_reduction(d.operation, r.map.type());
        if (!reduction.combine)
          throw Fault("invalid tensor map", "its element type has no such reduction", i);
        [[fallthrough]];
      case TensorCopy::Move::Store:
        if (c.observer) observe_box(c, r, shared[i], false, i);
        store_box(c, r, shared[i], reduction, i);
        break;
      case TensorCopy::Move::Load: {
        const auto load_into = [&](uint64_t address, uint64_t signal) {
          if (c.observer) observe_box(c, r, address, true, i);
          load_box(c, r, address, i);
          Mbarrier(c, AccessSpace::Shared, signal, i).expect(-bytes);
        };
        if (!d.multicast) {
          load_into(shared[i], mbarrier[i]);
          break;
        }
        const uint32_t ctas = d.packed != place::none ? c.lanes<const uint32_t>(d.packed)[i] >> 16
                                                      : c.lanes<const uint32_t>(d.cta_mask)[i] & 0xffff;
        for (uint32_t rest = ctas; rest; rest &= rest - 1) {
          const auto rank = static_cast<uint32_t>(std::countr_zero(rest));
          const uint64_t owner =
              c.is_own(mbarrier[i]) ? c.cta->rank() : (mbarrier[i] >> window::rank_shift) - c.first_rank;
          load_into(c.in_cta(shared[i], rank),
                    c.in_cta(mbarrier[i], d.pair ? (rank & ~1u) | static_cast<uint32_t>(owner & 1) : rank));
        }
        break;
      }
    }
  });
}

}  // namespace

Handler tensor_copy_handler() {
  return run_tensor;
}

}  // namespace simt::functional
