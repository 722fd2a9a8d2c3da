#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "timing/spec.hpp"

namespace simt {

/// One direction of the interconnect: a crossbar with a queue per input. Each interconnect cycle every output
/// takes at most one packet, from the head of an input's queue. Outputs choose one after the other, so that
/// an input whose next packets go to rising outputs can send several in a cycle; packets behind a blocked
/// head wait (performance model, section 7).
template <typename Packet>
class Crossbar {
 public:
  Crossbar(uint32_t inputs, uint32_t outputs, NetworkArbiter arbiter)
      : inputs_(inputs),
        outputs_(outputs),
        arbiter_(arbiter),
        queues_(inputs),
        wanted_(outputs),
        next_input_(outputs) {}

  void push(uint32_t input, uint32_t output, Packet packet) {
    queues_[input].push_back({output, std::move(packet)});
    ++queued_;
    if (queues_[input].size() == 1) announce(input);
  }
  bool idle() const { return queued_ == 0; }

  /// One cycle. Calls has_room(output), which says if the output's buffer takes a packet, and
  /// move(input, output, packet) for each packet that moves. Returns how many heads had to wait.
  template <typename HasRoom, typename Move>
  uint64_t advance(HasRoom has_room, Move move) {
    uint64_t moved = 0;
    uint64_t heads = 0;
    if (arbiter_ == NetworkArbiter::RoundRobin) {
      std::vector<bool> taken(outputs_, false);
      for (uint32_t i = 0; i < inputs_; ++i) {
        const uint32_t input = (i + first_input_) % inputs_;
        if (queues_[input].empty()) continue;
        ++heads;
        const uint32_t output = queues_[input].front().output;
        if (taken[output] || !has_room(output)) continue;
        taken[output] = true;
        take(input, output, move);
        ++moved;
      }
      first_input_ = (first_input_ + 1) % inputs_;
      return heads - moved;
    }
    for (const auto& queue : queues_) heads += !queue.empty();
    for (uint32_t word = 0; word < output_words(); ++word) {
      uint64_t done = 0;
      while (const uint64_t open = requested_[word] & ~done) {
        const auto bit = static_cast<uint32_t>(__builtin_ctzll(open));
        // Outputs choose in order: those below this one have had their turn.
        done |= (uint64_t{2} << bit) - 1;
        const uint32_t output = word * 64 + bit;
        if (!has_room(output)) continue;
        const uint32_t input = first_wanting(output);
        take(input, output, move);
        next_input_[output] = (input + 1) % inputs_;
        ++moved;
      }
    }
    return heads > moved ? heads - moved : 0;
  }

 private:
  static constexpr uint32_t max_words = 4;  // up to 256 inputs and outputs
  struct Queued {
    uint32_t output;
    Packet packet;
  };
  uint32_t output_words() const { return (outputs_ + 63) / 64; }

  void announce(uint32_t input) {
    const uint32_t output = queues_[input].front().output;
    wanted_[output][input / 64] |= uint64_t{1} << (input % 64);
    requested_[output / 64] |= uint64_t{1} << (output % 64);
  }

  uint32_t first_wanting(uint32_t output) const {
    const auto& wanted = wanted_[output];
    const uint32_t start = next_input_[output];
    const uint64_t later = wanted[start / 64] & (~uint64_t{0} << (start % 64));
    if (later) return start / 64 * 64 + static_cast<uint32_t>(__builtin_ctzll(later));
    for (uint32_t i = 1; i <= max_words; ++i) {
      const uint32_t word = (start / 64 + i) % max_words;
      if (wanted[word]) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(wanted[word]));
    }
    return 0;
  }

  template <typename Move>
  void take(uint32_t input, uint32_t output, Move& move) {
    wanted_[output][input / 64] &= ~(uint64_t{1} << (input % 64));
    uint64_t any = 0;
    for (uint64_t word : wanted_[output]) any |= word;
    if (!any) requested_[output / 64] &= ~(uint64_t{1} << (output % 64));
    Packet packet = std::move(queues_[input].front().packet);
    queues_[input].pop_front();
    --queued_;
    if (!queues_[input].empty()) announce(input);
    move(input, output, std::move(packet));
  }

  uint32_t inputs_, outputs_;
  NetworkArbiter arbiter_;
  std::vector<std::deque<Queued>> queues_;
  std::vector<std::array<uint64_t, max_words>> wanted_;  // per output: inputs whose head goes there
  std::array<uint64_t, max_words> requested_{};          // outputs that some head wants
  std::vector<uint32_t> next_input_;
  uint32_t first_input_ = 0;
  uint64_t queued_ = 0;
};

}  // namespace simt
