#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/code_facts.hpp"
#include "check/concurrency.hpp"
#include "check/finding.hpp"
#include "check/history.hpp"
#include "check/knowledge.hpp"
#include "check/shadow.hpp"
#include "check/validity.hpp"
#include "check/value_flow.hpp"
#include "check/variables.hpp"
#include "machine/grid.hpp"
#include "machine/machine_operands.hpp"
#include "machine/observer.hpp"

namespace simt::check {

using functional::BarrierRequest;
using functional::Context;
using functional::Cta;
using functional::Grid;
using functional::Warp;
using functional::warp_lanes;

/// Calls f(lane) for the lanes.
template <class F>
void each_of(uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
}

/// What to look for.
struct Checks {
  bool race = true, init = true, sync = true, memory = true, leak = true, weak = false;
};

/// Checks what grids execute: that accesses of different threads to the same memory are ordered, whatever the
/// order in which they were executed, that memory is written before it is used, and that barriers are met by
/// all who must.
///
/// Order is happens-before, with clocks in three levels: a barrier of a whole CTA raises the floor of the
/// CTA, one of a warp that of the warp; what fewer threads learn of others is kept as sparse vector clocks
/// (Knowledge).
class Checker final : public functional::Observer, public functional::MemoryWatch {
 public:
  explicit Checker(Checks checks) : checks_(checks) {}
  ~Checker() override {
    for (const auto& memory : watched_memory_) memory->watch(nullptr);
  }
  /// Is told what becomes of this memory.
  void watch_memory(std::shared_ptr<functional::DeviceMemory> memory) {
    memory->watch(this);
    watched_memory_.push_back(std::move(memory));
  }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  const std::vector<uint8_t>& watched(const Grid& grid) override;
  void ends(const Grid& grid) override;
  void enters(Context& c) override;
  void before(Context& c, const Op& op, uint32_t pc) override;
  void after(Context& c, const Op& op, uint32_t pc) override;
  void met(Cta& cta, Warp& warp, uint32_t lanes, uint32_t members, const Op& op) override;
  void arrives(Cta& cta, Warp& warp, uint32_t lanes, uint32_t barrier, const BarrierRequest& request,
               const Op& op) override;
  void completes(Cta& cta, uint32_t barrier) override;
  void exits(Cta& cta, Warp& warp) override;
  void signals(Context& c, uint64_t address, int lane, bool completed) override;
  void waited(Context& c, uint64_t address, int lane) override;
  void touches(Context& c, uint64_t address, uint64_t bytes, int lane, bool writes) override;

  void allocated(const functional::Allocation& made) override;
  void freed(const functional::Allocation& gone) override;
  void written(uint64_t address, uint64_t size) override;
  /// The host has allocated memory that holds nothing yet.
  void begin_fresh(uint64_t address, uint64_t size) {
    if (checks_.init) device_.begin(address, size);
  }
  /// The next launch is this work of the program; see `Concurrency`.
  void begin_work(uint64_t number, const std::vector<uint64_t>& others, bool kept);
  /// Rows of memory that a copy or a fill touches.
  struct Rows {
    uint64_t address = 0, bytes = 0, count = 1, pitch = 0;
    bool writes = false;
  };
  /// A copy or a fill has been done. what: in words.
  void host_work(uint64_t number, const std::vector<uint64_t>& others, bool kept, const std::string& what,
                 const std::vector<Rows>& rows);
  void forget_work(uint64_t number) { concurrency_.forget(number); }
  /// Where kernels have allocated what they have not freed, by address.
  const std::map<uint64_t, Access>& heap() const { return heap_; }

  /// What the mbarriers wait for that were looked at last, by the last launch, in words.
  std::vector<std::string> awaited() const { return grid_ ? describe_looks() : awaited_; }
  const std::vector<Finding>& findings() {
    settle_reads(Undecided::Keep);
    return findings_;
  }
  uint64_t shadow_bytes() const { return global_.size(); }

 private:
  /// Asynchronous work of a warp counts as that of another warp.
  static constexpr uint32_t asynchronous = 32;

  /// Lanes whose accesses are looked at together.
  static constexpr uint32_t segment = 16, segment_mask = (1u << segment) - 1;

  /// A register: its place in the frame, and bytes of a lane; 0: a predicate.
  struct Operand {
    Place place = 0;
    uint32_t bytes = 0;
  };
  /// How bits without a value pass through an instruction.
  enum class Transfer : uint8_t { Any, Copy, And, Product, Computed };
  /// first, last: the Op is that of its instruction. real: operands that say how, not what; of one that
  /// computes, constants. parts: those of D, A, B and C of a product.
  struct Flow {
    bool first = false, last = false, keeps_constants = false;
    Transfer transfer = Transfer::Any;
    std::vector<Operand> reads, writes, real;
    std::array<std::vector<Operand>, 4> parts;
  };
  struct Code {
    std::vector<OpFacts> facts;
    std::unique_ptr<Variables> variables;
    std::unique_ptr<ValueFlow> values;
    const functional::MachineOperands* operands = nullptr;  ///< of machine code
    std::map<uint32_t, uint32_t> unfenced;  ///< by product: the Op that no wgmma.fence follows
    std::vector<uint8_t> watched;
    std::vector<std::unique_ptr<Flow>> flows;  ///< by Op, made when they are needed
    std::set<uint32_t> racing;                 ///< Ops whose reads race
  };
  /// Where a value was loaded that nobody has written.
  struct Source {
    uint32_t op = 0;
    uint16_t warp = 0;
    uint8_t lane = 0;
    uint64_t cta = 0, address = 0;
    bool is_shuffle = false;  ///< whose source lane does not take part
  };
  /// What one lane knows that its warp does not.
  struct LaneState {
    Knowledge known;
    Knowledge pending;  ///< read from flags, to be known after a fence
    Knowledge ticket;   ///< the same from atomics, to be known after a barrier as well
    Knowledge read;     ///< whose reads have ended, as relaxed flags tell; see CtaState
    uint32_t fence_clock = 0, fence_floor = 0, fence_phase = 0;
    Scope fence_scope = Scope::Cta;
    bool fenced = false;
  };
  using Sees = std::array<std::array<uint32_t, warp_lanes>, warp_lanes>;
  /// Asynchronous work of a warp, in groups.
  struct Groups {
    uint32_t open = 0;  ///< clock of the latest work that no group holds; 0: none
    std::deque<uint32_t> committed;
    uint32_t op = 0;  ///< of the latest work
  };
  /// The address of a thread's local memory, where others can load it.
  struct Pointer {
    uint64_t value = 0, cta = 0;
    uint32_t op = 0, lane = 0;
    uint16_t warp = 0;
  };
  /// An accumulator of a product that the Op has begun at this clock.
  struct Product {
    Operand to;
    uint32_t op = 0, clock = 0;
  };
  struct WarpState {
    uint32_t number = 0, clock = 1, floor = 0;
    Knowledge known;
    std::unique_ptr<std::array<LaneState, warp_lanes>> lanes;
    std::unique_ptr<Sees> sees;  ///< [lane][other]: clock up to which the lane knows the other's accesses
    std::array<Groups, 3> groups;
    std::vector<std::byte> poison;              ///< of the frames: bits that hold no value
    std::vector<uint32_t> sources;              ///< by row of registers: where such bits come from
    std::vector<Product> products;              ///< accumulators under way
    uint32_t proxy_clock = 0, proxy_floor = 0;  ///< at its last fence.proxy.async
    bool poisoned = false;                      ///< there may be such bits
    bool parted = false;  ///< in machine code: its lanes have not all been together since they last met
    ByteSet local;        ///< of all lanes, one after the other
    struct Recent {
      uint32_t op = UINT32_MAX, clock = 0, manner = 0, together = 0, moment = 0;
    };
    std::array<Recent, 64> recent;
    std::vector<std::pair<uint32_t, Pointer>> foreign;  ///< lanes that have loaded one of another thread
    struct Meeting {
      uint32_t clock = 0, op = 0;
    };
    std::array<Meeting, warp_lanes> met;  ///< the last collective of each lane

    LaneState& lane(uint32_t i) {
      if (!lanes) lanes = std::make_unique<std::array<LaneState, warp_lanes>>();
      return (*lanes)[i];
    }
  };
  struct Arrival {
    Cta* cta;
    Warp* warp;
    uint32_t lanes, op;
    bool waits, whole;
    uint32_t clock = 0;
    Knowledge published;
  };
  struct CtaState {
    uint64_t index = 0;
    uint32_t counter = 1, floor = 0, phase = 0;
    Knowledge known;
    std::vector<WarpState> warps;
    Knowledge ticket;  ///< to be known after a fence
    Knowledge read;    ///< whose reads have ended, which is all that relaxed flags tell
    std::map<uint32_t, std::vector<Arrival>> arrivals;  ///< by barrier
    std::map<uint32_t, std::vector<Arrival>> before;    ///< at the round before, of barriers of some threads
    Knowledge of_cluster;                               ///< of the cluster's last barrier
    Shadow shared;
    ByteSet valid;                                      ///< of shared memory
    std::vector<std::pair<uint32_t, uint32_t>> remote;  ///< accesses of other CTAs to it: moments and lanes
    uint64_t epoch = 0;
  };
  /// What flags, locks and mbarriers tell those who read them.
  struct Flag {
    Knowledge wide, cluster, narrow;
    Knowledge read;             ///< whose reads have ended
    uint64_t cta = UINT64_MAX;  ///< of narrow
    uint64_t of_cluster = UINT64_MAX;
    Knowledge counted;  ///< atomics on it, each behind a release
    Moment last;        ///< the last atomic on it; its clock is 0 if there is none
    uint32_t last_lane = 0;
  };

  /// What arrivals at an mbarrier tell those who wait for it.
  struct Phase {
    Knowledge pending, complete;
    Moment last;  ///< the arrival that has completed the phase before; its clock is 0 if there is none
    uint32_t last_lane = 0;
  };
  /// What an mbarrier was like when a warp has looked at it.
  struct Look {
    uint64_t generic = 0, word = 0, turn = 0;
  };

  /// A read and a write that nothing orders: a race if the value that was read is used.
  struct DoubtfulRead {
    uint32_t first = 0, second = 0;  ///< moments
    uint8_t then = 0, lane = 0;
    bool second_reads = false;
    uint64_t address = 0;
  };

  /// Of what a stamp without its lane names: whether it is ordered before all lanes of the warp, or before
  /// the lane that did it only.
  enum class Order : uint8_t { None, All, Own };
  /// Cells of a page, by word, and the generic address of the first.
  struct Words {
    uint64_t begin = uint64_t{1} << 63;
    Cell* cells = nullptr;
  };

  CtaState& state_of(Cta& cta);
  WarpState& enter(Cta& cta, const Warp& warp);
  void enter(Context& c) { enter(*c.cta, *c.warp); }
  uint32_t moment(uint32_t op, uint8_t manner);
  bool ordered(uint32_t moment, uint32_t then, uint32_t lane);
  bool follows(const Moment& m, uint32_t then, uint32_t lane) const;
  bool knows(const Moment& m, uint32_t then, uint32_t lane) const;
  bool has_been_read(const Moment& m) const;
  bool has_counted(const Moment& m, uint32_t then, uint32_t lane, uint64_t address) const;
  bool may_be_together(const Moment& m, uint8_t manner) const;
  void touch(Cell& cell, uint32_t moment, uint8_t manner, uint32_t lane, uint64_t address);
  void access(Context& c, uint64_t address, uint64_t bytes, uint32_t lane, uint32_t moment, uint8_t manner);
  void access_all(Context& c, const OpFacts& f, uint32_t pc, const uint64_t* generic, uint32_t lanes);
  template <bool writes>
  void access_words(Context& c, const OpFacts& f, uint32_t number, const uint64_t* generic, uint32_t lanes);
  template <bool writes>
  bool touch_alike(Cell* cells, uint32_t number, uint8_t manner, uint32_t first);
  Words words_at(const Context& c, uint64_t generic);
  Words words_of_last(const Context& c) const;
  void use_page(Shadow& shadow, uint64_t at, uint64_t epoch) {
    if (last_.shadow != &shadow || last_.number != at / Page::bytes || last_.epoch != epoch)
      last_ = {&shadow, at / Page::bytes, epoch, &shadow.page(at, epoch)};
  }
  void require_apart(const OpFacts& f, uint32_t number, const uint64_t* generic, uint32_t lanes);
  bool lanes_differ() const { return warp_->sees || warp_->lanes || warp_->parted; }
  void add_read(Cell& cell, uint32_t number, uint32_t lane);
  struct Known;
  const Known& look_up(uint32_t key);
  Order order_of(uint32_t key) { return look_up(key).order; }
  bool is_behind(Stamp s, uint32_t lane) {
    if (s == 0) return true;
    const Order order = order_of(s >> 5);
    return order == Order::All || (order == Order::Own && (s & 31) == lane);
  }
  bool known_to_warp(const Moment& m) const;
  void conflict(uint32_t earlier, uint32_t then, uint32_t lane, uint8_t manner, uint64_t address);
  bool rows_are_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address) const;
  bool is_same_but_rounded(uint32_t element, uint32_t between, uint32_t mine, uint32_t other) const;
  /// What becomes of reads that race, whose values have not been used so far, while their CTA may be running.
  enum class Undecided : uint8_t { Keep, Report, Drop };
  void settle_reads(Undecided undecided);
  bool is_plain_load(uint32_t op, uint8_t manner) const;
  void report_race(Finding found, const Moment& m, uint32_t then, const Moment& now, uint32_t lane,
                   uint64_t address);
  bool writes_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address);

  void tick() {
    warp_->clock = ++cta_->counter;
    ++events_;
  }
  void require_members(const Warp& warp, uint32_t lanes, uint32_t members, uint32_t at);
  uint32_t defined(uint32_t lanes, const Op& op);
  Knowledge published(uint32_t lane, bool after_fence);
  Knowledge published_by_warp(uint32_t lanes);
  Knowledge published_by_fences(uint32_t lanes);
  void learn(uint32_t lane, const Knowledge& what) {
    warp_->lane(lane).known.join(what);
    ++events_;
  }
  void fence(const OpFacts& f, uint32_t lanes);
  void order_by_flags(const OpFacts& f, const uint64_t* generic, uint32_t lanes, bool reads, bool writes);
  uint64_t flag_key(uint64_t generic) const;

  void copy(Context& c, const Op& op, const OpFacts& f, uint32_t pc);
  void remote(Context& c, const Op& op, const OpFacts& f, uint32_t pc);
  void bulk(Context& c, const Op& op, uint32_t pc);
  void complete_copies_at(Phase& phase);
  void require_phase(const Phase& phase, uint32_t lane);
  void look_at_mbarrier(Context& c, const OpFacts& f);
  std::vector<std::string> describe_looks() const;
  void hold_up(Context& c, const Op& op);
  uint32_t unfenced(uint32_t pc) const;
  void require_fence(uint32_t pc);
  void accumulators(const OpFacts& f, uint32_t pc);
  void follow_pointers(Context& c, const Op& op, const OpFacts& f, const uint64_t* generic);
  void require_inside(const Extent& variable, const OpFacts& f, const uint64_t* generic, uint32_t lanes);
  void require_writable(const uint64_t* generic, uint32_t lanes);
  bool crossed(const Moment& m) const;
  void require_stay(Cta& cta);
  void require_round(const Arrival& made, uint32_t barrier);
  void require_whole(Cta& cta, const std::vector<Arrival>& all, const std::vector<uint32_t>& here);
  void add_work(Queue queue, uint32_t pc);
  void commit(Queue queue);
  void wait(Queue queue, uint32_t pending, bool all);

  CtaState* owner_of(Context& c, uint64_t& offset);
  const Flow& flow_of(uint32_t pc);
  std::byte* poison_frame(Context& c);
  uint32_t& source_of(Context& c, Place p);
  uint32_t poisoned(Context& c, const Operand& operand);
  void poison(Context& c, const Operand& operand, uint32_t lanes, uint32_t bad);
  void foresee(Context& c, const Flow& flow);
  bool same_instruction(uint32_t at) const;
  void product(Context& c, const Flow& flow);
  void find_machine_flow(uint32_t pc, Flow& flow) const;
  bool decides(uint32_t pc) const;
  void doubt(Context& c, const Flow& flow, uint32_t lanes, Place guard);
  void compute(Context& c, const Flow& flow);
  void settle(Context& c, const Op& op, const Flow& flow);
  uint64_t missing(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane);
  void holds(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane, uint64_t what);
  void fills(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane);
  void copies(Context& c, uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane);
  uint32_t new_source(uint64_t generic, uint32_t lane);
  void used(Context& c, uint32_t source, uint32_t lane, const char* how);
  void values_before(Context& c, const Op& op, const OpFacts& f, uint32_t pc);
  void values_after(Context& c, const Op& op, const OpFacts& f, uint32_t pc);
  void load_values(Context& c, const Op& op, const OpFacts& f);
  void store_values(Context& c, const Op& op, const OpFacts& f);
  void find_addresses(Context& c, const Op& op, const OpFacts& f);
  bool all_hold(const Context& c, uint64_t bytes);
  bool is_of_heap(uint64_t address) const;
  void load_tiles(Context& c, const Op& op);
  void begin_local();
  uint32_t of_warp_split_mask(Context& c);
  void come_together(Context& c);

  void keep_touched();
  void launches_meet(Access first, Access second);
  /// Of the warp that is executed, at an Op; for reports.
  Moment here(uint32_t op) const {
    return {.cta = cta_->index, .op = op, .warp = static_cast<uint16_t>(warp_->number)};
  }
  Access describe(const Moment& m, uint32_t lane, uint8_t manner, uint64_t address) const;
  void name_memory(Access& access, uint64_t generic) const;
  void add(Finding finding, uint32_t load = UINT32_MAX);
  void drop_values_of(uint32_t load);

  Checks checks_;
  std::unordered_map<const Program*, Code> code_;
  const Grid* grid_ = nullptr;
  bool is_machine_code_ = false;
  uint32_t here_ = 0;  ///< in machine code: the lanes that execute together
  Extent launched_;    ///< the shared memory that the launch has asked for
  Code* running_ = nullptr;
  History history_;
  Shadow global_;
  uint64_t epoch_ = 0;
  Concurrency concurrency_;
  std::unordered_map<const Grid*, uint64_t> works_;  ///< numbers of launches under way; 0: none
  uint64_t next_work_ = 0;                           ///< 0: none
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  std::unordered_map<uint64_t, Flag> flags_;
  std::unordered_map<uint64_t, Pointer> pointers_;  ///< by where they are stored
  std::unordered_map<uint64_t, Phase> phases_;      ///< by mbarrier
  std::map<uint32_t, Look> looks_;                  ///< by Op
  uint64_t turn_ = 0;                               ///< looks so far
  std::vector<std::string> awaited_;
  uint32_t undefined_ = 0;                      ///< lanes of the shuffle under way that get no value
  uint32_t at_ = 0;                             ///< the Op that was observed last
  alignas(64) uint64_t generic_[warp_lanes]{};  ///< of its lanes, if it is a load, a store or an atomic
  uint64_t least_ = 0, most_ = 0;               ///< of those that take part
  // The warp that executes.
  const Cta* of_cta_ = nullptr;
  const Warp* of_warp_ = nullptr;
  Context* context_ = nullptr;
  CtaState* cta_ = nullptr;
  WarpState* warp_ = nullptr;
  uint64_t events_ = 0;  ///< of knowledge: what was found ordered stays so until the warp changes
  struct Known {
    uint64_t events = 0;
    uint32_t key = 0;
    Order order = Order::None;
    bool stays = false;  ///< a read of the warp leaves it as it is
  };
  std::array<Known, 256> known_orders_{};
  uint32_t ordered_moment_ = 0;
  uint64_t ordered_at_ = UINT64_MAX;

  // Values.
  std::vector<std::pair<uint64_t, uint64_t>> constants_;  ///< the program's constant memory
  Validity device_;
  std::vector<Source> sources_{Source()};
  std::map<uint64_t, Access> heap_;
  std::map<uint64_t, uint64_t> heap_sizes_;
  struct Foreseen {
    bool valid = false, exact = false;
    uint32_t bad = 0, source = 0;
    uint32_t unsure = 0;  ///< lanes of which it is not known whether they execute it
    std::vector<std::byte> frame;
    std::vector<uint32_t> parts;
  } foreseen_;
  std::vector<std::byte> zeros_;

  /// The page that was accessed last, and what became of reads of an access before.
  struct Last {
    const Shadow* shadow = nullptr;
    uint64_t number = 0, epoch = 0;
    Page* page = nullptr;
  } last_;
  struct Step {
    Stamp before = 0;
    uint32_t turn = 0, moment = 0;
    uint64_t events = 0;
    Stamp result = 0;
    uint32_t result_turn = 0;
  };
  std::array<Step, 256> steps_{};

  std::vector<std::shared_ptr<functional::DeviceMemory>> watched_memory_;
  std::vector<Finding> findings_;
  std::vector<DoubtfulRead> doubtful_;
  size_t most_doubtful_ = 0;  ///< how many are kept until it is known of some whether they are used
  /// Of each that is about a value: the program and its Op that has loaded it.
  std::vector<std::pair<const Program*, uint32_t>> loads_;
  std::map<std::string, size_t> known_;
};

}  // namespace simt::check
