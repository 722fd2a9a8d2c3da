#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "isa/prefetch.hpp"
#include "stats/counters.hpp"
#include "timing/base/request.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/address_index.hpp"
#include "timing/memory/clock.hpp"
#include "timing/memory/hash.hpp"
#include "timing/memory/line_table.hpp"
#include "timing/memory/replacement.hpp"
#include "timing/memory/tag_store.hpp"
#include "timing/memory/write_policy.hpp"

namespace simt {

struct CacheAccess {
  static constexpr uint32_t unknown = ~0u;
  static constexpr uint64_t nobody = ~uint64_t{0};  ///< token where a fetch only completes a write

  uint64_t address = 0;  ///< in the sector (line, if not sectored)
  uint64_t token = 0;    ///< identifies the access to the caller
  uint64_t time = 0;
  uint32_t set = unknown;    ///< if the caller knows it; otherwise `address` chooses it
  uint32_t line = unknown;   ///< that may hold it, from prefetch_found()
  uint32_t byte_mask = ~0u;  ///< bytes of the sector that a write covers
  bool write = false;
  bool atomic = false;  ///< a read that leaves the sector modified
  Eviction eviction = Eviction::Default;
  Eviction next_eviction = Eviction::Default;  ///< for the next level, if this one misses
  AccessKind kind = AccessKind::GlobalRead;
  uint16_t slot = 0;
};

/// A request from a cache to the next level.
struct CacheMiss {
  uint64_t address = 0;
  uint64_t token = 0;  ///< of the access, for write-through
  uint32_t byte_mask = ~0u;
  uint8_t sectors = 1;  ///< for write-backs: number of modified sectors of the line
  bool write = false;
  bool write_back = false;  ///< the modified sectors of an evicted line; no reply needed
  Eviction eviction = Eviction::Default;
  AccessKind kind = AccessKind::GlobalRead;
  uint16_t slot = 0;
  uint32_t mshr = 0;  ///< that a read waits in
};

/// A read-only cache, as a cache whose lines are never written.
CacheSpec cache_of(const ReadOnlyCacheSpec& spec, uint32_t miss_queue);

/// What inserting sectors of a line without time would have exchanged with the next level.
struct CacheInsertion {
  uint32_t fetched = 0;       ///< a bit for each of the sectors asked for
  uint32_t written_back = 0;  ///< number of sectors of the line that was replaced
};

/// When a line is evicted, compared with the other ones of its set.
enum class LinePriority : uint8_t { Normal, First, Last };

/// A line that holds a tag, outside of its cache.
struct CacheLine {
  uint64_t tag = 0;
  uint32_t line = 0;  ///< its number in the cache, set by set
  uint8_t valid = 0, modified = 0, readable = 0;
  LinePriority priority = LinePriority::Normal;
  std::array<uint32_t, 4> written{};  ///< modified bytes, by sector
};

/// Why an access was refused.
enum class CacheFailure : uint8_t { None, Line, MissQueue, MshrEntries, MshrMerge };

/// Knows what the tokens of a cache's accesses stand for, and is told which lines they take.
class CacheObserver {
 public:
  virtual ~CacheObserver() = default;
  struct Requester {
    uint64_t pc;
    uint32_t warp;
  };
  /// write: the access with this token is one.
  virtual Requester requester(uint64_t token, bool write) const = 0;
  /// An access takes a line, which is the first of its place if `had_tag` is false.
  virtual void replaced(uint32_t line, bool had_tag, uint64_t tag, const CacheAccess& access) = 0;
};

/// A set-associative cache with its MSHRs and miss queue. Its lines share a tag over four 32-byte sectors
/// that are allocated and filled separately (or, if not sectored, are filled whole). It models the order of
/// accesses but not time; its owner adds latencies and ports. Rules: docs/model/caches.md.
class SectoredCache {
 public:
  explicit SectoredCache(const CacheSpec& spec);

  /// Whom to tell of accesses and lines; it must live as long as the cache.
  void set_observer(CacheObserver* observer) { observer_ = observer; }

  /// Changes the number of ways; invalidates everything.
  void set_ways(uint32_t ways);

  /// At most this many lines of a set are evicted last: the most recently used of those with that priority.
  void set_protected_ways(uint32_t ways) { protected_ways_ = ways; }
  /// Lines that are to be evicted last get normal priority.
  void reset_protected();

  /// Looks up, and on a miss allocates and requests from the next level. A read that does not hit waits in an
  /// MSHR until fill(), and then comes out of pop_ready(). ReservationFail changes nothing; retry.
  CacheOutcome access(const CacheAccess& access);
  CacheFailure last_failure() const { return failure_; }
  /// Whether the last access, a write, was sent to the next level, which will acknowledge it.
  bool last_write_sent() const { return write_sent_; }
  /// Modified sectors that the last access evicted.
  uint32_t last_evicted_sectors() const { return evicted_sectors_; }

  bool miss_queue_empty() const { return misses_.empty(); }
  const CacheMiss& front_miss() const { return misses_.front(); }
  void pop_miss() { misses_.pop_front(); }

  /// The next level delivered the sector (line).
  void fill(uint64_t address, uint64_t time) {
    const uint32_t line = find_line(line_address(address), [&] { return set_of(address); });
    const uint32_t mshr = find_mshr(unit_address(address), line);
    if (mshr != none) fill(mshr, address, time);
  }
  /// The same, with the MSHR that the miss named.
  void fill(uint32_t mshr, uint64_t address, uint64_t time);
  /// Bring what access(), or fill() of a miss, will touch into the host's caches: first the indices or the
  /// MSHR, then the line that they name.
  void prefetch_access(const CacheAccess& access) const {
    tags_.prefetch(line_address(access.address), [&] { return set_of(access); });
  }
  /// Next, what access() will touch beyond the indices: the line, or the first candidate for replacement.
  /// Returns whether there is more, for prefetch_replaced().
  bool prefetch_found(CacheAccess& access) const {
    access.line = tags_.likely(line_address(access.address), [&] { return set_of(access); });
    const uint32_t line = access.line != none ? access.line : tags_.oldest(set_of(access));
    if (line == none) return false;
    simt::prefetch(&lines_[line]);
    tags_.prefetch_order(line);
    return access.line == none && tags_.indexed();
  }
  /// Last, the index of a line that will be replaced.
  void prefetch_replaced(const CacheAccess& access) const {
    const uint32_t set = set_of(access);
    if (access.line != none || tags_.used(set) < ways_) return;
    const uint64_t tag = lines_[tags_.oldest(set)].tag;
    tags_.prefetch(tag, [&] { return set; });
  }
  void prefetch_mshr(uint32_t mshr) const { simt::prefetch(&mshrs_[mshr]); }
  /// Of the access that waits longest for the data of an MSHR.
  uint64_t token_of(uint32_t mshr) const { return mshrs_[mshr].token; }
  void prefetch_line(uint32_t mshr) const { simt::prefetch(lines_.data() + mshrs_[mshr].line); }
  bool ready() const { return ready_head_ != none; }
  /// Token of the oldest access whose data has arrived.
  uint64_t next_ready() const { return mshrs_[ready_head_].token; }
  /// The same; one per call.
  uint64_t pop_ready();

  /// Inserts sectors of one line without time or traffic, as if they had been read or, for a write, written
  /// completely. sectors: bit per 32 bytes, from the address on.
  CacheInsertion insert(const CacheAccess& access, uint32_t sectors = 1);
  void invalidate();
  /// Invalidates an unmodified sector of that set if it is present.
  void drop(uint64_t address, uint32_t set);

  /// The lines that hold a tag, set by set, in replacement order. Sectors being read count as arrived.
  std::vector<CacheLine> contents() const;
  /// Puts these lines in place of everything: contents() of a cache of the same geometry. Throws
  /// std::invalid_argument if they are not, and for a replacement policy with a history of its own.
  void restore(const std::vector<CacheLine>& contents);

  bool contains(uint64_t address) const;
  uint64_t modified_lines() const { return modified_lines_; }
  /// Whether the access would find its line, or could allocate one while leaving another allocatable in its
  /// set.
  bool leaves_a_way(const CacheAccess& access) const;
  /// Lines that have never held data.
  uint64_t free_lines() const { return free_lines_; }
  uint32_t outstanding_misses() const { return mshrs_used_; }
  uint32_t ways() const { return ways_; }

 private:
  static constexpr uint32_t none = ~0u;
  static constexpr uint32_t max_sectors = 4;
  // A sector is reserved (being read), valid (same as memory), modified, or invalid (none of these).
  struct Line {
    uint64_t tag = 0;                               // line address
    uint8_t reserved = 0, valid = 0, modified = 0;  // bit per sector
    uint8_t readable = 0;                           // modified sectors with all bytes known
    uint8_t modified_on_fill = 0;                   // reserved sectors written to during their read
    uint8_t mshrs = 0;                              // sectors that have one, in mshrs_of_
    bool holds_tag = false;
    LinePriority priority = LinePriority::Normal;
  };
  struct Waiting {
    uint64_t token = 0;
    uint32_t next = none;
    uint32_t last = none;  // behind the first of an MSHR
  };
  struct Mshr {
    uint64_t address = 0;
    uint64_t token = 0;       // of the access that waits longest: most often the only one
    uint32_t second = none;   // the others, in waiting_
    uint32_t next = none;     // whose data has arrived, or that is free
    uint32_t line = none;     // that it was taken for; or, if !has_line, the next in mshrs_without_line_
    uint32_t count : 26 = 0;  // accesses merged since it was taken
    Eviction eviction : 3 = Eviction::Default;  // of the line that the data will take
    uint32_t has_line : 1 = 0;
    uint32_t atomic : 1 = 0;
    uint32_t arrived : 1 = 0;  // the data; accesses may still wait for their turn
  };
  enum class Probe : uint8_t { Hit, HitReserved, SectorMiss, Miss, Refused };

  void resize();
  // Lines and units have powers of two of bytes.
  uint64_t line_address(uint64_t address) const { return address >> line_shift_ << line_shift_; }
  uint64_t unit_address(uint64_t address) const { return address & ~uint64_t{unit_bytes_ - 1}; }
  uint32_t sector_of(uint64_t address) const {
    return spec_.sectored ? static_cast<uint32_t>(address / sector_bytes % max_sectors) : 0;
  }
  uint32_t set_of(uint64_t address) const {
    return set_index_(address, address >> line_shift_, spec_.sets) & (spec_.sets - 1);
  }
  uint32_t set_of(const CacheAccess& access) const {
    return access.set != CacheAccess::unknown ? access.set : set_of(access.address);
  }
  uint32_t set_of_line(uint32_t line) const {
    return ways_ == 1 ? line : static_cast<uint32_t>(static_cast<Wide>(line) * inverse_ways_ >> 64);
  }
  Probe probe(const CacheAccess& access, uint32_t& line) const;
  uint32_t find_victim(uint32_t set, const CacheAccess& access) const;
  /// Evictable lines of the set that are passed over before one is evicted.
  uint32_t passed_over(uint32_t set, uint64_t line_address) const;
  void apply_priorities(uint32_t set, Eviction eviction) const;
  bool evictable(const Line& line) const;

  /// Gives the victim `line` the tag of `access`; its modified sectors go to the miss queue.
  void replace(uint32_t line, const CacheAccess& access);
  void touch(uint32_t line, const CacheAccess& access);
  void prioritize(uint32_t line, Eviction eviction);
  void modify(uint32_t line, uint32_t sector, uint32_t byte_mask);
  /// The modified sectors of a line, which keeps its tag or not, go to the miss queue.
  void write_back(uint32_t line, uint16_t slot);
  /// Writes back modified lines of a set in which there are too many.
  void limit_modified(uint32_t set, uint16_t slot);
  CacheOutcome look_up(const CacheAccess& access);
  CacheOutcome refuse(CacheFailure failure);
  CacheOutcome read(const CacheAccess& access, Probe probe, uint32_t line);
  CacheOutcome write_hit(const CacheAccess& access, uint32_t line);
  CacheOutcome write_miss(const CacheAccess& access, Probe probe, uint32_t line);
  void pass_on(const CacheAccess& access);
  bool miss_queue_full(uint32_t extra) const { return misses_.size() + extra >= spec_.miss_queue; }

  bool holds(uint32_t line, uint64_t line_address) const {
    return line < lines_.size() && lines_[line].tag == line_address && lines_[line].holds_tag;
  }
  template <typename SetOf>
  uint32_t find_line(uint64_t line_address, SetOf set_of) const {
    return tags_.find(line_address, set_of, [this](uint32_t line) { return lines_[line].tag; });
  }
  uint32_t find_line(const CacheAccess& access) const {
    const uint64_t address = line_address(access.address);
    return holds(access.line, address) ? access.line : find_line(address, [&] { return set_of(access); });
  }
  /// Without the set that the caller of access() may have chosen, which takes long.
  uint32_t find_in_any_set(uint64_t line_address) const;
  /// Of a sector, or line, and the line that holds its tag; none if there is no such line.
  uint32_t find_mshr(uint64_t unit_address, uint32_t line) const {
    if (line != none && lines_[line].mshrs >> sector_of(unit_address) & 1)
      return mshrs_of_[line][sector_of(unit_address)];
    if (mshrs_without_line_.empty()) return none;
    return mshrs_without_line_.find(
        unit_address, [this](uint32_t mshr) { return mshrs_[mshr].address; },
        [this](uint32_t mshr) { return mshrs_[mshr].line; });
  }
  /// The line loses its tag: its MSHRs are found without it from now on.
  void detach_mshrs(uint32_t line);
  void add_mshr_without_line(uint32_t mshr);
  uint32_t add_mshr(uint64_t address, uint32_t line);
  /// The data of an MSHR is in the sector, if that is reserved.
  void arrive(uint32_t line, uint32_t sector, uint32_t mshr);
  void wait_in(uint32_t mshr, const CacheAccess& access);
  void free_mshr(uint32_t mshr);

  /// What a replacement policy is told of an access.
  LineUse use_of(const CacheAccess& access) const;

  CacheSpec spec_;
  uint32_t line_shift_;
  uint32_t (*set_index_)(uint64_t address, uint64_t line, uint32_t sets);
  bool renewed_by_use_;
  uint32_t part_;
  uint32_t dirty_ways_ = ~0u;  // of a set, at most
  WritePolicy write_policy_;
  CacheObserver* observer_ = nullptr;
  std::unique_ptr<Replacement> replacement_;  // nullptr: the order of a set's lines decides
  uint32_t unit_bytes_;                       // sector or line
  uint32_t ways_;
  uint64_t inverse_ways_ = 0;  // 2^64 / ways, rounded up: exact for numbers of 32 bits
  bool allocate_on_miss_;
  std::vector<Line> lines_;
  LineTable<std::array<uint32_t, max_sectors>> written_;  // per line and sector: modified bytes
  TagStore tags_;
  uint64_t modified_lines_ = 0;
  uint32_t newly_modified_ = none;  // a line, since the last limit_modified()
  uint64_t free_lines_ = 0;
  uint64_t prioritized_lines_ = 0;  // whose priority is not normal
  uint32_t protected_ways_ = ~0u;

  std::vector<Mshr> mshrs_;
  uint32_t free_mshr_ = none;
  LineTable<std::array<uint32_t, max_sectors>> mshrs_of_;  // the lines, by sector
  AddressLists mshrs_without_line_;
  uint32_t mshrs_used_ = 0;
  uint32_t mshr_limit_ = 0;
  std::vector<Waiting> waiting_;
  std::vector<uint32_t> free_waiting_;
  uint32_t ready_head_ = none, ready_tail_ = none;
  RingQueue<CacheMiss> misses_;
  CacheFailure failure_ = CacheFailure::None;
  bool write_sent_ = false;
  uint32_t evicted_sectors_ = 0;
  mutable std::vector<uint8_t> evictable_flags_;
};

}  // namespace simt
