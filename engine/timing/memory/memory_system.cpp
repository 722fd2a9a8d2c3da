#include "timing/memory/memory_system.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace simt {
namespace {

/// Takes items from lists, one list per sender, each item in its tick of a network.
template <typename Item, typename TickOf>
class Senders {
 public:
  explicit Senders(TickOf tick_of) : tick_of_(tick_of) {}
  /// `items`: in ascending ticks.
  void add(uint32_t number, std::vector<Item>& items) {
    if (items.empty()) return;
    due_.push_back(tick_of_(items.front()));
    earliest_ = std::min(earliest_, due_.back());
    lists_.push_back({number, 0, &items});
  }
  /// Tick of the next item; ~0 if there is none.
  uint64_t earliest() const { return earliest_; }
  /// Calls use(sender, item) for the items of ticks up to `tick`, sender by sender.
  template <typename Use>
  void take(uint64_t tick, Use use) {
    if (earliest_ > tick) return;
    earliest_ = never;
    for (size_t i = 0; i < due_.size(); ++i) {
      while (due_[i] <= tick) {
        List& list = lists_[i];
        use(list.number, (*list.items)[list.taken++]);
        due_[i] = list.taken < list.items->size() ? tick_of_((*list.items)[list.taken]) : never;
      }
      earliest_ = std::min(earliest_, due_[i]);
    }
  }
  /// Removes what has been taken from the lists.
  void drop_taken() {
    for (const List& list : lists_)
      list.items->erase(list.items->begin(), list.items->begin() + static_cast<std::ptrdiff_t>(list.taken));
  }

 private:
  static constexpr uint64_t never = ~uint64_t{0};
  struct List {
    uint32_t number;
    size_t taken;
    std::vector<Item>* items;
  };
  TickOf tick_of_;
  std::vector<uint64_t> due_;  // of each list's next item
  uint64_t earliest_ = never;  // of these
  std::vector<List> lists_;
};

}  // namespace

MemorySystem::MemorySystem(const Spec& spec, uint32_t launch_slots)
    : spec_(spec),
      map_(spec.address_map, spec.dram, reinterpret_cast<SliceHashFunction>(spec.policy.slice_hash)),
      partitions_(spec),
      slices_(spec.address_map.channels * spec.address_map.slices_per_channel),
      core_to_network_{spec.clock.core_mhz.khz, spec.clock.interconnect_mhz.khz},
      network_to_core_{spec.clock.interconnect_mhz.khz, spec.clock.core_mhz.khz},
      network_to_l2_{spec.clock.interconnect_mhz.khz, spec.clock.l2_mhz.khz},
      core_to_l2_{spec.clock.core_mhz.khz, spec.clock.l2_mhz.khz},
      request_network_(ports(spec), slices_, spec.interconnect.arbiter,
                       {spec.interconnect.look_ahead, spec.interconnect.sm_port_sectors, 1}),
      reply_network_(slices_, ports(spec), spec.interconnect.arbiter,
                     {spec.interconnect.look_ahead, 1, spec.interconnect.sm_port_sectors}),
      output_buffers_(slices_),
      next_arrival_(slices_),
      request_busy_until_(slices_),
      reply_port_(ports(spec)),
      last_reply_(ports(spec)),
      replies_(ports(spec)),
      requests_(ports(spec)),
      departures_(ports(spec)),
      network_counters_(launch_slots) {
  for (uint32_t c = 0; c < spec.address_map.channels; ++c)
    channels_.push_back(std::make_unique<MemoryChannel>(spec_, map_, partitions_, c, launch_slots));
}

uint32_t MemorySystem::ports(const Spec& spec) {
  const InstructionCacheSpec& cache = spec.sm.front_end.instruction_cache;
  const bool shared = !cache.perfect && cache.l1_shared_by > 1;
  return spec.sm.count + (shared ? (spec.sm.count + cache.l1_shared_by - 1) / cache.l1_shared_by : 0);
}

Cycle MemorySystem::look_ahead() const {
  uint64_t latency = spec_.l2.latency;
  if (partitions_.count() > 1) latency = std::min({latency, partitions_.there(), partitions_.back()});
  return std::max<Cycle>(
      1, ClockRatio{spec_.clock.l2_mhz.khz, spec_.clock.core_mhz.khz}.at_or_after(latency) - 1);
}

uint32_t MemorySystem::data_flits(bool carries_data) const {
  if (spec_.interconnect.flit_bytes == 0) return 1;
  constexpr uint32_t header_bytes = 8;
  const uint32_t bytes = header_bytes + (carries_data ? sector_bytes : 0);
  return (bytes + spec_.interconnect.flit_bytes - 1) / spec_.interconnect.flit_bytes;
}

void MemorySystem::advance_slices(uint32_t first, uint32_t last, Cycle end) {
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (uint32_t c = first; c < last; ++c) {
    for (uint32_t s = 0; s < per_channel; ++s) {
      deliver(c * per_channel + s, delivered_until_);
      if (output_buffers_[c * per_channel + s].empty()) channels_[c]->refused(s).clear();
    }
    channels_[c]->run(end - 1);
  }
}

void MemorySystem::exchange_far_messages() {
  if (partitions_.count() == 1) return;
  for (uint32_t s = 0; s < slices_; ++s) {
    auto& messages = slice(s).far_messages();
    for (const L2Slice::FarMessage& message : messages) slice(message.to).arrive_from_far(message);
    messages.clear();
  }
}

void MemorySystem::advance_replies(Cycle end) {
  exchange_far_messages();
  const uint64_t limit = core_to_network_.after(end - 1);
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  const uint64_t credit_delay = core_to_network_.at_or_after(spec_.interconnect.credit_latency);
  const uint64_t width = spec_.interconnect.sm_port_sectors;
  const auto tick_of = [](const MemoryChannel::Sent& sent) { return sent.tick; };
  Senders<MemoryChannel::Sent, decltype(tick_of)> senders(tick_of);
  for (uint32_t s = 0; s < slices_; ++s) senders.add(s, channels_[s / per_channel]->sent(s % per_channel));
  while (reply_tick_ < limit) {
    if (reply_network_.idle()) {
      reply_tick_ = std::max(reply_tick_, std::min(limit, senders.earliest()));
      if (reply_tick_ >= limit) break;
    }
    const uint64_t tick = reply_tick_++;
    senders.take(tick, [&](uint32_t slice, const MemoryChannel::Sent& sent) {
      reply_network_.push(slice, sent.reply.sm, sent.reply);
    });
    uint16_t slot = 0;
    const uint64_t waited = reply_network_.advance(
        [&](uint32_t sm) { return reply_port_[sm] < (tick + 1) * width; },
        [&](uint32_t slice, uint32_t sm, L2Slice::Reply packet) {
          reply_port_[sm] = std::max(reply_port_[sm], tick * width) + data_flits(!packet.reply.write);
          channels_[slice / per_channel]->reply_left(slice % per_channel, tick + credit_delay);
          // The SM's port accepts it in the next core cycle and forwards it in the one after.
          const Cycle due = network_to_core_.after(tick + spec_.interconnect.latency) + 1;
          LastReply& last = last_reply_[sm];
          if (due > last.cycle)
            last = {due, 1};
          else if (++last.count > width)
            last = {last.cycle + 1, 1};
          packet.reply.cycle = last.cycle;
          replies_[sm].push_back(packet.reply);
          slot = packet.slot;
          ++network_counters_[slot][Counter::network_reply_packets];
        });
    network_counters_[slot][Counter::network_reply_wait] += waited;
  }
  senders.drop_taken();
}

void MemorySystem::deliver(uint32_t slice, uint64_t l2_end) {
  RingQueue<Arrival>& buffer = output_buffers_[slice];
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  MemoryChannel& channel = *channels_[slice / per_channel];
  RingQueue<uint64_t>& refused = channel.refused(slice % per_channel);
  while (!buffer.empty()) {
    uint64_t at = std::max(next_arrival_[slice], buffer.front().l2_cycle);
    while (!refused.empty() && refused.front() < at) refused.pop_front();
    while (!refused.empty() && refused.front() == at) {
      refused.pop_front();
      ++at;
    }
    if (at >= l2_end) {
      next_arrival_[slice] = at;  // refusals before it no longer matter
      return;
    }
    channel.slice(slice % per_channel).arrive(buffer.front().request, at);
    buffer.pop_front();
    next_arrival_[slice] = at + 1;
  }
}

void MemorySystem::advance_requests(Cycle end) {
  const uint64_t limit = core_to_network_.after(end - 1);
  const uint64_t l2_end = core_to_l2_.after(end - 1);
  const auto tick_of = [this](const MemoryRequest& r) { return core_to_network_.after(r.cycle); };
  Senders<MemoryRequest, decltype(tick_of)> senders(tick_of);
  for (uint32_t sm = 0; sm < requests_.size(); ++sm) senders.add(sm, requests_[sm]);
  while (request_tick_ < limit) {
    if (request_network_.idle()) {
      request_tick_ = std::max(request_tick_, std::min(limit, senders.earliest()));
      if (request_tick_ >= limit) break;
    }
    const uint64_t tick = request_tick_++;
    senders.take(tick, [&](uint32_t sm, const MemoryRequest& request) {
      request_network_.push(sm, partitions_.slice_for(request, map_.slice_of(request.address)), request);
    });
    uint16_t slot = 0;
    const Cycle left = network_to_core_.at_or_after(tick);
    const uint64_t l2_cycle = network_to_l2_.after(tick + spec_.interconnect.latency);
    const uint64_t waited = request_network_.advance(
        [&](uint32_t slice) {
          if (request_busy_until_[slice] > tick) return false;
          if (output_buffers_[slice].size() < spec_.interconnect.output_buffer) return true;
          deliver(slice, std::min(l2_end, network_to_l2_.at_or_after(tick)));
          return output_buffers_[slice].size() < spec_.interconnect.output_buffer;
        },
        [&](uint32_t sm, uint32_t slice, const MemoryRequest& packet) {
          const bool carries_data = packet.write || packet.kind == AccessKind::Atomic;
          request_busy_until_[slice] = tick + data_flits(carries_data);
          output_buffers_[slice].push_back({l2_cycle, packet});
          departures_[sm].push_back(left);
          slot = packet.slot;
          ++network_counters_[slot][Counter::network_request_packets];
        });
    network_counters_[slot][Counter::network_request_wait] += waited;
  }
  senders.drop_taken();
  delivered_until_ = l2_end;
}

void MemorySystem::insert(uint64_t address, uint64_t bytes, bool modified) {
  const uint64_t capacity =
      uint64_t{spec_.l2.slice.sets} * spec_.l2.slice.ways * spec_.l2.slice.line_bytes * slices_;
  uint64_t first = address / sector_bytes * sector_bytes;
  const uint64_t end = address + bytes;
  // If the data is much larger than the L2, only its last part can stay.
  if (end - first > 4 * capacity) first = (end - 4 * capacity) / sector_bytes * sector_bytes;
  for (uint64_t sector = first; sector < end; sector += sector_bytes) {
    const uint32_t home = map_.slice_of(sector);
    for (uint32_t p = 0; p < partitions_.count(); ++p) {
      const uint32_t index = partitions_.partner(home, p);
      if (index == home)
        slice(index).insert(sector, modified);
      else
        slice(index).drop_copy(sector);
    }
  }
}

uint32_t MemorySystem::warm(const LineAccess& access, uint32_t partition) {
  uint32_t exchanged = 0;
  for (uint32_t rest = access.sectors; rest;) {
    // Sectors of a line of the L2 that are in the same slice are looked up together.
    const uint64_t first = access.line + uint64_t(std::countr_zero(rest)) * sector_bytes;
    const uint64_t line = first / spec_.l2.slice.line_bytes;
    const uint32_t home = map_.slice_of(first);
    uint32_t together = 0;
    for (uint64_t sector = first; rest; sector += sector_bytes) {
      const uint32_t bit = 1u << (sector - access.line) / sector_bytes;
      if (bit > rest || sector / spec_.l2.slice.line_bytes != line) break;
      if (!(rest & bit)) continue;
      if (sector != first && map_.slice_of(sector) != home) break;
      together |= 1u << (sector - first) / sector_bytes;
      rest &= ~bit;
    }
    const uint32_t copy = partitions_.partner(home, partition);
    if (!access.write && copy != home) {
      // The home slice is asked for what the copy lacks.
      const CacheInsertion inserted = slice(copy).insert(first, false, together);
      exchanged += inserted.written_back;
      together = inserted.fetched;
    }
    if (together) {
      const CacheInsertion inserted = slice(home).insert(first, access.write, together);
      exchanged += inserted.written_back + static_cast<uint32_t>(std::popcount(inserted.fetched));
    }
    for (uint32_t p = 0; access.write && p < partitions_.count(); ++p) {
      const uint32_t index = partitions_.partner(home, p);
      if (index == home) continue;
      for (uint32_t each = together; each; each &= each - 1)
        slice(index).drop_copy(first + uint64_t(std::countr_zero(each)) * sector_bytes);
    }
  }
  return exchanged;
}

void MemorySystem::renew(const std::vector<std::vector<CacheLine>>& contents, double share) {
  const uint32_t ways = spec_.l2.slice.ways;
  const auto kept = static_cast<size_t>(std::ceil(std::min(1.0, share) * ways));
  for (uint32_t s = 0; s < slices_; ++s) {
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

void MemorySystem::empty_l2() {
  for (uint32_t s = 0; s < slices_; ++s) slice(s).cache().invalidate();
}

uint64_t MemorySystem::free_l2_lines() const {
  uint64_t lines = 0;
  for (uint32_t s = 0; s < slices_; ++s) lines += slice(s).cache().free_lines();
  return lines;
}

std::vector<std::vector<CacheLine>> MemorySystem::l2_contents() const {
  std::vector<std::vector<CacheLine>> found;
  for (uint32_t s = 0; s < slices_; ++s) found.push_back(slice(s).cache().contents());
  return found;
}

void MemorySystem::restore_l2(const std::vector<std::vector<CacheLine>>& contents) {
  if (contents.size() != slices_) throw std::invalid_argument("the contents of an L2: the number of slices");
  for (uint32_t s = 0; s < slices_; ++s) slice(s).cache().restore(contents[s]);
}

Cycle MemorySystem::next_event() const {
  if (!request_network_.idle() || !reply_network_.idle()) return 0;
  for (const auto& waiting : requests_)
    if (!waiting.empty()) return 0;
  Cycle next = ~Cycle{0};
  const ClockRatio l2_to_core{spec_.clock.l2_mhz.khz, spec_.clock.core_mhz.khz};
  for (const auto& buffer : output_buffers_) {
    if (buffer.empty()) continue;
    // What arrives before the slices go on is looked up after the L2's latency.
    if (buffer.front().l2_cycle >= delivered_until_) return 0;
    next = std::min(next, l2_to_core.at_or_after(buffer.front().l2_cycle + spec_.l2.latency - 1));
  }
  const uint32_t per_channel = spec_.address_map.slices_per_channel;
  for (const auto& channel : channels_) {
    for (uint32_t s = 0; s < per_channel; ++s)
      if (!channel->sent(s).empty()) return 0;
    next = std::min(next, channel->next_core_event());
  }
  return next;
}

Counters MemorySystem::counters(uint16_t slot) const {
  Counters total = network_counters_[slot];
  for (const auto& channel : channels_) total += channel->counters()[slot];
  return total;
}

void MemorySystem::reset_counters(uint16_t slot) {
  network_counters_[slot] = Counters{};
  for (const auto& channel : channels_) {
    channel->counters()[slot] = Counters{};
    for (uint32_t s = 0; s < spec_.address_map.slices_per_channel; ++s)
      channel->slice(s).activity(slot) = SliceActivity{};
  }
}

std::vector<SliceActivity> MemorySystem::slice_activity(uint16_t slot) const {
  std::vector<SliceActivity> activity;
  for (const auto& channel : channels_)
    for (uint32_t s = 0; s < spec_.address_map.slices_per_channel; ++s)
      activity.push_back(channel->slice(s).activity(slot));
  return activity;
}

std::vector<ChannelActivity> MemorySystem::channel_activity() const {
  std::vector<ChannelActivity> activity;
  for (const auto& channel : channels_) activity.push_back(channel->dram().activity());
  return activity;
}

std::vector<BankActivity> MemorySystem::bank_activity() const {
  std::vector<BankActivity> activity;
  for (const auto& channel : channels_) channel->append_bank_activity(activity);
  return activity;
}

}  // namespace simt
