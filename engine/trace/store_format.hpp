#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "isa/raw_instruction.hpp"

/// Shared by the store's encoder and decoder. docs/trace-store.md describes the format.
namespace simt {

/// A block's entry in the store's index.
struct BlockSummary {
  uint64_t first_cta = 0;   ///< ordinal of the CTA to which the first piece belongs
  uint64_t cta_count = 0;   ///< CTAs that have a piece in the block
  uint32_t first_warp = 0;  ///< warp of the first piece
  uint32_t last_warp = 0;   ///< warp of the last piece
  uint64_t instructions = 0;
};

}  // namespace simt

namespace simt::store {

/// Instructions with addresses get a slot each, in order of first appearance; beyond this many, slots are
/// shared.
inline constexpr uint32_t max_slots = 256;

/// A block holds at most this many coded bytes (beyond it, one instruction's worth).
inline constexpr uint64_t target_block_bytes = 128 << 10;
inline constexpr uint64_t max_block_bytes = 8 << 20;

inline constexpr uint32_t max_warps = 1024;
inline constexpr uint32_t max_bulk_addresses = 1 << 16;
inline constexpr uint32_t max_lanes = 64;

/// A run is a sequence of consecutive static instructions under one mask. Low bits of its first integer:
inline constexpr uint64_t run_changes_mask = 1;
inline constexpr uint64_t run_jumps = 2;
inline constexpr int run_length_shift = 2;

/// How an execution's addresses differ from those of the slot's previous one: low two bits of its first byte.
enum class Shape : uint8_t { Same = 0, Stride = 1, Inline = 2, Reference = 3 };
inline constexpr uint8_t residual_bits = 5;     ///< of the base's residual, in the first byte
inline constexpr uint8_t residual_more = 0x80;  ///< the rest follows

/// Last addresses of one slot in one warp; both sides predict the next base from it.
struct SlotState {
  uint32_t piece = 0;  ///< 0: not used yet in this piece
  bool strided = true;
  uint8_t count = 0;  ///< addresses that `differences` codes, plus one
  uint64_t base = 0;
  int64_t step = 0;  ///< last base minus the one before
  int64_t stride = 0;
  uint64_t differences = 0;  ///< position of the coded differences in the block's data
};

/// Predicts the base of a slot's first execution in a warp from earlier warps in the block, so that bases
/// linear in the CTA and warp numbers need no storage.
class FirstBasePredictor {
 public:
  void begin_cta() { ++cta_; }

  uint64_t predict(uint32_t warp, uint32_t slot) {
    const Entry& here = entry(warp, slot);
    if (warp > 0) {
      const Entry& before = entry(warp - 1, slot);
      if (before.cta == cta_) {
        const uint64_t own_before = here.cta + 1 == cta_ ? here.base : 0;
        if (here.cta + 1 == cta_ && before.has_previous) return before.base + own_before - before.previous;
        if (warp > 1 && entry(warp - 2, slot).cta == cta_)
          return 2 * before.base - entry(warp - 2, slot).base;
        return before.base;
      }
    }
    if (here.cta != 0) return here.base + steps_[slot];
    return last_[slot];
  }

  void update(uint32_t warp, uint32_t slot, uint64_t base) {
    Entry& here = entry(warp, slot);
    here.has_previous = here.cta + 1 == cta_ && here.cta != 0;
    here.previous = here.base;
    if (here.has_previous && stepped_[slot] != cta_) {
      steps_[slot] = base - here.base;
      stepped_[slot] = cta_;
    }
    here.base = base;
    here.cta = cta_;
    last_[slot] = base;
  }

 private:
  struct Entry {
    uint64_t base = 0;
    uint64_t previous = 0;
    uint32_t cta = 0;
    bool has_previous = false;
  };

  Entry& entry(uint32_t warp, uint32_t slot) {
    if (warp >= entries_.size()) entries_.resize(warp + 1);
    auto& row = entries_[warp];
    if (slot >= row.size()) row.resize(slot + 1);
    return row[slot];
  }

  uint32_t cta_ =
      1;  ///< number of the CTA in the block, from 2 on, so that 0 means "never" and is not adjacent
  std::vector<std::vector<Entry>> entries_;  // [warp][slot]
  std::vector<uint64_t> last_ = std::vector<uint64_t>(max_slots);
  std::vector<uint64_t> steps_ = std::vector<uint64_t>(max_slots);
  std::vector<uint32_t> stepped_ = std::vector<uint32_t>(max_slots);
};

/// The slot of each static instruction, assigned as instructions appear.
class SlotMap {
 public:
  static constexpr uint16_t none = 0xffff;
  static constexpr uint16_t bulk = 0xfffe;

  void extend(const std::vector<RawInstruction>& instructions) {
    for (size_t i = slots_.size(); i < instructions.size(); ++i) {
      switch (instructions[i].addresses) {
        case AddressKind::None:
          slots_.push_back(none);
          break;
        case AddressKind::Bulk:
          slots_.push_back(bulk);
          break;
        case AddressKind::Lanes:
          slots_.push_back(static_cast<uint16_t>(used_++ % max_slots));
          break;
      }
    }
  }
  uint16_t operator[](uint32_t static_index) const { return slots_[static_index]; }
  size_t size() const { return slots_.size(); }
  uint32_t slot_count() const { return used_ < max_slots ? used_ : max_slots; }

 private:
  std::vector<uint16_t> slots_;
  uint32_t used_ = 0;
};

std::string encode_instructions(const std::vector<RawInstruction>& instructions);
/// Throws TraceError if the bytes are damaged or an opcode index is not below `opcodes`.
std::vector<RawInstruction> decode_instructions(const uint8_t* data, size_t size, size_t opcodes);

}  // namespace simt::store
