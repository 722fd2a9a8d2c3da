#include "machine/grid_run.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "machine/executor.hpp"

namespace simt::functional {
namespace {

constexpr uint64_t warp_turn = 20'000;  ///< instructions a warp executes per turn
/// Instructions a cluster executes per turn before others run, for which it may wait: the longest turn, and
/// the shortest, used when clusters that may wait for each other have already begun.
constexpr uint64_t cta_turn = 2'000'000, shortest_turn = 16'000;
/// Turns before a pause, if that many are not too short: whoever sets it wants to see all clusters go on.
constexpr uint64_t turns_of_part = 8;
/// Instructions without any cluster finishing after which CTAs that may wait for others are taken to be
/// waiting.
constexpr uint64_t patience = 20'000'000, patience_of_cluster = 4'000'000;

/// Polls whether to stop, only as often as is noticeable.
class StopQuestion {
 public:
  explicit StopQuestion(const std::function<bool()>& stop) : stop_(stop) {}
  bool ask(uint64_t warp_instructions) {
    if (!stop_ || (++turns_ % 64 != 0 && warp_instructions - asked_at_ < 2 * cta_turn)) return false;
    asked_at_ = warp_instructions;
    return stop_();
  }

 private:
  const std::function<bool()>& stop_;
  uint64_t turns_ = 0, asked_at_ = 0;
};

/// When a thread that has executed `executed` warp instructions is to pause.
uint64_t pause_after(uint64_t executed, uint64_t most) {
  return most > UINT64_MAX - executed ? UINT64_MAX : executed + most;
}

/// Pauses without a new state of a warp after which its warps are taken to repeat themselves, and the states
/// of a warp at which they are not.
constexpr uint32_t most_repetitions = 24;
constexpr size_t most_states = 4096;

}  // namespace

/// A cluster being run.
struct GridRun::RunningCluster {
  /// The i-th of a part; those that have begun come first. finished: CTAs whose memory it may take.
  RunningCluster(Grid& grid, const Grid::Part& part, uint64_t i,
                 std::vector<std::unique_ptr<Cta>> finished = {})
      : blocks_of_warp(part.block_count) {
    if (i < part.begun.size()) {
      ctas = part.begun[i];
    } else {
      owned = grid.make_cluster(part.number(i - part.begun.size()), std::move(finished));
      for (auto& cta : owned) ctas.push_back(cta.get());
    }
    if (part.blocks)
      counts = part.block_counts + i * grid.cluster_size() * grid.warps_per_cta() * blocks_of_warp;
    if (part.follow.footprints) footprints = part.follow.footprints->data() + i * grid.cluster_size();
  }
  uint32_t* counts_of(const Cta& cta, const Warp& warp) const {
    if (!counts) return nullptr;
    return counts + (uint64_t{cta.rank()} * cta.grid().warps_per_cta() + warp.number()) * blocks_of_warp;
  }

  std::vector<std::unique_ptr<Cta>> owned;
  std::vector<Cta*> ctas;
  uint64_t blocks_of_warp;
  uint32_t* counts = nullptr;
  Footprint* footprints = nullptr;  // by rank
};

/// What a host thread executes with.
struct GridRun::Worker {
  Worker(Grid& grid, const Grid::Part& part, bool concurrent) : executor(grid, concurrent) {
    executor.set_cycle(part.cycle);
    executor.count_blocks(part.blocks);
    executor.count_for_timing(part.lowering);
    if (part.follow.footprints) {
      recorder.emplace(*part.follow.launch, *part.follow.instructions);
      executor.follow(&*recorder);
    }
  }

  Executor executor;
  std::optional<FootprintRecorder> recorder;
  // Where the order of CTAs does not matter:
  uint64_t number = 0;
  std::optional<RunningCluster> cluster;  ///< of this number, that has not finished
  std::vector<std::unique_ptr<Cta>> finished;
};

GridRun::GridRun(Grid& grid, Grid::Part part, uint32_t threads)
    : grid_(grid), part_(std::move(part)), turn_(part_.begun.empty() ? cta_turn : shortest_turn) {
  const uint64_t count = grid.order_matters() || grid.observer()
                             ? 1
                             : std::max<uint64_t>(1, std::min<uint64_t>(threads, clusters()));
  for (uint64_t t = 0; t < count; ++t)
    workers_.push_back(std::make_unique<Worker>(grid_, part_, !grid.order_matters() && count > 1));
  if (grid.order_matters()) {
    workers_[0]->executor.yield_when_polling(grid.config().cooperative);
  } else {
    grid_.keeps_printed_ = true;  // what these CTAs print is ordered by CTA number
  }
}

GridRun::~GridRun() = default;

bool GridRun::advance(const std::function<bool()>& stop, uint64_t most) {
  const struct Asking {
    ~Asking() { grid.stop_ = nullptr; }
    Grid& grid;
  } asking{grid_};
  grid_.stop_ = &stop;
  return grid_.order_matters() ? run_in_turns(stop, most) : run_unordered(stop, most);
}

Grid::Counts GridRun::counts() const {
  Grid::Counts all;
  for (const auto& worker : workers_) {
    all.warp_instructions += worker->executor.warp_instructions;
    all.thread_instructions += worker->executor.thread_instructions;
    all.timed += worker->executor.timed;
    if (worker->recorder) all.accesses += worker->recorder->accesses();
  }
  all.complete = complete_;
  return all;
}

std::vector<Cta*> GridRun::begun_ctas() {
  std::vector<Cta*> all;
  for (const RunningCluster& cluster : active_)
    all.insert(all.end(), cluster.ctas.begin(), cluster.ctas.end());
  for (const auto& worker : workers_)
    if (worker->cluster) all.insert(all.end(), worker->cluster->ctas.begin(), worker->cluster->ctas.end());
  return all;
}

uint64_t GridRun::state_of(const Warp& warp) const {
  const Program& program = grid_.program();
  uint64_t hash = warp.alive();
  const auto add = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  uint32_t registers = 0;  // bytes
  for (const Warp::Split& split : warp.splits()) {
    add(split.pc);
    add(uint64_t{split.mask} << 32 | static_cast<uint32_t>(split.state));
    const FunctionCode& function = program.functions[program.origins[split.pc].function];
    registers = std::max(registers, split.frame + function.frame_bytes);
  }
  for (uint32_t at = 0; at + sizeof(uint64_t) <= registers; at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, warp.frame_at(at), sizeof word);
    add(word);
  }
  return hash;
}

bool GridRun::repeats() {
  if (const uint64_t finished = finished_; finished != finished_before_) {
    finished_before_ = finished;
    states_.clear();
    repetitions_ = 0;
    return false;
  }
  bool any_new = false;
  for (Cta* cta : begun_ctas())
    for (const Warp& warp : cta->warps()) {
      if (warp.finished()) continue;
      auto& known = states_[&warp];
      any_new |= known.insert(state_of(warp)).second;
      if (known.size() > most_states) known.clear();
    }
  repetitions_ = any_new ? 0 : repetitions_ + 1;
  return repetitions_ >= most_repetitions;
}

void GridRun::report_endless_wait() {
  waits_without_end(grid_, begun_ctas());
}

/// Runs a cluster until it finishes or its turn ends. False in the latter case.
bool GridRun::run_turn(Worker& worker, RunningCluster& cluster, uint64_t turn) {
  Executor& executor = worker.executor;
  auto& ctas = cluster.ctas;
  const uint64_t end = executor.warp_instructions + turn;
  const uint64_t of_warp = std::min(warp_turn, turn);
  for (;;) {
    bool all_finished = true, progress = false, waits = false;
    for (Cta* cta : ctas) {
      if (cluster.footprints) executor.followed(cluster.footprints[cta->rank()]);
      for (Warp& warp : cta->warps()) {
        if (warp.finished()) continue;
        const uint64_t before = executor.warp_instructions;
        const uint64_t completed = cta->barriers_completed;
        switch (executor.run(*cta, warp, of_warp, cluster.counts_of(*cta, warp))) {
          case Executor::Stop::Yield:
            waits = true;
            break;
          default:
            break;
        }
        progress |= executor.warp_instructions != before || cta->barriers_completed != completed;
        all_finished &= warp.finished();
      }
    }
    if (all_finished) return true;
    if (!progress) deadlocked(grid_, ctas);
    // A warp may be waiting for another CTA: end the turn early.
    if (executor.warp_instructions >= end || waits) return false;
  }
}

bool GridRun::run_unordered(const std::function<bool()>& stop, uint64_t most) {
  std::atomic<bool> pausing{false};
  const auto work = [&](Worker& worker, bool asks) {
    StopQuestion question(stop);
    const uint64_t& executed = worker.executor.warp_instructions;
    const uint64_t end = pause_after(executed, most);
    while (!grid_.stopped_ && !pausing) {
      if (!worker.cluster) worker.number = next_++;
      const uint64_t c = worker.number;
      if (c >= clusters() || c >= first_error_) break;
      try {
        if (!worker.cluster) worker.cluster.emplace(grid_, part_, c, std::move(worker.finished));
        bool finished = false;
        while (!finished && c < first_error_ && !grid_.stopped_ && !pausing) {
          finished = run_turn(worker, *worker.cluster, cta_turn);
          if (asks && question.ask(executed)) grid_.stopped_ = true;
          if (asks && executed >= end) pausing = true;
        }
        if (!finished) break;
        ++finished_;
        worker.finished = std::move(worker.cluster->owned);
        worker.cluster.reset();
      } catch (const Grid::Stopped&) {
        break;
      } catch (...) {
        // The fault of the lowest CTA is reported, in whatever order faults occur; lower CTAs still run.
        const std::lock_guard lock(mutex_);
        if (c < first_error_) {
          error_ = std::current_exception();
          first_error_ = c;
        }
        break;
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < workers_.size(); ++t) others.emplace_back(work, std::ref(*workers_[t]), false);
  work(*workers_[0], true);
  for (std::thread& t : others) t.join();
  const auto has_left = [&](const auto& worker) { return worker->cluster && worker->number < first_error_; };
  const bool any_left =
      (next_ < clusters() && next_ < first_error_) || std::any_of(workers_.begin(), workers_.end(), has_left);
  if (pausing && !grid_.stopped_ && any_left) return false;
  if (error_) {
    const uint64_t i = first_error_, begun = part_.begun.size();
    const uint64_t first =
        i < begun ? part_.begun[i][0]->linear_index() / grid_.cluster_size() : part_.number(i - begun);
    std::erase_if(grid_.printed_,
                  [&](const Grid::Printed& p) { return p.cta / grid_.cluster_size() > first; });
  }
  if (grid_.print_ && !grid_.printed_.empty()) grid_.print_(grid_.printed());
  if (error_) std::rethrow_exception(error_);
  complete_ = !grid_.stopped_;
  return true;
}

bool GridRun::run_in_turns(const std::function<bool()>& stop, uint64_t most) {
  Worker& worker = *workers_[0];
  const uint64_t& executed = worker.executor.warp_instructions;
  const uint64_t end = pause_after(executed, most), begun = part_.begun.size();
  const uint64_t longest = std::max(shortest_turn, most / turns_of_part);
  StopQuestion question(stop);
  const bool cooperative = grid_.config().cooperative;
  const size_t resident =
      cooperative ? clusters() : std::max<size_t>(1, grid_.machine().resident_ctas / grid_.cluster_size());
  // Every wait for another CTA costs the turns of those that wait. Turns therefore start short, and grow as
  // long as a whole round finishes no cluster.
  while (complete_ && (next_ < clusters() || !active_.empty())) {
    if (executed >= end) return false;
    if (active_.empty() || next_ < begun || (next_ < clusters() && active_.size() < resident))
      active_.emplace_back(grid_, part_, next_++);
    else if (active_.size() > 1)
      std::rotate(active_.begin(), active_.begin() + 1, active_.end());
    bool finished = false;
    try {
      finished = run_turn(worker, active_.back(), std::min(turn_, longest));
    } catch (const Grid::Stopped&) {
      complete_ = false;
      break;
    }
    if (finished) {
      ++finished_;
      active_.pop_back();
      last_finished_ = executed;
      of_round_ = 0;
      turn_ = active_.empty() && next_ >= begun ? cta_turn : shortest_turn;
    } else if (active_.size() == 1) {
      turn_ = shortest_turn;
    } else if (++of_round_ > active_.size()) {
      of_round_ = 0;
      if (!cooperative) turn_ = std::min(cta_turn, 2 * turn_);
    }
    const uint64_t since = executed - last_finished_;
    complete_ = !question.ask(executed) &&
                !(part_.may_wait && since > patience + active_.size() * patience_of_cluster);
  }
  return true;
}

}  // namespace simt::functional
