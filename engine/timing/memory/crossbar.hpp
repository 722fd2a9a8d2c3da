#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "timing/ring_queue.hpp"
#include "timing/spec.hpp"

namespace simt {

/// How far a crossbar's outputs look into the queues, and how wide its ports are.
struct CrossbarPorts {
  uint32_t look_ahead = 1;    ///< packets at the head of each queue that outputs choose from
  uint32_t input_width = 1;   ///< packets an input can send per cycle, if outputs look ahead
  uint32_t output_width = 1;  ///< packets an output accepts per cycle
};

/// One direction of the interconnect: a crossbar with a queue per input. In each interconnect cycle, every
/// output accepts at most `output_width` packets.
///
/// Outputs that see only the heads of the queues choose one after another, so an input whose next packets go
/// to ascending outputs can send several per cycle; packets behind a blocked head wait (as in GPGPU-Sim).
/// Uniform traffic then achieves 2 - sqrt(2) of the bandwidth (Karol, Hluchyj, Morgan, IEEE Transactions on
/// Communications 1987), and more if outputs look ahead (section V there).
template <typename Packet>
class Crossbar {
 public:
  Crossbar(uint32_t inputs, uint32_t outputs, NetworkArbiter arbiter, CrossbarPorts ports)
      : inputs_(inputs),
        outputs_(outputs),
        arbiter_(arbiter),
        ports_(ports),
        input_words_((inputs + 63) / 64),
        queues_(inputs),
        wanted_(size_t{outputs} * input_words_),
        requested_((outputs + 63) / 64),
        next_input_(outputs),
        sent_(ports.look_ahead > 1 ? inputs : 0),
        exhausted_(input_words_) {}

  void push(uint32_t input, uint32_t output, Packet packet) {
    waiting_inputs_ += queues_[input].empty();
    queues_[input].push_back({output, std::move(packet)});
    if (queues_[input].size() <= ports_.look_ahead) announce(input, output);
  }
  bool idle() const { return waiting_inputs_ == 0; }

  /// One cycle. Calls has_room(output), which tells whether the output's buffer accepts a packet, and
  /// move(input, output, packet) for each packet that moves. Returns how many heads had to wait.
  template <typename HasRoom, typename Move>
  uint64_t advance(HasRoom has_room, Move move) {
    uint64_t moved = 0;
    const uint64_t heads = waiting_inputs_;
    if (arbiter_ == NetworkArbiter::RoundRobin) {
      std::vector<bool> taken(outputs_, false);
      for (uint32_t i = 0; i < inputs_; ++i) {
        const uint32_t input = (i + first_input_) % inputs_;
        if (queues_[input].empty()) continue;
        const uint32_t output = queues_[input].front().output;
        if (taken[output] || !has_room(output)) continue;
        taken[output] = true;
        take(input, output, move);
        ++moved;
      }
      first_input_ = (first_input_ + 1) % inputs_;
      return heads - moved;
    }
    if (ports_.look_ahead > 1) {
      moved = advance_looking_ahead(has_room, move);
      return heads > moved ? heads - moved : 0;
    }
    for (uint32_t word = 0; word < requested_.size(); ++word) {
      uint64_t done = 0;
      while (const uint64_t open = requested_[word] & ~done) {
        const auto bit = static_cast<uint32_t>(__builtin_ctzll(open));
        // Outputs choose in order; lower ones have had their turn.
        done |= (uint64_t{2} << bit) - 1;
        const uint32_t output = word * 64 + bit;
        if (!has_room(output)) continue;
        const uint32_t input = first_wanting(output);
        take(input, output, move);
        next_input_[output] = input + 1 < inputs_ ? input + 1 : 0;
        ++moved;
      }
    }
    return heads > moved ? heads - moved : 0;
  }

 private:
  static constexpr uint32_t none = ~0u;
  struct Queued {
    uint32_t output;
    Packet packet;
  };

  uint64_t* wanted(uint32_t output) { return &wanted_[size_t{output} * input_words_]; }
  const uint64_t* wanted(uint32_t output) const { return &wanted_[size_t{output} * input_words_]; }

  /// The first output to choose changes each cycle.
  template <typename HasRoom, typename Move>
  uint64_t advance_looking_ahead(HasRoom& has_room, Move& move) {
    uint64_t moved = 0;
    std::fill(sent_.begin(), sent_.end(), 0);
    std::fill(exhausted_.begin(), exhausted_.end(), 0);
    const uint32_t start = first_output_;
    first_output_ = (first_output_ + 1) % outputs_;
    const auto choose = [&](uint32_t from, uint32_t to) {
      for (uint32_t word = from / 64; word * 64 < to; ++word) {
        uint64_t open = requested_[word];
        if (word == from / 64) open &= ~uint64_t{0} << (from % 64);
        if (to < (word + 1) * 64) open &= (uint64_t{1} << (to % 64)) - 1;
        for (; open; open &= open - 1) {
          const uint32_t output = word * 64 + static_cast<uint32_t>(__builtin_ctzll(open));
          for (uint32_t n = 0; n < ports_.output_width; ++n) {
            const uint32_t input = first_wanting(output);
            if (input == none || !has_room(output)) break;
            take(input, output, move);
            if (++sent_[input] == ports_.input_width) exhausted_[input / 64] |= uint64_t{1} << (input % 64);
            next_input_[output] = (input + 1) % inputs_;
            ++moved;
          }
        }
      }
    };
    choose(start, outputs_);
    choose(0, start);
    return moved;
  }

  void announce(uint32_t input, uint32_t output) {
    wanted(output)[input / 64] |= uint64_t{1} << (input % 64);
    requested_[output / 64] |= uint64_t{1} << (output % 64);
  }

  void withdraw(uint32_t input, uint32_t output) {
    uint64_t* inputs = wanted(output);
    inputs[input / 64] &= ~(uint64_t{1} << (input % 64));
    const uint64_t any = std::accumulate(inputs, inputs + input_words_, uint64_t{0}, std::bit_or<>());
    if (!any) requested_[output / 64] &= ~(uint64_t{1} << (output % 64));
  }

  /// The next input in turn that has a packet for the output and can still send.
  uint32_t first_wanting(uint32_t output) const {
    const uint64_t* open = wanted(output);
    const uint32_t start = next_input_[output];
    uint32_t word = start / 64;
    uint64_t found = open[word] & ~exhausted_[word] & (~uint64_t{0} << (start % 64));
    for (uint32_t i = 0; !found && i < input_words_; ++i) {
      if (++word == input_words_) word = 0;
      found = open[word] & ~exhausted_[word];
    }
    return found ? word * 64 + static_cast<uint32_t>(__builtin_ctzll(found)) : none;
  }

  template <typename Move>
  void take(uint32_t input, uint32_t output, Move& move) {
    RingQueue<Queued>& queue = queues_[input];
    if (ports_.look_ahead == 1) {
      withdraw(input, output);
      move(input, output, queue.front().packet);
      queue.pop_front();
      if (queue.empty())
        --waiting_inputs_;
      else
        announce(input, queue.front().output);
      return;
    }
    const auto seen = [&] { return std::min<size_t>(ports_.look_ahead, queue.size()); };
    size_t at = 0;
    while (queue[at].output != output) ++at;
    Packet packet = std::move(queue[at].packet);
    queue.erase(at);
    waiting_inputs_ -= queue.empty();
    withdraw(input, output);
    if (seen() == ports_.look_ahead) announce(input, queue[seen() - 1].output);
    for (; at < seen(); ++at)
      if (queue[at].output == output) announce(input, output);
    move(input, output, std::move(packet));
  }

  uint32_t inputs_, outputs_;
  NetworkArbiter arbiter_;
  CrossbarPorts ports_;
  uint32_t input_words_;  // of 64 bits, one bit per input
  std::vector<RingQueue<Queued>> queues_;
  // Per output: inputs that have a packet for it among those visible to outputs.
  std::vector<uint64_t> wanted_;
  std::vector<uint64_t> requested_;  // outputs for which some input has one
  std::vector<uint32_t> next_input_;
  std::vector<uint32_t> sent_;       // by each input in this cycle
  std::vector<uint64_t> exhausted_;  // inputs that cannot send more in this cycle
  uint32_t first_output_ = 0;
  uint32_t first_input_ = 0;
  uint64_t waiting_inputs_ = 0;  // whose queue is not empty
};

}  // namespace simt
