#include "timing/memory/l2_slice.hpp"

#include <algorithm>
#include <bit>

namespace simt {

L2Slice::L2Slice(const Spec& spec, const AddressMap& map, const L2Partitions& partitions, uint32_t slice,
                 SliceOutputs& outputs, std::vector<Counters>& counters)
    : outputs_(outputs),
      packet_flits_(packet_flits(spec.interconnect)),
      in_outputs_(uint32_t{1} << slice % spec.address_map.slices_per_channel),
      partition_(partitions.of_slice(slice)),
      partitioned_(partitions.count() > 1),
      spec_(spec),
      map_(map),
      index_(slice),
      in_channel_(static_cast<uint16_t>(slice % spec.address_map.slices_per_channel)),
      partitions_(partitions),
      counters_(counters),
      activity_(counters.size()),
      cache_(spec.l2.slice),
      peer_port_(spec) {}

void L2Slice::add_sectors(RingQueue<Delayed>& queue, uint64_t ready, const SliceRequest& packet) {
  for (uint32_t s = 1; s < packet.sectors; ++s) {
    SliceRequest request = packet;
    request.address += uint64_t{s} * sector_bytes;
    request.set = map_.set_of(request.address);
    insert_by_time(queue, {ready, request});
  }
}

inline void L2Slice::drop_outdated(uint64_t cycle) {
  for (; !outdated_.empty() && outdated_.front().ready <= cycle; outdated_.pop_front())
    drop_copy(outdated_.front().address);
}

void L2Slice::arrive_from_far(const FarMessage& message) {
  switch (message.kind) {
    case FarKind::Read: {
      SliceRequest read;
      read.address = message.address;
      read.token = message.mshr;
      read.set = map_.set_of(read.address);
      read.asker = static_cast<uint16_t>(message.from);
      read.of_slice = true;
      read.kind = message.access;
      read.eviction = message.eviction;
      read.slot = message.slot;
      insert_by_time(asked_, {message.ready, read});
      wake_ = std::min(wake_, message.ready);
      break;
    }
    case FarKind::Data:
      insert_by_time(far_data_, message);
      wake_ = std::min(wake_, message.ready);
      break;
    case FarKind::Written:
      // The slice has been simulated up to the time the message was sent, so older messages can be applied.
      drop_outdated(message.ready - partitions_.there());
      insert_by_time(outdated_, {message.ready, message.address});
      if (stalled_ || has_output()) wake_ = std::min(wake_, message.ready);
      break;
  }
}

void L2Slice::tell_of_write(uint64_t address, uint64_t cycle) {
  for (uint32_t p = 0; p < partitions_.count(); ++p) {
    if (p == partition_) continue;
    FarMessage message;
    message.ready = cycle + partitions_.there();
    message.address = address;
    message.to = partitions_.partner(index_, p);
    message.kind = FarKind::Written;
    far_messages_.push_back(message);
  }
}

void L2Slice::send_data(const SliceRequest& request, uint64_t cycle) {
  FarMessage message;
  message.ready = cycle + partitions_.back();
  message.address = request.address;
  message.to = request.asker;
  message.mshr = static_cast<uint32_t>(request.token);
  message.kind = FarKind::Data;
  far_messages_.push_back(message);
}

inline void L2Slice::answer(const SliceRequest& request, uint64_t cycle) {
  if (request.of_slice) return send_data(request, cycle);
  if (request.kind == AccessKind::L1Writeback) return;
  ReplyPacket& reply = replies_.add();
  reply.flits = packet_flits_[!request.write];
  reply.address = request.address;
  reply.token = request.token;
  reply.output = request.asker;
  reply.slot = request.slot;
  reply.kind = request.kind;
  reply.write = request.write;
  outputs_.replies |= in_outputs_;
}

inline void L2Slice::occupy_atomic_unit(uint32_t words, uint64_t cycle) {
  if (spec_.l2.atomic_rate == 0) return;
  constexpr uint64_t parts = 1000;  // of a cycle
  // What remains of a cycle is carried over while requests follow each other.
  if (cycle > atomic_unit_free_at_) atomic_unit_parts_ = 0;
  const uint64_t taken = atomic_unit_parts_ + std::max(parts, words * parts * parts / spec_.l2.atomic_rate);
  atomic_unit_free_at_ = cycle + taken / parts;
  atomic_unit_parts_ = taken % parts;
}

inline CacheAccess L2Slice::access_of(const SliceRequest& request) {
  CacheAccess access;
  access.address = request.address;
  access.set = request.set;
  access.byte_mask = request.byte_mask;
  access.write = request.write;
  access.atomic = request.kind == AccessKind::Atomic;
  access.eviction = access.next_eviction = request.eviction;
  access.kind = request.kind;
  access.slot = request.slot;
  return access;
}

inline bool L2Slice::look_up(const SliceRequest& request, uint64_t cycle) {
  CacheAccess access = access_of(request);
  const bool lives_far = partitioned_ && partitions_.of_slice(map_.slice_of(access.address)) != partition_;
  // Some MSHRs are reserved for requests from other slices, which never wait for another slice.
  if (lives_far && !access.write &&
      waiting_for_far_ + spec_.l2.slice.mshr_entries / 8 >= spec_.l2.slice.mshr_entries)
    return false;
  access.token = free_waiting_.empty() ? waiting_.size() : free_waiting_.back();
  access.time = ++access_order_;
  Counters& counters = counters_[access.slot];
  // Likewise, one way of each set is reserved: two slices whose sets wait for each other would deadlock.
  const bool waits = lives_far && !access.write && !cache_.leaves_a_way(access);
  const CacheOutcome outcome = spec_.l2.perfect ? CacheOutcome::Hit
                               : waits          ? CacheOutcome::ReservationFail
                                                : cache_.access(access);
  if (outcome == CacheOutcome::ReservationFail) {
    ++counters[Counter::l2_reservation_fail];
    return false;
  }
  refused_ = false;
  ++looked_up_;
  // A sector missing from a copy is counted at its home slice.
  const bool asks_far = lives_far && (outcome == CacheOutcome::Miss || outcome == CacheOutcome::SectorMiss);
  if (asks_far) {
    ++waiting_for_far_;
  } else {
    ++counters.l2_at(access.kind, outcome);
    ++activity_[access.slot].lookups;
    activity_[access.slot].hits += outcome == CacheOutcome::Hit;
  }
  // A write-back occupies the data port, and so does a write, above all if it changes a part of a sector.
  const bool merges = access.byte_mask != ~0u && outcome == CacheOutcome::Hit;
  uint32_t interval = !access.write ? 1u : merges ? spec_.l2.partial_write_interval : spec_.l2.write_interval;
  if (const uint32_t evicted = spec_.l2.perfect ? 0 : cache_.last_evicted_sectors())
    interval = std::max(interval, evicted * sector_bytes / std::max(1u, spec_.l2.port_bytes));
  port_free_at_ = cycle + interval;
  if (access.atomic) occupy_atomic_unit(static_cast<uint32_t>(std::popcount(access.byte_mask)) / 4, cycle);
  if (partitioned_ && (access.write || access.atomic)) tell_of_write(access.address, cycle);
  if (access.write || outcome == CacheOutcome::Hit) {
    answer(request, cycle);
  } else if (free_waiting_.empty()) {
    waiting_.push_back({request});
  } else {
    waiting_[access.token].request = request;
    free_waiting_.pop_back();
  }
  return true;
}

/// Sends the first request to another device.
inline void L2Slice::ask_peer(uint64_t cycle) {
  const SliceRequest& request = requests_.front();
  const bool carries_data = request.write || request.kind == AccessKind::Atomic;
  const std::optional<uint64_t> ready = peer_port_.send(carries_data, !request.write, cycle);
  if (!ready) return;
  ++counters_[request.slot].l2_at(request.kind, CacheOutcome::Miss);
  ++activity_[request.slot].lookups;
  insert_by_time(from_peers_, {*ready, request});
  requests_.pop_front();
}

inline void L2Slice::look_up_next(uint64_t cycle) {
  if (!dram_room() || !reply_room() || cycle < port_free_at_) return;
  if (!asked_.empty() && asked_.front().ready <= cycle && look_up(asked_.front().request, cycle)) {
    asked_.pop_front();
    return;
  }
  if (requests_.empty()) return;
  const SliceRequest& request = requests_.front();
  if (request.to_peer) return ask_peer(cycle);
  if (request.kind == AccessKind::Atomic && cycle < atomic_unit_free_at_) return;
  if (refused_) {
    ++access_order_;
    ++counters_[request.slot][Counter::l2_reservation_fail];
    return;
  }
  const uint64_t accesses = access_order_;
  if (look_up(request, cycle))
    requests_.pop_front();
  else
    refused_ = access_order_ != accesses;  // it was the cache that refused
}

void L2Slice::prefetch_accesses(uint64_t begin, uint64_t end) {
  // One look-up a cycle; if requests are left over from the last window, about as many as in that.
  const size_t most = requests_.empty() ? end - begin : std::min<size_t>(end - begin, looked_up_ + 1);
  looked_up_ = 0;
  const size_t waiting = std::min(most, requests_.size());
  size_t arriving = std::min(most - waiting, near_.size());
  while (arriving > 0 && near_[arriving - 1].ready >= end) --arriving;
  const auto for_each = [&](auto use) {
    for (size_t i = 0; i < waiting; ++i) use(requests_[i]);
    for (size_t i = 0; i < arriving; ++i) use(near_[i].request);
  };
  for_each([this](const SliceRequest& r) { cache_.prefetch_access(access_of(r)); });
  for_each([&](const SliceRequest& r) {
    CacheAccess access = access_of(r);
    if (cache_.prefetch_found(access)) cache_.prefetch_replaced(access);
  });
}

inline void L2Slice::take_far_data(uint64_t cycle) {
  if (far_data_.empty() || far_data_.front().ready > cycle) return;
  from_dram_.push_back({far_data_.front().address, far_data_.front().mshr});
  far_data_.pop_front();
  --waiting_for_far_;
}

inline void L2Slice::send_miss(uint64_t cycle) {
  const CacheMiss& miss = cache_.front_miss();
  const uint32_t home = partitioned_ ? map_.slice_of(miss.address) : index_;
  if (!partitioned_ || partitions_.of_slice(home) == partition_) {
    const DramLocation where = map_.locate(miss.address);
    to_dram_.push_back({miss.address, where.row, miss.mshr, miss.slot, in_channel_,
                        static_cast<uint8_t>(where.bank), miss.sectors, miss.write});
    outputs_.dram_requests |= in_outputs_;
  } else {
    FarMessage message;
    message.ready = cycle + partitions_.there();
    message.address = miss.address;
    message.to = home;
    message.from = index_;
    message.mshr = miss.mshr;
    message.access = miss.kind;
    message.eviction = miss.eviction;
    message.slot = miss.slot;
    far_messages_.push_back(message);
  }
  cache().pop_miss();
}

inline void L2Slice::take_request(uint64_t cycle) {
  RingQueue<Delayed>* from = nullptr;
  if (!near_.empty() && near_.front().ready <= cycle) from = &near_;
  if (!far_.empty() && far_.front().ready <= cycle && (!from || far_.front().ready < from->front().ready))
    from = &far_;
  if (!from) return;
  requests_.push_back(from->front().request);
  from->pop_front();
}

/// Packets are refused, or no longer, from the next cycle on.
void L2Slice::change_acceptance(uint64_t cycle) {
  accepts_ = !accepts_;
  if (accepts_)
    refusals_.back().end = cycle + 1;
  else
    refusals_.push_back({cycle + 1, ~uint64_t{0}});
}

/// After the tick of `cycle`. Without room for what it makes, the slice waits until some is taken out.
inline void L2Slice::set_wake(uint64_t cycle) {
  const bool looks_up = !requests_.empty() && dram_room() && reply_room();
  if (!from_dram_.empty() || (!cache_.miss_queue_empty() && dram_room()) ||
      (cache_.ready() && reply_room()) || (looks_up && !refused_)) {
    wake_ = cycle + 1;
    return;
  }
  stalled_ = looks_up && port_free_at_ <= cycle + 1;
  counted_until_ = cycle + 1;
  wake_ = looks_up && !stalled_ ? port_free_at_ : ~uint64_t{0};
  if (requests_.size() < spec_.l2.request_queue && !near_.empty())
    wake_ = std::min(wake_, near_.front().ready);
  if (!from_peers_.empty() && reply_room())
    wake_ = std::min(wake_, std::max(cycle + 1, from_peers_.front().ready));
  if (!partitioned_) return;
  if (requests_.size() < spec_.l2.request_queue && !far_.empty()) wake_ = std::min(wake_, far_.front().ready);
  if (!far_data_.empty()) wake_ = std::min(wake_, far_data_.front().ready);
  if (!asked_.empty()) wake_ = std::min(wake_, asked_.front().ready);
  if ((stalled_ || has_output()) && !outdated_.empty()) wake_ = std::min(wake_, outdated_.front().ready);
}

void L2Slice::tick(uint64_t cycle) {
  count_until(cycle);
  stalled_ = false;
  if (partitioned_) {
    drop_outdated(cycle);
    take_far_data(cycle);
  }
  if (cache_.ready() && reply_room()) {
    const auto place = static_cast<uint32_t>(cache().pop_ready());
    answer(waiting_[place].request, cycle);
    free_waiting_.push_back(place);
  }
  if (!from_peers_.empty() && from_peers_.front().ready <= cycle && reply_room()) {
    answer(from_peers_.front().request, cycle);
    from_peers_.pop_front();
  }
  if (!from_dram_.empty()) {
    cache().fill(from_dram_.front().mshr, from_dram_.front().address, ++access_order_);
    from_dram_.pop_front();
    if (cache_.ready()) simt::prefetch(&waiting_[cache_.next_ready()]);
  }
  if (!cache_.miss_queue_empty() && dram_room()) send_miss(cycle);
  look_up_next(cycle);
  if (requests_.size() < spec_.l2.request_queue) take_request(cycle);
  if (accepts_ != (requests_.size() + 3 < spec_.l2.request_queue)) change_acceptance(cycle);
  set_wake(cycle);
}

CacheInsertion L2Slice::insert(uint64_t address, bool modified, uint32_t sectors, Eviction eviction) {
  CacheAccess access;
  access.address = address;
  access.set = map_.set_of(address);
  access.time = ++access_order_;
  access.write = modified;
  access.eviction = eviction;
  return cache().insert(access, sectors);
}

}  // namespace simt
