#include "operations/tensor_memory_moves.hpp"

#include <bit>
#include <string>

#include "isa/tensor_memory_work.hpp"
#include "operations/fragments.hpp"
#include "operations/mbarrier.hpp"
#include "operations/shared_matrix.hpp"

namespace simt::functional {
namespace {

constexpr uint32_t lanes_of_warp = 32, warps_of_lanes = TensorMemory::lane_count / lanes_of_warp;

uint32_t uniform_value(const Context& c, Place place, const char* what) {
  const uint32_t* values = c.lanes<const uint32_t>(place);
  const auto first = static_cast<uint32_t>(c.first_lane());
  for (uint32_t rest = c.mask; rest; rest &= rest - 1)
    if (values[std::countr_zero(rest)] != values[first])
      throw Fault("tensor memory", std::string(what) + " differs between lanes of the warp",
                  std::countr_zero(rest));
  return values[first];
}

/// CTAs on which an instruction works: its own, and with two also that of the rank beside it.
template <class F>
void each_cta(Context& c, uint32_t ctas, F f) {
  f(*c.cta);
  if (ctas == 2) f(peer_of(c));
}

/// Column and lane, relative to the address, of a register's word in a lane of the warp.
using Shape = TensorMoveDetail::Shape;
TensorMemory::Place word_of(const TensorMoveDetail& d, uint32_t thread, uint32_t r) {
  switch (d.shape) {
    case Shape::Lanes16x64b:
      return {thread / 4 + thread % 2 * 8, thread / 2 % 2 + r * 2};
    case Shape::Lanes16x128b:
      return {thread / 4 + r % 2 * 8, thread % 4 + r / 2 * 4};
    case Shape::Lanes16x256b:
      return {thread / 4 + r / 2 % 2 * 8, thread % 4 * 2 + r % 2 + r / 4 * 8};
    case Shape::Lanes16x32bx2:
      return {thread % 16, r};
    default:
      return {thread, r};
  }
}

uint32_t columns_of(const TensorMoveDetail& d) {
  const auto count = static_cast<uint32_t>(d.registers.size());
  const bool two =
      d.shape == Shape::Lanes16x64b || d.shape == Shape::Lanes16x128b || d.shape == Shape::Lanes16x256b;
  return count * (two ? 2 : 1) * (d.halves ? 2 : 1);
}

/// Calls f(word, the one after it, register, lane of the warp) for all that is moved.
template <class F>
void each_word(Context& c, const TensorMoveDetail& d, const char* what, F f) {
  need_whole_warp(c);
  const TensorMemory::Place at = TensorMemory::place(tensor_address(c, d.at));
  TensorMemory& memory = c.cta->tensor_memory();
  const uint32_t own = c.warp->number() % warps_of_lanes * lanes_of_warp;
  const bool whole = d.shape == Shape::Lanes32x32b;
  if (at.lane != own && (whole || at.lane != own + lanes_of_warp / 2))
    throw Fault("tensor memory", std::string(what) + " at lane " + std::to_string(at.lane) + " by warp " +
                                     std::to_string(c.warp->number()) + ", which reaches lanes " +
                                     std::to_string(own) + " to " + std::to_string(own + 31) +
                                     "; expected lane " + std::to_string(own) +
                                     (whole ? "" : " or " + std::to_string(own + lanes_of_warp / 2)));
  const uint32_t columns = columns_of(d), width = d.halves ? 2 : 1;
  memory.check(at.column, columns, what);
  const auto second = static_cast<uint32_t>(d.second_half);
  if (d.shape == Shape::Lanes16x32bx2) memory.check(at.column + second, columns, what);
  for (uint32_t r = 0; r < d.registers.size(); ++r)
    for (uint32_t thread = d.first_thread; thread < d.first_thread + d.threads; ++thread) {
      const TensorMemory::Place p = word_of(d, thread, r);
      const uint32_t part = d.shape == Shape::Lanes16x32bx2 && thread >= 16 ? second : 0;
      uint32_t* word = memory.row(at.lane + p.lane) + at.column + part + p.column * width;
      f(word, r, thread);
    }
}

/// 16 elements packed at the beginning of 16 bytes, each to a byte (PTX ISA, "Optional Decompression"): of 4
/// bits to the middle of the byte, of 6 bits to its lower bits.
void unpack(TensorCopyDetail::Unpack form, std::byte* chunk) {
  if (form == TensorCopyDetail::Unpack::None) return;
  const uint32_t bits = form == TensorCopyDetail::Unpack::Six ? 6 : 4, shift = bits == 4 ? 2 : 0;
  std::byte out[SharedMatrix::row_bytes];
  uint8_t in[SharedMatrix::row_bytes + 1] = {};
  std::memcpy(in, chunk, SharedMatrix::row_bytes);
  for (uint32_t i = 0; i < SharedMatrix::row_bytes; ++i) {
    const uint32_t bit = i * bits, two = in[bit / 8] | uint32_t{in[bit / 8 + 1]} << 8;
    out[i] = static_cast<std::byte>((two >> bit % 8 & ((1u << bits) - 1)) << shift);
  }
  std::memcpy(chunk, out, sizeof out);
}

/// What the time of a copy into tensor memory, or within it, depends on.
void record_copy(Context& c, const TensorMemoryWork& time) {
  if (!c.record) return;
  c.record->mask = c.mask;
  c.record->bulk = true;
  c.record->bulk_bytes = 0;
  c.record->mbarrier = 0;
  c.record->bulk_parts.assign(1, time.packed());
}

}  // namespace

Cta& peer_of(Context& c) {
  const std::vector<Cta*>& ctas = c.cta->cluster().ctas;
  const uint32_t rank = c.cta->rank() ^ 1;
  if (rank >= ctas.size() || !ctas[rank])
    throw Fault("tensor memory", "an instruction with .cta_group::2 in a cluster of " +
                                     std::to_string(ctas.size()) +
                                     " CTAs; the launch needs clusters with an even number of CTAs");
  return *ctas[rank];
}

uint32_t tensor_address(const Context& c, const TensorAddress& address) {
  return uniform_value(c, address.base, "an address in tensor memory") +
         static_cast<uint32_t>(address.offset);
}

TensorMemory& memory_to_allocate(Context& c, uint32_t ctas) {
  const uint32_t sm = c.grid->machine().sm_version;
  if (sm < 100 || sm >= 120)
    throw Fault("illegal instruction", "tcgen05.alloc: sm_" + std::to_string(sm) +
                                           " has no tensor memory; sm_100, sm_103 and sm_110 have");
  TensorMemory& memory = c.cta->tensor_memory();
  memory.use_group(ctas);
  if (ctas == 2) peer_of(c);
  return memory;
}

void run_tensor_allocate(Context& c, const Op& op) {
  need_whole_warp(c);
  const auto& d = op.details<TensorAllocationDetail>();
  TensorMemory& memory = memory_to_allocate(c, d.ctas);
  const uint32_t address = memory.allocate(uniform_value(c, d.columns, "the number of columns"));
  uint64_t to[warp_lanes];
  lane_addresses(c, d.to, to);
  if (to[0] % 4) misaligned(to[0], 4, 0);
  std::memcpy(host_address(c, d.space, to[0], 4, 0), &address, 4);
}

void run_tensor_free(Context& c, const Op& op) {
  need_whole_warp(c);
  TensorMemory& memory = c.cta->tensor_memory();
  memory.use_group(static_cast<uint32_t>(op.immediate));
  memory.free(uniform_value(c, op.a, "an address in tensor memory"),
              uniform_value(c, op.b, "the number of columns"));
}

void run_tensor_relinquish(Context& c, const Op& op) {
  TensorMemory& memory = c.cta->tensor_memory();
  memory.use_group(static_cast<uint32_t>(op.immediate));
  memory.relinquish();
}

void run_tensor_load(Context& c, const Op& op) {
  const auto& d = op.details<TensorMoveDetail>();
  each_word(c, d, "tcgen05.ld", [&](const uint32_t* word, uint32_t r, uint32_t thread) {
    c.lanes<uint32_t>(d.registers[r])[thread] = d.halves ? (word[0] & 0xffff) | word[1] << 16 : word[0];
  });
}

void run_tensor_store(Context& c, const Op& op) {
  const auto& d = op.details<TensorMoveDetail>();
  each_word(c, d, "tcgen05.st", [&](uint32_t* word, uint32_t r, uint32_t thread) {
    const uint32_t value = c.lanes<const uint32_t>(d.registers[r])[thread];
    word[0] = d.halves ? value & 0xffff : value;
    if (d.halves) word[1] = value >> 16;
  });
}

void run_tensor_copy(Context& c, const Op& op) {
  using Spread = TensorCopyDetail::Spread;
  const auto& d = op.details<TensorCopyDetail>();
  const TensorMemory::Place at = TensorMemory::place(tensor_address(c, d.to));
  const bool corners = d.spread == Spread::Corners;
  if (at.lane != 0 && (!corners || at.lane >= lanes_of_warp))
    throw Fault("tensor memory", "tcgen05.cp to lane " + std::to_string(at.lane) + ", expected lane 0" +
                                     (corners ? " to 31" : ""));
  const uint64_t descriptor = c.lanes<const uint64_t>(d.descriptor)[c.first_lane()];
  record_copy(c, {.ctas = d.ctas, .operand_bytes = d.rows * d.bytes});
  each_cta(c, d.ctas, [&](Cta& cta) {
    TensorMemory& memory = cta.tensor_memory();
    memory.use_group(d.ctas);
    memory.check(at.column, d.bytes / 4, "tcgen05.cp");
    const SharedMatrix matrix(c, cta, descriptor, false);
    std::byte tile[SharedMatrix::rows * SharedMatrix::row_bytes];
    for (uint32_t row = 0; row < d.rows; ++row)
      for (uint32_t chunk = 0; chunk < d.bytes / SharedMatrix::row_bytes; ++chunk) {
        if (row % SharedMatrix::rows == 0 || d.bytes > SharedMatrix::row_bytes)
          matrix.read(row / SharedMatrix::rows, chunk, tile);
        std::byte piece[SharedMatrix::row_bytes];
        std::memcpy(piece, tile + row % SharedMatrix::rows * SharedMatrix::row_bytes, sizeof piece);
        unpack(d.unpack, piece);
        const auto put = [&](uint32_t lane) {
          std::memcpy(memory.row(lane) + at.column + chunk * 4, piece, sizeof piece);
        };
        switch (d.spread) {
          case Spread::All:
            put(row);
            break;
          case Spread::Corners:
            put(at.lane + row * lanes_of_warp);
            break;
          case Spread::Pairs02_13:
            put(row);
            put(row + 64);
            break;
          case Spread::Pairs01_23:
            put(row % 32 + row / 32 * 64);
            put(row % 32 + row / 32 * 64 + 32);
            break;
          case Spread::Four:
            for (uint32_t k = 0; k < warps_of_lanes; ++k) put(row + k * lanes_of_warp);
            break;
        }
      }
  });
}

void run_tensor_shift(Context& c, const Op& op) {
  const auto& d = op.details<TensorShiftDetail>();
  const TensorMemory::Place at = TensorMemory::place(tensor_address(c, d.at));
  if (at.lane % lanes_of_warp != 0 || at.lane >= TensorMemory::lane_count)
    throw Fault("tensor memory",
                "tcgen05.shift at lane " + std::to_string(at.lane) + ", expected 0, 32, 64 or 96");
  constexpr uint32_t words = 8;
  // Moves within tensor memory read no operands from shared memory.
  record_copy(c, {.ctas = d.ctas});
  each_cta(c, d.ctas, [&](Cta& cta) {
    TensorMemory& memory = cta.tensor_memory();
    memory.use_group(d.ctas);
    memory.check(at.column, words, "tcgen05.shift");
    for (uint32_t lane = at.lane; lane < at.lane + lanes_of_warp - 1; ++lane)
      std::memcpy(memory.row(lane) + at.column, memory.row(lane + 1) + at.column, words * sizeof(uint32_t));
  });
}

void run_tensor_commit(Context& c, const Op& op) {
  const auto& d = op.details<TensorCommitDetail>();
  if (d.ctas == 2) peer_of(c);
  uint64_t mbarrier[warp_lanes];
  lane_addresses(c, d.mbarrier, mbarrier);
  const auto first = static_cast<uint32_t>(c.first_lane());
  record_access(c, d.space, mbarrier);
  if (c.record) {
    c.record->bulk = true;
    c.record->bulk_bytes = 0;
    c.record->bulk_parts.assign(1, c.record->address[first]);
    c.record->mbarrier = c.record->address[first];
  }
  each_lane(c, [&](int i) {
    if (d.cta_mask == place::none) {
      Mbarrier(c, d.space, mbarrier[i], i).arrive(1);
      return;
    }
    const uint32_t ctas = c.lanes<const uint32_t>(d.cta_mask)[i] & 0xffff;
    const uint64_t at = d.space == AccessSpace::Generic ? mbarrier[i] - window::shared : mbarrier[i];
    for (uint32_t rest = ctas; rest; rest &= rest - 1)
      Mbarrier(c, AccessSpace::Shared, c.in_cta(at, static_cast<uint32_t>(std::countr_zero(rest))), i)
          .arrive(1);
  });
}

}  // namespace simt::functional
