#include "timing/core/load_store_unit.hpp"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

// Reply tokens identify what a reply is for.
constexpr uint64_t bulk_line_bytes = 128;
constexpr uint64_t bypass_token = uint64_t{1} << 63;  // low bits: in-flight index and lanes
constexpr uint64_t store_token = uint64_t{1} << 62;   // then 16 bits each: launch slot, warp
// Other tokens are the L1's MSHRs.

uint32_t own_latency(uint32_t latency, uint32_t overhead) {
  return latency > overhead ? latency - overhead : 1;
}

/// Lines that the transactions, which are in the order of their addresses, are in, but for the first.
uint16_t further_lines(const std::vector<Transaction>& transactions, uint32_t line_bytes) {
  uint32_t lines = 0;
  for (size_t i = 1; i < transactions.size(); ++i)
    lines += transactions[i].address / line_bytes != transactions[i - 1].address / line_bytes;
  return static_cast<uint16_t>(lines);  // at most two of each lane
}

/// The instruction's warp may have retired when its stores are acknowledged.
uint64_t store_token_of(const InFlight& instruction) {
  return store_token | uint64_t{instruction.slot} << 16 | instruction.warp;
}

}  // namespace

LoadStoreUnit::LoadStoreUnit(const Spec& spec, const CoreTraits& traits, uint16_t sm, WarpTable& warps,
                             InFlightPool& pool, std::vector<Counters>& counters,
                             std::vector<MemoryRequest>& requests)
    : spec_(spec),
      sm_(sm),
      warps_(warps),
      pool_(pool),
      counters_(counters),
      requests_(requests),
      l1_(spec.l1.cache),
      arriving_(spec.l1.cache.sectored ? sector_bytes : spec.l1.cache.line_bytes),
      banks_(std::max(1u, spec.l1.banks)),
      shared_latency_(own_latency(spec.shared_memory.latency, traits.shared_overhead)),
      l1_latency_(own_latency(spec.l1.latency, traits.l1_overhead)),
      width_(std::max(1u, spec.interconnect.sm_port_sectors)) {}

AccessKind LoadStoreUnit::kind_of(const InFlight& instruction) const {
  const Operation operation = instruction.instruction->fixed.operation;
  if (operation == Operation::Atomic || operation == Operation::Reduction) return AccessKind::Atomic;
  const bool write = operation == Operation::Store || operation == Operation::BulkStore;
  if (instruction.space == MemorySpace::Local) return write ? AccessKind::LocalWrite : AccessKind::LocalRead;
  if (instruction.space == MemorySpace::Texture && !write) return AccessKind::TextureRead;
  return write ? AccessKind::GlobalWrite : AccessKind::GlobalRead;
}

bool LoadStoreUnit::bypasses(const InFlight& instruction) const {
  const StaticInstruction& s = instruction.instruction->fixed;
  switch (s.operation) {
    case Operation::Atomic:
    case Operation::Reduction:
    case Operation::BulkLoad:
    case Operation::BulkStore:
      return true;
    default:
      break;
  }
  if (spec_.l1.perfect && s.operation != Operation::Store) return false;
  if (instruction.space == MemorySpace::Global && spec_.l1.bypass_global) return true;
  return s.bypass_l1 && s.operation != Operation::Store;
}

void LoadStoreUnit::accept(uint32_t in_flight, Cycle now) {
  dispatch_ = in_flight;
  InFlight& instruction = pool_[in_flight];
  next_accept_ = now + spec_.l1.access_interval;
  const Operation operation = instruction.instruction->fixed.operation;
  const bool store = operation == Operation::Store;
  Counters& counters = counters_[instruction.slot];
  if (instruction.space == MemorySpace::Shared) {
    next_accept_ = now + spec_.shared_memory.access_interval;
    instruction.outstanding = 1;
    instruction.further_lines = 0;
    if (instruction.mask == 0) return;
    ++counters[store ? Counter::shared_stores : Counter::shared_loads];
    counters[Counter::shared_wavefronts] += instruction.passes;
    // A warp of 64 lanes takes at least two passes.
    const uint32_t conflicts =
        instruction.passes - std::min(instruction.passes, instruction.mask >> 32 ? 2u : 1u);
    counters[Counter::shared_bank_conflicts] += conflicts;
    if (store) counters[Counter::shared_store_bank_conflicts] += conflicts;
    if (instruction.instruction->fixed.space == MemorySpace::Generic)
      instruction.passes += spec_.shared_memory.generic_passes;
    const bool atomic = operation == Operation::Atomic || operation == Operation::Reduction;
    if (atomic && spec_.shared_memory.atomic_interval > 0) {
      instruction.passes *= spec_.shared_memory.atomic_interval;
    } else if (const uint32_t interval = spec_.shared_memory.pass_interval; interval > 1) {
      // The first pass takes one cycle of the pipeline; the next access waits until the last pass is over.
      next_accept_ = std::max(next_accept_, now + Cycle{interval} * instruction.passes);
      instruction.passes = 1 + (instruction.passes - 1) * interval;
    }
    return;
  }
  instruction.outstanding = store ? 0 : static_cast<uint32_t>(instruction.transactions.size());
  instruction.further_lines = 0;
  if (instruction.transactions.empty()) return;
  if (spec_.l1.line_interval > 0 && operation == Operation::Load && !bypasses(instruction))
    instruction.further_lines = further_lines(instruction.transactions, spec_.l1.cache.line_bytes);
  const uint64_t sectors = instruction.transactions.size();
  if (operation == Operation::Atomic || operation == Operation::Reduction) {
    ++counters[Counter::atomic_requests];
  } else if (instruction.space == MemorySpace::Local) {
    ++counters[Counter::local_requests];
  } else if (instruction.space != MemorySpace::Texture) {
    ++counters[store ? Counter::global_store_requests : Counter::global_load_requests];
    counters[store ? Counter::global_store_sectors : Counter::global_load_sectors] += sectors;
  }
  const bool bulk = operation == Operation::BulkLoad || operation == Operation::BulkStore;
  if (!bulk || (spec_.load_store.bulk_line_interval == 0 && spec_.load_store.bulk_copy_interval == 0)) return;
  bulk_copies_.push_back(in_flight);
  dispatch_ = InFlightPool::none;
}

Cycle LoadStoreUnit::fetch_operands(uint32_t bytes, Cycle now) {
  const uint64_t width = spec_.shared_memory.operand_bandwidth;
  if (width == 0) return 0;
  const uint64_t offered = (now - operands_at_) * width;
  const uint64_t left = offered - std::min(offered, other_bytes_);
  operand_bytes_ -= std::min(operand_bytes_, left);
  operand_bytes_ += bytes;
  other_bytes_ = 0;
  operands_at_ = now;
  return (operand_bytes_ + width - 1) / width;
}

bool LoadStoreUnit::network_full(Cycle now) {
  for (; !departures_.empty() && departures_.front() + spec_.interconnect.credit_latency <= now;
       departures_.pop_front())
    --in_network_buffer_;
  return in_network_buffer_ >= spec_.interconnect.input_buffer;
}

/// Whether a request of this launch must wait for the interconnect, which is then counted.
bool LoadStoreUnit::held_by_network(uint16_t slot, Cycle now) {
  if (!network_full(now)) return false;
  ++counters_[slot][Counter::network_full_stalls];
  blocked_by_network_ = true;
  return true;
}

void LoadStoreUnit::send(MemoryRequest request, Cycle now) {
  request.sm = sm_;
  request.cycle = now;
  requests_.push_back(request);
  ++in_network_buffer_;
}

bool LoadStoreUnit::send_fetch(uint64_t line, uint32_t line_bytes, AccessKind kind, uint16_t slot,
                               Cycle now) {
  if (network_full(now)) return false;
  MemoryRequest request;
  request.address = line;
  request.slot = slot;
  request.kind = kind;
  request.sectors = static_cast<uint8_t>(std::max(1u, line_bytes / sector_bytes));
  send(request, now);
  return true;
}

void LoadStoreUnit::complete(uint32_t in_flight) {
  if (!pool_[in_flight].has_turn) return write_registers(in_flight);
  pool_[in_flight].data_there = true;
  for (; !missed_.empty() && pool_[missed_.front()].data_there; missed_.pop_front())
    write_registers(missed_.front());
}

void LoadStoreUnit::write_registers(uint32_t in_flight) {
  InFlight& instruction = pool_[in_flight];
  const uint32_t w = instruction.warp;
  const Operation operation = instruction.instruction->fixed.operation;
  if (!instruction.counts_as_store) warps_.release(w, *instruction.instruction);
  if (operation == Operation::AsyncCopy)
    warps_.async_copy_done(w, static_cast<uint32_t>(instruction.async_copy));
  else if (operation == Operation::BulkLoad)
    bulk_done_.push_back({warps_[w].cta_slot, instruction.async_copy});
  else if (instruction.counts_as_store)
    warps_.store_acknowledged(w, instruction.slot);
  pool_.release(in_flight);
}

void LoadStoreUnit::finish_transaction(uint32_t in_flight, uint32_t lanes, Cycle now) {
  InFlight& instruction = pool_[in_flight];
  const Operation operation = instruction.instruction->fixed.operation;
  if (operation == Operation::Atomic || operation == Operation::Reduction)
    warps_.atomics_returned(instruction.warp, lanes);
  if (operation == Operation::BulkLoad || operation == Operation::AsyncCopy) other_bytes_ += sector_bytes;
  --instruction.outstanding;
  if (instruction.outstanding == 0 && dispatch_ != in_flight) arrived(in_flight, now);
}

/// All data of the instruction are there. Several lines that the L1 had leave it in two steps, each of which
/// moves one line per interval, and one load after the other.
void LoadStoreUnit::arrived(uint32_t in_flight, Cycle now) {
  const Cycle step = Cycle{pool_[in_flight].further_lines} * spec_.l1.line_interval;
  if (step == 0) return complete(in_flight);
  const Cycle after_others = leaving_.empty() ? 0 : leaving_.back().ready + step;
  leaving_.push_back({in_flight, std::max(now + 2 * step, after_others)});
}

bool LoadStoreUnit::take_results(Cycle now) {
  bool changed = false;
  // Serves clients in turn; `idle` of them had nothing.
  for (uint32_t idle = 0; idle < 3 && results_.size() < width_;) {
    const uint32_t client = (result_turn_ + idle) % 3;
    if (client == 0 && !shared_pipe_.empty() && shared_pipe_.front().ready <= now) {
      const uint32_t in_flight = shared_pipe_.front().in_flight;
      results_.push_back({in_flight, static_cast<uint32_t>(std::popcount(pool_[in_flight].mask))});
      shared_pipe_.pop_front();
      warps_.leave_pipeline(pool_[in_flight].warp);
    } else if (client == 1 && !bypassed_.empty()) {
      results_.push_back(bypassed_.front());
      bypassed_.pop_front();
    } else if (client == 2 && l1_.ready()) {
      results_.push_back({static_cast<uint32_t>(l1_.pop_ready()), 0});
      ++l1_changes_;
    } else {
      ++idle;
      continue;
    }
    result_turn_ = (client + 1) % 3;
    idle = 0;
    changed = true;
  }
  return changed;
}

void LoadStoreUnit::prefetch(Cycle begin, Cycle end, const std::vector<MemoryReply>& replies) {
  const auto for_each_look_up = [&](auto use) {
    if (queued_ == 0) return;
    for (Bank& bank : banks_) {
      // While the first is refused, few will be looked up.
      const Cycle most = bank.failed_at_change == l1_changes_ ? 1 : end - begin;
      const size_t count = std::min<size_t>(bank.queue.size(), most);
      for (size_t i = 0; i < count && bank.queue[i].ready < end; ++i) use(bank.queue[i]);
    }
  };
  const auto access_of = [](const BankEntry& e) {
    CacheAccess access;
    access.address = e.transaction.address;
    access.line = e.line;
    return access;
  };
  for_each_look_up([&](const BankEntry& e) {
    l1_.prefetch_access(access_of(e));
    simt::prefetch(&pool_[e.in_flight]);
  });
  bool some_miss = false;
  for_each_look_up([&](BankEntry& e) {
    CacheAccess access = access_of(e);
    some_miss |= l1_.prefetch_found(access);
    e.line = access.line;
  });
  if (some_miss) for_each_look_up([&](const BankEntry& e) { l1_.prefetch_replaced(access_of(e)); });
  const auto for_each_fill = [&](auto use) {
    for (const MemoryReply& r : replies) {
      if (r.cycle >= end) break;
      if (!r.write && !is_fetch(r) && !(r.token & (bypass_token | store_token))) use(r);
    }
  };
  for_each_fill([this](const MemoryReply& r) { l1_.prefetch_mshr(static_cast<uint32_t>(r.token)); });
  for_each_fill([this](const MemoryReply& r) {
    const auto mshr = static_cast<uint32_t>(r.token);
    l1_.prefetch_line(mshr);
    simt::prefetch(&pool_[static_cast<uint32_t>(l1_.token_of(mshr))]);
  });
}

bool LoadStoreUnit::take_reply(Cycle now, const MemoryReply& reply) {
  if (is_fetch(reply)) return false;  // for the instruction cache, in the next cycle
  if (reply.write) {
    if (reply.token & store_token)
      warps_.store_acknowledged(static_cast<uint32_t>(reply.token & 0xffff),
                                static_cast<uint16_t>(reply.token >> 16));
  } else if (reply.token & bypass_token) {
    if (bypassed_.size() >= width_) return false;
    bypassed_.push_back(
        {static_cast<uint32_t>(reply.token & 0xffffffff), static_cast<uint32_t>(reply.token >> 32 & 0xff)});
  } else {
    if (arriving_.add(reply.address)) {
      l1_.fill(static_cast<uint32_t>(reply.token), reply.address, now);
      ++l1_changes_;
    }
  }
  return true;
}

bool LoadStoreUnit::drain_miss(Cycle now) {
  const auto& miss = l1_.front_miss();
  if (held_by_network(miss.slot, now)) return false;
  MemoryRequest request;
  request.address = miss.address;
  request.token = !miss.write ? miss.mshr : miss.write_back ? 0 : miss.token;
  request.byte_mask = miss.byte_mask;
  request.slot = miss.slot;
  request.eviction = miss.eviction;
  request.kind = miss.kind;
  request.sectors = miss.sectors;
  request.write = miss.write;
  send(request, now);
  l1_.pop_miss();
  ++l1_changes_;
  return true;
}

void LoadStoreUnit::count_failure(const Bank& bank, Cycle times) {
  const InFlight& instruction = pool_[bank.queue.front().in_flight];
  Counters& counters = counters_[instruction.slot];
  counters.l1_at(kind_of(instruction), CacheOutcome::ReservationFail) += times;
  switch (bank.failure) {
    case CacheFailure::Line:
      counters[Counter::l1_reservation_fail_line] += times;
      break;
    case CacheFailure::MissQueue:
      counters[Counter::l1_reservation_fail_miss_queue] += times;
      break;
    case CacheFailure::MshrEntries:
      counters[Counter::l1_reservation_fail_mshr] += times;
      break;
    case CacheFailure::MshrMerge:
      counters[Counter::l1_reservation_fail_merge] += times;
      break;
    case CacheFailure::None:
      break;
  }
}

bool LoadStoreUnit::look_up(Cycle now) {
  bool changed = false;
  for (Bank& bank : banks_) {
    if (bank.queue.empty() || bank.queue.front().ready > now) continue;
    if (bank.failed_at_change == l1_changes_) {
      count_failure(bank, 1);
      continue;
    }
    const BankEntry entry = bank.queue.front();
    const InFlight& instruction = pool_[entry.in_flight];
    const AccessKind kind = kind_of(instruction);
    const bool write = instruction.instruction->fixed.operation == Operation::Store;
    CacheAccess access{};
    access.address = entry.transaction.address;
    access.token = write ? store_token_of(instruction) : entry.in_flight;
    access.time = now;
    access.line = entry.line;
    access.byte_mask = entry.transaction.byte_mask;
    access.write = write;
    access.eviction = entry.transaction.l1_eviction;
    access.next_eviction = entry.transaction.l2_eviction;
    access.kind = kind;
    access.slot = instruction.slot;
    if (observer_) [[unlikely]]
      observer_->looks_up(entry.in_flight);
    const CacheOutcome outcome = spec_.l1.perfect && !write ? CacheOutcome::Hit : l1_.access(access);
    if (outcome == CacheOutcome::ReservationFail) {
      bank.failed_at_change = l1_changes_;
      bank.failure = l1_.last_failure();
      count_failure(bank, 1);
      continue;
    }
    if (observer_) [[unlikely]]
      observer_->accessed(access, outcome);
    changed = true;
    ++counters_[instruction.slot].l1_at(kind, outcome);
    bank.queue.pop_front();
    --queued_;
    if (write) {
      if (!l1_.last_write_sent()) warps_.store_acknowledged(instruction.warp, instruction.slot);
      if (--pool_[entry.in_flight].outstanding == 0 && dispatch_ != entry.in_flight)
        pool_.release(entry.in_flight);
    } else if (outcome == CacheOutcome::Hit) {
      finish_transaction(entry.in_flight, 0, now);
    } else {
      InFlight& load = pool_[entry.in_flight];
      if (spec_.l1.misses_in_order && !load.has_turn &&
          load.instruction->fixed.operation == Operation::Load) {
        load.has_turn = true;
        missed_.push_back(entry.in_flight);
      }
      load.further_lines = 0;  // data that come from the L2 arrive one after the other
    }
  }
  return changed;
}

/// Whether the tensor map of this bulk copy is known; the first copy of a launch asks for it.
bool LoadStoreUnit::tensor_map_read(const InFlight& instruction, Cycle now) {
  if (tensor_maps_.empty()) tensor_maps_.resize(counters_.size());
  TensorMap& map = tensor_maps_[instruction.slot];
  const uint64_t launch = warps_[instruction.warp].kernel->launch.id;
  if (map.launch != launch) map = {launch, tensor_map_known_ = now + spec_.load_store.tensor_map_latency};
  return map.known <= now;
}

/// Whether the first bulk copy can begin, or has begun.
bool LoadStoreUnit::bulk_copy_free(Cycle now) {
  if (bulk_copy_begun_) return true;
  if (now < next_bulk_copy_) return false;
  const Cycle interval = spec_.load_store.bulk_copy_interval;
  next_bulk_copy_ = std::max(next_bulk_copy_ + interval, now);
  return bulk_copy_begun_ = true;
}

/// Whether a sector of a bulk copy can leave: it is in the line that is being copied, or the next line's turn
/// has come.
bool LoadStoreUnit::bulk_line_free(uint64_t address, Cycle now) {
  const uint64_t line = address / bulk_line_bytes;
  if (line == bulk_line_) return true;
  if (2 * now + 1 < bulk_line_ends_) return false;
  bulk_line_ends_ = std::max(bulk_line_ends_, 2 * now) + spec_.load_store.bulk_line_interval;
  bulk_line_ = line;
  return true;
}

/// Sends transactions past the L1. Those of loads take bypass_latency to leave.
bool LoadStoreUnit::bypass(uint32_t in_flight, Cycle now) {
  InFlight& instruction = pool_[in_flight];
  const Operation operation = instruction.instruction->fixed.operation;
  const bool late =
      spec_.l1.bypass_latency > 0 && (operation == Operation::Load || operation == Operation::AsyncCopy);
  const bool bulk = operation == Operation::BulkLoad || operation == Operation::BulkStore;
  const uint32_t per_cycle = std::max(1u, spec_.l1.bypass_sectors_per_cycle);
  bool changed = false;
  for (uint32_t n = 0; n < per_cycle && !instruction.transactions.empty(); ++n) {
    if (late ? bypassing_.size() >= size_t{spec_.l1.bypass_latency} * per_cycle
             : held_by_network(instruction.slot, now))
      return changed;
    if (instruction.instruction->tensor_map && spec_.load_store.tensor_map_latency > 0 &&
        !tensor_map_read(instruction, now))
      return changed;
    if (bulk && spec_.load_store.bulk_copy_interval > 0 && !bulk_copy_free(now)) return changed;
    if (bulk && spec_.load_store.bulk_line_interval > 0 &&
        !bulk_line_free(instruction.transactions.back().address, now))
      return changed;
    const Transaction t = instruction.transactions.back();
    instruction.transactions.pop_back();
    if (operation == Operation::BulkStore) other_bytes_ += sector_bytes;
    MemoryRequest request;
    request.address = t.address;
    request.byte_mask = t.byte_mask;
    request.slot = instruction.slot;
    request.eviction = t.l2_eviction;
    request.kind = kind_of(instruction);
    request.write = request.kind == AccessKind::GlobalWrite || request.kind == AccessKind::LocalWrite;
    request.token =
        request.write ? store_token_of(instruction) : bypass_token | uint64_t{t.lanes} << 32 | in_flight;
    if (late)
      bypassing_.push_back({request, now + spec_.l1.bypass_latency});
    else
      send(request, now);
    changed = true;
  }
  return changed;
}

bool LoadStoreUnit::drain_bypassing(Cycle now) {
  bool changed = false;
  for (; !bypassing_.empty() && bypassing_.front().ready <= now; bypassing_.pop_front()) {
    if (held_by_network(bypassing_.front().request.slot, now)) break;
    send(bypassing_.front().request, now);
    changed = true;
  }
  return changed;
}

bool LoadStoreUnit::send_transactions(InFlight& instruction, Cycle now) {
  if (bypasses(instruction)) return bypass(dispatch_, now);
  const bool store = instruction.instruction->fixed.operation == Operation::Store;
  const uint32_t index = dispatch_;
  bool changed = false;
  for (size_t n = 0; n < banks_.size() && !instruction.transactions.empty(); ++n) {
    const Transaction& t = instruction.transactions.back();
    Bank& bank = banks_[t.address / sector_bytes % banks_.size()];
    if (bank.last_insert == now || bank.queue.size() >= l1_latency_) {
      ++counters_[instruction.slot][Counter::l1_bank_conflicts];
      break;
    }
    bank.queue.push_back({t, index, CacheAccess::unknown, now + l1_latency_});
    ++queued_;
    bank.last_insert = now;
    if (store) ++instruction.outstanding;
    instruction.transactions.pop_back();
    changed = true;
  }
  return changed;
}

bool LoadStoreUnit::dispatch(Cycle now) {
  const uint32_t index = dispatch_;
  InFlight& instruction = pool_[index];
  const Operation operation = instruction.instruction->fixed.operation;
  if (instruction.space == MemorySpace::Shared) {
    if (instruction.mask != 0) other_bytes_ += uint64_t{spec_.shared_memory.banks} * 4;
    if (instruction.mask != 0 && instruction.passes > 0) {
      --instruction.passes;
      if (instruction.passes > 0) return true;
    }
    if (operation == Operation::Store) {
      warps_.leave_pipeline(instruction.warp);
      warps_.release(instruction.warp, *instruction.instruction);
      dispatch_ = InFlightPool::none;
      pool_.release(index);
    } else {
      if (shared_pipe_.size() >= shared_latency_) return false;
      shared_pipe_.push_back({index, now + shared_latency_});
      dispatch_ = InFlightPool::none;
    }
    return true;
  }
  bool changed = false;
  if (!instruction.transactions.empty()) changed = send_transactions(instruction, now);
  if (!instruction.transactions.empty()) return changed;
  dispatch_ = InFlightPool::none;
  sent(index);
  return true;
}

/// Sends sectors of the first bulk copy.
bool LoadStoreUnit::send_bulk_copy(Cycle now) {
  const uint32_t index = bulk_copies_.front();
  const bool changed = bypass(index, now);
  if (!pool_[index].transactions.empty()) return changed;
  bulk_copies_.pop_front();
  bulk_copy_begun_ = false;
  sent(index);
  return true;
}

/// All transactions of the instruction have left.
void LoadStoreUnit::sent(uint32_t in_flight) {
  const InFlight& instruction = pool_[in_flight];
  const Operation operation = instruction.instruction->fixed.operation;
  warps_.leave_pipeline(instruction.warp);
  const bool stores = operation == Operation::Store || operation == Operation::BulkStore ||
                      operation == Operation::MemoryBarrier;
  if (stores || instruction.counts_as_store) warps_.release(instruction.warp, *instruction.instruction);
  if (instruction.outstanding > 0) return;
  if (stores)
    pool_.release(in_flight);
  else
    complete(in_flight);
}

bool LoadStoreUnit::cycle(Cycle now, const std::vector<MemoryReply>& replies, size_t& next_reply) {
  blocked_by_network_ = false;
  bool changed = false;
  for (uint32_t n = 0; n < width_ && next_reply < replies.size() && replies[next_reply].cycle <= now; ++n) {
    if (!take_reply(now, replies[next_reply])) break;
    ++next_reply;
    changed = true;
  }
  for (uint32_t n = 0; n < width_ && !l1_.miss_queue_empty() && drain_miss(now); ++n) changed = true;
  for (; !leaving_.empty() && leaving_.front().ready <= now; changed = true) {
    complete(leaving_.front().in_flight);
    leaving_.pop_front();
  }
  if (queued_ > 0) changed |= look_up(now);
  if (!bypassing_.empty()) changed |= drain_bypassing(now);
  if (dispatch_ != InFlightPool::none) changed |= dispatch(now);
  if (!bulk_copies_.empty()) changed |= send_bulk_copy(now);
  return changed;
}

Cycle LoadStoreUnit::next_event(Cycle now) const {
  Cycle next = ~Cycle{0};
  if (blocked_by_network_) return now + 1;
  if (!shared_pipe_.empty()) next = std::min(next, std::max(now + 1, shared_pipe_.front().ready));
  if (!bypassing_.empty()) next = std::min(next, std::max(now + 1, bypassing_.front().ready));
  if (!leaving_.empty()) next = std::min(next, std::max(now + 1, leaving_.front().ready));
  if (queued_ > 0)
    for (const Bank& bank : banks_)
      if (!bank.queue.empty() && bank.queue.front().ready > now)
        next = std::min(next, bank.queue.front().ready);
  if (now < next_accept_) next = std::min(next, next_accept_);
  if (dispatch_ != InFlightPool::none || !bulk_copies_.empty()) {
    if (2 * now + 1 < bulk_line_ends_) next = std::min(next, std::max(now + 1, bulk_line_ends_ / 2));
    if (now < next_bulk_copy_) next = std::min(next, next_bulk_copy_);
    if (now < tensor_map_known_) next = std::min(next, tensor_map_known_);
  }
  return next;
}

void LoadStoreUnit::skip(Cycle cycles) {
  if (queued_ > 0)
    for (const Bank& bank : banks_)
      if (!bank.queue.empty() && bank.failed_at_change == l1_changes_) count_failure(bank, cycles);
  if (dispatch_ != InFlightPool::none && !pool_[dispatch_].transactions.empty() &&
      !bypasses(pool_[dispatch_]))
    counters_[pool_[dispatch_].slot][Counter::l1_bank_conflicts] += cycles;
}

}  // namespace simt
