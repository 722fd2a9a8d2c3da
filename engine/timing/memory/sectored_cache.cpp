#include "timing/memory/sectored_cache.hpp"

#include <algorithm>
#include <bit>

#include "timing/memory/address_map.hpp"

namespace simt {
namespace {

uint64_t hash_address(uint64_t address) {
  return (address >> 5) * 0x9e3779b97f4a7c15ull >> 20;
}

}  // namespace

SectoredCache::SectoredCache(const CacheSpec& spec, ReplacementFunction custom)
    : spec_(spec),
      custom_(spec.replacement == CacheReplacement::Custom ? custom : nullptr),
      unit_bytes_(spec.sectored ? sector_bytes : spec.line_bytes),
      ways_(spec.ways),
      allocate_on_miss_(spec.allocation == CacheAllocation::OnMiss) {
  resize();
}

void SectoredCache::resize() {
  const uint32_t count = spec_.sets * ways_;
  lines_.assign(count, Line{});
  sets_.assign(spec_.sets, Set{});
  line_index_.assign(std::bit_ceil(std::max(4u, count * 2)), none);
  // A streaming cache can wait for as many lines as it holds.
  mshr_limit_ = spec_.allocation == CacheAllocation::Streaming
                    ? std::max(spec_.mshr_entries, count * (spec_.sectored ? max_sectors : 1))
                    : spec_.mshr_entries;
  mshr_index_.assign(std::bit_ceil(std::max(4u, mshr_limit_ * 2)), none);
  for (uint32_t i = 0; i < mshrs_.size(); ++i) {
    const bool used =
        std::find(free_mshrs_.begin(), free_mshrs_.end(), i) == free_mshrs_.end() && mshrs_[i].count > 0;
    if (!used) continue;
    const uint64_t mask = mshr_index_.size() - 1;
    uint64_t at = hash_address(mshrs_[i].address) & mask;
    while (mshr_index_[at] != none) at = (at + 1) & mask;
    mshr_index_[at] = i;
  }
  invalidate();
}

void SectoredCache::set_ways(uint32_t ways) {
  if (ways == ways_) {
    invalidate();
    return;
  }
  ways_ = ways;
  resize();
}

void SectoredCache::invalidate() {
  std::fill(lines_.begin(), lines_.end(), Line{});
  std::fill(line_index_.begin(), line_index_.end(), none);
  for (uint32_t s = 0; s < spec_.sets; ++s) {
    sets_[s].oldest = sets_[s].newest = none;
    sets_[s].invalid.clear();
    for (uint32_t w = ways_; w-- > 0;) sets_[s].invalid.push_back(s * ways_ + w);
  }
  modified_lines_ = 0;
}

uint32_t SectoredCache::set_of(uint64_t address) const {
  const uint64_t line = address / spec_.line_bytes;
  const uint32_t sets = spec_.sets;
  switch (spec_.set_index) {
    case CacheSetIndex::Linear:
      return static_cast<uint32_t>(line % sets);
    case CacheSetIndex::Xor: {
      const auto bits = static_cast<uint32_t>(std::bit_width(sets) - 1);
      return static_cast<uint32_t>((line ^ (line >> bits)) & (sets - 1));
    }
    case CacheSetIndex::Ipoly: {
      const auto bits = static_cast<uint32_t>(std::bit_width(sets) - 1);
      return ipoly_hash(line >> bits, static_cast<uint32_t>(line & (sets - 1)), sets);
    }
    case CacheSetIndex::Fermi: {
      // Nugteren et al., HPCA 2014: XOR of the low set bits with three groups of address bits above.
      const uint64_t low = line & 7, high = (line >> 3 & 3) << 3;
      const uint64_t mixed = low ^ (address >> 13 & 7) ^ (address >> 18 & 7) ^ (address >> 23 & 7);
      return static_cast<uint32_t>((mixed | (high ^ ((address >> 14 & 3) << 3))) & (sets - 1));
    }
  }
  return 0;
}

bool SectoredCache::any(const Line& line, State state) const {
  for (State s : line.state)
    if (s == state) return true;
  return false;
}

bool SectoredCache::evictable(const Line& line) const {
  if (any(line, State::Reserved)) return false;
  // Modified lines stay until enough of the cache is modified.
  return !any(line, State::Modified) ||
         modified_lines_ * 100 >= uint64_t{spec_.dirty_threshold} * lines_.size();
}

uint32_t SectoredCache::find_line(uint64_t address) const {
  const uint64_t mask = line_index_.size() - 1;
  for (uint64_t at = hash_address(address) & mask; line_index_[at] != none; at = (at + 1) & mask)
    if (lines_[line_index_[at]].tag == address) return line_index_[at];
  return none;
}

void SectoredCache::index_line(uint32_t line) {
  const uint64_t mask = line_index_.size() - 1;
  uint64_t at = hash_address(lines_[line].tag) & mask;
  while (line_index_[at] != none) at = (at + 1) & mask;
  line_index_[at] = line;
}

namespace {

// Removes position `hole` from an open-addressed table, moving later entries of the same run back.
template <typename HomeOf>
void close_gap(std::vector<uint32_t>& table, uint64_t hole, HomeOf home_of) {
  const uint64_t mask = table.size() - 1;
  table[hole] = ~0u;
  for (uint64_t at = (hole + 1) & mask; table[at] != ~0u; at = (at + 1) & mask) {
    const uint64_t home = home_of(table[at]) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table[hole] = table[at];
    table[at] = ~0u;
    hole = at;
  }
}

}  // namespace

void SectoredCache::unindex_line(uint32_t line) {
  const uint64_t mask = line_index_.size() - 1;
  uint64_t at = hash_address(lines_[line].tag) & mask;
  while (line_index_[at] != line) at = (at + 1) & mask;
  close_gap(line_index_, at, [this](uint32_t l) { return hash_address(lines_[l].tag); });
}

void SectoredCache::unlink(uint32_t set, uint32_t line) {
  Line& l = lines_[line];
  (l.previous == none ? sets_[set].oldest : lines_[l.previous].next) = l.next;
  (l.next == none ? sets_[set].newest : lines_[l.next].previous) = l.previous;
  l.previous = l.next = none;
  l.in_order = false;
}

void SectoredCache::append(uint32_t set, uint32_t line) {
  Line& l = lines_[line];
  l.previous = sets_[set].newest;
  l.next = none;
  (l.previous == none ? sets_[set].oldest : lines_[l.previous].next) = line;
  sets_[set].newest = line;
  l.in_order = true;
}

uint32_t SectoredCache::find_victim(uint32_t set) const {
  const Set& s = sets_[set];
  if (!s.invalid.empty()) return s.invalid.back();
  if (!custom_) {
    for (uint32_t line = s.oldest; line != none; line = lines_[line].next)
      if (evictable(lines_[line])) return line;
    return none;
  }
  evictable_flags_.resize(ways_);
  times_.resize(ways_);
  allocation_times_.resize(ways_);
  bool some = false;
  for (uint32_t w = 0; w < ways_; ++w) {
    const Line& line = lines_[set * ways_ + w];
    evictable_flags_[w] = evictable(line);
    times_[w] = line.last_access;
    allocation_times_[w] = line.allocated;
    some |= evictable_flags_[w] != 0;
  }
  if (!some) return none;
  const int32_t way =
      custom_(evictable_flags_.data(), times_.data(), allocation_times_.data(), static_cast<int32_t>(ways_));
  const bool valid =
      way >= 0 && way < static_cast<int32_t>(ways_) && evictable_flags_[static_cast<size_t>(way)];
  return valid ? set * ways_ + static_cast<uint32_t>(way) : none;
}

SectoredCache::Probe SectoredCache::probe(const CacheAccess& access, uint32_t& line) const {
  line = find_line(line_address(access.address));
  if (line == none) {
    line = find_victim(set_of(access));
    return line == none ? Probe::Refused : Probe::Miss;
  }
  const uint32_t sector = sector_of(access.address);
  switch (lines_[line].state[sector]) {
    case State::Reserved:
      return Probe::HitReserved;
    case State::Valid:
      return Probe::Hit;
    case State::Modified:
      return access.write || (lines_[line].readable >> sector & 1) ? Probe::Hit : Probe::SectorMiss;
    case State::Invalid:
      return Probe::SectorMiss;
  }
  return Probe::Miss;
}

bool SectoredCache::contains(uint64_t address) const {
  const uint32_t line = find_line(line_address(address));
  if (line == none) return false;
  const State state = lines_[line].state[sector_of(address)];
  return state == State::Valid || state == State::Modified;
}

CacheOutcome SectoredCache::refuse(CacheFailure failure) {
  failure_ = failure;
  return CacheOutcome::ReservationFail;
}

void SectoredCache::touch(uint32_t line, uint64_t time) {
  lines_[line].last_access = time;
  if (spec_.replacement == CacheReplacement::Fifo || !lines_[line].in_order) return;
  const uint32_t set = set_of_line(line);
  if (sets_[set].newest == line) return;
  unlink(set, line);
  append(set, line);
}

void SectoredCache::replace(uint32_t line, const CacheAccess& access) {
  const uint32_t set = set_of_line(line);
  Line& l = lines_[line];
  if (l.in_order) {
    const bool keeps_data = spec_.write_policy != CacheWritePolicy::WriteThrough;
    const bool modified = any(l, State::Modified);
    if (modified) --modified_lines_;
    for (uint32_t s = 0; modified && keeps_data && s < max_sectors; ++s) {
      if (l.state[s] != State::Modified) continue;
      CacheMiss miss;
      miss.address = l.tag + uint64_t{s} * unit_bytes_;
      miss.byte_mask = l.bytes[s];
      miss.sectors = static_cast<uint8_t>(std::max(1u, unit_bytes_ / sector_bytes));
      miss.write = miss.write_back = true;
      miss.kind = AccessKind::L1Writeback;
      miss.slot = access.slot;
      misses_.push_back(miss);
    }
    unindex_line(line);
    unlink(set, line);
  } else {
    sets_[set].invalid.pop_back();
  }
  l = Line{};
  l.tag = line_address(access.address);
  l.allocated = l.last_access = access.time;
  index_line(line);
  append(set, line);
}

void SectoredCache::modify(uint32_t line, uint32_t sector, uint32_t byte_mask) {
  Line& l = lines_[line];
  if (!any(l, State::Modified)) ++modified_lines_;
  const bool known = l.state[sector] == State::Valid || (l.readable >> sector & 1);
  l.bytes[sector] = l.state[sector] == State::Modified ? l.bytes[sector] | byte_mask : byte_mask;
  l.state[sector] = State::Modified;
  if (known || l.bytes[sector] == ~0u)
    l.readable |= static_cast<uint8_t>(1u << sector);
  else
    l.readable &= static_cast<uint8_t>(~(1u << sector));
}

void SectoredCache::invalidate_sector(uint32_t line, uint32_t sector) {
  Line& l = lines_[line];
  const bool was_modified = any(l, State::Modified);
  l.state[sector] = State::Invalid;
  l.readable &= static_cast<uint8_t>(~(1u << sector));
  if (was_modified && !any(l, State::Modified)) --modified_lines_;
}

CacheOutcome SectoredCache::access(const CacheAccess& access) {
  failure_ = CacheFailure::None;
  write_sent_ = false;
  uint32_t line = none;
  const Probe found = probe(access, line);
  if (!access.write) {
    if (found == Probe::Refused && allocate_on_miss_) return refuse(CacheFailure::Line);
    return read(access, found, line);
  }
  if (found == Probe::Hit) return write_hit(access, line);
  if (found == Probe::Refused && spec_.write_allocation != CacheWriteAllocation::None)
    return refuse(CacheFailure::Line);
  return write_miss(access, found, line);
}

CacheOutcome SectoredCache::read(const CacheAccess& access, Probe found, uint32_t line) {
  if (found == Probe::Hit) {
    touch(line, access.time);
    if (access.atomic) modify(line, sector_of(access.address), ~0u);
    return CacheOutcome::Hit;
  }
  // A miss may send a fetch and a write-back.
  if (miss_queue_full(1)) return refuse(CacheFailure::MissQueue);
  const uint64_t unit = unit_address(access.address);
  uint32_t mshr = find_mshr(unit);
  const bool merged = mshr != none;
  if (merged && mshrs_[mshr].count >= spec_.mshr_merge) return refuse(CacheFailure::MshrMerge);
  if (!merged && mshrs_used_ >= mshr_limit_) return refuse(CacheFailure::MshrEntries);
  if (allocate_on_miss_) {
    const uint32_t sector = sector_of(access.address);
    if (found == Probe::Miss) replace(line, access);
    touch(line, access.time);
    if (found != Probe::HitReserved) {
      Line& l = lines_[line];
      // A partly written sector stays modified under the fetch that completes it.
      if (l.state[sector] == State::Modified) {
        l.modified_on_fill |= static_cast<uint8_t>(1u << sector);
        l.readable_on_fill |= static_cast<uint8_t>(1u << sector);
        const bool others = [&] {
          for (uint32_t s = 0; s < max_sectors; ++s)
            if (s != sector && l.state[s] == State::Modified) return true;
          return false;
        }();
        if (!others) --modified_lines_;
      }
      l.state[sector] = State::Reserved;
    }
  }
  if (!merged) {
    mshr = add_mshr(unit);
    CacheMiss miss;
    miss.address = unit;
    miss.token = access.token;
    miss.sectors = static_cast<uint8_t>(std::max(1u, unit_bytes_ / sector_bytes));
    miss.kind = access.kind;
    miss.slot = access.slot;
    misses_.push_back(miss);
  }
  wait_in(mshr, access);
  if (found == Probe::HitReserved) return CacheOutcome::HitReserved;
  if (merged && !allocate_on_miss_) return CacheOutcome::HitReserved;
  return found == Probe::SectorMiss ? CacheOutcome::SectorMiss : CacheOutcome::Miss;
}

void SectoredCache::pass_on(const CacheAccess& access) {
  CacheMiss miss;
  miss.address = unit_address(access.address);
  miss.token = access.token;
  miss.byte_mask = access.byte_mask;
  miss.write = true;
  miss.kind = access.kind;
  miss.slot = access.slot;
  misses_.push_back(miss);
  write_sent_ = true;
}

CacheOutcome SectoredCache::write_hit(const CacheAccess& access, uint32_t line) {
  const uint32_t sector = sector_of(access.address);
  const bool evicts = spec_.write_policy == CacheWritePolicy::WriteEvict ||
                      (spec_.write_policy == CacheWritePolicy::LocalWriteBackGlobalWriteThrough &&
                       access.kind != AccessKind::LocalWrite);
  if (spec_.write_policy == CacheWritePolicy::WriteThrough || evicts) {
    if (miss_queue_full(0)) return refuse(CacheFailure::MissQueue);
    pass_on(access);
  }
  touch(line, access.time);
  if (evicts)
    invalidate_sector(line, sector);
  else
    modify(line, sector, access.byte_mask);
  return CacheOutcome::Hit;
}

CacheOutcome SectoredCache::write_miss(const CacheAccess& access, Probe found, uint32_t line) {
  const CacheOutcome outcome = found == Probe::HitReserved  ? CacheOutcome::HitReserved
                               : found == Probe::SectorMiss ? CacheOutcome::SectorMiss
                                                            : CacheOutcome::Miss;
  if (spec_.write_allocation == CacheWriteAllocation::None) {
    if (miss_queue_full(0)) return refuse(CacheFailure::MissQueue);
    pass_on(access);
    return CacheOutcome::Miss;
  }
  const bool fetches =
      spec_.write_allocation == CacheWriteAllocation::WriteAllocate ||
      (spec_.write_allocation == CacheWriteAllocation::FetchOnWrite && access.byte_mask != ~0u);
  const uint64_t unit = unit_address(access.address);
  if (miss_queue_full(fetches ? 2 : 0)) return refuse(CacheFailure::MissQueue);
  if (fetches && find_mshr(unit) == none && mshrs_used_ >= mshr_limit_)
    return refuse(CacheFailure::MshrEntries);
  if (spec_.write_policy == CacheWritePolicy::WriteThrough ||
      spec_.write_allocation == CacheWriteAllocation::WriteAllocate)
    pass_on(access);
  const uint32_t sector = sector_of(access.address);
  if (found == Probe::Miss) replace(line, access);
  touch(line, access.time);
  Line& l = lines_[line];
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (found == Probe::HitReserved) {
    // The read under way will find the sector written: it stays modified, and is complete once the data is
    // there.
    l.modified_on_fill |= bit;
    l.readable_on_fill |= bit;
    l.bytes[sector] |= access.byte_mask;
    return outcome;
  }
  if (fetches && find_mshr(unit) == none) {
    add_mshr(unit);
    CacheMiss miss;
    miss.address = unit;
    miss.kind = access.kind;
    miss.slot = access.slot;
    misses_.push_back(miss);
    l.state[sector] = State::Reserved;
    l.modified_on_fill |= bit;
    l.readable_on_fill |= bit;
    l.bytes[sector] |= access.byte_mask;
    return outcome;
  }
  modify(line, sector, access.byte_mask);
  return outcome;
}

void SectoredCache::fill(uint64_t address, uint64_t time) {
  const uint64_t unit = unit_address(address);
  const uint32_t mshr = find_mshr(unit);
  if (mshr == none) return;
  uint32_t line = find_line(line_address(address));
  const uint32_t sector = sector_of(address);
  if (!allocate_on_miss_) {
    if (line == none) {
      line = find_victim(set_of(address));
      if (line != none) {
        CacheAccess access;
        access.address = address;
        access.time = time;
        replace(line, access);
      }
    }
    if (line != none && lines_[line].state[sector] == State::Invalid)
      lines_[line].state[sector] = State::Reserved;
  }
  if (line != none && lines_[line].state[sector] == State::Reserved) {
    Line& l = lines_[line];
    const auto bit = static_cast<uint8_t>(1u << sector);
    if ((l.modified_on_fill & bit) || mshrs_[mshr].atomic) {
      l.state[sector] = State::Valid;
      modify(line, sector, (l.modified_on_fill & bit) ? l.bytes[sector] : ~0u);
    } else {
      l.state[sector] = State::Valid;
    }
    l.readable |= bit;
    l.modified_on_fill &= static_cast<uint8_t>(~bit);
    l.readable_on_fill &= static_cast<uint8_t>(~bit);
  }
  if (mshrs_[mshr].count == 0) {  // a fetch that only completes a write
    free_mshr(mshr);
    return;
  }
  mshrs_[mshr].next_ready = none;
  (ready_tail_ == none ? ready_head_ : mshrs_[ready_tail_].next_ready) = mshr;
  ready_tail_ = mshr;
}

CacheAccess SectoredCache::pop_ready() {
  const uint32_t mshr = ready_head_;
  Mshr& m = mshrs_[mshr];
  const uint32_t w = m.first;
  const CacheAccess access = waiting_[w].access;
  m.first = waiting_[w].next;
  free_waiting_.push_back(w);
  if (m.first == none) {
    ready_head_ = m.next_ready;
    if (ready_head_ == none) ready_tail_ = none;
    free_mshr(mshr);
  }
  return access;
}

void SectoredCache::insert_valid(const CacheAccess& access) {
  uint32_t line = none;
  const Probe found = probe(access, line);
  if (found == Probe::Hit || found == Probe::HitReserved || line == none) return;
  if (found == Probe::Miss) replace(line, access);
  touch(line, access.time);
  const uint32_t sector = sector_of(access.address);
  if (lines_[line].state[sector] == State::Invalid) {
    lines_[line].state[sector] = State::Valid;
    lines_[line].readable |= static_cast<uint8_t>(1u << sector);
  }
}

uint32_t SectoredCache::find_mshr(uint64_t address) const {
  const uint64_t mask = mshr_index_.size() - 1;
  for (uint64_t at = hash_address(address) & mask; mshr_index_[at] != none; at = (at + 1) & mask)
    if (mshrs_[mshr_index_[at]].address == address) return mshr_index_[at];
  return none;
}

uint32_t SectoredCache::add_mshr(uint64_t address) {
  uint32_t mshr;
  if (free_mshrs_.empty()) {
    mshr = static_cast<uint32_t>(mshrs_.size());
    mshrs_.emplace_back();
  } else {
    mshr = free_mshrs_.back();
    free_mshrs_.pop_back();
  }
  mshrs_[mshr] = Mshr{};
  mshrs_[mshr].address = address;
  const uint64_t mask = mshr_index_.size() - 1;
  uint64_t at = hash_address(address) & mask;
  while (mshr_index_[at] != none) at = (at + 1) & mask;
  mshr_index_[at] = mshr;
  ++mshrs_used_;
  return mshr;
}

void SectoredCache::wait_in(uint32_t mshr, const CacheAccess& access) {
  uint32_t w;
  if (free_waiting_.empty()) {
    w = static_cast<uint32_t>(waiting_.size());
    waiting_.emplace_back();
  } else {
    w = free_waiting_.back();
    free_waiting_.pop_back();
  }
  waiting_[w] = {access, none};
  Mshr& m = mshrs_[mshr];
  (m.first == none ? m.first : waiting_[m.last].next) = w;
  m.last = w;
  ++m.count;
  m.atomic |= access.atomic;
}

void SectoredCache::free_mshr(uint32_t mshr) {
  const uint64_t mask = mshr_index_.size() - 1;
  uint64_t at = hash_address(mshrs_[mshr].address) & mask;
  while (mshr_index_[at] != mshr) at = (at + 1) & mask;
  close_gap(mshr_index_, at, [this](uint32_t m) { return hash_address(mshrs_[m].address); });
  mshrs_[mshr].count = 0;
  free_mshrs_.push_back(mshr);
  --mshrs_used_;
}

}  // namespace simt
