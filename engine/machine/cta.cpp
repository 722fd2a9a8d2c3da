#include "machine/cta.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/observer.hpp"

namespace simt::functional {

bool BarrierCounter::arrive(Cta& cta, Warp& warp, uint32_t lanes, const BarrierRequest& request,
                            const std::vector<Cta*>& members) {
  if (in_use() && expected_ != request.threads)
    throw Fault("divergent barrier", "barrier " + std::to_string(request.id) + " is waited at for " +
                                         std::to_string(request.threads) + " threads, and by others for " +
                                         std::to_string(expected_) + " (0: all)");
  expected_ = request.threads;
  // Lanes of a warp that arrive one after the other are one arrival; lanes that arrive again, after an
  // arrival without waiting, are another.
  auto it = std::find_if(arrived_.begin(), arrived_.end(),
                         [&](const Arrival& a) { return a.warp == &warp && (a.lanes & lanes) == 0; });
  if (it == arrived_.end()) it = arrived_.insert(arrived_.end(), Arrival{&cta, &warp, 0, 0});
  it->lanes |= lanes;
  // A warp with fewer than 32 threads counts as full.
  const bool whole = (warp.alive() & ~it->lanes) == 0;
  const uint32_t now = whole ? warp_lanes : static_cast<uint32_t>(std::popcount(it->lanes));
  threads_ += now - it->counted;
  it->counted = now;
  true_ += static_cast<uint32_t>(std::popcount(request.predicate & lanes));
  taking_part_ += static_cast<uint32_t>(std::popcount(lanes));
  return finish_if_complete(members);
}

bool BarrierCounter::arrived(const Warp& warp, uint32_t lanes) const {
  return std::any_of(arrived_.begin(), arrived_.end(),
                     [&](const Arrival& a) { return a.warp == &warp && (a.lanes & lanes) != 0; });
}

bool BarrierCounter::after_exit(const std::vector<Cta*>& members) {
  if (!in_use()) return false;
  for (Arrival& a : arrived_) {
    if ((a.warp->alive() & ~a.lanes) == 0 && a.counted < warp_lanes) {
      threads_ += warp_lanes - a.counted;
      a.counted = warp_lanes;
    }
  }
  return finish_if_complete(members);
}

bool BarrierCounter::finish_if_complete(const std::vector<Cta*>& members) {
  if (expected_ > 0) {
    if (threads_ < expected_) return false;
  } else {
    for (Cta* cta : members) {
      if (!cta) continue;
      for (const Warp& warp : cta->warps()) {
        if (warp.finished()) continue;
        const auto whole = [&](const Arrival& a) {
          return a.warp == &warp && (warp.alive() & ~a.lanes) == 0;
        };
        if (std::none_of(arrived_.begin(), arrived_.end(), whole)) return false;
      }
    }
  }
  popcount = true_;
  all = true_ == taking_part_;
  any = true_ > 0;
  threads_ = expected_ = true_ = taking_part_ = 0;
  arrived_.clear();
  return true;
}

Cta::Cta(Grid& grid, uint64_t linear_index, std::shared_ptr<Cluster> cluster, uint32_t rank)
    : grid_(grid),
      linear_index_(linear_index),
      index_(grid.position(linear_index)),
      cluster_(std::move(cluster)),
      rank_(rank),
      shared_((grid.shared_bytes() + sizeof(Line) - 1) / sizeof(Line)) {
  const FunctionCode& kernel = grid.kernel();
  const uint32_t threads = grid.threads_per_cta(), count = grid.warps_per_cta();
  warps_.reserve(count);
  for (uint32_t w = 0; w < count; ++w) {
    const uint32_t left = threads - w * warp_lanes;
    warps_.emplace_back(w, left >= warp_lanes ? full_mask : (1u << left) - 1, kernel.first,
                        kernel.frame_bytes);
  }
  local_.resize(count);
  running_ = count;
  if (const PairAllocation& pair = kernel.pair_allocation; pair.mbarrier != 0) {
    const uint32_t parity = rank_ % 2 == 0;
    std::memcpy(shared() + pair.mbarrier, &pair.initial, sizeof pair.initial);
    std::memcpy(shared() + pair.parity, &parity, sizeof parity);
  }
}

void Cta::restart(uint64_t linear_index) {
  linear_index_ = linear_index;
  index_ = grid_.position(linear_index);
  cluster_->barrier = {};
  sm = 0;
  barriers_completed = 0;
  running_ = static_cast<uint32_t>(warps_.size());
  std::fill(shared_.begin(), shared_.end(), Line{});
  tensor_memory_.reset();
  for (Warp& warp : warps_) warp.restart(grid_.kernel().first);
  for (auto& memory : local_) std::fill(memory.begin(), memory.end(), std::byte{});
  for (BarrierCounter& barrier : barriers_) barrier = {};
  waiting_.clear();
}

uint32_t Cta::shared_bytes() const {
  return grid_.shared_bytes();
}

TensorMemory& Cta::tensor_memory() {
  if (!tensor_memory_) tensor_memory_ = std::make_unique<TensorMemory>();
  return *tensor_memory_;
}

std::byte* Cta::local(uint32_t warp, uint32_t lane) {
  auto& memory = local_[warp];
  const size_t bytes = grid_.local_bytes();
  if (memory.empty()) memory.resize(bytes * warp_lanes);
  return memory.data() + bytes * lane;
}

void Cta::arrive(Context& context, Warp& warp, Warp::Split& split, const Op& op) {
  const BarrierRequest& request = context.barrier;
  const uint32_t lanes = context.mask;
  if (request.id >= barrier_count && !request.warpgroup)
    throw Fault("illegal instruction",
                "barrier " + std::to_string(request.id) + " of " + std::to_string(barrier_count));
  if (request.threads % warp_lanes != 0)
    throw Fault("illegal instruction", "a barrier for " + std::to_string(request.threads) +
                                           " threads, which is no multiple of " + std::to_string(warp_lanes));
  const uint32_t number = request.cluster     ? barrier_count
                          : request.warpgroup ? barrier_count + 1 + warp.number() / warps_in_group
                                              : request.id;
  if (Observer* observer = grid_.observer()) observer->arrives(*this, warp, lanes, number, request, op);
  if (request.cluster && request.waits && !cluster_->barrier.arrived(warp, lanes)) {
    context.barrier.waits = false;
    return;
  }
  if (request.waits) {
    split.state = Warp::State::Barrier;
    Cta& owner = request.cluster ? *cluster_->ctas[0] : *this;
    owner.waiting_.push_back({this, &warp, lanes, number, &op, request.reduce});
  }
  if (request.cluster) {
    if (!request.waits && cluster_->barrier.arrive(*this, warp, lanes, request, cluster_->ctas))
      release(context, barrier_count, cluster_->barrier);
  } else if (barriers_[number].arrive(*this, warp, lanes, request, {this})) {
    release(context, number, barriers_[number]);
  }
}

std::vector<Cta::Arrived> Cta::arrived() const {
  std::vector<Arrived> found;
  for (uint32_t b = 0; b < barrier_count; ++b)
    for (const Warp& warp : warps_) {
      if (!barriers_[b].arrived(warp, full_mask)) continue;
      const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                     [&](const Waiting& w) { return w.warp == &warp && w.barrier == b; });
      found.push_back({warp.number(), b, barriers_[b].expected(), waits});
    }
  return found;
}

void Cta::release(Context& context, uint32_t barrier, const BarrierCounter& counter) {
  if (Observer* observer = grid_.observer()) observer->completes(*this, barrier);
  if (barrier == barrier_count)
    for (Cta* cta : cluster_->ctas) ++cta->barriers_completed;
  else
    ++barriers_completed;
  std::vector<Waiting>& waiting = barrier == barrier_count ? cluster_->ctas[0]->waiting_ : waiting_;
  for (const Waiting& w : waiting) {
    if (w.barrier != barrier) continue;
    for (Warp::Split& split : w.warp->splits()) {
      if (split.state != Warp::State::Barrier || split.mask != w.lanes) continue;
      split.state = Warp::State::Ready;
      if (w.reduce == BarrierRequest::Reduce::None) continue;
      Context there = context;
      there.banks[0] = w.warp->frame(split);
      there.mask = w.lanes;
      if (w.reduce == BarrierRequest::Reduce::Popcount) {
        uint32_t* d = there.lanes<uint32_t>(w.op->destination);
        for (uint32_t i = 0; i < warp_lanes; ++i) d[i] = (w.lanes >> i) & 1 ? counter.popcount : d[i];
      } else {
        const bool holds = w.reduce == BarrierRequest::Reduce::And ? counter.all : counter.any;
        uint32_t& p = there.predicate(w.op->destination);
        p = holds ? p | w.lanes : p & ~w.lanes;
      }
    }
  }
  std::erase_if(waiting, [&](const Waiting& w) { return w.barrier == barrier; });
}

void Cta::exited(Context& context, Warp& warp) {
  if (warp.finished()) --running_;
  if (running_ == 0 && tensor_memory_ && tensor_memory_->allocated_columns() > 0)
    throw Fault("tensor memory", "the CTA ends with " + std::to_string(tensor_memory_->allocated_columns()) +
                                     " columns of tensor memory allocated; tcgen05.dealloc is missing");
  for (uint32_t b = 0; b < barriers_.size(); ++b)
    if (barriers_[b].in_use() && barriers_[b].after_exit({this})) release(context, b, barriers_[b]);
  if (cluster_->ctas.size() > 1 && cluster_->barrier.after_exit(cluster_->ctas))
    release(context, barrier_count, cluster_->barrier);
}

}  // namespace simt::functional
