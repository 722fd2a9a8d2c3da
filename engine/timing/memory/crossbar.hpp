#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"

namespace simt {

/// How far a crossbar's outputs look into the queues, and how wide its ports are.
struct CrossbarPorts {
  uint32_t look_ahead = 1;    ///< packets at the head of each queue that outputs choose from
  uint32_t input_width = 1;   ///< packets an input can send per cycle, if outputs look ahead
  uint32_t output_width = 1;  ///< packets an output accepts per cycle
};

/// The size of a packet, by whether it carries data.
inline std::array<uint32_t, 2> packet_flits(const InterconnectSpec& spec) {
  if (spec.flit_bytes == 0) return {1, 1};
  constexpr uint32_t header_bytes = 8;
  const auto flits = [&](uint32_t bytes) { return (bytes + spec.flit_bytes - 1) / spec.flit_bytes; };
  return {flits(header_bytes), flits(header_bytes + sector_bytes)};
}

/// One direction of the interconnect: a crossbar with a queue per input. In each interconnect cycle, every
/// output accepts at most `output_width` packets.
///
/// Outputs that see only the heads of the queues choose one after another, so an input whose next packets go
/// to ascending outputs can send several per cycle; packets behind a blocked head wait (as in GPGPU-Sim).
/// Uniform traffic then achieves 2 - sqrt(2) of the bandwidth (Karol, Hluchyj, Morgan, IEEE Transactions on
/// Communications 1987), and more if outputs look ahead (section V there).
///
/// A packet has a `tick`, the interconnect cycle from which the outputs see it, and an `output`.
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
        shown_(inputs),
        late_(input_words_),
        due_(inputs),
        wanted_(size_t{outputs} * input_words_),
        requested_((outputs + 63) / 64),
        next_input_(outputs),
        taken_at_(arbiter == NetworkArbiter::RoundRobin ? outputs : 0, never),
        sent_(ports.look_ahead > 1 ? inputs : 0),
        exhausted_(input_words_) {}

  /// Packets join an input's queue at its end, in ascending ticks; notice() of the input follows before the
  /// crossbar advances. Different queues may be filled on different threads.
  RingQueue<Packet>& queue(uint32_t input) { return queues_[input]; }
  void notice(uint32_t input) {
    if (queues_[input].size() > shown_[input] && shown_[input] < ports_.look_ahead && !is_late(input))
      await_next(input);
  }
  /// The first cycle, from `tick` on, in which a packet can move; ~0 if there is none.
  uint64_t next_tick(uint64_t tick) const {
    if (waiting_inputs_ > 0) return tick;
    return earliest_ == never ? never : std::max(tick, earliest_);
  }
  bool empty() const { return next_tick(0) == never; }

  /// One cycle. Calls has_room(output), which tells whether the output's buffer accepts a packet, and
  /// move(input, packet) for each packet that moves. Returns how many heads had to wait.
  template <typename HasRoom, typename Move>
  uint64_t advance(uint64_t tick, HasRoom has_room, Move move) {
    if (earliest_ <= tick) show_late(tick);
    uint64_t moved = 0;
    const uint64_t heads = waiting_inputs_;
    if (arbiter_ == NetworkArbiter::RoundRobin) {
      for (uint32_t i = 0, input = first_input_; i < inputs_;
           ++i, input = input + 1 < inputs_ ? input + 1 : 0) {
        if (shown_[input] == 0) continue;
        const uint32_t output = queues_[input].front().output;
        if (taken_at_[output] == tick || !has_room(output)) continue;
        taken_at_[output] = tick;
        take(input, output, tick, move);
        ++moved;
      }
      first_input_ = (first_input_ + 1) % inputs_;
      return heads - moved;
    }
    if (ports_.look_ahead > 1) {
      moved = advance_looking_ahead(tick, has_room, move);
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
        take_head(first_wanting(output), output, tick, move);
        ++moved;
      }
    }
    return heads > moved ? heads - moved : 0;
  }

 private:
  static constexpr uint32_t none = ~0u;
  static constexpr uint64_t never = ~uint64_t{0};

  uint64_t* wanted(uint32_t output) { return &wanted_[size_t{output} * input_words_]; }
  const uint64_t* wanted(uint32_t output) const { return &wanted_[size_t{output} * input_words_]; }

  bool is_late(uint32_t input) const { return late_[input / 64] >> (input % 64) & 1; }
  /// The first packet that the outputs do not see, which they could, will be shown in its tick.
  void await_next(uint32_t input) {
    due_[input] = queues_[input][shown_[input]].tick;
    earliest_ = std::min(earliest_, due_[input]);
    late_[input / 64] |= uint64_t{1} << (input % 64);
  }
  void show_late(uint64_t tick) {
    earliest_ = never;
    for (uint32_t word = 0; word < input_words_; ++word)
      for (uint64_t rest = late_[word]; rest; rest &= rest - 1) {
        const uint32_t input = word * 64 + static_cast<uint32_t>(__builtin_ctzll(rest));
        if (due_[input] > tick) {
          earliest_ = std::min(earliest_, due_[input]);
          continue;
        }
        late_[word] &= ~(rest & -rest);
        show_next(input, tick);
      }
  }
  /// Shows the outputs what they can see of the queue in this cycle.
  void show_next(uint32_t input, uint64_t tick) {
    const RingQueue<Packet>& queue = queues_[input];
    uint32_t& shown = shown_[input];
    const bool none_before = shown == 0;
    while (shown < ports_.look_ahead && shown < queue.size()) {
      const Packet& next = queue[shown];
      if (next.tick > tick) {
        if (!is_late(input)) await_next(input);
        break;
      }
      announce(input, next.output);
      ++shown;
    }
    waiting_inputs_ += none_before && shown > 0;
  }

  /// The first output to choose changes each cycle.
  template <typename HasRoom, typename Move>
  uint64_t advance_looking_ahead(uint64_t tick, HasRoom& has_room, Move& move) {
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
            take(input, output, tick, move);
            if (++sent_[input] == ports_.input_width) exhausted_[input / 64] |= uint64_t{1} << (input % 64);
            next_input_[output] = input + 1 < inputs_ ? input + 1 : 0;
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
    uint64_t any = 0;
    for (uint32_t word = 0; word < input_words_; ++word) any |= inputs[word];
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
  void take(uint32_t input, uint32_t output, uint64_t tick, Move& move) {
    RingQueue<Packet>& queue = queues_[input];
    size_t at = 0;
    if (ports_.look_ahead > 1)
      while (queue[at].output != output) ++at;
    move(input, queue[at]);
    queue.erase(at);
    waiting_inputs_ -= --shown_[input] == 0;
    bool more = false;  // for the same output
    for (; at < shown_[input] && !more; ++at) more = queue[at].output == output;
    if (!more) withdraw(input, output);
    show_next(input, tick);
  }

  /// take(), where outputs see only the heads of the queues, and the input's turn is over.
  template <typename Move>
  void take_head(uint32_t input, uint32_t output, uint64_t tick, Move& move) {
    RingQueue<Packet>& queue = queues_[input];
    move(input, queue.front());
    queue.pop_front();
    queue.prefetch(1);
    next_input_[output] = input + 1 < inputs_ ? input + 1 : 0;
    const uint32_t word = input / 64;
    const uint64_t bit = uint64_t{1} << (input % 64);
    uint64_t* inputs = wanted(output);
    inputs[word] ^= bit;
    uint64_t any = inputs[word];
    for (uint32_t i = 0; !any && i < input_words_; ++i) any = inputs[i];
    if (!any) requested_[output / 64] ^= uint64_t{1} << (output % 64);
    if (!queue.empty() && queue.front().tick <= tick) {
      const uint32_t next = queue.front().output;
      wanted(next)[word] |= bit;
      requested_[next / 64] |= uint64_t{1} << (next % 64);
    } else {
      shown_[input] = 0;
      --waiting_inputs_;
      if (!queue.empty()) await_next(input);
    }
  }

  uint32_t inputs_, outputs_;
  NetworkArbiter arbiter_;
  CrossbarPorts ports_;
  uint32_t input_words_;  // of 64 bits, one bit per input
  std::vector<RingQueue<Packet>> queues_;
  std::vector<uint32_t> shown_;  // per input: packets at the head of its queue that outputs see
  // Inputs of whose queue outputs could see more than has come, and when it comes.
  std::vector<uint64_t> late_;
  std::vector<uint64_t> due_;
  uint64_t earliest_ = never;  // of these
  // Per output: inputs that have a packet for it among those visible to outputs.
  std::vector<uint64_t> wanted_;
  std::vector<uint64_t> requested_;  // outputs for which some input has one
  std::vector<uint32_t> next_input_;
  std::vector<uint64_t> taken_at_;   // with round_robin: cycle in which an output last took a packet
  std::vector<uint32_t> sent_;       // by each input in this cycle
  std::vector<uint64_t> exhausted_;  // inputs that cannot send more in this cycle
  uint32_t first_output_ = 0;
  uint32_t first_input_ = 0;
  uint64_t waiting_inputs_ = 0;  // of which outputs see packets
};

}  // namespace simt
