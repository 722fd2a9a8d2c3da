#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/warps/decoded_kernel.hpp"

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
    const uint64_t first = (now + first_read) * ports_, end = first + window * ports_;
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
      const uint64_t port = std::max(bank.next_port, first);
      bank.next_port = hit ? bank.next_port : port + 1;
      if (!hit && port >= end) delay = std::max(delay, static_cast<uint32_t>((port - end) / ports_) + 1);
    }
    return delay;
  }

 private:
  struct Bank {
    // The next port that a read can take: cycle times ports, plus the ports taken in that cycle. Reads take
    // the first free one, and later instructions begin later, so all before it are taken or past.
    uint64_t next_port = 0;
    std::array<uint32_t, 3> cached{};
  };
  uint32_t ports_;
  bool operand_cache_;
  uint32_t count_;  // of banks
  bool power_of_two_;
  std::vector<Bank> banks_;
};

}  // namespace simt
