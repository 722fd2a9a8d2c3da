#include "timing/memory/memory_channel.hpp"

#include <algorithm>
#include <bit>

namespace simt {

MemoryChannel::MemoryChannel(const Spec& spec, const AddressMap& map, const L2Partitions& partitions,
                             Crossbar<ReplyPacket>& network, uint32_t channel)
    : spec_(spec),
      counters_(1),
      dram_(spec.dram, counters_),
      l2_to_core_{spec.clock.l2_mhz.khz, spec.clock.core_mhz.khz},
      network_ticks_(spec.clock.interconnect_mhz.khz, spec.clock.l2_mhz.khz),
      dram_ticks_(spec.clock.dram_mhz.khz, spec.clock.l2_mhz.khz),
      shared_limit_(spec.dram.scheduler_queue + spec.dram.return_queue -
                    (spec.address_map.slices_per_channel - 1)),
      network_(network),
      first_slice_(channel * spec.address_map.slices_per_channel) {
  const uint32_t slices = spec.address_map.slices_per_channel;
  slices_.reserve(slices);
  for (uint32_t s = 0; s < slices; ++s)
    slices_.emplace_back(spec, map, partitions, first_slice_ + s, outputs_, counters_);
  own_credit_.resize(slices);
  last_served_ = slices - 1;
}

void MemoryChannel::reset_counters(uint16_t slot) {
  if (slot >= counters_.size()) {
    counters_.resize(slot + 1u);
    for (L2Slice& slice : slices_) slice.activity().resize(slot + 1u);
  }
  counters_[slot] = Counters{};
  for (L2Slice& slice : slices_) slice.activity()[slot] = SliceActivity{};
}

void MemoryChannel::prefetch(const WindowEnd& end) {
  for (L2Slice& slice : slices_) slice.prefetch_accesses(l2_tick_, end.l2);
  if (dram_.idle()) return;
  dram_.for_each_arriving(dram_ticks_.tick(), end.dram,
                          [this](const DramRequest& r) { slices_[r.slice].prefetch_mshr(r); });
  dram_.for_each_arriving(dram_ticks_.tick(), end.dram,
                          [this](const DramRequest& r) { slices_[r.slice].prefetch_line(r); });
}

inline void MemoryChannel::send_replies(uint64_t tick) {
  for (uint32_t rest = outputs_.replies; rest; rest &= rest - 1) {
    const auto s = static_cast<uint32_t>(std::countr_zero(rest));
    L2Slice& slice = slices_[s];
    if (!slice.has_network_room(tick)) continue;
    RingQueue<ReplyPacket>& queue = network_.queue(first_slice_ + s);
    queue.push_back(slice.front_reply());
    queue.back().tick = tick;
    slice.pop_reply();
  }
}

inline void MemoryChannel::give_back_credit(uint32_t slice) {
  if (own_credit_[slice] > 0)
    --own_credit_[slice];
  else
    --shared_credit_;
}

inline bool MemoryChannel::take_dram_request(uint32_t slices, uint64_t now) {
  for (; slices; slices &= slices - 1) {
    const auto s = static_cast<uint32_t>(std::countr_zero(slices));
    L2Slice& slice = slices_[s];
    if (!slice.can_take_data()) continue;
    const bool own = own_credit_[s] < 1;
    if (!own && shared_credit_ >= shared_limit_) continue;
    const DramRequest& request = slice.front_dram_request();
    if (dram_.full(request.write)) return true;
    ++(own ? own_credit_[s] : shared_credit_);
    controller_.push_back({now + spec_.dram.latency, request});
    slice.pop_dram_request();
    last_served_ = s;
    return true;
  }
  return false;
}

/// `now`: the tick's L2 cycle.
inline void MemoryChannel::dram_tick(uint64_t tick, uint64_t now) {
  if (dram_.has_returned()) {
    const DramRequest& request = dram_.front_returned();
    if (slices_[request.slice].can_take_data()) {
      slices_[request.slice].take_data(request);
      give_back_credit(request.slice);
      dram_.pop_returned();
    }
  }
  if (!spec_.dram.simple) dram_.tick(tick);
  for (uint32_t slice : dram_.writes_done()) give_back_credit(slice);
  dram_.writes_done().clear();

  if (const uint32_t asking = outputs_.dram_requests) {
    const uint32_t before = (uint32_t{2} << last_served_) - 1;  // in turn
    if (!take_dram_request(asking & ~before, now)) take_dram_request(asking & before, now);
  }
  if (controller_.empty() || controller_.front().ready > now) return;
  if (spec_.dram.simple) {
    dram_.serve_at_once(controller_.front().request);
    controller_.pop_front();
  } else if (!dram_.full(controller_.front().request.write)) {
    dram_.push(controller_.front().request);
    controller_.pop_front();
  }
}

uint64_t MemoryChannel::next_l2_event() const {
  if (!dram_.idle()) return l2_tick_;
  uint64_t next = controller_.empty() ? ~uint64_t{0} : controller_.front().ready;
  if (outputs_.replies != 0 || outputs_.dram_requests != 0) return l2_tick_;
  for (const L2Slice& slice : slices_) next = std::min(next, slice.next_event());
  return next == ~uint64_t{0} ? next : std::max(next, l2_tick_);
}

uint64_t MemoryChannel::next_core_event() const {
  const uint64_t next = next_l2_event();
  // One core cycle early is harmless: nothing happens in it.
  return next == ~uint64_t{0} ? next : l2_to_core_.at_or_after(next > 0 ? next - 1 : 0);
}

void MemoryChannel::run(const WindowEnd& end) {
  if (l2_tick_ < end.l2) prefetch(end);
  while (l2_tick_ < end.l2) {
    const uint64_t next = next_l2_event();
    if (next > l2_tick_) {
      // Nothing happens before L2 cycle `next`; the ticks of the other domains until then have no effect.
      l2_tick_ = std::min(next, end.l2);
      network_ticks_.skip_to_due(l2_tick_);
      dram_ticks_.skip_to_due(l2_tick_);
      continue;
    }
    // In each step, replies leave first, then DRAM runs, then the slices.
    for (; network_ticks_.due() <= l2_tick_; network_ticks_.advance())
      if (outputs_.replies) send_replies(network_ticks_.tick());
    for (; dram_ticks_.due() <= l2_tick_; dram_ticks_.advance())
      if (dram_works()) dram_tick(dram_ticks_.tick(), dram_ticks_.due());
    for (L2Slice& slice : slices_)
      if (slice.next_event() <= l2_tick_) slice.tick(l2_tick_);
    ++l2_tick_;
  }
  for (L2Slice& slice : slices_) slice.count_until(end.l2);
  for (; network_ticks_.tick() < end.network; network_ticks_.advance())
    if (outputs_.replies) send_replies(network_ticks_.tick());
}

}  // namespace simt
