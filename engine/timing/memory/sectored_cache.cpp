#include "timing/memory/sectored_cache.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace simt {

CacheSpec cache_of(const ReadOnlyCacheSpec& spec, uint32_t miss_queue) {
  CacheSpec cache{.sets = spec.sets,
                  .line_bytes = spec.line_bytes,
                  .ways = spec.ways,
                  .replacement = spec.replacement,
                  .allocation = spec.allocation,
                  .set_index = spec.set_index,
                  .mshr_entries = spec.mshr_entries,
                  .mshr_merge = spec.mshr_merge,
                  .miss_queue = miss_queue,
                  .write_policy = Choice<WritePolicy>::named("write_back")};
  return cache;
}

SectoredCache::SectoredCache(const CacheSpec& spec)
    : spec_(spec),
      line_shift_(static_cast<uint32_t>(std::countr_zero(spec.line_bytes))),
      set_index_(spec.set_index->set_of),
      renewed_by_use_(spec.replacement->renewed_by_use),
      part_(spec.replacement->part),
      write_policy_(*spec.write_policy),
      unit_bytes_(spec.sectored ? sector_bytes : spec.line_bytes),
      ways_(spec.ways),
      allocate_on_miss_(spec.allocation == CacheAllocation::OnMiss),
      // A line that is allocated when its data arrives may be in another set than the access's.
      tags_(spec.line_bytes, allocate_on_miss_),
      mshrs_without_line_(unit_bytes_) {
  resize();
}

void SectoredCache::resize() {
  const uint32_t count = spec_.sets * ways_;
  inverse_ways_ = ways_ > 0 ? ~uint64_t{0} / ways_ + 1 : 0;
  for (uint32_t line = 0; line < lines_.size(); ++line) detach_mshrs(line);
  lines_.assign(count, Line{});
  mshrs_of_.resize(count);
  written_.resize(count);
  if (spec_.replacement->make) replacement_ = spec_.replacement->make({spec_.sets, ways_, spec_.line_bytes});
  tags_.resize(spec_.sets, ways_);
  dirty_ways_ = spec_.dirty_limit < 100 ? std::max(1u, ways_ * spec_.dirty_limit / 100) : ~0u;
  newly_modified_ = none;
  modified_lines_ = prioritized_lines_ = 0;
  free_lines_ = count;
  // A streaming cache can have as many lines outstanding as it holds.
  mshr_limit_ = spec_.allocation == CacheAllocation::Streaming
                    ? std::max(spec_.mshr_entries, count * (spec_.sectored ? max_sectors : 1))
                    : spec_.mshr_entries;
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
  if (free_lines_ == lines_.size()) return;
  // Only lines that hold a tag: most launches leave most of a GPU's caches empty.
  for (uint32_t s = 0; s < spec_.sets; ++s) {
    const uint32_t used = tags_.used(s);
    if (used == 0) continue;
    tags_.clear(s, [this](uint32_t line) { return lines_[line].tag; });
    for (uint32_t line = s * ways_; line < s * ways_ + used; ++line) {
      detach_mshrs(line);
      lines_[line] = Line{};
    }
  }
  modified_lines_ = prioritized_lines_ = 0;
  free_lines_ = lines_.size();
}

inline bool SectoredCache::evictable(const Line& line) const {
  if (line.reserved) return false;
  // Modified lines are kept until enough of the cache is modified.
  return !line.modified || modified_lines_ * 100 >= uint64_t{spec_.dirty_threshold} * lines_.size();
}

void SectoredCache::reset_protected() {
  for (Line& line : lines_) {
    if (line.priority != LinePriority::Last) continue;
    line.priority = LinePriority::Normal;
    --prioritized_lines_;
  }
}

/// Whether a line of this priority is evicted before (0), with (1) or after (2) those of normal priority. Of
/// those that are to be evicted last, the oldest `unprotected` are not.
inline uint32_t rank_of(LinePriority priority, uint32_t& unprotected) {
  if (priority == LinePriority::Normal) return 1;
  if (priority == LinePriority::First) return 0;
  if (unprotected == 0) return 2;
  --unprotected;
  return 1;
}

/// Leaves those lines evictable that are to be evicted before the other evictable ones.
void SectoredCache::apply_priorities(uint32_t set, Eviction eviction) const {
  uint32_t unprotected = eviction == Eviction::Last;
  const uint32_t begin = set * ways_;
  for (uint32_t way = 0; way < ways_; ++way)
    unprotected += lines_[begin + way].priority == LinePriority::Last;
  unprotected -= std::min(unprotected, protected_ways_);
  uint32_t least = 3;
  tags_.first_in_order(set, [&](uint32_t line) {
    uint8_t& flag = evictable_flags_[line - begin];
    const uint32_t rank = rank_of(lines_[line].priority, unprotected);
    if (flag) least = std::min(least, rank);
    flag = static_cast<uint8_t>(flag ? rank + 1 : 0);
    return false;
  });
  for (uint8_t& flag : evictable_flags_) flag = flag == least + 1;
}

inline uint32_t SectoredCache::passed_over(uint32_t set, uint64_t line_address) const {
  const uint32_t among = part_ > 0 ? ways_ / part_ : 0;
  if (among < 2) return 0;
  // Of what contents() keeps, so that a restored cache goes on as this one.
  const auto mixed = [](uint64_t x) { return x * 0x9e3779b97f4a7c15ull >> 40; };
  return static_cast<uint32_t>(mixed(line_address ^ mixed(lines_[tags_.oldest(set)].tag)) % among);
}

uint32_t SectoredCache::find_victim(uint32_t set, const CacheAccess& access) const {
  if (const uint32_t used = tags_.used(set); used < ways_) return set * ways_ + used;
  uint32_t passes = passed_over(set, line_address(access.address));
  uint32_t last = none;
  // If modified lines fill the set and none awaits a sector, none would ever become evictable.
  bool awaits = false;
  if (!replacement_ && prioritized_lines_ == 0) {
    tags_.first_in_order(set, [&](uint32_t line) {
      awaits |= lines_[line].reserved != 0;
      if (!evictable(lines_[line])) return false;
      last = line;
      return passes-- == 0;
    });
    return last != none || awaits ? last : tags_.oldest(set);
  }
  evictable_flags_.resize(ways_);
  bool some = false;
  const uint32_t first = set * ways_;
  for (uint32_t w = 0; w < ways_; ++w) {
    evictable_flags_[w] = evictable(lines_[first + w]);
    some |= evictable_flags_[w] != 0;
    awaits |= lines_[first + w].reserved != 0;
  }
  if (!some && awaits) return none;
  if (!some) std::fill(evictable_flags_.begin(), evictable_flags_.end(), uint8_t{1});
  if (prioritized_lines_ > 0) apply_priorities(set, access.eviction);
  if (!replacement_) {
    tags_.first_in_order(set, [&](uint32_t line) {
      if (!evictable_flags_[line - first]) return false;
      last = line;
      return passes-- == 0;
    });
    return last;
  }
  const int32_t way = replacement_->victim(first, evictable_flags_);
  const bool valid =
      way >= 0 && way < static_cast<int32_t>(ways_) && evictable_flags_[static_cast<size_t>(way)];
  return valid ? first + static_cast<uint32_t>(way) : none;
}

inline SectoredCache::Probe SectoredCache::probe(const CacheAccess& access, uint32_t& line) const {
  line = find_line(access);
  if (line == none) {
    line = find_victim(set_of(access), access);
    return line == none ? Probe::Refused : Probe::Miss;
  }
  const Line& l = lines_[line];
  const uint32_t bit = 1u << sector_of(access.address);
  if (l.reserved & bit) return Probe::HitReserved;
  if (l.valid & bit) return Probe::Hit;
  if (l.modified & bit) return access.write || (l.readable & bit) ? Probe::Hit : Probe::SectorMiss;
  return Probe::SectorMiss;
}

bool SectoredCache::contains(uint64_t address) const {
  const uint32_t line = find_in_any_set(line_address(address));
  return line != none && ((lines_[line].valid | lines_[line].modified) >> sector_of(address) & 1);
}

bool SectoredCache::leaves_a_way(const CacheAccess& access) const {
  if (find_line(access) != none) return true;
  const uint32_t set = set_of(access);
  uint32_t free = ways_ - tags_.used(set);
  if (free < 2)
    tags_.first_in_order(set, [&](uint32_t line) { return (free += evictable(lines_[line])) >= 2; });
  return free >= 2;
}

CacheOutcome SectoredCache::refuse(CacheFailure failure) {
  failure_ = failure;
  return CacheOutcome::ReservationFail;
}

void SectoredCache::prioritize(uint32_t line, Eviction eviction) {
  if (eviction == Eviction::Unchanged || eviction == Eviction::NoAllocate) return;
  LinePriority& priority = lines_[line].priority;
  prioritized_lines_ -= priority != LinePriority::Normal;
  priority = eviction == Eviction::First  ? LinePriority::First
             : eviction == Eviction::Last ? LinePriority::Last
                                          : LinePriority::Normal;
  prioritized_lines_ += priority != LinePriority::Normal;
}

LineUse SectoredCache::use_of(const CacheAccess& access) const {
  LineUse use{.line_address = line_address(access.address), .time = access.time, .write = access.write};
  if (!observer_ || access.token == CacheAccess::nobody) return use;
  const CacheObserver::Requester requester = observer_->requester(access.token, access.write);
  use.pc = requester.pc;
  use.warp = requester.warp;
  return use;
}

inline void SectoredCache::touch(uint32_t line, const CacheAccess& access) {
  if (access.eviction != Eviction::Default) {
    if (access.eviction == Eviction::Unchanged) return;
    prioritize(line, access.eviction);
  }
  if (replacement_) replacement_->used(line, use_of(access));
  if (!renewed_by_use_) return;
  tags_.renew(set_of_line(line), line);
}

void SectoredCache::write_back(uint32_t line, uint16_t slot) {
  const Line& l = lines_[line];
  const auto first = static_cast<uint32_t>(std::countr_zero(l.modified));
  const uint32_t sectors =
      static_cast<uint32_t>(std::popcount(l.modified)) * std::max(1u, unit_bytes_ / sector_bytes);
  evicted_sectors_ += sectors;
  CacheMiss miss;
  miss.address = l.tag + uint64_t{first} * unit_bytes_;
  miss.byte_mask = written_[line][first];
  miss.sectors = static_cast<uint8_t>(sectors);
  miss.write = miss.write_back = true;
  miss.kind = AccessKind::L1Writeback;
  miss.slot = slot;
  misses_.push_back(miss);
}

namespace {
uint64_t hash_of_tag(uint64_t tag) {
  return tag * 0x9e3779b97f4a7c15ull;
}
}  // namespace

void SectoredCache::limit_modified(uint32_t set, uint16_t slot) {
  const uint32_t newest = std::exchange(newly_modified_, none);
  uint32_t modified = 0;
  for (uint32_t line = set * ways_; line < (set + 1) * ways_; ++line) modified += lines_[line].modified != 0;
  if (modified <= dirty_ways_) return;
  const auto clean = [&](uint32_t line) {
    Line& l = lines_[line];
    if (!l.modified || l.reserved) return false;
    if (miss_queue_full(0)) return true;  // until another line is modified
    write_back(line, slot);
    // What is known of a sector stays, if that is all of it.
    l.valid |= l.modified & l.readable;
    l.modified = l.readable = 0;
    --modified_lines_;
    return --modified <= dirty_ways_;
  };
  if (!spec_.dirty_hash) {
    tags_.first_in_order(set, clean);
    return;
  }
  // The line that is being written waits for the next one.
  for (;;) {
    uint32_t chosen = none;
    for (uint32_t line = set * ways_; line < (set + 1) * ways_; ++line) {
      if (line == newest || !lines_[line].modified || lines_[line].reserved) continue;
      if (chosen == none || hash_of_tag(lines_[line].tag) < hash_of_tag(lines_[chosen].tag)) chosen = line;
    }
    if (chosen == none || clean(chosen)) return;
  }
}

void SectoredCache::replace(uint32_t line, const CacheAccess& access) {
  const uint32_t set = set_of_line(line);
  Line& l = lines_[line];
  const uint64_t tag = line_address(access.address);
  if (l.holds_tag) {
    if (l.modified) --modified_lines_;
    prioritized_lines_ -= l.priority != LinePriority::Normal;
    if (l.modified && !write_policy_.through) write_back(line, access.slot);
    if (observer_) observer_->replaced(line, true, l.tag, access);
    detach_mshrs(line);
    tags_.replace(set, line, l.tag, tag);
  } else {
    if (observer_) observer_->replaced(line, false, 0, access);
    tags_.take(set, line, tag);
    --free_lines_;
  }
  l = Line{};
  l.tag = tag;
  l.holds_tag = true;
  if (replacement_) replacement_->allocated(line, use_of(access));
}

inline void SectoredCache::modify(uint32_t line, uint32_t sector, uint32_t byte_mask) {
  Line& l = lines_[line];
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (!l.modified) {
    ++modified_lines_;
    newly_modified_ = line;
  }
  uint32_t& written = written_[line][sector];
  written = l.modified & bit ? written | byte_mask : byte_mask;
  if ((l.valid & bit) || written == ~0u)
    l.readable |= bit;
  else if (!(l.modified & bit))
    l.readable &= static_cast<uint8_t>(~bit);
  l.valid &= static_cast<uint8_t>(~bit);
  l.modified |= bit;
}

inline uint32_t SectoredCache::add_mshr(uint64_t address, uint32_t line) {
  uint32_t mshr = free_mshr_;
  if (mshr == none) {
    mshr = static_cast<uint32_t>(mshrs_.size());
    mshrs_.emplace_back();
  } else {
    free_mshr_ = mshrs_[mshr].next;
    if (free_mshr_ != none) simt::prefetch(&mshrs_[free_mshr_]);
  }
  mshrs_[mshr] = Mshr{};
  mshrs_[mshr].address = address;
  ++mshrs_used_;
  if (line == none) {
    add_mshr_without_line(mshr);
  } else {
    mshrs_[mshr].line = line;
    mshrs_[mshr].has_line = 1;
    lines_[line].mshrs |= static_cast<uint8_t>(1u << sector_of(address));
    mshrs_of_[line][sector_of(address)] = mshr;
  }
  return mshr;
}

void SectoredCache::add_mshr_without_line(uint32_t mshr) {
  mshrs_without_line_.insert(
      mshrs_[mshr].address, mshr, [this](uint32_t m) { return mshrs_[m].address; },
      [this](uint32_t m) -> uint32_t& { return mshrs_[m].line; });
}

inline void SectoredCache::detach_mshrs(uint32_t line) {
  for (uint32_t rest = lines_[line].mshrs; rest; rest &= rest - 1) {
    const uint32_t mshr = mshrs_of_[line][static_cast<uint32_t>(std::countr_zero(rest))];
    mshrs_[mshr].has_line = 0;
    add_mshr_without_line(mshr);
  }
}

inline void SectoredCache::wait_in(uint32_t mshr, const CacheAccess& access) {
  Mshr& m = mshrs_[mshr];
  if (access.atomic) m.atomic = 1;
  if (m.count == 0 || m.eviction == Eviction::NoAllocate) m.eviction = access.eviction;
  if (m.count++ == 0) {
    m.token = access.token;
    return;
  }
  uint32_t w;
  if (free_waiting_.empty()) {
    w = static_cast<uint32_t>(waiting_.size());
    waiting_.emplace_back();
  } else {
    w = free_waiting_.back();
    free_waiting_.pop_back();
  }
  waiting_[w].token = access.token;
  waiting_[w].next = none;
  (m.second == none ? m.second : waiting_[waiting_[m.second].last].next) = w;
  waiting_[m.second].last = w;
}

inline void SectoredCache::free_mshr(uint32_t mshr) {
  Mshr& m = mshrs_[mshr];
  if (!m.has_line)
    mshrs_without_line_.erase(m.address, mshr, [this](uint32_t n) -> uint32_t& { return mshrs_[n].line; });
  else
    lines_[m.line].mshrs &= static_cast<uint8_t>(~(1u << sector_of(m.address)));
  m.next = std::exchange(free_mshr_, mshr);
  --mshrs_used_;
}

inline void SectoredCache::arrive(uint32_t line, uint32_t sector, uint32_t mshr) {
  Line& l = lines_[line];
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (!(l.reserved & bit)) return;
  l.reserved &= static_cast<uint8_t>(~bit);
  l.valid |= bit;
  if (l.modified_on_fill & bit)
    modify(line, sector, written_[line][sector]);
  else if (mshrs_[mshr].atomic)
    modify(line, sector, ~0u);
  l.modified_on_fill &= static_cast<uint8_t>(~bit);
}

inline CacheOutcome SectoredCache::read(const CacheAccess& access, Probe found, uint32_t line) {
  if (found == Probe::Hit) {
    touch(line, access);
    if (access.atomic) modify(line, sector_of(access.address), ~0u);
    return CacheOutcome::Hit;
  }
  // A miss may send a fetch and a write-back.
  if (miss_queue_full(1)) return refuse(CacheFailure::MissQueue);
  const uint64_t unit = unit_address(access.address);
  uint32_t mshr = find_mshr(unit, found == Probe::Miss ? none : line);
  const bool merged = mshr != none;
  if (merged && mshrs_[mshr].count >= spec_.mshr_merge) return refuse(CacheFailure::MshrMerge);
  if (!merged && mshrs_used_ >= mshr_limit_) return refuse(CacheFailure::MshrEntries);
  const bool allocates =
      allocate_on_miss_ && (found != Probe::Miss || access.eviction != Eviction::NoAllocate);
  if (allocates) {
    if (found == Probe::Miss) replace(line, access);
    touch(line, access);
    if (found != Probe::HitReserved) {
      Line& l = lines_[line];
      const auto bit = static_cast<uint8_t>(1u << sector_of(access.address));
      // A partially written sector stays modified during the fetch that completes it.
      if (l.modified & bit) {
        l.modified_on_fill |= bit;
        l.modified &= static_cast<uint8_t>(~bit);
        if (!l.modified) --modified_lines_;
      }
      l.reserved |= bit;
    }
  }
  if (!merged) {
    mshr = add_mshr(unit, allocates ? line : none);
    CacheMiss miss;
    miss.address = unit;
    miss.token = access.token;
    miss.eviction = access.next_eviction;
    miss.sectors = static_cast<uint8_t>(std::max(1u, unit_bytes_ / sector_bytes));
    miss.kind = access.kind;
    miss.slot = access.slot;
    miss.mshr = mshr;
    misses_.push_back(miss);
  }
  wait_in(mshr, access);
  // Its data may have come, and the line that it filled may have been replaced, while accesses still wait for
  // their turn: no other fill will come.
  if (merged && allocates && mshrs_[mshr].arrived) arrive(line, sector_of(access.address), mshr);
  if (found == Probe::HitReserved) return CacheOutcome::HitReserved;
  if (merged && !allocates) return CacheOutcome::HitReserved;
  return found == Probe::SectorMiss ? CacheOutcome::SectorMiss : CacheOutcome::Miss;
}

CacheOutcome SectoredCache::access(const CacheAccess& access) {
  failure_ = CacheFailure::None;
  write_sent_ = false;
  evicted_sectors_ = 0;
  const CacheOutcome outcome = look_up(access);
  if (newly_modified_ != none && dirty_ways_ < ways_)
    limit_modified(set_of_line(newly_modified_), access.slot);
  return outcome;
}

CacheOutcome SectoredCache::look_up(const CacheAccess& access) {
  uint32_t line = none;
  const Probe found = probe(access, line);
  if (!access.write) {
    if (found == Probe::Refused && allocate_on_miss_) {
      if (access.eviction != Eviction::NoAllocate) return refuse(CacheFailure::Line);
      return read(access, Probe::Miss, none);
    }
    return read(access, found, line);
  }
  if (found == Probe::Hit) return write_hit(access, line);
  const bool no_allocate = access.eviction == Eviction::NoAllocate;
  if (found == Probe::Refused && spec_.write_allocation != CacheWriteAllocation::None && !no_allocate)
    return refuse(CacheFailure::Line);
  return write_miss(access, found, line);
}

void SectoredCache::pass_on(const CacheAccess& access) {
  CacheMiss miss;
  miss.address =
      access.address / sector_bytes * sector_bytes;  // writes are sent per sector, even to whole lines
  miss.token = access.token;
  miss.byte_mask = access.byte_mask;
  miss.write = true;
  miss.eviction = access.next_eviction;
  miss.kind = access.kind;
  miss.slot = access.slot;
  misses_.push_back(miss);
  write_sent_ = true;
}

CacheOutcome SectoredCache::write_hit(const CacheAccess& access, uint32_t line) {
  const uint32_t sector = sector_of(access.address);
  const bool removes =
      access.kind == AccessKind::LocalWrite ? write_policy_.removes_local : write_policy_.removes_global;
  if (write_policy_.through || removes) {
    if (miss_queue_full(0)) return refuse(CacheFailure::MissQueue);
    pass_on(access);
  }
  touch(line, access);
  if (removes) {
    Line& l = lines_[line];
    const auto keep = static_cast<uint8_t>(~(1u << sector));
    if (l.modified && !(l.modified & keep)) --modified_lines_;
    l.valid &= keep;
    l.modified &= keep;
    l.readable &= keep;
  } else {
    modify(line, sector, access.byte_mask);
  }
  return CacheOutcome::Hit;
}

CacheOutcome SectoredCache::write_miss(const CacheAccess& access, Probe found, uint32_t line) {
  const CacheOutcome outcome = found == Probe::HitReserved  ? CacheOutcome::HitReserved
                               : found == Probe::SectorMiss ? CacheOutcome::SectorMiss
                                                            : CacheOutcome::Miss;
  const bool takes_a_line = found == Probe::Miss || found == Probe::Refused;
  if (spec_.write_allocation == CacheWriteAllocation::None ||
      (takes_a_line && access.eviction == Eviction::NoAllocate)) {
    if (miss_queue_full(0)) return refuse(CacheFailure::MissQueue);
    pass_on(access);
    return CacheOutcome::Miss;
  }
  const bool fetches =
      spec_.write_allocation == CacheWriteAllocation::WriteAllocate ||
      (spec_.write_allocation == CacheWriteAllocation::FetchOnWrite && access.byte_mask != ~0u);
  const uint64_t unit = unit_address(access.address);
  if (miss_queue_full(fetches ? 2 : 0)) return refuse(CacheFailure::MissQueue);
  if (fetches && mshrs_used_ >= mshr_limit_ && find_mshr(unit, found == Probe::Miss ? none : line) == none)
    return refuse(CacheFailure::MshrEntries);
  if (write_policy_.through || spec_.write_allocation == CacheWriteAllocation::WriteAllocate) pass_on(access);
  const uint32_t sector = sector_of(access.address);
  if (found == Probe::Miss) replace(line, access);
  touch(line, access);
  Line& l = lines_[line];
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (found == Probe::HitReserved || fetches) {
    // The sector is both read and written: it stays modified, and is complete once the data arrives.
    if (found != Probe::HitReserved) {
      if (find_mshr(unit, line) == none) {
        CacheMiss miss;
        miss.mshr = add_mshr(unit, line);
        miss.address = unit;
        miss.eviction = access.next_eviction;
        miss.kind = access.kind;
        miss.slot = access.slot;
        misses_.push_back(miss);
      }
      if (l.modified & bit) {
        l.modified &= static_cast<uint8_t>(~bit);
        if (!l.modified) --modified_lines_;
      }
      l.reserved |= bit;
    }
    uint32_t& written = written_[line][sector];
    written = l.modified_on_fill & bit ? written | access.byte_mask : access.byte_mask;
    l.modified_on_fill |= bit;
    if (const uint32_t mshr = find_mshr(unit, line); mshr != none && mshrs_[mshr].arrived)
      arrive(line, sector, mshr);
    return outcome;
  }
  modify(line, sector, access.byte_mask);
  return outcome;
}

void SectoredCache::fill(uint32_t mshr, uint64_t address, uint64_t time) {
  uint32_t line = mshrs_[mshr].line;
  if (!mshrs_[mshr].has_line) line = find_in_any_set(line_address(address));
  const uint32_t sector = sector_of(address);
  const auto bit = static_cast<uint8_t>(1u << sector);
  if (!allocate_on_miss_) {
    if (line == none && mshrs_[mshr].eviction != Eviction::NoAllocate) {
      CacheAccess access;
      access.address = address;
      access.token = mshrs_[mshr].count > 0 ? mshrs_[mshr].token : CacheAccess::nobody;
      access.time = time;
      access.eviction = mshrs_[mshr].eviction;
      line = find_victim(set_of(address), access);
      if (line != none) {
        replace(line, access);
        prioritize(line, access.eviction);
      }
    }
    if (line != none && !((lines_[line].valid | lines_[line].modified) & bit)) lines_[line].reserved |= bit;
  }
  if (line != none) arrive(line, sector, mshr);
  mshrs_[mshr].arrived = 1;
  if (mshrs_[mshr].count == 0) {  // a fetch that only completes a write
    free_mshr(mshr);
    return;
  }
  mshrs_[mshr].next = none;
  (ready_tail_ == none ? ready_head_ : mshrs_[ready_tail_].next) = mshr;
  ready_tail_ = mshr;
}

uint64_t SectoredCache::pop_ready() {
  const uint32_t mshr = ready_head_;
  Mshr& m = mshrs_[mshr];
  const uint64_t token = m.token;
  const uint32_t w = m.second;
  if (w == none) {
    ready_head_ = m.next;
    if (ready_head_ == none) ready_tail_ = none;
    free_mshr(mshr);
    return token;
  }
  m.token = waiting_[w].token;
  m.second = waiting_[w].next;
  if (m.second != none) waiting_[m.second].last = waiting_[w].last;
  free_waiting_.push_back(w);
  return token;
}

CacheInsertion SectoredCache::insert(const CacheAccess& access, uint32_t sectors) {
  uint32_t line = none;
  const Probe found = probe(access, line);
  CacheInsertion inserted;
  if (line == none) return inserted;
  const size_t before = misses_.size();
  if (found == Probe::Miss) replace(line, access);
  Line& l = lines_[line];
  for (; sectors; sectors &= sectors - 1) {
    const uint32_t first = sectors & ~(sectors - 1);
    const uint32_t sector = sector_of(access.address + uint64_t(std::countr_zero(first)) * sector_bytes);
    const auto bit = static_cast<uint8_t>(1u << sector);
    if (l.reserved & bit) continue;
    touch(line, access);
    if (access.write && !write_policy_.through) {
      modify(line, sector, ~0u);
    } else if (!(l.modified & bit)) {
      if (!(l.valid & bit)) inserted.fetched |= first;
      l.valid |= bit;
    }
  }
  if (newly_modified_ != none && dirty_ways_ < ways_) limit_modified(set_of_line(line), access.slot);
  for (; misses_.size() > before; misses_.pop_back()) inserted.written_back += misses_.back().sectors;
  return inserted;
}

std::vector<CacheLine> SectoredCache::contents() const {
  std::vector<CacheLine> found;
  for (uint32_t set = 0; set < spec_.sets; ++set)
    tags_.first_in_order(set, [&](uint32_t number) {
      const Line& l = lines_[number];
      CacheLine line{l.tag, number, l.valid, l.modified, l.readable, l.priority, {}};
      for (uint32_t sector = 0; sector < max_sectors; ++sector) {
        const auto bit = static_cast<uint8_t>(1u << sector);
        if ((l.modified | l.modified_on_fill) & bit) line.written[sector] = written_[number][sector];
        if (!(l.reserved & bit)) continue;
        const uint32_t mshr = find_mshr(l.tag + uint64_t{sector} * unit_bytes_, number);
        const bool atomic = mshr != none && mshrs_[mshr].atomic;
        if (atomic) line.written[sector] = ~0u;
        const bool modified = atomic || (l.modified_on_fill & bit);
        line.modified |= modified ? bit : uint8_t{0};
        line.readable |= modified ? bit : uint8_t{0};
        line.valid |= modified ? uint8_t{0} : bit;
      }
      found.push_back(line);
      return false;
    });
  return found;
}

void SectoredCache::restore(const std::vector<CacheLine>& contents) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("the contents of a cache: ") + what);
  };
  require(!replacement_, "its replacement policy has a history, which they lack");
  resize();
  const uint32_t all = spec_.sectored ? 15 : 1;
  std::vector<uint64_t> tags;
  tags.reserve(contents.size());
  for (const CacheLine& saved : contents) tags.push_back(saved.tag);
  std::sort(tags.begin(), tags.end());
  require(std::adjacent_find(tags.begin(), tags.end()) == tags.end(), "a tag");
  for (const CacheLine& saved : contents) {
    require(saved.line < lines_.size() && !lines_[saved.line].holds_tag, "a line");
    require(saved.tag % spec_.line_bytes == 0, "a tag");
    const bool apart = (saved.valid & saved.modified) == 0 && (saved.readable & ~saved.modified) == 0;
    require(saved.priority <= LinePriority::Last, "a priority");
    require(apart && ((saved.valid | saved.modified) & ~all) == 0, "a sector");
    Line& l = lines_[saved.line];
    l.tag = saved.tag;
    l.holds_tag = true;
    l.valid = saved.valid;
    l.modified = saved.modified;
    l.readable = saved.readable;
    l.priority = saved.priority;
    prioritized_lines_ += l.priority != LinePriority::Normal;
    written_[saved.line] = saved.written;
    modified_lines_ += l.modified != 0;
    tags_.take(set_of_line(saved.line), saved.line, l.tag);
  }
  for (uint32_t s = 0; s < spec_.sets; ++s)
    for (uint32_t way = tags_.used(s); way < ways_; ++way)
      require(!lines_[s * ways_ + way].holds_tag, "the order of its lines");
  free_lines_ -= contents.size();
}

uint32_t SectoredCache::find_in_any_set(uint64_t line_address) const {
  const uint32_t sets = tags_.indexed() ? 1 : spec_.sets;  // an index is of all sets
  for (uint32_t set = 0; set < sets; ++set)
    if (const uint32_t line = find_line(line_address, [&] { return set; }); line != none) return line;
  return none;
}

void SectoredCache::drop(uint64_t address, uint32_t set) {
  const uint32_t line = find_line(line_address(address), [&] { return set; });
  if (line != none) lines_[line].valid &= static_cast<uint8_t>(~(1u << sector_of(address)));
}

}  // namespace simt
