/// What launches leave behind for others that may run at the same time: streams, events and graphs.
#include <map>

#include "check/checker.hpp"

namespace simt::check {

void Checker::begin_work(uint64_t number, const std::vector<uint64_t>& others, bool kept) {
  concurrency_.begin(number, others, kept);
  next_work_ = number;
}

void Checker::host_work(uint64_t number, const std::vector<uint64_t>& others, bool kept,
                        const std::string& what, const std::vector<Rows>& rows) {
  concurrency_.begin(number, others, kept);
  if (!concurrency_.needs(number)) return;
  Touched part;
  for (const Rows& each : rows) {
    Access access;
    access.what = (each.writes ? "write by a " : "read by a ") + what;
    part.accesses.push_back(std::move(access));
    std::vector<Touch>& touches = each.writes ? part.writes : part.reads;
    for (uint64_t row = 0; row < each.count; ++row) {
      Touch made;
      made.begin = each.address + row * each.pitch;
      made.end = made.begin + each.bytes;
      made.by = static_cast<uint32_t>(part.accesses.size() - 1);
      if (made.begin < made.end) touches.push_back(made);
    }
  }
  concurrency_.touched(number, std::move(part), [this](Access first, Access second) {
    launches_meet(std::move(first), std::move(second));
  });
}

/// What the launch under way has touched so far.
void Checker::keep_touched() {
  if (!checks_.race || !grid_) return;
  const auto work = works_.find(grid_);
  if (work == works_.end() || !concurrency_.needs(work->second)) return;
  Touched part;
  part.block_size = grid_->config().block;
  std::map<std::pair<uint32_t, uint8_t>, uint32_t> known;  // accesses by Op and manner
  const auto add = [&](std::vector<Touch>& touches, uint64_t address, uint64_t bytes, Stamp stamp) {
    if (stamp == 0) return;
    bool is_strong = true;
    uint32_t number = 0, lane = 0;
    history_.visit(stamp, [&](uint32_t m, uint32_t l) {
      is_strong &= (history_[m].manner & (Strong | OfCta | OfCluster)) == Strong;
      number = m, lane = l;
      return true;
    });
    const Moment& m = history_[number];
    const auto [at, is_new] =
        known.try_emplace({m.op, m.manner}, static_cast<uint32_t>(part.accesses.size()));
    if (is_new) part.accesses.push_back(describe(m, lane, m.manner, 0));
    const uint32_t thread = m.warp % asynchronous * warp_lanes + lane;
    const std::array<uint32_t, 3> block = grid_->position(m.cta);
    if (!touches.empty()) {
      Touch& last = touches.back();
      const bool follows = last.last_thread == thread || last.last_thread + 1 == thread;
      if (last.end == address && last.by == at->second && last.is_strong == is_strong && follows &&
          last.block == block) {
        last.end += bytes;
        last.last_thread = thread;
        return;
      }
    }
    touches.push_back({address, address + bytes, at->second, is_strong, block, thread, thread});
  };
  global_.each_used(epoch_, [&](uint64_t address, uint64_t bytes, const Cell& cell) {
    add(part.writes, address, bytes, cell.write);
    add(part.reads, address, bytes, cell.read);
  });
  concurrency_.touched(work->second, std::move(part), [this](Access first, Access second) {
    launches_meet(std::move(first), std::move(second));
  });
}

void Checker::launches_meet(Access first, Access second) {
  for (Access* access : {&first, &second}) {
    access->space = "global";
    for (const auto& memory : watched_memory_)
      if (memory->find(access->address, 1)) access->object = memory->describe(access->address);
  }
  Finding found;
  found.check = "race";
  found.kind = "race-launch";
  found.kernel = second.kernel.empty() ? first.kernel : second.kernel;
  found.first = std::move(first);
  found.second = std::move(second);
  add(std::move(found));
}

}  // namespace simt::check
