#include "check/checker.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/lanes.hpp"
#include "operations/atomics.hpp"
#include "operations/copies.hpp"
#include "operations/memory_access.hpp"

namespace simt::check {

using functional::AccessDetail;
using functional::AccessSpace;
using functional::BulkDetail;
using functional::CopyDetail;
namespace place = functional::place;
namespace window = functional::window;

namespace {

/// Calls f(lane) for the lanes.
template <class F>
void each_of(uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
}

}  // namespace

// --- launches -----------------------------------------------------------------------------------------

const std::vector<uint8_t>& Checker::watched(const Grid& grid) {
  if (grid_ != &grid) {
    keep_touched();
    grid_ = &grid;
    if (works_.try_emplace(&grid, next_work_).second) next_work_ = 0;
    ctas_.clear();
    last_ = {};
    flags_.clear();
    history_.clear();
    ++epoch_;
    of_cta_ = nullptr;
    Code& code = code_[&grid.program()];
    if (code.facts.empty()) {
      code.facts = facts_of(grid.program());
      for (const OpFacts& f : code.facts) code.watched.push_back(f.watch);
      code.flows.resize(code.facts.size());
    }
    sources_.assign(1, Source());
    constants_.clear();
    const functional::Program& program = grid.program();
    for (size_t k = 0; k < program.variables.size() && k < program.module.variables.size(); ++k)
      if (const ptx::Variable& v = program.module.variables[k]; v.space == ptx::Space::Constant)
        constants_.emplace_back(program.variables[k], program.variables[k] + v.size);
    running_ = &code;
  }
  return running_->watched;
}

void Checker::ends(const Grid& grid) {
  if (grid_ == &grid) {
    keep_touched();
    grid_ = nullptr;
  }
  works_.erase(&grid);
  const auto runs_same = [&](const auto& other) { return &other.first->program() == &grid.program(); };
  if (std::none_of(works_.begin(), works_.end(), runs_same)) code_.erase(&grid.program());
  ctas_.clear();
  last_ = {};
  of_cta_ = nullptr;
}

Checker::CtaState& Checker::state_of(Cta& cta) {
  auto& found = ctas_[&cta];
  if (!found) found = std::make_unique<CtaState>();
  CtaState& state = *found;
  if (state.warps.empty() || state.index != cta.linear_index()) {
    state.index = cta.linear_index();
    state.counter = 1;
    state.floor = state.phase = 0;
    state.known.clear();
    state.warps.clear();
    state.warps.resize(cta.warps().size());
    for (uint32_t w = 0; w < state.warps.size(); ++w) state.warps[w].number = w;
    state.arrivals.clear();
    state.remote.clear();
    state.valid.reset(cta.shared_bytes());
    state.valid.fill(0, grid_->kernel().reserved_shared);
    ++state.epoch;
  }
  return state;
}

Checker::WarpState& Checker::enter(Cta& cta, const Warp& warp) {
  if (of_cta_ != &cta || of_warp_ != &warp || cta_->index != cta.linear_index()) {
    cta_ = &state_of(cta);
    warp_ = &cta_->warps[warp.number()];
    of_cta_ = &cta;
    of_warp_ = &warp;
    ++events_;
  }
  return *warp_;
}

// --- order --------------------------------------------------------------------------------------------

uint32_t Checker::moment(uint32_t op, uint8_t manner) {
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  cta_->counter = std::max(cta_->counter, warp_->clock);
  WarpState::Recent& recent = warp_->recent[op % warp_->recent.size()];
  if (recent.op == op && recent.clock == warp_->clock && recent.manner == manner && recent.moment)
    return recent.moment;
  Moment made;
  made.cta = cta_->index;
  made.op = op;
  made.clock = warp_->clock;
  made.warp = static_cast<uint16_t>(warp_->number + (manner & Later ? asynchronous : 0));
  made.manner = manner;
  recent = {op, warp_->clock, manner, history_.add(made)};
  return recent.moment;
}

bool Checker::ordered(uint32_t number, uint32_t then, uint32_t lane) {
  if (number == ordered_moment_ && events_ == ordered_at_) return true;
  const Moment& m = history_[number];
  const auto for_all_lanes = [&] {
    ordered_moment_ = number;
    ordered_at_ = events_;
    return true;
  };
  if (m.cta == cta_->index && !(m.manner & Later)) {
    if (m.clock <= cta_->floor) return for_all_lanes();
    if (m.warp == warp_->number) {
      if (then == lane) return true;
      if (m.clock <= warp_->floor) return for_all_lanes();
      if (warp_->sees && (*warp_->sees)[lane][then] >= m.clock) return true;
    }
  }
  return knows(m, then, lane);
}

bool Checker::knows(const Moment& m, uint32_t then, uint32_t lane) const {
  const auto within = [&](const Knowledge& known) {
    return !known.empty() &&
           (known.of(party(m.cta)) >= (m.manner & Later ? UINT32_MAX : m.clock) ||
            known.of(party(m.cta, m.warp)) >= m.clock || known.of(party(m.cta, m.warp, then)) >= m.clock);
  };
  return within(cta_->known) || within(warp_->known) || (warp_->lanes && within((*warp_->lanes)[lane].known));
}

/// Whether accesses that are not ordered are no race: both are strong, and in each other's scope.
bool Checker::may_be_together(const Moment& m, uint8_t manner) const {
  if (!(m.manner & manner & Strong)) return false;
  if (m.cta == cta_->index) return true;
  if ((m.manner | manner) & OfCta) return false;
  const uint64_t size = grid_->cluster_size();
  return !((m.manner | manner) & OfCluster) || m.cta / size == cta_->index / size;
}

Knowledge Checker::published(uint32_t lane, bool after_fence) {
  Knowledge all = cta_->known;
  all.join(warp_->known);
  LaneState& own = warp_->lane(lane);
  all.join(own.known);
  const bool recent = own.fence_phase + 1 >= cta_->phase;
  all.raise(party(cta_->index), after_fence && !recent ? own.fence_floor : cta_->floor);
  all.raise(party(cta_->index, warp_->number), warp_->floor);
  all.raise(party(cta_->index, warp_->number, lane), after_fence ? own.fence_clock : warp_->clock);
  if (warp_->sees)
    for (uint32_t i = 0; i < warp_lanes; ++i)
      if (const uint32_t clock = (*warp_->sees)[lane][i]; clock > warp_->floor)
        all.raise(party(cta_->index, warp_->number, i), clock);
  return all;
}

Knowledge Checker::published_by_warp(uint32_t lanes) {
  Knowledge all = cta_->known;
  all.join(warp_->known);
  if (warp_->lanes) each_of(lanes, [&](uint32_t i) { all.join((*warp_->lanes)[i].known); });
  all.raise(party(cta_->index), cta_->floor);
  const uint32_t clock = std::max(warp_->clock, cta_->floor + 1);
  if ((of_warp_->alive() & ~lanes) == 0)
    all.raise(party(cta_->index, warp_->number), clock);
  else
    each_of(lanes, [&](uint32_t i) { all.raise(party(cta_->index, warp_->number, i), clock); });
  return all;
}

void Checker::enters(Context& c) {
  context_ = &c;
  if (c.grid != grid_) watched(*c.grid);  // launches may take turns
  enter(c);
  everything = warp_->poisoned || !warp_->products.empty();
}

void Checker::met(Cta& cta, Warp& warp, uint32_t lanes, uint32_t members, const Op& op) {
  enter(cta, warp);
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  if (checks_.sync && (lanes & ~members)) {
    Moment m;
    m.cta = cta_->index;
    m.op = static_cast<uint32_t>(&op - grid_->program().code.data());
    m.warp = static_cast<uint16_t>(warp_->number);
    Finding found;
    found.check = "sync";
    found.kind = "mask";
    found.detail = "lanes execute it that its mask " + functional::hex(members) + " does not name";
    found.second = describe(m, static_cast<uint32_t>(std::countr_zero(lanes & ~members)), 0, 0);
    found.second.what = "collective";
    add(std::move(found));
  }
  if ((warp.alive() & ~lanes) == 0) {
    warp_->floor = warp_->clock;
    if (warp_->lanes)
      for (LaneState& lane : *warp_->lanes) {
        warp_->known.join(lane.known);
        lane.known.clear();
      }
  } else {
    if (!warp_->sees) warp_->sees = std::make_unique<Sees>();
    std::array<uint32_t, warp_lanes> together{};
    Knowledge known;
    each_of(lanes, [&](uint32_t i) {
      for (uint32_t k = 0; k < warp_lanes; ++k) together[k] = std::max(together[k], (*warp_->sees)[i][k]);
      if (warp_->lanes) known.join((*warp_->lanes)[i].known);
    });
    each_of(lanes, [&](uint32_t i) { together[i] = warp_->clock; });
    each_of(lanes, [&](uint32_t i) {
      (*warp_->sees)[i] = together;
      if (!known.empty()) warp_->lane(i).known = known;
    });
  }
  tick();
}

void Checker::fence(const OpFacts& f, uint32_t lanes) {
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  each_of(lanes, [&](uint32_t i) {
    LaneState& lane = warp_->lane(i);
    if (f.releases) {
      lane.fence_clock = warp_->clock;
      lane.fence_floor = cta_->floor;
      lane.fence_phase = cta_->phase;
      lane.fence_scope = f.scope;
      lane.fenced = true;
    }
    lane.known.join(lane.pending);
    lane.known.join(lane.ticket);
    lane.pending.clear();
    lane.ticket.clear();
  });
  tick();
}

uint64_t Checker::flag_key(uint64_t generic) const {
  if (!window::is_shared(generic)) return generic;
  const uint64_t address = generic - window::shared;
  uint64_t index = cta_->index;
  if (!context_->is_own(address)) {
    const uint64_t rank = (address >> window::rank_shift) - context_->first_rank;
    const auto& ctas = context_->cta->cluster().ctas;
    if (rank < ctas.size() && ctas[rank]) index = ctas[rank]->linear_index();
  }
  return uint64_t{1} << 63 | index << window::rank_shift | (address & window::own_shared);
}

void Checker::order_by_flags(const OpFacts& f, const uint64_t* generic, uint32_t lanes, bool reads,
                             bool writes) {
  bool has_published = false;
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  each_of(lanes, [&](uint32_t i) {
    const uint64_t key = flag_key(generic[i]);
    if (reads) {
      if (const auto at = flags_.find(key); at != flags_.end()) {
        const Flag& flag = at->second;
        LaneState& lane = warp_->lane(i);
        Knowledge& to = f.acquires ? lane.known : f.kind == Kind::Atomic ? lane.ticket : lane.pending;
        if (f.scope == Scope::Gpu) to.join(flag.wide);
        if (f.scope != Scope::Cta && flag.of_cluster == cta_->index / grid_->cluster_size())
          to.join(flag.cluster);
        if (flag.cta == cta_->index) to.join(flag.narrow);
        ++events_;
      }
    }
    if (!writes) return;
    const bool fenced = warp_->lanes && (*warp_->lanes)[i].fenced;
    const bool adds = f.kind == Kind::Atomic;
    if (!f.releases && !fenced) {
      if (!adds) flags_.erase(key);
      return;
    }
    has_published = true;
    const Knowledge what = published(i, !f.releases);
    const Scope scope = f.releases ? f.scope : std::min(f.scope, (*warp_->lanes)[i].fence_scope);
    Flag& flag = flags_[key];
    if (!adds) flag = {};
    const uint64_t cluster = cta_->index / grid_->cluster_size();
    if (flag.cta != cta_->index) flag.narrow.clear();
    flag.cta = cta_->index;
    flag.narrow.join(what);
    if (scope == Scope::Cta) return;
    if (flag.of_cluster != cluster) flag.cluster.clear();
    flag.of_cluster = cluster;
    flag.cluster.join(what);
    if (scope == Scope::Gpu) flag.wide.join(what);
  });
  if (has_published) tick();
}

// --- barriers -----------------------------------------------------------------------------------------

void Checker::arrives(Cta& cta, Warp& warp, uint32_t lanes, uint32_t barrier, const BarrierRequest& request,
                      const Op& op) {
  enter(cta, warp);
  if (request.cluster && request.waits) {
    Cta& first = *cta.cluster().ctas[0];
    std::vector<Arrival>& all = state_of(first).arrivals[barrier];
    bool pends = false;
    for (Arrival& a : all)
      if (a.warp == &warp && (a.lanes & lanes)) a.waits = pends = true;
    enter(cta, warp);
    if (!pends) each_of(lanes, [&](uint32_t i) { learn(i, cta_->of_cluster); });
    return;
  }
  const bool whole = request.threads == 0 && request.waits && !request.cluster && !request.warpgroup;
  Arrival made{&cta,
               &warp,
               lanes,
               static_cast<uint32_t>(&op - grid_->program().code.data()),
               request.waits,
               whole,
               whole || running_->facts[static_cast<size_t>(&op - grid_->program().code.data())].relaxed
                   ? Knowledge()
                   : published_by_warp(lanes)};
  tick();
  const bool of_cluster = request.cluster;
  CtaState& where = of_cluster ? state_of(*cta.cluster().ctas[0]) : *cta_;
  where.arrivals[barrier].push_back(std::move(made));
  enter(cta, warp);
}

void Checker::completes(Cta& cta, uint32_t barrier) {
  const bool of_cluster = barrier == Cta::barrier_count;
  CtaState& where = of_cluster ? state_of(*cta.cluster().ctas[0]) : state_of(cta);
  const std::vector<Arrival> all = std::move(where.arrivals[barrier]);
  where.arrivals.erase(barrier);
  ++events_;
  if (of_cluster) {
    Knowledge together;
    for (const Arrival& a : all) together.join(a.published);
    for (Cta* each : cta.cluster().ctas)
      if (each) state_of(*each).of_cluster = together;
    for (const Arrival& a : all) {
      if (!a.waits) continue;
      WarpState& warp = state_of(*a.cta).warps[a.warp->number()];
      each_of(a.lanes, [&](uint32_t i) { warp.lane(i).known.join(together); });
    }
    return;
  }
  std::vector<uint32_t> here(where.warps.size());
  bool whole = barrier < Cta::barrier_count;
  for (const Arrival& a : all) {
    here[a.warp->number()] |= a.lanes;
    whole &= a.waits;
  }
  for (const Warp& warp : cta.warps()) whole &= (warp.alive() & ~here[warp.number()]) == 0;
  if (whole && checks_.sync && all.front().whole) require_whole(cta, all, here);
  if (whole) {
    where.floor = where.counter;
    ++where.counter;
    ++where.phase;
    for (WarpState& warp : where.warps) {
      where.known.join(warp.known);
      warp.known.clear();
      if (!warp.lanes) continue;
      for (LaneState& lane : *warp.lanes) {
        where.known.join(lane.known);
        lane.known.clear();
        where.known.join(lane.ticket);
        lane.ticket.clear();
      }
    }
    return;
  }
  Knowledge together;
  for (const Arrival& a : all) together.join(a.published);
  for (const Arrival& a : all) {
    if (!a.waits) continue;
    WarpState& warp = where.warps[a.warp->number()];
    if ((a.warp->alive() & ~a.lanes) == 0)
      warp.known.join(together);
    else
      each_of(a.lanes, [&](uint32_t i) { warp.lane(i).known.join(together); });
  }
}

/// Threads at a barrier of the whole CTA that do not all come, or not to the same one.
void Checker::require_whole(Cta& cta, const std::vector<Arrival>& all, const std::vector<uint32_t>& here) {
  const functional::Program& program = grid_->program();
  const auto place_of = [&](uint32_t op) {
    const functional::InstructionPlace at = program.where(op);
    return at.source_line ? std::pair(std::string(at.file), uint64_t{at.source_line})
                          : std::pair(at.position, uint64_t{0});
  };
  const auto there = [&](const Arrival& a) {
    Moment m;
    m.cta = cta.linear_index();
    m.op = a.op;
    m.warp = static_cast<uint16_t>(a.warp->number());
    Access found = describe(m, static_cast<uint32_t>(std::countr_zero(a.lanes)), 0, 0);
    found.what = "barrier";
    return found;
  };
  Finding found;
  found.check = "sync";
  uint32_t absent = 0, first = UINT32_MAX;
  for (const Warp& warp : cta.warps())
    if (const uint32_t lanes = warp.lanes() & ~here[warp.number()]) {
      absent += static_cast<uint32_t>(std::popcount(lanes));
      if (first == UINT32_MAX)
        first = warp.number() * warp_lanes + static_cast<uint32_t>(std::countr_zero(lanes));
    }
  if (absent) {
    found.kind = "barrier-divergent";
    found.detail = std::to_string(absent) + " of " + std::to_string(grid_->threads_per_cta()) +
                   " threads of the block ended without reaching the barrier, thread " +
                   std::to_string(first) + " first";
    found.second = there(all.front());
    add(std::move(found));
    return;
  }
  for (const Arrival& a : all) {
    if (place_of(a.op) == place_of(all.front().op)) continue;
    found.kind = "barrier-different";
    found.detail = "threads of the block meet at different barriers";
    found.first = there(all.front());
    found.second = there(a);
    add(std::move(found));
    return;
  }
}

/// A CTA that ends must know that the others no longer access its shared memory.
void Checker::require_stay(Cta& cta) {
  for (const Warp& each : cta.warps())
    if (!each.finished()) return;
  for (const auto& [number, lane] : cta_->remote) {
    if (ordered(number, lane, 0)) continue;
    Finding found;
    found.check = "sync";
    found.kind = "cluster-exit";
    found.detail = "a block ends while another block of its cluster may still access its shared memory";
    found.second = describe(history_[number], lane, history_[number].manner, 0);
    add(std::move(found));
  }
  cta_->remote.clear();
}

/// What a warp that ends leaves behind.
void Checker::exits(Cta& cta, Warp& warp) {
  if (!checks_.sync || !warp.finished()) return;
  enter(cta, warp);
  if (!cta_->remote.empty()) require_stay(cta);
  for (const Groups& groups : warp_->groups) {
    const bool waits =
        std::any_of(groups.committed.begin(), groups.committed.end(), [](uint32_t c) { return c; });
    if (!waits && !groups.open) continue;
    if (&groups == &warp_->groups[static_cast<size_t>(Queue::Products)]) continue;
    Moment m;
    m.cta = cta_->index;
    m.op = groups.op;
    m.warp = static_cast<uint16_t>(warp_->number);
    Finding found;
    found.check = "sync";
    found.kind = "async-unwaited";
    found.detail = "threads end without waiting for their asynchronous copies";
    found.second = describe(m, 0, Later, 0);
    found.second.what = "asynchronous copy";
    add(std::move(found));
  }
}

// --- mbarriers and asynchronous work ------------------------------------------------------------------

void Checker::signals(Context& c, uint64_t address, int lane, bool completed) {
  context_ = &c;
  enter(c);
  const auto i = static_cast<uint32_t>(lane);
  const OpFacts& f = running_->facts[at_];
  Phase& phase = phases_[flag_key(address)];
  const Party copies = party(cta_->index, warp_->number + asynchronous);
  if (f.kind == Kind::Bulk || f.kind == Kind::Tensor || f.kind == Kind::Remote) {
    phase.pending.raise(copies, warp_->clock);
  } else {
    if (f.kind == Kind::Arrive) {
      phase.pending.raise(copies, warp_->clock);
      Groups& groups = warp_->groups[static_cast<size_t>(Queue::Copies)];
      groups.open = 0;
      groups.committed.clear();
    }
    phase.pending.join(published(i, false));
  }
  tick();
  if (!completed) return;
  phase.complete.join(phase.pending);
  phase.pending.clear();
}

void Checker::waited(Context& c, uint64_t address, int lane) {
  context_ = &c;
  enter(c);
  if (const auto at = phases_.find(flag_key(address)); at != phases_.end())
    learn(static_cast<uint32_t>(lane), at->second.complete);
}

void Checker::add_work(Queue queue, uint32_t pc) {
  Groups& groups = warp_->groups[static_cast<size_t>(queue)];
  groups.open = warp_->clock;
  groups.op = pc;
}

void Checker::commit(Queue queue) {
  Groups& groups = warp_->groups[static_cast<size_t>(queue)];
  groups.committed.push_back(groups.open);
  groups.open = 0;
  tick();
}

void Checker::wait(Queue queue, uint32_t pending, bool all) {
  Groups& groups = warp_->groups[static_cast<size_t>(queue)];

  uint32_t clock = 0;
  while (groups.committed.size() > pending) {
    clock = std::max(clock, groups.committed.front());
    groups.committed.pop_front();
  }
  if (all) {
    clock = std::max(clock, groups.open);
    groups.open = 0;
  }
  if (queue == Queue::Products && groups.committed.empty()) warp_->products.clear();
  if (clock) warp_->known.raise(party(cta_->index, warp_->number + asynchronous), clock);
  ++events_;
}

void Checker::copy(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  const auto& d = op.details<CopyDetail>();
  uint64_t to[warp_lanes], from[warp_lanes];
  functional::lane_addresses(c, d.to, to);
  functional::lane_addresses(c, d.from, from);
  const uint32_t reading = moment(pc, Later), writing = moment(pc, Later | Writes);
  each_of(c.mask, [&](uint32_t i) {
    access(c, from[i], f.bytes, i, reading, Later);
    access(c, to[i] + window::shared, f.bytes, i, writing, Later | Writes);
    copies(c, to[i] + window::shared, from[i], f.bytes, i);
  });
  add_work(Queue::Copies, pc);
}

/// Stores that an mbarrier of the CTA stored to counts.
void Checker::remote(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  const auto& d = op.details<functional::RemoteDetail>();
  uint64_t to[warp_lanes];
  functional::lane_addresses(c, d.to, to);
  const uint32_t writing = moment(pc, Later | Writes);
  each_of(c.mask, [&](uint32_t i) {
    access(c, to[i] + window::shared, f.bytes, i, writing, Later | Writes);
    fills(c, to[i] + window::shared, f.bytes, i);
  });
}

void Checker::bulk(Context& c, const Op& op, uint32_t pc) {
  const auto& d = op.details<BulkDetail>();
  if (d.prefetches) return;
  uint64_t to[warp_lanes], from[warp_lanes];
  functional::lane_addresses(c, d.to, to);
  functional::lane_addresses(c, d.from, from);
  const uint32_t* words = c.lanes<const uint32_t>(d.bytes);
  const uint32_t reading = moment(pc, Later), writing = moment(pc, Later | Writes);
  each_of(c.mask, [&](uint32_t i) {
    const uint64_t bytes = d.packed ? (words[i] & 0xffff) * 16 : words[i];
    access(c, functional::generic_address(d.direction.from, from[i]), bytes, i, reading, Later);
    const uint32_t ctas = !d.multicast ? 0
                          : d.packed   ? words[i] >> 16
                                       : c.lanes<const uint32_t>(d.cta_mask)[i] & 0xffff;
    const auto bring = [&](uint64_t there) {
      access(c, there, bytes, i, writing, Later | Writes);
      copies(c, there, functional::generic_address(d.direction.from, from[i]), bytes, i);
    };
    if (!d.multicast) bring(functional::generic_address(d.direction.to, to[i]));
    each_of(ctas, [&](uint32_t rank) { bring(c.in_cta(to[i], rank) + window::shared); });
  });
  if (!d.signals) add_work(Queue::Bulk, pc);
}

void Checker::touches(Context& c, uint64_t address, uint64_t bytes, int lane, bool writes) {
  context_ = &c;
  enter(c);
  const OpFacts& f = running_->facts[at_];
  const bool later = f.kind == Kind::Tensor || f.kind == Kind::Product;
  const auto manner = static_cast<uint8_t>((later ? Later : 0) | (writes ? Writes : 0) | f.manner);
  if (manner & Writes) fills(c, address, bytes, static_cast<uint32_t>(lane));
  if (!checks_.race) return;
  access(c, address, bytes, static_cast<uint32_t>(lane), moment(at_, manner), manner);
  if (f.kind == Kind::Product || f.grouped) add_work(f.queue, at_);
}

// --- accesses -----------------------------------------------------------------------------------------

void Checker::before(Context& c, const Op& op, uint32_t pc) {
  const OpFacts& f = running_->facts[pc];
  context_ = &c;
  at_ = pc;
  enter(c);
  if (checks_.init) values_before(c, op, f, pc);
  if (c.mask == 0) return;
  if (checks_.race && (f.kind == Kind::Product || !warp_->products.empty())) accumulators(f, pc);
  switch (f.kind) {
    case Kind::Load:
    case Kind::Store:
    case Kind::Atomic: {
      if (f.space == AccessSpace::Local) return;
      alignas(64) uint64_t address[warp_lanes];
      functional::lane_addresses(c, op, f.base, address);
      if (f.space == AccessSpace::Shared)
        for (uint64_t& a : address) a += window::shared;
      if (checks_.memory && (f.manner & Writes) && !constants_.empty()) require_writable(address, c.mask);
      if (!checks_.race) return;
      if (f.manner & Strong)
        order_by_flags(f, address, c.mask, f.kind == Kind::Load || op.destination != place::none,
                       f.manner & Writes);
      access_all(c, f, pc, address, c.mask);
      return;
    }
    case Kind::Copy:
      if (checks_.race) copy(c, op, f, pc);
      return;
    case Kind::Remote:
      if (checks_.race) remote(c, op, f, pc);
      return;
    case Kind::Bulk:
      if (checks_.race) bulk(c, op, pc);
      return;
    case Kind::ProxyFence:
      warp_->clock = std::max(warp_->clock, cta_->floor + 1);
      warp_->proxy_clock = warp_->clock;
      warp_->proxy_floor = cta_->floor;
      tick();
      return;
    case Kind::Fence:
      fence(f, c.mask);
      return;
    case Kind::Commit:
      commit(f.queue);
      return;
    case Kind::Wait:
      wait(f.queue, f.pending, f.all);
      return;
    default:
      return;
  }
}

void Checker::after(Context& c, const Op& op, uint32_t pc) {
  const OpFacts& f = running_->facts[pc];
  context_ = &c;
  at_ = pc;
  enter(c);
  if (checks_.init) values_after(c, op, f, pc);
  if (f.kind == Kind::RecordedStore && checks_.init)
    each_of(c.record->mask, [&](uint32_t i) { fills(c, c.record->address[i], f.bytes, i); });
  if (!checks_.race ||
      (f.kind != Kind::Recorded && f.kind != Kind::RecordedStore && f.kind != Kind::Mbarrier))
    return;
  access_all(c, f, pc, c.record->address.data(), c.record->mask);
}

void Checker::access_all(Context& c, const OpFacts& f, uint32_t pc, const uint64_t* generic, uint32_t lanes) {
  const uint32_t number = moment(pc, f.manner);
  uint64_t last = 0, held = 0;
  uint32_t run = UINT32_MAX;  // the last lane of a run that reads the same, which stands for those between
  each_of(lanes, [&](uint32_t i) {
    if (f.kind != Kind::Load || generic[i] != last || last == 0) {
      if (run != UINT32_MAX) access(c, held, f.bytes, run, number, f.manner);
      run = UINT32_MAX;
      last = generic[i];
      access(c, last, f.bytes, i, number, f.manner);
    } else {
      run = i;
      held = last;
    }
  });
  if (run != UINT32_MAX) access(c, held, f.bytes, run, number, f.manner);
}

/// The CTA whose shared memory an address is in, and the offset there; nullptr if it has ended.
Checker::CtaState* Checker::owner_of(Context& c, uint64_t& offset) {
  if (c.is_own(offset)) {
    offset -= c.own_shared;
    return cta_;
  }
  const uint64_t rank = (offset >> window::rank_shift) - c.first_rank;
  const auto& ctas = c.cta->cluster().ctas;
  if (rank >= ctas.size() || !ctas[rank]) return nullptr;
  offset &= window::own_shared;
  return &state_of(*ctas[rank]);
}

void Checker::access(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane, uint32_t number,
                     uint8_t manner) {
  Shadow* shadow = &global_;
  uint64_t at = generic, epoch = epoch_;
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (!owner || offset + bytes > c.cta->shared_bytes()) return;
    if (owner != cta_ && (owner->remote.empty() || owner->remote.back().first != number))
      owner->remote.emplace_back(number, lane);
    shadow = &owner->shared;
    at = offset;
    epoch = owner->epoch;
  } else if (window::is_local(generic)) {
    return;
  }
  while (bytes > 0) {
    const uint64_t offset = at % Page::bytes, here = std::min(bytes, Page::bytes - offset);
    uint64_t place_now = generic;
    if (last_.shadow != shadow || last_.number != at / Page::bytes || last_.epoch != epoch)
      last_ = {shadow, at / Page::bytes, epoch, &shadow->page(at, epoch)};
    (*last_.page).each(offset, here, [&](Cell& cell) { touch(cell, number, manner, lane, place_now); });
    at += here;
    generic += here;
    bytes -= here;
  }
}

void Checker::touch(Cell& cell, uint32_t number, uint8_t manner, uint32_t lane, uint64_t address) {
  const Stamp now = History::stamp(number, lane);
  const auto check = [&](Stamp earlier) {
    history_.visit(earlier, [&](uint32_t m, uint32_t then) {
      if (ordered(m, then, lane) && (!(manner & Later) || (manner & Writes) || crossed(history_[m])))
        return true;
      const bool together = may_be_together(history_[m], manner);
      if (!together || (checks_.weak && (history_[m].manner & manner & Volatile)))
        conflict(m, then, lane, manner, address);
      return true;
    });
  };
  const auto is_open = [&](uint32_t m, uint32_t then) { return !ordered(m, then, lane); };
  if (manner & Writes) {
    if (cell.write == now && cell.read == 0) return;
    check(cell.write);
    check(cell.read);
    if (manner & Strong) {
      cell.write = history_.with(cell.write, number, lane, is_open);
    } else {
      cell.write = now;
      cell.read = 0;
    }
    return;
  }
  if (cell.read == now) return;
  if ((manner & Cached) && cell.write)
    history_.visit(cell.write, [&](uint32_t m, uint32_t then) {
      conflict(m, then, lane, manner, address);
      return false;
    });
  check(cell.write);
  if (cell.read == 0) {
    cell.read = now;
    return;
  }
  if (warp_->sees || warp_->lanes) {
    cell.read = history_.with(cell.read, number, lane, is_open);
    return;
  }
  // Lanes beside each other, which read what lanes beside each other have read, give the same group.
  const uint32_t turn = (lane - cell.read) & 31, before = cell.read & ~31u;
  Step& step = steps_[((before >> 5) * 31 + turn + number * 7) % steps_.size()];
  if (step.before != before || step.turn != turn || step.moment != number || step.events != events_) {
    const Stamp result = history_.with(cell.read, number, lane, is_open);
    step = {before, turn, number, events_, result & ~31u, (result - lane) & 31};
  }
  cell.read = step.result | ((lane + step.result_turn) & 31);
}

/// Stores must not lead to constant memory.
void Checker::require_writable(const uint64_t* generic, uint32_t lanes) {
  each_of(lanes, [&](uint32_t i) {
    for (const auto& [begin, end] : constants_) {
      if (generic[i] < begin || generic[i] >= end) continue;
      Moment m;
      m.cta = cta_->index;
      m.op = at_;
      m.warp = static_cast<uint16_t>(warp_->number);
      Finding found;
      found.check = "memory";
      found.kind = "read-only-write";
      found.detail = "a kernel writes to constant memory";
      found.second = describe(m, i, Writes, generic[i]);
      add(std::move(found));
    }
  });
}

/// Whether what was written by an ordinary store may be read by asynchronous work: a fence of the proxies
/// came after it.
bool Checker::crossed(const Moment& m) const {
  if ((m.manner & Later) || m.cta != cta_->index || running_->facts[at_].kind == Kind::Copy) return true;
  if (running_->facts[at_].kind == Kind::Bulk || running_->facts[at_].kind == Kind::Tensor ||
      running_->facts[at_].kind == Kind::Product)
    return cta_->warps[m.warp].proxy_clock >= m.clock || warp_->proxy_floor >= m.clock ||
           (m.warp == warp_->number && warp_->proxy_clock >= m.clock);
  return true;
}

/// Registers that a product is still writing are touched.
void Checker::accumulators(const OpFacts& f, uint32_t pc) {
  const Flow& flow = flow_of(pc);
  if (f.kind == Kind::Product) {
    for (const Operand& write : flow.writes) warp_->products.emplace_back(write, pc);
    everything = true;
    return;
  }
  const auto touch_register = [&](const Operand& operand) {
    for (const auto& [product, op] : warp_->products) {
      if (product.place != operand.place) continue;
      Moment m;
      m.cta = cta_->index;
      m.op = op;
      m.warp = static_cast<uint16_t>(warp_->number);
      Finding found;
      found.check = "race";
      found.kind = "race-async";
      found.detail = "a register is used that a product still accumulates in, before wgmma.wait_group";
      found.first = describe(m, 0, Later | Writes, 0);
      m.op = pc;
      found.second = describe(m, 0, 0, 0);
      add(std::move(found));
      return;
    }
  };
  if (f.kind == Kind::Wait || f.kind == Kind::Commit) return;
  for (const Operand& read : flow.reads) touch_register(read);
  for (const Operand& write : flow.writes) touch_register(write);
}

/// Whether the store that is about to be executed writes what is there.
bool Checker::writes_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address) {
  const OpFacts& f = running_->facts[at_];
  if (f.kind != Kind::Store) return false;
  Context& c = *context_;
  const Op& op = grid_->program().code[at_];
  const auto& d = op.details<AccessDetail>();
  const auto value_of = [&](uint32_t i, std::byte* to) {
    const uint32_t size = std::min(8u, d.element_bytes);
    for (uint32_t e = 0; e < d.elements; ++e) {
      const uint64_t v = d.place_bytes[e] == 4 ? c.lanes<const uint32_t>(d.places[e])[i]
                                               : c.lanes<const uint64_t>(d.places[e])[i];
      std::memcpy(to + e * d.element_bytes, &v, size);
    }
  };
  if (d.element_bytes > 8) return false;
  std::byte mine[64] = {}, there[64] = {};
  value_of(lane, mine);
  const Moment& m = history_[earlier];
  if (m.op == at_ && m.warp == warp_->number && m.cta == cta_->index && (c.mask >> then & 1)) {
    value_of(then, there);
  } else {
    const uint64_t bytes = f.bytes;
    const std::byte* from = c.generic(address, bytes, static_cast<int>(lane));
    std::memcpy(there, from, bytes);
  }
  return std::memcmp(mine, there, f.bytes) == 0;
}

// --- findings -----------------------------------------------------------------------------------------

void Checker::conflict(uint32_t earlier, uint32_t then, uint32_t lane, uint8_t manner, uint64_t address) {
  const Moment& m = history_[earlier];
  Finding found;
  found.check = "race";
  const bool shared = window::is_shared(address);
  found.kind = (m.manner | manner) & Later      ? "race-async"
               : shared && m.cta != cta_->index ? "race-cluster"
               : shared                         ? "race-shared"
                                                : "race-global";
  if (found.kind == "race-async" && !(m.manner & Later) && ordered(earlier, then, lane))
    found.detail =
        "asynchronous work reads what an ordinary store has written, without fence.proxy.async between";
  if (m.manner & manner & Volatile) found.kind = "race-weak";
  if (manner & Cached) {
    found.check = "memory";
    found.kind = "read-only-write";
    found.detail = "data that this kernel has written is loaded as read-only, which need not see it";
  }
  if ((m.manner & Writes) && (manner & Writes) && !((m.manner | manner) & (Later | Atomic)) &&
      writes_same(earlier, then, lane, address)) {
    if (!checks_.weak) return;
    found.kind = "race-weak";
  }
  found.first = describe(m, then, m.manner, address);
  Moment now;
  now.cta = cta_->index;
  now.op = at_;
  now.warp = static_cast<uint16_t>(warp_->number);
  found.second = describe(now, lane, manner, address);
  // Which came first is chance: a write is named before a read, then the earlier line before the later one.
  const auto rank = [](const Access& a) { return std::pair(a.what == "read", a.line); };
  if (rank(found.second) < rank(found.first)) std::swap(found.first, found.second);
  add(std::move(found));
}

Access Checker::describe(const Moment& m, uint32_t lane, uint8_t manner, uint64_t address) const {
  const functional::Program& program = grid_->program();
  const functional::InstructionPlace place = program.where(m.op);
  const auto& block = grid_->config().block;
  const uint32_t thread = m.warp % asynchronous * warp_lanes + lane;
  Access a;
  a.what = manner & Atomic ? "atomic" : manner & Writes ? "write" : "read";
  if (manner & Later) a.what = "asynchronous " + a.what;
  a.file = std::string(place.file);
  a.line = place.source_line;
  a.position = place.position;
  a.instruction = program.text(m.op);
  a.thread = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
  a.block = grid_->position(m.cta);
  a.address = address;
  a.kernel = grid_->kernel().name;
  if (address) name_memory(a, address);
  return a;
}

void Checker::name_memory(Access& access, uint64_t generic) const {
  if (window::is_shared(generic)) {
    access.space = "shared";
    const uint64_t offset = (generic - window::shared) & window::own_shared;
    access.address = offset;
    const functional::Program& program = grid_->program();
    for (size_t k = 0; k < program.variables.size() && k < program.module.variables.size(); ++k) {
      const ptx::Variable& v = program.module.variables[k];
      if (v.space != ptx::Space::Shared || offset < program.variables[k]) continue;
      const uint64_t in = offset - program.variables[k];
      if (in < std::max<uint64_t>(v.size, 1) || v.size == 0)
        access.object = std::string(v.name) + "+" + std::to_string(in);
    }
  } else if (window::is_local(generic)) {
    access.space = "local";
    access.address = generic - window::local;
  } else {
    access.space = "global";
    access.object = grid_->memory().describe(generic);
  }
}

void Checker::add(Finding finding) {
  if (finding.kernel.empty()) finding.kernel = finding.second.kernel;
  const auto where = [](const Access& a) {
    return a.line ? a.file + ":" + std::to_string(a.line) : a.position;
  };
  const std::string key = finding.kind + "\n" + finding.kernel + "\n" + where(finding.first) + "\n" +
                          finding.first.what + "\n" + where(finding.second) + "\n" + finding.second.what;
  const auto [at, is_new] = known_.try_emplace(key, findings_.size());
  if (!is_new) {
    ++findings_[at->second].count;
    return;
  }
  findings_.push_back(std::move(finding));
}

}  // namespace simt::check
