/// Barriers of warps, CTAs and clusters, and who must still come when threads end.
#include <algorithm>
#include <bit>

#include "check/checker.hpp"

namespace simt::check {

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
               std::max(warp_->clock, cta_->floor + 1),
               whole ? Knowledge()
               : running_->facts[static_cast<size_t>(&op - grid_->program().code.data())].relaxed
                   ? published_by_fences(lanes)
                   : published_by_warp(lanes)};
  const bool of_cluster = request.cluster;
  CtaState& where = of_cluster ? state_of(*cta.cluster().ctas[0]) : *cta_;
  if (checks_.sync && !of_cluster && request.threads) require_round(made, barrier);
  where.arrivals[barrier].push_back(std::move(made));
  enter(cta, warp);
  tick();
}

/// Who arrives at a barrier of some threads must know that the round before is complete, and arrive once in a
/// round: it would be counted for a round of others.
void Checker::require_round(const Arrival& made, uint32_t barrier) {
  const auto report = [&](const Arrival& other, const char* what) {
    Finding found;
    found.check = "sync";
    found.kind = "barrier-different";
    found.detail = what;
    Moment then = here(other.op);
    then.warp = static_cast<uint16_t>(other.warp->number());
    found.first = describe(then, static_cast<uint32_t>(std::countr_zero(other.lanes)), 0, 0);
    found.second = describe(here(made.op), static_cast<uint32_t>(std::countr_zero(made.lanes)), 0, 0);
    found.first.what = found.second.what = "barrier";
    add(std::move(found));
  };
  for (const Arrival& other : cta_->arrivals[barrier])
    if (other.warp == made.warp && (other.lanes & made.lanes)) {
      report(other, "a warp arrives twice at one round of a barrier");
      return;
    }
  for (const Arrival& other : cta_->before[barrier]) {
    Moment m = here(other.op);
    m.clock = other.clock;
    m.warp = static_cast<uint16_t>(other.warp->number());
    if (m.clock <= cta_->floor || m.warp == warp_->number) continue;
    const auto then = static_cast<uint32_t>(std::countr_zero(other.lanes));
    bool knows_it = true;
    each_of(made.lanes, [&](uint32_t i) { knows_it &= knows(m, then, i); });
    if (knows_it) continue;
    report(other,
           "a warp arrives at a barrier though nothing tells it that the round before, of other warps, is "
           "complete: it may be counted there");
    return;
  }
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
        (checks_.weak ? where.ticket : where.known).join(lane.ticket);
        lane.ticket.clear();
        where.read.join(lane.read);
        lane.read.clear();
      }
    }
    return;
  }
  Knowledge together;
  for (const Arrival& a : all) together.join(a.published);
  if (barrier < Cta::barrier_count) where.before[barrier] = all;
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
  if (is_machine_code_) return;  // a compiler copies barriers
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
    Finding found;
    found.check = "sync";
    found.kind = "async-unwaited";
    found.detail = "threads end without waiting for their asynchronous copies";
    found.second = describe(here(groups.op), 0, Later, 0);
    found.second.what = "asynchronous copy";
    add(std::move(found));
  }
}

}  // namespace simt::check
