#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "isa/prefetch.hpp"
#include "timing/warps/decoded_kernel.hpp"
#include "timing/warps/dependence_counters.hpp"
#include "timing/warps/warp_view.hpp"

namespace simt {

/// Why a warp that has an instruction does not issue it; these reasons are counted. Named as in Nsight
/// Compute where the meaning is the same.
enum class StallReason : uint8_t {
  Selected,
  NotSelected,
  NoInstruction,
  Barrier,
  Membar,
  AsyncCopy,         ///< waits for LDGSTS groups or bulk copies
  LongScoreboard,    ///< waits for a result from global or local memory, or for atomics
  ShortScoreboard,   ///< waits for a result from shared memory
  Wait,              ///< waits for a fixed-latency result
  MathPipeThrottle,  ///< its execution unit is busy
  LgThrottle,        ///< the memory pipeline is busy; the next access is of global, local or texture memory
  MioThrottle,       ///< the same, and the next access is of shared memory
  Sleeping,          ///< in a NANOSLEEP
  ImcMiss,           ///< waits for a constant operand missing from its sub-core's constant cache
  Drain,             ///< has exited; stores or results are outstanding
  WarpgroupArrive,   ///< waits in a WARPGROUP.DEPBAR: for multiplications, or for the group's other warps
  Count
};

/// The resident warps of one SM, shared by the front end, the schedulers, the execution units and the
/// load/store unit. A warp in slot w belongs to scheduler w mod schedulers, at position w / schedulers. Masks
/// have one bit per position; an SM has at most 64 slots.
class WarpTable {
 public:
  static constexpr uint32_t buffer_capacity = 4;
  static constexpr uint32_t nowhere = ~0u;

  /// What every instruction needs of its record.
  struct Buffered {
    uint32_t static_index = 0;
    uint32_t ticket = 0;
    uint64_t mask = 0;
  };
  // In the order of use: a GPU's warps do not fit the host's caches, and an issue touches three of their
  // lines.
  struct alignas(64) Warp {
    // The instruction buffer: `buffered` records that can issue, plus one read ahead, so that the warp's last
    // instruction is known when it issues.
    std::array<Buffered, buffer_capacity> buffer{};
    const DecodedKernel* kernel = nullptr;
    CtaStream* stream = nullptr;
    uint8_t buffered = 0, held = 0, buffer_head = 0;
    Unit needed = Unit::Int;  ///< unit of the next instruction, as recorded in the masks
    bool resident = false;
    bool dropped = false;  ///< its launch was stopped
    /// Why its buffer may not be filled. Most often nothing is true, which is one comparison.
    struct Obstacles {
      bool fetch_pending = false;  ///< waiting for the instruction cache
      bool source_waits = false;   ///< its stream currently has no record
      bool jumps = false;          ///< its buffer ends with a taken branch, or with nothing behind one
      bool stream_ended = false;
      bool none() const { return std::bit_cast<uint32_t>(*this) == 0; }
    };
    Obstacles obstacles{};
    uint16_t cta_slot = 0;
    uint16_t index_in_cta = 0;
    uint32_t in_pipeline = 0;          ///< decoded, but not yet through the pipelines
    uint32_t outstanding_stores = 0;   ///< not acknowledged
    uint32_t outstanding_atomics = 0;  ///< lanes
    uint32_t issued_index = nowhere;   ///< static index of the last instruction issued
    // Plain records taken from the stream that the buffer has had no room for yet.
    uint32_t plain_next = 0, plain_left = 0;
    uint64_t plain_mask = 0;
    alignas(64) RegisterSet pending{};
    uint64_t issued = 0;  ///< instructions
    RegisterSet pending_long{};
    RegisterSet pending_short{};
    struct AsyncGroup {
      uint32_t copies = 0;                        ///< outstanding
      uint8_t counter = ControlBits::no_counter;  ///< to lower when the group is complete
    };
    // Groups of asynchronous copies that are still open or incomplete; the last is open.
    std::vector<AsyncGroup> async_groups = std::vector<AsyncGroup>(1);
    uint32_t first_async_group = 0;  ///< number of async_groups[0]
    uint32_t async_wait_end = 0;     ///< waiting for the groups numbered below this
    bool awaits_bulk_copies = false;
    uint64_t awaited_mbarrier = 0;
    // The current execution of a basic block, if blocks are observed.
    uint32_t block = 0, last_index = BasicBlocks::none;
    uint64_t block_begin = 0;
  };

  /// With `stops_at_jumps`, a buffer holds nothing behind a taken branch until go_on() is called.
  WarpTable(uint32_t warp_slots, uint32_t launch_slots, uint32_t scheduler_count, uint32_t buffer_entries,
            bool stops_at_jumps)
      : warps_(warp_slots),
        records_(warp_slots),
        positions_(warp_slots),
        ages_((warp_slots + scheduler_count - 1) / scheduler_count * scheduler_count),
        left_stores_(warp_slots),
        stores_(launch_slots),
        masks_(scheduler_count),
        schedulers_(scheduler_count),
        inverse_schedulers_(((1u << 16) + scheduler_count - 1) / scheduler_count),
        buffer_entries_(buffer_entries),
        stops_at_jumps_(stops_at_jumps),
        dependences_(warp_slots) {
    views_.reserve(scheduler_count);
    for (uint32_t s = 0; s < scheduler_count; ++s) views_.emplace_back(*this, s);
  }
  WarpTable(const WarpTable&) = delete;
  WarpTable& operator=(const WarpTable&) = delete;

  uint32_t schedulers() const { return schedulers_; }
  /// Brings what the issue of its next instruction touches into the host's caches.
  void prefetch(uint32_t w) const {
    const auto* warp = reinterpret_cast<const char*>(&warps_[w]);
    for (size_t at = 0; at < offsetof(Warp, pending_long); at += 64) simt::prefetch(warp + at);
  }
  uint32_t slots() const { return static_cast<uint32_t>(warps_.size()); }
  Warp& operator[](uint32_t w) { return warps_[w]; }
  const Warp& operator[](uint32_t w) const { return warps_[w]; }
  /// For changing them.
  SchedulerMasks& change_masks(uint32_t scheduler) {
    masks_changed_ |= 1u << scheduler;
    return masks_[scheduler];
  }
  /// Bit per scheduler whose masks may have changed since they were last forgotten.
  uint32_t masks_changed() const { return masks_changed_; }
  void forget_masks_changed(uint32_t scheduler) { masks_changed_ &= ~(1u << scheduler); }
  const SchedulerMasks& masks(uint32_t scheduler) const { return masks_[scheduler]; }
  uint32_t scheduler_of(uint32_t w) const { return w - place_of(w) * schedulers_; }
  uint64_t bit_of(uint32_t w) const { return uint64_t{1} << place_of(w); }
  uint32_t slot_at(uint32_t scheduler, uint32_t position) const { return position * schedulers_ + scheduler; }

  /// What a scheduler sees.
  const WarpView& view(uint32_t scheduler) const { return views_[scheduler]; }

  /// The order in which the warp was launched: smaller is older.
  uint64_t age(uint32_t w) const { return ages_[w]; }
  void set_age(uint32_t w, uint64_t age) { ages_[w] = age; }
  /// Static index of the warp's next instruction; without one, such as at a barrier, of the last it issued.
  uint32_t position(uint32_t w) const { return positions_[w].at; }
  uint16_t launch_slot(uint32_t w) const { return positions_[w].launch_slot; }

  void start(uint32_t w, const DecodedKernel& kernel, CtaStream& stream, uint16_t cta_slot, uint16_t index,
             uint64_t age);
  void retire(uint32_t w);

  const Buffered& next(uint32_t w) const { return warps_[w].buffer[warps_[w].buffer_head]; }
  /// Of an instruction that uses its record.
  const DynamicRecord& next_record(uint32_t w) const { return records_[w][warps_[w].buffer_head]; }
  /// Calls use(static index, mask) for each record that has been taken from the warp's stream, but not
  /// issued.
  template <typename Use>
  void for_each_ahead(uint32_t w, Use use) const {
    const Warp& warp = warps_[w];
    for (uint32_t i = 0; i < warp.held; ++i) {
      const Buffered& record = warp.buffer[(warp.buffer_head + i) % buffer_capacity];
      use(record.static_index, record.mask);
    }
    for (uint32_t i = 0; i < warp.plain_left; ++i) use(warp.plain_next + i, warp.plain_mask);
  }
  const DecodedInstruction& next_instruction(uint32_t w) const {
    return warps_[w].kernel->instructions[next(w).static_index];
  }
  /// Address of the warp's next instruction, fetched from the stream if necessary. 0 at the end of the
  /// stream, or if it currently has no record.
  uint64_t next_pc(uint32_t w, uint64_t now) {
    if (warps_[w].held == 0) read_ahead(w, now);
    return warps_[w].held > 0 ? next_instruction(w).fixed.pc : 0;
  }
  /// Moves records from the warp's stream into its instruction buffer, up to the buffer's size.
  void fill_buffer(uint32_t w, uint64_t now);
  /// The stream may have records again.
  void source_goes_on(uint32_t w) {
    if (!warps_[w].obstacles.source_waits) return;
    warps_[w].obstacles.source_waits = false;
    forget_stop(w);
    refresh(w);
  }
  /// The warp executes no more instructions; it retires once those issued have completed.
  void drop(uint32_t w);
  /// Removes the record at the head of the buffer, which has been issued. True if it was the warp's last.
  bool advance(uint32_t w);
  /// Whether the warp has just issued a taken branch.
  bool has_jumped(uint32_t w) const { return warps_[w].obstacles.jumps && warps_[w].buffered == 0; }
  /// Its target may be fetched.
  void go_on(uint32_t w) {
    warps_[w].obstacles.jumps = false;
    set_fetch_pending(w, false);
  }

  /// An instruction of the warp has issued: the registers that it writes are pending until release().
  void reserve(uint32_t w, const DecodedInstruction& instruction) {
    Warp& warp = warps_[w];
    if (warp.kernel->observed_blocks && instruction.fixed.destination_count > 0) [[unlikely]] {
      Latency& l = latency(*warp.kernel, instruction);
      l.cycles -= static_cast<int64_t>(time_);
      ++l.issued;
    }
    add(warp.pending, instruction.writes);
    if (!instruction.memory_pipeline && !instruction.constant_load) return;
    const bool soon = instruction.constant_load || instruction.fixed.space == MemorySpace::Shared;
    add(soon ? warp.pending_short : warp.pending_long, instruction.writes);
  }
  DependenceCounters& dependences() { return dependences_; }
  const DependenceCounters& dependences() const { return dependences_; }
  void release(uint32_t w, const DecodedInstruction& instruction);

  /// Cycles from issue to register write of one static instruction that writes registers.
  struct Latency {
    int64_t cycles = 0;  ///< sum of the ends minus sum of the issues
    uint64_t issued = 0, ended = 0;
  };
  /// For a launch whose blocks are observed, by static instruction.
  std::vector<Latency>& latencies(uint16_t slot) {
    if (latencies_.size() <= slot) latencies_.resize(slot + 1u);
    return latencies_[slot];
  }
  void set_time(uint64_t now) {
    time_ = now;
    if (dependences_.due(now)) [[unlikely]]
      take_due_dependences();
  }

  /// Bit per slot whose instruction buffer is empty and whose stream has not ended.
  uint64_t fetchable() const { return fetchable_; }
  /// Bit per slot whose instruction buffer has room and whose stream has not ended.
  uint64_t fillable() const { return fillable_; }
  void set_fetch_pending(uint32_t w, bool pending) {
    warps_[w].obstacles.fetch_pending = pending;
    refresh(w);
  }

  void leave_pipeline(uint32_t w) {
    --warps_[w].in_pipeline;
    touched_ |= uint64_t{1} << w;
  }
  /// An instruction that stores in so many transactions, each of which will be acknowledged.
  void stores_issued(uint32_t w, size_t count) {
    warps_[w].outstanding_stores += static_cast<uint32_t>(count);
    stores_[warps_[w].kernel->slot].outstanding += count;
  }
  /// A store by a warp of the launch in this slot of the warp table; that warp may have retired. Which of two
  /// stores it was does not matter if one is of a warp that has.
  void store_acknowledged(uint32_t w, uint16_t launch_slot) {
    --stores_[launch_slot].outstanding;
    stores_[launch_slot].last_acknowledged = time_;
    --(left_stores_[w] > 0 ? left_stores_[w] : warps_[w].outstanding_stores);
    touched_ |= uint64_t{1} << w;
  }
  /// Of a launch, including those of warps that have retired.
  struct Stores {
    uint64_t outstanding = 0;
    uint64_t last_acknowledged = 0;  ///< core cycle
  };
  const Stores& stores(uint16_t launch_slot) const { return stores_[launch_slot]; }
  void atomics_returned(uint32_t w, uint32_t lanes);

  /// Number of the open group; the copy belongs to it until async_copy_done().
  uint32_t async_copy_started(uint32_t w);
  void async_copy_done(uint32_t w, uint32_t group);
  /// Closes the open group; lowers `counter` when it is complete.
  void async_commit(uint32_t w, uint8_t counter) {
    warps_[w].async_groups.back().counter = counter;
    warps_[w].async_groups.emplace_back();
  }
  /// Makes the warp wait until at most `open` closed groups are incomplete.
  void async_wait(uint32_t w, int64_t open);

  void touch(uint32_t w) { touched_ |= uint64_t{1} << w; }
  /// Those of some slots that may have become retirable since they were last asked for.
  uint64_t take_touched(uint64_t slots) {
    const uint64_t found = touched_ & slots & finished_;
    touched_ &= ~slots;
    return found;
  }
  /// Whether a slot may have become retirable that has not been asked for.
  bool any_touched() const { return touched_ & finished_; }
  bool has_pending_registers(uint32_t w) const {
    uint64_t any = 0;
    for (uint64_t word : warps_[w].pending) any |= word;
    return any != 0;
  }
  bool can_retire(uint32_t w, bool stores_hold_warp) const {
    const Warp& warp = warps_[w];
    return (masks_[scheduler_of(w)].finished & bit_of(w)) && warp.in_pipeline == 0 &&
           (!stores_hold_warp || warp.outstanding_stores == 0) && !has_pending_registers(w) &&
           !dependences_.unfinished(w) && !(warp.dropped && copies_or_atomics(warp));
  }

 private:
  class View final : public WarpView {
   public:
    View(const WarpTable& table, uint32_t scheduler)
        : WarpView(table.masks_[scheduler], table.ages_.data() + scheduler, table.schedulers_),
          table_(table),
          scheduler_(scheduler) {}
    WarpFacts facts(uint32_t position) const override;

   private:
    const WarpTable& table_;
    uint32_t scheduler_;
  };

  /// w / schedulers: exact for the slots of an SM.
  uint32_t place_of(uint32_t w) const { return w * inverse_schedulers_ >> 16; }
  bool take_record(uint32_t w, uint64_t now);
  void put_record(uint32_t w, const DynamicRecord& record);
  void read_ahead(uint32_t w, uint64_t now);
  uint8_t stop_at_jump(Warp& warp, uint8_t first, uint8_t visible) const;
  Latency& latency(const DecodedKernel& kernel, const DecodedInstruction& instruction) {
    return latencies_[kernel.slot][static_cast<size_t>(&instruction - kernel.instructions.data())];
  }
  /// A warp that ends normally has already waited for these.
  static bool copies_or_atomics(const Warp& warp) {
    uint32_t copies = 0;
    for (const Warp::AsyncGroup& group : warp.async_groups) copies += group.copies;
    return copies > 0 || warp.outstanding_atomics > 0;
  }
  void finish(uint32_t w);
  /// A warp's bit in the masks of its scheduler, which will be changed.
  struct Place {
    SchedulerMasks& masks;
    uint64_t bit;
  };
  Place change_at(uint32_t w) {
    const uint32_t place = place_of(w);
    return {change_masks(w - place * schedulers_), uint64_t{1} << place};
  }
  /// Brings the masks up to date with the warp: all, those of the front end, and those of the instruction
  /// that is next now, if the warp had one before.
  void refresh(uint32_t w);
  void stop(uint32_t w);
  void forget_stop(uint32_t w);
  void refresh_fetch(uint32_t w);
  void refresh_next(uint32_t w, Place at);
  void check_registers(uint32_t w, const DecodedInstruction& next, Place at);
  void check_registers(uint32_t w) { check_registers(w, next_instruction(w), change_at(w)); }
  void check_issue_rule(uint32_t w, const DecodedInstruction& next, Place at);
  void take_due_dependences();
  void lower_counter(uint32_t w, uint32_t counter);
  void update_async_wait(uint32_t w);

  std::vector<Warp> warps_;
  std::vector<std::array<DynamicRecord, buffer_capacity>> records_;  // by place in the warps' buffers
  struct Position {
    uint32_t at = nowhere;
    uint16_t launch_slot = 0;
  };
  std::vector<Position> positions_;
  std::vector<uint64_t> ages_;         // as many for each scheduler
  std::vector<uint32_t> left_stores_;  // outstanding stores of warps that had the slot before
  std::vector<Stores> stores_;         // by launch slot
  std::vector<SchedulerMasks> masks_;
  uint32_t masks_changed_ = 0;  // bit per scheduler
  uint64_t time_ = 0;
  uint64_t fetchable_ = 0, fillable_ = 0, touched_ = 0;
  uint64_t finished_ = 0;  // bit per slot: last instruction issued
  uint32_t schedulers_;
  uint32_t inverse_schedulers_;  // 2^16 / schedulers, rounded up
  uint32_t buffer_entries_;
  bool stops_at_jumps_;
  DependenceCounters dependences_;
  std::vector<std::vector<Latency>> latencies_;  ///< by launch slot
  std::vector<View> views_;                      ///< by scheduler
};

}  // namespace simt
