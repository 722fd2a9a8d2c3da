#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/decoded_kernel.hpp"
#include "timing/memory/request.hpp"

namespace simt {

/// Cycles from the issue of a memory instruction until it leaves its sub-core, at the earliest.
inline constexpr uint32_t access_first = 4;

/// Register read ports of one sub-core without operand collectors (Huerta et al., MICRO 2025, section 4): a
/// fixed-latency instruction reads its operands within a window of three cycles, one 1024-bit read per bank,
/// port and cycle; if they do not fit, it and everything behind it is delayed. The operand cache keeps the
/// register last read, per bank and operand position, if the compiler has marked it for reuse. Without
/// control bits, every repeated read is treated as marked, since compilers mark reuse whenever it helps.
class ReadPorts {
 public:
  static constexpr uint32_t first_read = 2, window = 3;  ///< cycles after issue

  ReadPorts(uint32_t banks, uint32_t ports_per_bank, bool operand_cache)
      : ports_(ports_per_bank),
        operand_cache_(operand_cache),
        count_(banks),
        power_of_two_(std::has_single_bit(banks)),
        banks_(banks) {}

  /// Reads the operands of an instruction issued at `now`; returns the delay in cycles.
  uint32_t read(const DecodedInstruction& instruction, uint32_t warp, Cycle now) {
    uint32_t delay = 0;
    for (uint32_t i = 0; i < instruction.read_count; ++i) {
      const uint32_t reg = instruction.reads[i];
      Bank& bank = banks_[power_of_two_ ? reg & (count_ - 1) : reg % count_];
      const uint32_t value = (warp << 8 | reg) + 1;
      const bool marked = instruction.issue.present;
      const uint32_t position = marked ? instruction.read_slots[i] : i;
      uint32_t& cached = bank.cached[position < bank.cached.size() ? position : bank.cached.size() - 1];
      const bool hit = operand_cache_ && cached == value;
      cached = !marked || (instruction.fixed.control.reuse() >> position & 1) ? value : 0;
      if (hit) continue;
      Cycle at = now + first_read;
      while (bank.used(at) >= ports_) ++at;
      bank.take(at);
      const Cycle last = now + first_read + window - 1;
      if (at > last && at - last > delay) delay = static_cast<uint32_t>(at - last);
    }
    return delay;
  }

 private:
  struct Bank {
    struct Slot {
      Cycle cycle = ~Cycle{0};
      uint32_t reads = 0;
    };
    std::array<Slot, 32> slots{};
    std::array<uint32_t, 3> cached{};
    uint32_t used(Cycle c) const { return slots[c % 32].cycle == c ? slots[c % 32].reads : 0; }
    void take(Cycle c) {
      Slot& slot = slots[c % 32];
      if (slot.cycle != c) slot = {c, 0};
      ++slot.reads;
    }
  };
  uint32_t ports_;
  bool operand_cache_;
  uint32_t count_;  // of banks
  bool power_of_two_;
  std::vector<Bank> banks_;
};

}  // namespace simt
