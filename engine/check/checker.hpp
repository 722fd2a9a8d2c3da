#pragma once
#include <array>
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
#include "check/finding.hpp"
#include "check/history.hpp"
#include "check/knowledge.hpp"
#include "check/shadow.hpp"
#include "machine/grid.hpp"
#include "machine/observer.hpp"

namespace simt::check {

using functional::BarrierRequest;
using functional::Context;
using functional::Cta;
using functional::Grid;
using functional::Warp;
using functional::warp_lanes;

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
class Checker final : public functional::Observer {
 public:
  explicit Checker(Checks checks) : checks_(checks) {}

  const std::vector<uint8_t>& watched(const Grid& grid) override;
  void ends(const Grid& grid) override;
  void before(Context& c, const Op& op, uint32_t pc) override;
  void after(Context& c, const Op& op, uint32_t pc) override;
  void met(Cta& cta, Warp& warp, uint32_t lanes) override;
  void arrives(Cta& cta, Warp& warp, uint32_t lanes, uint32_t barrier, const BarrierRequest& request,
               const Op& op) override;
  void completes(Cta& cta, uint32_t barrier) override;
  void exits(Cta& cta, Warp& warp) override;
  void signals(Context& c, uint64_t address, int lane, bool completed) override;
  void waited(Context& c, uint64_t address, int lane) override;
  void touches(Context& c, uint64_t address, uint64_t bytes, int lane, bool writes) override;

  const std::vector<Finding>& findings() const { return findings_; }
  uint64_t shadow_bytes() const { return global_.size(); }

 private:
  struct Code {
    std::vector<OpFacts> facts;
    std::vector<uint8_t> watched;
  };
  /// What one lane knows that its warp does not.
  struct LaneState {
    Knowledge known;
    Knowledge pending;  ///< read from flags, to be known after a fence
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
  struct WarpState {
    uint32_t number = 0, clock = 1, floor = 0;
    Knowledge known;
    std::unique_ptr<std::array<LaneState, warp_lanes>> lanes;
    std::unique_ptr<Sees> sees;  ///< [lane][other]: clock up to which the lane knows the other's accesses
    std::array<Groups, 3> groups;
    struct Recent {
      uint32_t op = UINT32_MAX, clock = 0, manner = 0, moment = 0;
    };
    std::array<Recent, 64> recent;

    LaneState& lane(uint32_t i) {
      if (!lanes) lanes = std::make_unique<std::array<LaneState, warp_lanes>>();
      return (*lanes)[i];
    }
  };
  struct Arrival {
    Cta* cta;
    Warp* warp;
    uint32_t lanes, op;
    bool waits;
    Knowledge published;
  };
  struct CtaState {
    uint64_t index = 0;
    uint32_t counter = 1, floor = 0, phase = 0;
    Knowledge known;
    std::vector<WarpState> warps;
    std::map<uint32_t, std::vector<Arrival>> arrivals;  ///< by barrier
    Knowledge of_cluster;                               ///< of the cluster's last barrier
    Shadow shared;
    uint64_t epoch = 0;
  };
  /// What flags, locks and mbarriers tell those who read them.
  struct Flag {
    Knowledge wide, cluster, narrow;
    uint64_t cta = UINT64_MAX;  ///< of narrow
    uint64_t of_cluster = UINT64_MAX;
  };

  /// What arrivals at an mbarrier tell those who wait for it.
  struct Phase {
    Knowledge pending, complete;
  };

  CtaState& state_of(Cta& cta);
  WarpState& enter(Cta& cta, const Warp& warp);
  void enter(Context& c) { enter(*c.cta, *c.warp); }
  uint32_t moment(uint32_t op, uint8_t manner);
  bool ordered(uint32_t moment, uint32_t then, uint32_t lane);
  bool knows(const Moment& m, uint32_t then, uint32_t lane) const;
  bool may_be_together(const Moment& m, uint8_t manner) const;
  void touch(Cell& cell, uint32_t moment, uint8_t manner, uint32_t lane, uint64_t address);
  void access(Context& c, uint64_t address, uint64_t bytes, uint32_t lane, uint32_t moment, uint8_t manner);
  void access_all(Context& c, const OpFacts& f, uint32_t pc, const uint64_t* generic, uint32_t lanes);
  void conflict(uint32_t earlier, uint32_t then, uint32_t lane, uint8_t manner, uint64_t address);
  bool writes_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address);

  void tick() {
    warp_->clock = ++cta_->counter;
    ++events_;
  }
  Knowledge published(uint32_t lane, bool after_fence);
  Knowledge published_by_warp(uint32_t lanes);
  void learn(uint32_t lane, const Knowledge& what) {
    warp_->lane(lane).known.join(what);
    ++events_;
  }
  void fence(const OpFacts& f, uint32_t lanes);
  void order_by_flags(const OpFacts& f, const uint64_t* generic, uint32_t lanes, bool reads, bool writes);
  uint64_t flag_key(uint64_t generic) const;

  void copy(Context& c, const Op& op, const OpFacts& f, uint32_t pc);
  void bulk(Context& c, const Op& op, uint32_t pc);
  void add_work(Queue queue, uint32_t pc);
  void commit(Queue queue);
  void wait(Queue queue, uint32_t pending, bool all);

  Access describe(const Moment& m, uint32_t lane, uint8_t manner, uint64_t address) const;
  void name_memory(Access& access, uint64_t generic) const;
  void add(Finding finding);

  Checks checks_;
  std::unordered_map<const Program*, Code> code_;
  const Grid* grid_ = nullptr;
  const Code* running_ = nullptr;
  History history_;
  Shadow global_;
  uint64_t epoch_ = 0;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  std::unordered_map<uint64_t, Flag> flags_;
  std::unordered_map<uint64_t, Phase> phases_;  ///< by mbarrier
  uint32_t at_ = 0;                             ///< the Op that was observed last
  // The warp that executes.
  const Cta* of_cta_ = nullptr;
  const Warp* of_warp_ = nullptr;
  Context* context_ = nullptr;
  CtaState* cta_ = nullptr;
  WarpState* warp_ = nullptr;
  uint64_t events_ = 0;  ///< of knowledge: what was found ordered stays so until the warp changes
  uint32_t ordered_moment_ = 0;
  uint64_t ordered_at_ = UINT64_MAX;

  std::vector<Finding> findings_;
  std::map<std::string, size_t> known_;
};

}  // namespace simt::check
