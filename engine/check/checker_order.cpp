/// Which accesses are ordered: what threads know of each other, from program order, collectives, fences and
/// flags.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "check/checker.hpp"
#include "machine/lanes.hpp"

namespace simt::check {

namespace window = functional::window;

uint32_t Checker::moment(uint32_t op, uint8_t manner) {
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  cta_->counter = std::max(cta_->counter, warp_->clock);
  WarpState::Recent& recent = warp_->recent[op % warp_->recent.size()];
  const uint32_t together = is_machine_code_ ? here_ : 0;
  if (recent.op == op && recent.clock == warp_->clock && recent.manner == manner &&
      recent.together == together && recent.moment)
    return recent.moment;
  if (history_.full())
    throw std::overflow_error("a launch accesses memory at more times than can be kept apart (67 million)");
  Moment made;
  made.cta = cta_->index;
  made.op = op;
  made.clock = warp_->clock;
  made.warp = static_cast<uint16_t>(warp_->number + (manner & Later ? asynchronous : 0));
  made.manner = manner;
  made.together = together;
  recent = {op, warp_->clock, manner, together, history_.add(made)};
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
      if ((m.together >> lane) & (m.together >> then) & 1) return true;
      if (m.clock <= warp_->floor) return for_all_lanes();
      if (warp_->sees && (*warp_->sees)[lane][then] >= m.clock) return true;
    }
  }
  return knows(m, then, lane);
}

/// Whether all lanes of the warp are after what a stamp of this key names: found once, it stays so.
const Checker::Known& Checker::look_up(uint32_t key) {
  Known& known = known_orders_[key % known_orders_.size()];
  if (known.key == key && known.events == events_) return known;
  known = {events_, key, Order::All, false};
  const Stamp stamp = key << 5;
  bool any_behind = false, any_own = false;
  history_.visit(stamp, [&](uint32_t number, uint32_t) {
    const Moment& m = history_[number];
    const bool is_own = m.cta == cta_->index && m.warp == warp_->number;
    any_own |= is_own;
    if (known_to_warp(m))
      any_behind = true;
    else if (known.order != Order::None)
      known.order = is_own && !History::is_group(stamp) ? Order::Own : Order::None;
    return true;
  });
  const bool is_apart = !any_behind && !any_own && !lanes_differ();
  known.stays = is_apart && cta_->known.empty() && warp_->known.empty() && history_.stays(stamp, here(at_));
  return known;
}

/// As `ordered`, of one that is not kept.
bool Checker::follows(const Moment& m, uint32_t then, uint32_t lane) const {
  if (m.cta == cta_->index) {
    if (m.clock <= cta_->floor) return true;
    if (m.warp == warp_->number &&
        (then == lane || m.clock <= warp_->floor || (warp_->sees && (*warp_->sees)[lane][then] >= m.clock)))
      return true;
  }
  return knows(m, then, lane);
}

bool Checker::known_to_warp(const Moment& m) const {
  if (m.cta == cta_->index && !(m.manner & Later) &&
      (m.clock <= cta_->floor ||
       (m.warp == warp_->number && (m.clock <= warp_->floor || (m.together && !(here_ & ~m.together))))))
    return true;
  const auto within = [&](const Knowledge& known) {
    return !known.empty() && (known.of(party(m.cta)) >= (m.manner & Later ? UINT32_MAX : m.clock) ||
                              known.of(party(m.cta, m.warp)) >= m.clock);
  };
  return within(cta_->known) || within(warp_->known);
}

bool Checker::knows(const Moment& m, uint32_t then, uint32_t lane) const {
  const auto within = [&](const Knowledge& known) {
    return !known.empty() &&
           (known.of(party(m.cta)) >= (m.manner & Later ? UINT32_MAX : m.clock) ||
            known.of(party(m.cta, m.warp)) >= m.clock || known.of(party(m.cta, m.warp, then)) >= m.clock);
  };
  return within(cta_->known) || within(warp_->known) || (warp_->lanes && within((*warp_->lanes)[lane].known));
}

/// Whether a read of another CTA has ended, as a relaxed flag has told: a value that has arrived does not
/// change any more.
bool Checker::has_been_read(const Moment& m) const {
  return !(m.manner & (Writes | Later)) && cta_->read.of(party(m.cta)) >= m.clock;
}

/// Whether the thread comes after the one that has taken the last ticket, where the other one, of an atomic
/// behind a release, was taken before: the address is that of the tickets, which it may reset.
bool Checker::has_counted(const Moment& m, uint32_t then, uint32_t lane, uint64_t address) const {
  if (!(m.manner & Atomic)) return false;
  const auto at = flags_.find(flag_key(address));
  if (at == flags_.end() || at->second.last.clock == 0) return false;
  const Flag& flag = at->second;
  return flag.counted.of(party(m.cta, m.warp, then)) >= m.clock && follows(flag.last, flag.last_lane, lane);
}

/// Whether accesses that are not ordered are no race: both are strong, and in each other's scope.
bool Checker::may_be_together(const Moment& m, uint8_t manner) const {
  if (!(m.manner & manner & Strong)) return false;
  if ((m.manner & manner & Atomic) && running_->facts[m.op].element != running_->facts[at_].element)
    return false;  // strong only where they overlap as a whole
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

/// What relaxed arrivals tell at the barrier of a cluster: what comes before the lanes' last fences.
Knowledge Checker::published_by_fences(uint32_t lanes) {
  Knowledge all;
  if (warp_->lanes)
    each_of(lanes, [&](uint32_t i) {
      const LaneState& lane = (*warp_->lanes)[i];
      if (lane.fenced && lane.fence_scope != Scope::Cta) all.join(published(i, true));
    });
  return all;
}

void Checker::met(Cta& cta, Warp& warp, uint32_t lanes, uint32_t members, const Op& op) {
  enter(cta, warp);
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  const auto at = static_cast<uint32_t>(&op - grid_->program().code.data());
  if (checks_.sync && (lanes & ~members)) {
    Finding found;
    found.check = "sync";
    found.kind = "mask";
    found.detail = "lanes execute it that its mask " + functional::hex(members) + " does not name";
    found.second = describe(here(at), static_cast<uint32_t>(std::countr_zero(lanes & ~members)), 0, 0);
    found.second.what = "collective";
    add(std::move(found));
  }
  if (checks_.sync) require_members(warp, lanes, members, at);
  each_of(lanes, [&](uint32_t i) { warp_->met[i] = {warp_->clock, at}; });
  if (checks_.init && lanes != functional::full_mask && running_->facts[at].kind == Kind::Shuffle)
    undefined_ = lanes & ~defined(lanes, op);
  if ((warp.alive() & ~lanes) == 0) {
    warp_->floor = warp_->clock;
    warp_->parted = false;
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

/// Lanes that a mask names may have ended, but not have gone elsewhere to meet others.
void Checker::require_members(const Warp& warp, uint32_t lanes, uint32_t members, uint32_t at) {
  each_of(members & ~lanes & warp.lanes(), [&](uint32_t gone) {
    const uint32_t clock = warp_->met[gone].clock;
    bool is_known = clock <= warp_->floor;
    if (warp_->sees) each_of(lanes, [&](uint32_t i) { is_known |= (*warp_->sees)[i][gone] >= clock; });
    if (is_known) return;
    Finding found;
    found.check = "sync";
    found.kind = "mask";
    found.detail = "a lane that the mask " + functional::hex(members) + " names goes elsewhere, and ends";
    found.first = describe(here(warp_->met[gone].op), gone, 0, 0);
    found.second = describe(here(at), static_cast<uint32_t>(std::countr_zero(lanes)), 0, 0);
    found.first.what = found.second.what = "collective";
    add(std::move(found));
  });
}

/// Those of the lanes of a shuffle that read from one of them.
uint32_t Checker::defined(uint32_t lanes, const Op& op) {
  if (op.a >> functional::place::bank_shift != 0) return lanes;
  const Program& program = grid_->program();
  const size_t bytes =
      program.functions[program.origins[static_cast<size_t>(&op - program.code.data())].function].frame_bytes;
  std::vector<functional::Line> frame(bytes / sizeof(functional::Line) + 1);
  auto* const copy = reinterpret_cast<std::byte*>(frame.data());
  std::memcpy(copy, context_->banks[0], bytes);
  Context shadow = *context_;
  shadow.banks[0] = copy;
  shadow.record = nullptr;
  shadow.observer = nullptr;
  shadow.mask = lanes;
  uint32_t* const numbers = shadow.lanes<uint32_t>(op.a);
  std::iota(numbers, numbers + warp_lanes, 0u);
  op.run(shadow, op);
  const uint32_t* const from = shadow.lanes<const uint32_t>(op.destination);
  uint32_t found = 0;
  each_of(lanes, [&](uint32_t i) { found |= (lanes >> from[i] & 1) << i; });
  return found;
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
    lane.known.join(cta_->ticket);
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
        lane.read.join(flag.read);
        ++events_;
      }
    }
    if (!writes) return;
    const bool fenced = warp_->lanes && (*warp_->lanes)[i].fenced;
    const bool adds = f.kind == Kind::Atomic;
    if (!f.releases && !fenced) {
      if (adds) return;
      if (window::is_shared(generic[i]) || (cta_->floor == 0 && cta_->known.empty())) {
        flags_.erase(key);
        return;
      }
      Flag& flag = flags_[key] = {};
      flag.read = cta_->known;
      flag.read.join(cta_->read);
      flag.read.raise(party(cta_->index), cta_->floor);
      return;
    }
    has_published = true;
    const Knowledge what = published(i, !f.releases);
    const Scope scope = f.releases ? f.scope : std::min(f.scope, (*warp_->lanes)[i].fence_scope);
    Flag& flag = flags_[key];
    if (!adds) flag = {};
    flag.read.join(what);
    flag.read.join(cta_->read);
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
  if (f.kind != Kind::Atomic || flags_.empty()) return;
  each_of(lanes, [&](uint32_t i) {
    const auto at = flags_.find(flag_key(generic[i]));
    if (at == flags_.end()) return;
    at->second.last = here(at_);
    at->second.last.clock = warp_->clock;
    at->second.last_lane = i;
    if (f.releases || (warp_->lanes && (*warp_->lanes)[i].fenced))
      at->second.counted.raise(party(cta_->index, warp_->number, i), warp_->clock);
  });
}

}  // namespace simt::check
