#include "timing/memory/memory_system.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

namespace simt {
MemorySystem::MemorySystem(const Spec& spec, uint32_t launch_slots)
    : spec_(spec),
      map_(spec),
      partitions_(spec),
      states_(spec.address_map.channels),
      core_to_network_{spec.clock.core_mhz.khz, spec.clock.interconnect_mhz.khz},
      network_to_core_{spec.clock.interconnect_mhz.khz, spec.clock.core_mhz.khz},
      network_to_l2_{spec.clock.interconnect_mhz.khz, spec.clock.l2_mhz.khz},
      core_to_l2_{spec.clock.core_mhz.khz, spec.clock.l2_mhz.khz},
      l2_to_dram_{spec.clock.l2_mhz.khz, spec.clock.dram_mhz.khz},
      slices_(spec.address_map.channels * spec.address_map.slices_per_channel),
      ports_(ports(spec)),
      has_arrivals_(ports_.size()),
      has_sent_(ports_.size()),
      request_network_(ports(spec), static_cast<uint32_t>(slices_.size()), spec.interconnect.arbiter,
                       {spec.interconnect.look_ahead, spec.interconnect.sm_port_sectors, 1}),
      reply_network_(static_cast<uint32_t>(slices_.size()), ports(spec), spec.interconnect.arbiter,
                     {spec.interconnect.look_ahead, 1, spec.interconnect.sm_port_sectors}),
      packet_flits_(packet_flits(spec.interconnect)),
      entry_busy_until_(slices_.size()),
      arriving_beside_(slices_.size()),
      arrivals_(slices_.size()),
      network_counters_(launch_slots),
      counted_since_(launch_slots),
      windows_(launch_slots) {
  const uint32_t per_channel = spec.address_map.slices_per_channel;
  for (uint32_t c = 0; c < spec.address_map.channels; ++c) {
    channels_.push_back(std::make_unique<MemoryChannel>(spec_, map_, partitions_, reply_network_, c));
    for (uint32_t s = 0; s < per_channel; ++s) {
      slices_[c * per_channel + s].slice = &channels_[c]->slice(s);
      slices_[c * per_channel + s].channel = &states_[c];
    }
  }
  if (spec.tlb.entries > 0) tlbs_.assign(spec.tlb.count, Tlb(spec.tlb));
  live_.resize(states_.size());
  std::iota(live_.begin(), live_.end(), 0u);
  set_aside(0);
}

uint32_t MemorySystem::ports(const Spec& spec) {
  const InstructionCacheSpec& cache = spec.sm.front_end.instruction_cache;
  const bool shared = !cache.perfect && cache.l1_shared_by > 1;
  return spec.sm.count + (shared ? (spec.sm.count + cache.l1_shared_by - 1) / cache.l1_shared_by : 0);
}

Cycle MemorySystem::request_look_ahead() const {
  return std::max<Cycle>(
      1, ClockRatio{spec_.clock.l2_mhz.khz, spec_.clock.core_mhz.khz}.at_or_after(spec_.l2.latency) - 1);
}

Cycle MemorySystem::look_ahead() const {
  Cycle longest = request_look_ahead();
  if (partitions_.count() > 1) {
    const ClockRatio l2_to_core{spec_.clock.l2_mhz.khz, spec_.clock.core_mhz.khz};
    const uint64_t between = std::min(partitions_.there(), partitions_.back());
    longest = std::min(longest, std::max<Cycle>(1, l2_to_core.at_or_after(between) - 1));
  }
  return tlbs_.empty() ? longest : std::min<Cycle>(longest, spec_.tlb.miss_latency);
}

/// A channel that had nothing to do has something.
inline void MemorySystem::wake(ChannelState& state) {
  if (state.live) return;
  state.live = true;
  const auto channel = static_cast<uint32_t>(&state - states_.data());
  live_.insert(std::lower_bound(live_.begin(), live_.end(), channel), channel);
}

uint32_t MemorySystem::find_running(Cycle end) {
  running_.clear();
  for (const uint32_t c : live_) {
    ChannelState& state = states_[c];
    if (!state.changed && state.arriving == 0 && state.next_event >= end) continue;
    state.last_run = end;
    running_.push_back(c);
  }
  return static_cast<uint32_t>(running_.size());
}

void MemorySystem::advance_slices(uint32_t first, uint32_t last, Cycle end) {
  const uint64_t l2_end = core_to_l2_.after(end - 1);
  const MemoryChannel::WindowEnd window{l2_end, core_to_network_.after(end - 1),
                                        l2_to_dram_.after(l2_end - 1)};
  for (uint32_t i = first; i < last; ++i) deliver_to_channel(running_[i]);
  for (uint32_t i = first; i < last; ++i) {
    const uint32_t c = running_[i];
    channels_[c]->run(window);
    states_[c].next_event = channels_[c]->next_core_event();
    states_[c].changed = channels_[c]->counts_refusals();
  }
}

inline void MemorySystem::take_arrivals(uint32_t slice) {
  for (const Arrival& arrival : arrivals_[slice]) slices_[slice].buffer.push_back(arrival);
  arrivals_[slice].clear();
}

void MemorySystem::deliver_to_channel(uint32_t channel) {
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (uint32_t s = channel * per_channel; s < (channel + 1) * per_channel; ++s) {
    SlicePort& port = slices_[s];
    take_arrivals(s);
    deliver(port, delivered_until_);
    RingQueue<L2Slice::Refusal>& refused = port.slice->refused();
    // Those before are of no more use; the last may go on.
    if (port.buffer.empty())
      while (!refused.empty() && refused.front().end < delivered_until_) refused.pop_front();
  }
}

void MemorySystem::exchange_far_messages() {
  if (partitions_.count() == 1) return;
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (const uint32_t c : running_) {
    for (uint32_t s = c * per_channel; s < (c + 1) * per_channel; ++s) {
      auto& messages = slice(s).far_messages();
      for (const L2Slice::FarMessage& message : messages) {
        slice(message.to).arrive_from_far(message);
        slices_[message.to].channel->changed = true;
        wake(*slices_[message.to].channel);
      }
      messages.clear();
    }
  }
}

void MemorySystem::advance_replies(Cycle end) {
  window_end_ = end;
  exchange_far_messages();
  const uint64_t limit = core_to_network_.after(end - 1);
  const uint64_t credit_delay = core_to_network_.at_or_after(spec_.interconnect.credit_latency);
  const uint64_t width = spec_.interconnect.sm_port_sectors;
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (const uint32_t c : running_)
    for (uint32_t s = c * per_channel; s < (c + 1) * per_channel; ++s) reply_network_.notice(s);
  std::erase_if(live_, [this](uint32_t c) {
    ChannelState& state = states_[c];
    state.live = state.changed || state.arriving > 0 || state.next_event != ~Cycle{0};
    return !state.live;
  });
  for (;;) {
    reply_tick_ = std::min(limit, reply_network_.next_tick(reply_tick_));
    if (reply_tick_ == limit) return;
    const uint64_t tick = reply_tick_++;
    // The SM's port accepts a packet in the next core cycle and forwards it in the one after.
    const Cycle due = network_to_core_.after(tick + spec_.interconnect.latency) + 1;
    uint16_t slot = 0;
    const uint64_t waited = reply_network_.advance(
        tick, [&](uint32_t sm) { return ports_[sm].busy_until < (tick + 1) * width; },
        [&](uint32_t from, const ReplyPacket& packet) {
          Port& port = ports_[packet.output];
          port.busy_until = std::max(port.busy_until, tick * width) + packet.flits;
          if (due > port.last_reply)
            port.last_reply = due, port.last_replies = 1;
          else if (++port.last_replies > width)
            ++port.last_reply, port.last_replies = 1;
          slice(from).reply_left(tick + credit_delay);
          std::atomic_ref(has_arrivals_[packet.output]).store(1, std::memory_order_relaxed);
          port.replies.push_back({packet.address, packet.token, port.last_reply, packet.kind, packet.write});
          slot = packet.slot;
          ++network_counters_[slot][Counter::network_reply_packets];
        });
    network_counters_[slot][Counter::network_reply_wait] += waited;
  }
}

void MemorySystem::deliver(SlicePort& port, uint64_t l2_end) {
  RingQueue<L2Slice::Refusal>& refused = port.slice->refused();
  while (!port.buffer.empty()) {
    uint64_t at = std::max(port.next_arrival, port.buffer.front().l2_cycle);
    while (!refused.empty() && refused.front().begin <= at) {
      at = std::max(at, std::min(refused.front().end, l2_end));
      if (at >= l2_end) break;
      refused.pop_front();
    }
    if (at >= l2_end) {
      port.next_arrival = at;
      return;
    }
    port.slice->arrive(port.buffer.front().request, at);
    port.buffer.pop_front();
    --port.channel->arriving;
    port.channel->changed = true;
    port.next_arrival = at + 1;
  }
}

/// The request joins its port's queue to the request network in that cycle.
inline void MemorySystem::take(uint32_t number, const MemoryRequest& r, Cycle at) {
  const AddressMap::Home home = map_.home_of(r.address);
  const bool to_peer = in_peer(r.address);
  const uint32_t to = to_peer ? home.slice : partitions_.slice_for(r, home.slice);
  const bool carries_data = r.write || r.kind == AccessKind::Atomic;
  RequestPacket& packet = request_network_.queue(number).add();
  packet.tick = core_to_network_.after(at);
  packet.flits = packet_flits_[carries_data];
  packet.output = static_cast<uint16_t>(to);
  packet.request.address = r.address;
  packet.request.token = r.token;
  packet.request.byte_mask = r.byte_mask;
  packet.request.set = home.set;
  packet.request.asker = r.sm;
  packet.request.slot = r.slot;
  packet.request.eviction = r.eviction;
  if (has_windows_ && r.eviction == Eviction::Default) {
    const Eviction eviction = windows_[r.slot].of(r.address);
    if (persists_ || eviction != Eviction::Last) packet.request.eviction = eviction;
  }
  packet.request.kind = r.kind;
  packet.request.sectors = r.sectors;
  packet.request.write = r.write;
  packet.request.of_slice = false;
  packet.request.to_peer = to_peer;
}

void MemorySystem::take_requests(uint32_t number) {
  if (!tlbs_.empty()) return translate(number, window_end_);
  Port& port = ports_[number];
  if (port.requests.empty()) return;
  for (const MemoryRequest& r : port.requests) take(number, r, r.cycle);
  port.requests.clear();
  has_sent_[number] = 1;
}

/// Takes the port's requests that have their translations before core cycle `end`, and keeps the others.
void MemorySystem::translate(uint32_t number, Cycle end) {
  Port& port = ports_[number];
  std::vector<Translating>& waiting = port.translating;
  const auto later = [](Cycle cycle, const Translating& t) { return cycle < t.ends; };
  for (const MemoryRequest& r : port.requests) {
    // That a launch begins late because its code or constants need translations is part of its latency.
    const bool of_data = r.kind != AccessKind::InstructionRead && r.kind != AccessKind::ConstantRead;
    const std::optional<Cycle> known = of_data ? tlb_of(number).known(r.address, r.cycle) : r.cycle;
    if (known)
      waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), *known, later), {*known, r});
    else
      port.missed.push_back(r);
  }
  port.requests.clear();
  const auto last = std::lower_bound(waiting.begin(), waiting.end(), end,
                                     [](const Translating& t, Cycle cycle) { return t.ends < cycle; });
  if (last == waiting.begin()) return;
  for (auto t = waiting.begin(); t != last; ++t) take(number, t->request, t->ends);
  waiting.erase(waiting.begin(), last);
  has_sent_[number] = 1;
}

/// The misses of all ports in the window that ends at `end`, in the order of their cycles: each has its
/// translation in a later one.
void MemorySystem::take_misses(Cycle end) {
  struct Miss {
    Cycle cycle;
    uint32_t port;
    const MemoryRequest* request;
  };
  std::vector<Miss> misses;
  for (uint32_t number = 0; number < ports_.size(); ++number) {
    translate(number, end);  // of SMs that had nothing else to do
    for (const MemoryRequest& r : ports_[number].missed) misses.push_back({r.cycle, number, &r});
  }
  if (!misses.empty()) last_inserted_ = ~uint64_t{0};
  std::stable_sort(misses.begin(), misses.end(),
                   [](const Miss& a, const Miss& b) { return a.cycle < b.cycle; });
  for (const Miss& miss : misses) {
    Tlb& tlb = tlb_of(miss.port);
    std::optional<Cycle> known = tlb.known(miss.request->address, miss.cycle);
    if (!known) {
      known = tlb.miss(miss.request->address, miss.cycle);
      ++network_counters_[miss.request->slot][Counter::tlb_misses];
    }
    std::vector<Translating>& waiting = ports_[miss.port].translating;
    const auto at = std::upper_bound(waiting.begin(), waiting.end(), *known,
                                     [](Cycle cycle, const Translating& t) { return cycle < t.ends; });
    waiting.insert(at, {*known, *miss.request});
  }
  next_translation_ = ~Cycle{0};
  for (Port& port : ports_) {
    port.missed.clear();
    if (!port.translating.empty())
      next_translation_ = std::min(next_translation_, port.translating.front().ends);
  }
}

/// As after accesses to these bytes by all SMs.
void MemorySystem::known_in_tlbs(uint64_t address, uint64_t bytes) {
  if (tlbs_.empty() || bytes == 0) return;
  const uint64_t page = uint64_t{spec_.tlb.entry_mib} << 20;
  for (uint64_t at = address / page * page; at < address + bytes; at += page) {
    if (at == last_inserted_) continue;
    for (Tlb& tlb : tlbs_) tlb.insert(at);
    last_inserted_ = at;
  }
}

void MemorySystem::notice_sent() {
  uint8_t *const first = has_sent_.data(), *const last = first + has_sent_.size();
  for (auto* sent = first; (sent = static_cast<uint8_t*>(std::memchr(sent, 1, last - sent)));) {
    request_network_.notice(static_cast<uint32_t>(sent - first));
    *sent = 0;
  }
}

void MemorySystem::advance_requests(Cycle end) {
  for (uint32_t s = 0; s < slices_.size(); ++s) take_arrivals(s);
  run_requests<false>(end);
  delivered_until_ = core_to_l2_.after(end - 1);
}

void MemorySystem::advance_requests_beside(Cycle end) {
  run_requests<true>(end);
  beside_until_ = core_to_l2_.after(end - 1);
}

template <bool Beside>
void MemorySystem::run_requests(Cycle end) {
  if (!tlbs_.empty()) take_misses(end);
  notice_sent();
  const uint64_t limit = core_to_network_.after(end - 1);
  const uint64_t l2_end = core_to_l2_.after(end - 1);
  const auto output_buffer = spec_.interconnect.output_buffer;
  for (;;) {
    request_tick_ = std::min(limit, request_network_.next_tick(request_tick_));
    if (request_tick_ == limit) break;
    const uint64_t tick = request_tick_++;
    uint16_t slot = 0;
    const Cycle left = network_to_core_.at_or_after(tick);
    const uint64_t l2_cycle = network_to_l2_.after(tick + spec_.interconnect.latency);
    const uint64_t waited = request_network_.advance(
        tick,
        [&](uint32_t to) {
          if (entry_busy_until_[to] > tick) return false;
          if constexpr (Beside) return true;
          SlicePort& port = slices_[to];
          if (port.buffer.size() < output_buffer) return true;
          deliver(port, std::min(l2_end, network_to_l2_.at_or_after(tick)));
          return port.buffer.size() < output_buffer;
        },
        [&](uint32_t sm, const RequestPacket& packet) {
          entry_busy_until_[packet.output] = tick + packet.flits;
          if constexpr (Beside) {
            arriving_beside_[packet.output].push_back({l2_cycle, packet.request});
          } else {
            SlicePort& port = slices_[packet.output];
            Arrival& arrival = port.buffer.add();
            arrival.l2_cycle = l2_cycle;
            arrival.request = packet.request;
            ++port.channel->arriving;
            wake(*port.channel);
          }
          ports_[sm].departures.push_back(left);
          std::atomic_ref(has_arrivals_[sm]).store(1, std::memory_order_relaxed);
          slot = packet.request.slot;
          ++network_counters_[slot][Counter::network_request_packets];
        });
    network_counters_[slot][Counter::network_request_wait] += waited;
  }
}

bool MemorySystem::has_room_until(Cycle end) const {
  const uint64_t most = core_to_network_.after(end - 1) - request_tick_;  // packets, one per cycle
  for (uint32_t s = 0; s < slices_.size(); ++s)
    if (slices_[s].buffer.size() + arrivals_[s].size() + most > spec_.interconnect.output_buffer)
      return false;
  return true;
}

void MemorySystem::hand_over() {
  for (uint32_t s = 0; s < slices_.size(); ++s) {
    if (arriving_beside_[s].empty()) continue;
    // The slice's channel has run, and has taken those of before.
    arrivals_[s].swap(arriving_beside_[s]);
    ChannelState& state = *slices_[s].channel;
    state.arriving += static_cast<uint32_t>(arrivals_[s].size());
    wake(state);
  }
  delivered_until_ = beside_until_;
}

/// Sectors of a line of the L2 that are in the same slice are looked up together; those of other devices are
/// not in the L2.
template <typename Use>
void MemorySystem::for_each_part(uint64_t line, uint32_t sectors, Use use) const {
  if (in_peer(line)) return;
  for (uint32_t rest = sectors; rest;) {
    LinePart part;
    part.address = line + uint64_t(std::countr_zero(rest)) * sector_bytes;
    part.home = map_.home_of(part.address);
    const uint64_t l2_line = part.address / spec_.l2.slice.line_bytes;
    for (uint64_t sector = part.address; rest; sector += sector_bytes) {
      const uint32_t bit = 1u << (sector - line) / sector_bytes;
      if (bit > rest || sector / spec_.l2.slice.line_bytes != l2_line) break;
      if (!(rest & bit)) continue;
      if (sector != part.address && map_.slice_of(sector) != part.home.slice) break;
      part.sectors |= 1u << (sector - part.address) / sector_bytes;
      rest &= ~bit;
    }
    use(part);
  }
}

void MemorySystem::insert(uint64_t address, uint64_t bytes, bool modified) {
  const MemoryRows row{.address = address,
                       .width = bytes,
                       .use = modified ? MemoryRows::Use::Written : MemoryRows::Use::Received};
  insert({&row, 1});
}

namespace {

/// Visits the lines of 128 bytes that rows touch, the last first.
class LinesBackwards {
 public:
  explicit LinesBackwards(const MemoryRows& rows) : rows_(rows) {
    // Rows without gaps are one.
    if (rows_.height == 1) rows_.pitch = rows_.width;
    if (rows_.pitch == rows_.width) rows_.width *= std::exchange(rows_.height, 1);
    if (rows_.height == 1 && rows_.slice == rows_.width) rows_.width *= std::exchange(rows_.depth, 1);
    left_ = rows_.width ? rows_.height * rows_.depth : 0;
    next_row();
  }
  bool done() const { return line_ == none; }
  uint64_t line() const { return line_ * LineAccess::line_bytes; }
  uint32_t sectors() const {
    const uint64_t first = begin_ > line() ? (begin_ - line()) / sector_bytes : 0;
    const uint64_t last = std::min(end_ - 1 - line(), LineAccess::line_bytes - 1) / sector_bytes;
    return (2u << last) - (1u << first);
  }
  void advance() {
    if (line_ == begin_ / LineAccess::line_bytes)
      next_row();
    else
      --line_;
  }

 private:
  static constexpr uint64_t none = ~uint64_t{0};

  void next_row() {
    line_ = none;
    if (left_ == 0) return;
    --left_;
    begin_ = rows_.address + left_ / rows_.height * rows_.slice + left_ % rows_.height * rows_.pitch;
    end_ = begin_ + rows_.width;
    line_ = (end_ - 1) / LineAccess::line_bytes;
  }

  MemoryRows rows_;
  uint64_t left_ = 0;             // rows
  uint64_t begin_ = 0, end_ = 0;  // of the row
  uint64_t line_ = none;
};

}  // namespace

void MemorySystem::insert(std::span<const MemoryRows> rows) {
  for (const MemoryRows& row : rows)
    // Copies from the host are not made by SMs.
    if (row.use != MemoryRows::Use::Received && row.height > 0 && row.depth > 0)
      known_in_tlbs(row.address, (row.depth - 1) * row.slice + (row.height - 1) * row.pitch + row.width);
  // What stays is the last of it that falls into each set. When every set has that, nothing before matters:
  // of a set whose oldest line is not always the next to go, hardly anything is left after three times its
  // ways.
  struct Kept {
    LinePart part;
    bool written;
  };
  const uint32_t sets = spec_.l2.slice.sets;
  const uint32_t last = spec_.l2.slice.ways * (spec_.l2.slice.replacement->part > 0 ? 3 : 1);
  std::vector<uint32_t> left(slices_.size() * sets, last);
  size_t sets_left = left.size();
  std::vector<Kept> kept;
  std::vector<LinesBackwards> lines(rows.begin(), rows.end());
  bool some = true;
  while (some && sets_left > 0) {
    some = false;
    for (size_t i = lines.size(); i-- > 0;) {
      if (lines[i].done()) continue;
      some = true;
      for_each_part(lines[i].line(), lines[i].sectors(), [&](const LinePart& part) {
        uint32_t& ways_left = left[size_t{part.home.slice} * sets + part.home.set];
        for (uint32_t p = 0; p < partitions_.count(); ++p) {
          const uint32_t index = partitions_.partner(part.home.slice, p);
          if (index == part.home.slice) continue;
          for (uint32_t each = rows[i].use == MemoryRows::Use::Read ? 0 : part.sectors; each;
               each &= each - 1)
            slice(index).drop_copy(part.address + uint64_t(std::countr_zero(each)) * sector_bytes);
        }
        if (ways_left == 0) return;
        sets_left -= --ways_left == 0;
        kept.push_back({part, rows[i].use == MemoryRows::Use::Written});
      });
      lines[i].advance();
    }
  }
  for (auto k = kept.rbegin(); k != kept.rend(); ++k)
    slice(k->part.home.slice).insert(k->part.address, k->written, k->part.sectors);
}

uint32_t MemorySystem::warm(const LineAccess& access, uint32_t partition) {
  uint32_t exchanged = 0;
  known_in_tlbs(access.line, 1);
  for_each_part(access.line, access.sectors, [&](const LinePart& part) {
    const uint32_t home = part.home.slice;
    uint32_t together = part.sectors;
    const uint32_t copy = partitions_.partner(home, partition);
    if (!access.write && copy != home) {
      // The home slice is asked for what the copy lacks.
      const CacheInsertion inserted = slice(copy).insert(part.address, false, together);
      exchanged += inserted.written_back;
      together = inserted.fetched;
    }
    if (together) {
      const CacheInsertion inserted = slice(home).insert(part.address, access.write, together);
      exchanged += inserted.written_back + static_cast<uint32_t>(std::popcount(inserted.fetched));
    }
    for (uint32_t p = 0; access.write && p < partitions_.count(); ++p) {
      const uint32_t index = partitions_.partner(home, p);
      if (index == home) continue;
      for (uint32_t each = together; each; each &= each - 1)
        slice(index).drop_copy(part.address + uint64_t(std::countr_zero(each)) * sector_bytes);
    }
  });
  return exchanged;
}

void MemorySystem::renew(const std::vector<std::vector<CacheLine>>& contents, double share) {
  const uint32_t ways = spec_.l2.slice.ways;
  const auto kept = static_cast<size_t>(std::ceil(std::min(1.0, share) * ways));
  for (uint32_t s = 0; s < slices_.size(); ++s) {
    const std::vector<CacheLine>& lines = contents[s];
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i + kept < lines.size() && lines[i + kept].line / ways == lines[i].line / ways) continue;
      const CacheLine& line = lines[i];
      const uint32_t unmodified = line.valid & ~uint32_t{line.modified};
      if (unmodified) slice(s).insert(line.tag, false, unmodified);
      if (line.modified) slice(s).insert(line.tag, true, line.modified);
    }
  }
}

void MemorySystem::set_window(uint16_t slot, const AccessWindow& window) {
  windows_[slot] = window;
  has_windows_ = spec_.l2.persisting_kib > 0 &&
                 std::any_of(windows_.begin(), windows_.end(), [](const auto& w) { return w.bytes > 0; });
}

void MemorySystem::set_aside(uint64_t bytes) {
  const uint64_t way_bytes =
      std::max<uint64_t>(1, uint64_t{spec_.l2.slice.sets} * spec_.l2.slice.line_bytes * slices_.size());
  const uint64_t most = uint64_t{spec_.l2.persisting_kib} * 1024;
  persists_ = bytes > 0;
  const uint64_t ways = ((persists_ ? std::min(bytes, most) : most) + way_bytes - 1) / way_bytes;
  for (uint32_t s = 0; s < slices_.size(); ++s)
    slice(s).cache().set_protected_ways(static_cast<uint32_t>(ways));
}

void MemorySystem::reset_persisting() {
  for (uint32_t s = 0; s < slices_.size(); ++s) slice(s).cache().reset_protected();
}

void MemorySystem::empty_l2() {
  for (uint32_t s = 0; s < slices_.size(); ++s) slice(s).cache().invalidate();
}

uint64_t MemorySystem::free_l2_lines() const {
  uint64_t lines = 0;
  for (uint32_t s = 0; s < slices_.size(); ++s) lines += slice(s).cache().free_lines();
  return lines;
}

std::vector<std::vector<CacheLine>> MemorySystem::l2_contents() const {
  std::vector<std::vector<CacheLine>> found;
  found.reserve(slices_.size());
  for (uint32_t s = 0; s < slices_.size(); ++s) found.push_back(slice(s).cache().contents());
  return found;
}

void MemorySystem::restore_l2(const std::vector<std::vector<CacheLine>>& contents) {
  if (contents.size() != slices_.size())
    throw std::invalid_argument("the contents of an L2: the number of slices");
  for (uint32_t s = 0; s < slices_.size(); ++s) slice(s).cache().restore(contents[s]);
}

Cycle MemorySystem::next_event() const {
  if (!request_network_.empty() || !reply_network_.empty()) return 0;
  Cycle next = next_translation_;
  const ClockRatio l2_to_core{spec_.clock.l2_mhz.khz, spec_.clock.core_mhz.khz};
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (const uint32_t c : live_) {
    const ChannelState& state = states_[c];
    next = std::min(next, state.changed ? channels_[c]->next_core_event() : state.next_event);
    for (uint32_t s = c * per_channel; state.arriving > 0 && s < (c + 1) * per_channel; ++s) {
      if (slices_[s].buffer.empty()) continue;
      // What arrives before the slices go on is looked up after the L2's latency.
      const uint64_t arrives = slices_[s].buffer.front().l2_cycle;
      if (arrives >= delivered_until_) return 0;
      next = std::min(next, l2_to_core.at_or_after(arrives + spec_.l2.latency - 1));
    }
  }
  return next;
}

Counters MemorySystem::counters(uint16_t slot) const {
  Counters total = network_counters_[slot];
  for (uint32_t c = 0; c < channels_.size(); ++c)
    if (states_[c].last_run > counted_since_[slot]) total += channels_[c]->counters()[slot];
  return total;
}

void MemorySystem::reset_counters(uint16_t slot, Cycle now) {
  network_counters_[slot] = Counters{};
  for (uint32_t c = 0; c < channels_.size(); ++c) {
    if (slot >= channels_[c]->counters().size() || states_[c].last_run > counted_since_[slot])
      channels_[c]->reset_counters(slot);
  }
  counted_since_[slot] = now;
}

std::vector<SliceActivity> MemorySystem::slice_activity(uint16_t slot) const {
  std::vector<SliceActivity> activity;
  for (const auto& channel : channels_)
    for (uint32_t s = 0; s < spec_.address_map.slices_per_channel; ++s)
      activity.push_back(channel->slice(s).activity()[slot]);
  return activity;
}

std::vector<ChannelActivity> MemorySystem::channel_activity() const {
  std::vector<ChannelActivity> activity;
  activity.reserve(channels_.size());
  for (const auto& channel : channels_) activity.push_back(channel->dram().activity());
  return activity;
}

std::vector<BankActivity> MemorySystem::bank_activity() const {
  std::vector<BankActivity> activity;
  for (const auto& channel : channels_) channel->append_bank_activity(activity);
  return activity;
}

}  // namespace simt
