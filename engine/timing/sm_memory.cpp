#include <algorithm>
#include <array>
#include <bit>

#include "timing/coalescer.hpp"
#include "timing/sm.hpp"

// Memory accesses as they issue, and what makes warps wait for each other: barriers, copies, memory barriers.

namespace simt {
namespace {

constexpr uint64_t local_memory_start = 0x8000000000ull
                                        << 8;  // beyond the global addresses that GPUs hand out

}  // namespace

void Sm::start_memory_access(InFlight& instruction, const DynamicRecord& record) {
  const StaticInstruction& s = instruction.instruction->fixed;
  const WarpTable::Warp& warp = warps_[instruction.warp];
  const bool bulk = s.operation == Operation::BulkLoad || s.operation == Operation::BulkStore;
  instruction.mbarrier = record.mbarrier;
  if (record.mask == 0 || (bulk ? record.bulk_count == 0 : s.access_bytes == 0)) return;
  thread_local std::vector<uint64_t> addresses;
  const uint32_t lanes = bulk ? record.bulk_count : static_cast<uint32_t>(std::popcount(record.mask));
  addresses.resize(std::max<size_t>(64, lanes));
  const uint32_t count = warp.kernel->source->lane_addresses(record, addresses.data());
  if (count == 0) return;
  const LaunchInfo& launch = warp.kernel->launch;
  if (instruction.space == MemorySpace::Generic) {
    // The windows of shared and local memory decide; a trace that does not give them is taken to mean shared
    // memory.
    const uint64_t first = addresses[0];
    if (launch.shared_base == 0 || launch.local_base == 0)
      instruction.space = as_collector_ ? MemorySpace::Shared : MemorySpace::Global;
    else if (first >= launch.shared_base && first < launch.shared_base + launch.window_bytes)
      instruction.space = MemorySpace::Shared;
    else if (first >= launch.local_base && first < launch.local_base + launch.window_bytes)
      instruction.space = MemorySpace::Local;
    else
      instruction.space = MemorySpace::Global;
  }
  const bool atomic = s.operation == Operation::Atomic || s.operation == Operation::Reduction;
  // The compared-with model keeps a warp waiting for every atomic; hardware waits only for the value.
  if (atomic && as_collector_) {
    warps_[instruction.warp].outstanding_atomics += count;
    warps_.masks(warps_.scheduler_of(instruction.warp)).atomics |= warps_.bit_of(instruction.warp);
  }
  if (instruction.space == MemorySpace::Shared) {
    instruction.passes =
        shared_memory_passes(addresses.data(), count, s.access_bytes, spec_.shared_memory.banks,
                             spec_.shared_memory.wide_accesses_take_wavefronts);
    return;
  }
  if (atomic) {
    if (!as_collector_ && s.operation == Operation::Reduction) {
      ++warps_[instruction.warp].outstanding_stores;
      instruction.counts_as_store = true;
    }
    coalesce_atomic(addresses.data(), count, s.access_bytes, instruction.transactions);
    return;
  }
  if (instruction.space == MemorySpace::Local) {
    // Local memory is interleaved by 32-bit words over the GPU's concurrent threads, so that lanes that
    // access the same local address touch neighbouring words.
    const Cta& cta = ctas_[warp.cta_slot];
    const uint64_t first_thread = cta.thread_base + uint64_t{warp.index_in_cta} * spec_.sm.warp_size;
    const uint32_t words = std::max(1u, s.access_bytes / 4u);
    thread_local std::vector<uint64_t> local;
    local.clear();
    uint64_t mask = record.mask;
    for (uint32_t i = 0; i < count; ++i, mask &= mask - 1) {
      const uint64_t thread = first_thread + static_cast<uint64_t>(std::countr_zero(mask));
      for (uint32_t k = 0; k < words; ++k)
        local.push_back(local_memory_start + (addresses[i] / 4 + k) * cta.concurrent_threads * 4 +
                        addresses[i] % 4 + thread * 4);
    }
    coalesce(local.data(), static_cast<uint32_t>(local.size()), std::min<uint32_t>(4, s.access_bytes),
             spec_.load_store.sectored_coalescing, instruction.transactions);
    return;
  }
  if (bulk) {
    const auto bytes = static_cast<uint32_t>(std::max<uint64_t>(sector_bytes, record.bulk_bytes / count));
    coalesce(addresses.data(), count, bytes, true, instruction.transactions);
    return;
  }
  const uint32_t sub_warps = std::max(1u, spec_.load_store.coalescing_sub_warps);
  if (sub_warps == 1) {
    coalesce(addresses.data(), count, s.access_bytes, spec_.load_store.sectored_coalescing,
             instruction.transactions);
    return;
  }
  const uint32_t lanes_each = spec_.sm.warp_size / sub_warps;
  uint32_t taken = 0;
  std::vector<Transaction> part;
  for (uint32_t p = 0; p < sub_warps; ++p) {
    const uint64_t lanes_mask = (lanes_each >= 64 ? ~uint64_t{0} : (uint64_t{1} << lanes_each) - 1)
                                << (p * lanes_each);
    const auto here = static_cast<uint32_t>(std::popcount(record.mask & lanes_mask));
    if (here == 0) continue;
    coalesce(addresses.data() + taken, here, s.access_bytes, spec_.load_store.sectored_coalescing, part);
    instruction.transactions.insert(instruction.transactions.end(), part.begin(), part.end());
    taken += here;
  }
}

void Sm::find_constants(const WarpTable::Warp& warp, const DynamicRecord& record) {
  constants_.clear();
  if (record.mask == 0) return;
  std::array<uint64_t, 64> lanes;
  const auto end = lanes.begin() + warp.kernel->source->lane_addresses(record, lanes.data());
  // In the order of lanes; mostly there is one.
  for (auto lane = lanes.begin(); lane != end; ++lane)
    if (lane == lanes.begin() ||
        (*lane != constants_.back() && std::find(lanes.begin(), lane, *lane) == lane))
      constants_.push_back(*lane);
}

bool Sm::constant_operand_there(uint32_t scheduler, uint32_t position, Cycle now) {
  const uint32_t w = warps_.slot_at(scheduler, position);
  const uint32_t operand = warps_.next_instruction(w).constant_operand;
  if (operand == StaticInstruction::no_constant) return true;
  const DecodedKernel& kernel = *warps_[w].kernel;
  if (constant_cache_.read_operand(w, scheduler, kernel.constant_bank + operand, kernel.slot, now,
                                   counters_[kernel.slot]))
    return true;
  warps_.masks(scheduler).constant |= warps_.bit_of(w);
  return false;
}

void Sm::constants_come(Cycle now) {
  thread_local std::vector<uint32_t> warps;
  thread_local std::vector<ConstantCache::Load> loads;
  warps.clear();
  loads.clear();
  constant_cache_.cycle(now, warps, loads, counters_);
  for (const uint32_t w : warps) warps_.masks(warps_.scheduler_of(w)).constant &= ~warps_.bit_of(w);
  for (const ConstantCache::Load& load : loads) {
    warps_.release(load.warp, *load.instruction);
    warps_.leave_pipeline(load.warp);
  }
  changed_ = true;
}

void Sm::arrive_at_barrier(uint32_t w, const StaticInstruction& s, const DynamicRecord& record) {
  const WarpTable::Warp& warp = warps_[w];
  Cta& cta = ctas_[warp.cta_slot];
  uint32_t barrier = 0, expected = 0;
  // The compared-with model sees every barrier as number 0 of the whole CTA.
  if (!as_collector_) {
    // An executed program may compute both.
    const bool computed = s.immediate < 0;
    barrier = static_cast<uint32_t>(computed ? record.base : static_cast<uint64_t>(s.immediate)) % 16;
    const uint64_t threads =
        computed ? static_cast<uint64_t>(record.stride) : static_cast<uint64_t>(s.immediate2);
    expected =
        static_cast<uint32_t>(std::min<uint64_t>(threads / spec_.sm.warp_size, cta.kernel->warps_per_cta));
  }
  const bool waits = s.operation == Operation::Barrier;
  if (waits) warps_.masks(warps_.scheduler_of(w)).barrier |= warps_.bit_of(w);
  release_barrier(cta, cta.barriers.arrive(barrier, warp.index_in_cta, waits, expected));
}

void Sm::bulk_copy_started(Cta& cta, uint64_t mbarrier) {
  for (auto& [address, count] : cta.bulk_copies)
    if (address == mbarrier) {
      ++count;
      return;
    }
  cta.bulk_copies.emplace_back(mbarrier, 1);
}

bool Sm::bulk_copies_pending(const Cta& cta, uint64_t mbarrier) const {
  for (const auto& [address, count] : cta.bulk_copies)
    if (count > 0 && (mbarrier == 0 || address == 0 || address == mbarrier)) return true;
  return false;
}

void Sm::wait_for_bulk_copies(uint32_t w, uint64_t mbarrier) {
  WarpTable::Warp& warp = warps_[w];
  if (!bulk_copies_pending(ctas_[warp.cta_slot], mbarrier)) return;
  warp.awaited_mbarrier = mbarrier;
  warp.awaits_bulk_copies = true;
  warps_.masks(warps_.scheduler_of(w)).async_copy |= warps_.bit_of(w);
}

void Sm::bulk_copy_done(uint32_t cta_slot, uint64_t mbarrier) {
  Cta& cta = ctas_[cta_slot];
  for (auto& [address, count] : cta.bulk_copies)
    if (address == mbarrier && count > 0) --count;
  for (uint32_t i = 0; i < cta.kernel->warps_per_cta; ++i) {
    const uint32_t w = cta.first_warp + i;
    if (warps_[w].dropped) warps_.touch(w);
    if (!warps_[w].awaits_bulk_copies || bulk_copies_pending(cta, warps_[w].awaited_mbarrier)) continue;
    warps_[w].awaits_bulk_copies = false;
    warps_.masks(warps_.scheduler_of(w)).async_copy &= ~warps_.bit_of(w);
  }
}

void Sm::release_barrier(const Cta& cta, uint64_t released) {
  for (; released; released &= released - 1) {
    const uint32_t w = cta.first_warp + static_cast<uint32_t>(std::countr_zero(released));
    warps_.masks(warps_.scheduler_of(w)).barrier &= ~warps_.bit_of(w);
  }
}

void Sm::check_membars() {
  for (uint32_t s = 0; s < spec_.sm.sub_cores; ++s) {
    WarpTable::SchedulerMasks& m = warps_.masks(s);
    for (uint64_t waiting = m.membar; waiting; waiting &= waiting - 1) {
      const auto position = static_cast<uint32_t>(std::countr_zero(waiting));
      const uint32_t w = warps_.slot_at(s, position);
      if (warps_.has_pending_registers(w)) continue;
      // Hardware also waits until earlier stores are performed; the compared-with model does not.
      if (!as_collector_ && warps_[w].outstanding_stores > 0) continue;
      m.membar &= ~(uint64_t{1} << position);
      if (spec_.l1.invalidate_at_membar) load_store_.invalidate_l1();
      changed_ = true;
    }
  }
}

}  // namespace simt
