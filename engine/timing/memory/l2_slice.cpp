#include "timing/memory/l2_slice.hpp"

#include <algorithm>

namespace simt {

namespace {

CacheSpec half_the_ways(CacheSpec spec) {
  spec.ways = std::max(1u, spec.ways / 2);
  return spec;
}

}  // namespace

L2Slice::L2Slice(const Spec& spec, const AddressMap& map, uint32_t slice, std::vector<Counters>& counters)
    : spec_(spec),
      map_(map),
      index_(slice),
      in_channel_(slice % spec.address_map.slices_per_channel),
      partition_(0),
      counters_(counters),
      cache_(spec.l2.slice, reinterpret_cast<ReplacementFunction>(spec.policy.l2_replacement)),
      far_copies_(spec.l2.partitions > 1 ? half_the_ways(spec.l2.slice) : CacheSpec{.sets = 1, .ways = 1}) {
  const uint32_t slices = spec.address_map.channels * spec.address_map.slices_per_channel;
  if (spec.l2.partitions > 1) partition_ = slice * spec.l2.partitions / slices;
}

void L2Slice::arrive(const MemoryRequest& packet, uint64_t cycle) {
  // A shared instruction cache lies with the first of its SMs.
  const uint32_t sms = spec_.sm.count;
  const uint32_t sm =
      packet.sm < sms ? packet.sm : (packet.sm - sms) * spec_.sm.front_end.instruction_cache.l1_shared_by;
  const uint32_t from = spec_.l2.partitions > 1 ? sm * spec_.l2.partitions / sms : partition_;
  const bool other_side = from != partition_;
  for (uint32_t s = 0; s < packet.sectors; ++s) {
    MemoryRequest request = packet;
    request.address = packet.address + uint64_t{s} * sector_bytes;
    request.sectors = 1;
    bool is_far = other_side;
    if (other_side) {
      is_far = !far_copies_.contains(request.address);
      CacheAccess copy;
      copy.address = request.address;
      copy.set_address = map_.local_address(request.address);
      far_copies_.insert_valid(copy);
    }
    (is_far ? far_ : near_)
        .push_back({cycle + spec_.l2.latency + (is_far ? spec_.l2.far_latency : 0), request});
  }
}

bool L2Slice::asleep() const {
  return requests_.empty() && to_dram_.empty() && from_dram_.empty() && replies_.empty() &&
         cache_.miss_queue_empty() && !cache_.ready();
}

uint64_t L2Slice::next_event() const {
  uint64_t next = ~uint64_t{0};
  if (!near_.empty()) next = near_.front().ready;
  if (!far_.empty()) next = std::min(next, far_.front().ready);
  return next;
}

void L2Slice::answer(const MemoryRequest& request, uint64_t address) {
  if (request.kind == AccessKind::L1Writeback) return;  // nobody waits for it
  Reply reply;
  reply.reply.address = address;
  reply.reply.token = request.token;
  reply.reply.kind = request.kind;
  reply.reply.write = request.write;
  reply.sm = request.sm;
  reply.slot = request.slot;
  replies_.push_back(reply);
}

void L2Slice::look_up(uint64_t cycle) {
  if (requests_.empty() || to_dram_.size() >= spec_.l2.dram_queue || !reply_room() || cycle < port_free_at_)
    return;
  const MemoryRequest& request = requests_.front();
  uint32_t token;
  if (free_waiting_.empty()) {
    token = static_cast<uint32_t>(waiting_.size());
    waiting_.emplace_back();
    free_waiting_.push_back(token);
  }
  token = free_waiting_.back();
  CacheAccess access;
  access.address = request.address;
  access.set_address = map_.local_address(request.address);
  access.token = token;
  access.time = ++access_order_;
  access.byte_mask = request.byte_mask;
  access.write = request.write;
  access.atomic = request.kind == AccessKind::Atomic;
  access.kind = request.kind;
  access.slot = request.slot;
  const CacheOutcome outcome = cache_.access(access);
  Counters& counters = counters_[request.slot];
  if (outcome == CacheOutcome::ReservationFail) {
    ++counters[Counter::l2_reservation_fail];
    return;
  }
  ++counters.l2_at(request.kind, outcome);
  // Reading out what is written back occupies the data port.
  port_free_at_ = cycle + std::max(1u, cache_.last_evicted_sectors() * sector_bytes /
                                           std::max(1u, spec_.l2.slice.port_bytes));
  if (request.write || outcome == CacheOutcome::Hit) {
    answer(request, request.address);
  } else {
    waiting_[token] = request;
    free_waiting_.pop_back();
  }
  requests_.pop_front();
}

void L2Slice::tick(uint64_t cycle) {
  if (cache_.ready() && reply_room()) {
    const auto token = static_cast<uint32_t>(cache_.pop_ready());
    answer(waiting_[token], waiting_[token].address);
    free_waiting_.push_back(token);
  }
  if (!from_dram_.empty()) {
    cache_.fill(from_dram_.front(), ++access_order_);
    from_dram_.pop_front();
  }
  if (!cache_.miss_queue_empty() && to_dram_.size() < spec_.l2.dram_queue) {
    const CacheMiss& miss = cache_.front_miss();
    const MemoryLocation where = map_.locate(miss.address);
    to_dram_.push_back(
        {miss.address, where.bank, where.row, in_channel_, miss.sectors, miss.slot, miss.write});
    cache_.pop_miss();
  }
  look_up(cycle);
  if (requests_.size() < spec_.l2.request_queue) {
    std::deque<Delayed>* from = nullptr;
    if (!near_.empty() && near_.front().ready <= cycle) from = &near_;
    if (!far_.empty() && far_.front().ready <= cycle && (!from || far_.front().ready < from->front().ready))
      from = &far_;
    if (from) {
      requests_.push_back(from->front().request);
      from->pop_front();
    }
  }
}

void L2Slice::insert_valid(uint64_t address) {
  CacheAccess access;
  access.address = address;
  access.set_address = map_.local_address(address);
  access.time = ++access_order_;
  cache_.insert_valid(access);
}

}  // namespace simt
