#include "machine/grid.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "machine/executor.hpp"
#include "machine/grid_run.hpp"
#include "machine/launch_state.hpp"
#include "machine/launch_values.hpp"
#include "machine/observer.hpp"
#include "machine/round_up.hpp"

namespace simt::functional {
namespace {

/// Bytes in which shared memory is allocated on sm_80 and later (CUDA Occupancy Calculator).
constexpr uint32_t shared_unit = 128;
/// Bytes a CTA that the system reserves since compute capability 8.0 (CUDA C++ Programming Guide).
constexpr uint32_t system_shared = 1024;

[[noreturn]] void refuse(const FunctionCode& kernel, const std::string& kind, const std::string& what) {
  ProgramFault fault("kernel `" + kernel.name + "`: " + what);
  fault.kind = kind;
  fault.kernel = kernel.name;
  throw fault;
}

}  // namespace

Grid::Grid(const Program& program, uint32_t function, LaunchConfig config, DeviceMemory& memory,
           const Machine& machine, PrintSink print)
    : program_(program),
      function_(function),
      config_(std::move(config)),
      memory_(memory),
      machine_(machine),
      print_(std::move(print)) {
  const FunctionCode& k = kernel();
  for (const uint32_t n : config_.grid)
    if (n == 0) refuse(k, "invalid launch", "a grid dimension is 0");
  for (const uint32_t n : config_.block)
    if (n == 0) refuse(k, "invalid launch", "a block dimension is 0");
  const uint64_t threads = uint64_t{config_.block[0]} * config_.block[1] * config_.block[2];
  if (threads > machine.threads_per_cta)
    refuse(k, "invalid launch",
           "a block of " + std::to_string(threads) + " threads; this GPU allows " +
               std::to_string(machine.threads_per_cta));
  threads_ = static_cast<uint32_t>(threads);
  const auto& required = k.required_threads;
  if (required[0] && (config_.block[0] != required[0] || config_.block[1] != std::max(1u, required[1]) ||
                      config_.block[2] != std::max(1u, required[2])))
    refuse(k, "invalid launch", "its block must have the size that .reqntid gives");
  const uint64_t most = uint64_t{std::max(1u, k.max_threads[0])} * std::max(1u, k.max_threads[1]) *
                        std::max(1u, k.max_threads[2]);
  if (k.max_threads[0] && threads > most)
    refuse(k, "invalid launch",
           "a block of " + std::to_string(threads) + " threads; it was compiled for at most " +
               std::to_string(most) + " (__launch_bounds__)");
  if (k.cluster[0] && cluster_size() == 1)
    for (int i = 0; i < 3; ++i) config_.cluster[i] = std::max(1u, k.cluster[i]);
  for (int i = 0; i < 3; ++i)
    if (config_.cluster[i] == 0 || config_.grid[i] % config_.cluster[i] != 0)
      refuse(k, "invalid launch", "the grid is not a multiple of the cluster");
  if (cluster_size() > 16) refuse(k, "invalid launch", "a cluster of more than 16 CTAs");
  const uint64_t shared = uint64_t{k.shared_bytes} + config_.dynamic_shared_bytes;
  if (shared > machine.shared_bytes_per_cta)
    refuse(k, "too much shared memory",
           std::to_string(shared) + " bytes of shared memory a block (" + std::to_string(k.shared_bytes) +
               " of them static); this GPU has " + std::to_string(machine.shared_bytes_per_cta));
  shared_bytes_ = k.reserved_shared + static_cast<uint32_t>(shared);
  // ptxas reads beyond arrays, as far as hardware allocates.
  if (program.is_machine_code()) shared_bytes_ = round_up(shared_bytes_, shared_unit);
  if (program.asks_for_reserved_shared) shared_bytes_ = round_up(shared_bytes_, shared_unit);
  own_shared_bytes_ = shared_bytes_;
  if (program.asks_for_reserved_shared) shared_bytes_ += system_shared;
  // The limit is for calls of which nobody knows how deep they go.
  local_bytes_ = k.deepest_stack == UINT32_MAX ? k.stack_bytes + machine.stack_limit : k.deepest_stack;
  local_bytes_ = (local_bytes_ + 15u) & ~15u;
  if (config_.parameters.size() != k.parameter_bytes)
    refuse(k, "invalid launch",
           std::to_string(config_.parameters.size()) + " bytes of arguments, expected " +
               std::to_string(k.parameter_bytes));
  cta_count_ = uint64_t{config_.grid[0]} * config_.grid[1] * config_.grid[2];

  // Parameters are aligned in constant bank 0, which is so at a multiple of the largest alignment.
  if (k.constants) parameter_gap_ = k.constants->parameters % DeviceMemory::alignment;
  parameters_ = memory.allocate(parameter_room(), "parameters of " + k.name, Owner::Launch);
  if (!parameters_) refuse(k, "out of memory", "no room for its parameters");
  parameters_ += parameter_gap_;
  std::copy(config_.parameters.begin(), config_.parameters.end(), memory.host(parameters_));
  if (config_.cooperative) {
    constexpr uint64_t bytes = 8;
    workspace_ = memory.allocate(bytes, "grid barrier of " + k.name, Owner::Launch);
    if (!workspace_) refuse(k, "out of memory", "no room for its grid barrier");
    std::fill_n(memory.host(workspace_), bytes, std::byte{0});
  }

  if (k.constants) fill_constants(*k.constants);

  constexpr size_t lines = thread_place::bytes / sizeof(Line);
  thread_banks_.resize(lines * warps_per_cta());
  for (uint32_t w = 0; w < warps_per_cta(); ++w) {
    auto* bank = reinterpret_cast<uint32_t*>(thread_bank(w));
    const auto row = [&](Place p) { return bank + (p - place::threads) / 4; };
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
      const uint32_t t = w * warp_lanes + lane, x = config_.block[0], y = config_.block[1];
      row(thread_place::tid_x)[lane] = t % x;
      row(thread_place::tid_y)[lane] = t / x % y;
      row(thread_place::tid_z)[lane] = t / x / y;
      row(thread_place::laneid)[lane] = lane;
      row(thread_place::lanemask_eq)[lane] = 1u << lane;
      row(thread_place::lanemask_lt)[lane] = (1u << lane) - 1;
      row(thread_place::lanemask_le)[lane] = (2u << lane) - 1;
      row(thread_place::lanemask_ge)[lane] = ~((1u << lane) - 1);
      row(thread_place::lanemask_gt)[lane] = ~((2u << lane) - 1);
      row(thread_place::warpid)[lane] = w;
    }
  }
}

void Grid::fill_constants(const ConstantBanks& banks) {
  for (uint32_t b = 0; b < ConstantBanks::count; ++b) {
    const ConstantBanks::Bank& bank = banks.banks[b];
    constant_banks_[b] = bank.bytes;
    constant_addresses_[b] = bank.address;
    if (bank.address) std::copy_n(memory_.host(bank.address), bank.bytes.size(), constant_banks_[b].begin());
  }
  std::vector<std::byte>& first = constant_banks_[0];
  first.resize(std::max<size_t>(first.size(), banks.parameters + config_.parameters.size()));
  std::copy(config_.parameters.begin(), config_.parameters.end(), first.begin() + banks.parameters);

  const std::vector<ConstantWord>& words = kernel().constant_words;
  launch_bank_.resize(words.size() * place::register_bytes / sizeof(Line));
  auto* row = reinterpret_cast<uint32_t*>(launch_bank_.data());
  for (const ConstantWord& word : words) {
    uint32_t value = 0;
    if (word.bank == launch_value_bank) {
      value = value_of(*this, static_cast<LaunchValue>(word.offset));
    } else if (const std::vector<std::byte>& bank = constant_banks_[word.bank]; word.offset < bank.size()) {
      // Of a last word that the parameters do not fill, the rest is zero.
      std::memcpy(&value, bank.data() + word.offset, std::min(sizeof value, bank.size() - word.offset));
    }
    std::fill_n(row, warp_lanes, value);
    row += warp_lanes;
  }
}

Grid::~Grid() {
  if (observer_) observer_->ends(*this);
  memory_.free(parameters_ - parameter_gap_, Owner::Launch);
  if (workspace_) memory_.free(workspace_, Owner::Launch);
}

std::byte* Grid::thread_bank(uint32_t warp) {
  return reinterpret_cast<std::byte*>(thread_banks_.data() + warp * (thread_place::bytes / sizeof(Line)));
}

std::array<uint32_t, 3> Grid::position(uint64_t linear_index) const {
  // CTAs of a cluster are numbered consecutively.
  const auto& g = config_.grid;
  const auto& c = config_.cluster;
  const uint64_t cluster = linear_index / cluster_size(), rank = linear_index % cluster_size();
  const uint64_t gx = g[0] / c[0], gy = g[1] / c[1];
  return {static_cast<uint32_t>(cluster % gx * c[0] + rank % c[0]),
          static_cast<uint32_t>(cluster / gx % gy * c[1] + rank / c[0] % c[1]),
          static_cast<uint32_t>(cluster / gx / gy * c[2] + rank / c[0] / c[1])};
}

std::vector<std::unique_ptr<Cta>> Grid::make_cluster(uint64_t number) {
  if (has_restored_) {
    const std::lock_guard lock(restored_mutex_);
    if (auto restored = restored_.extract(number)) return std::move(restored.mapped());
  }
  auto cluster = std::make_shared<Cluster>();
  std::vector<std::unique_ptr<Cta>> ctas;
  for (uint32_t rank = 0; rank < cluster_size(); ++rank) {
    ctas.push_back(std::make_unique<Cta>(*this, number * cluster_size() + rank, cluster, rank));
    cluster->ctas.push_back(ctas.back().get());
  }
  return ctas;
}

std::vector<std::unique_ptr<Cta>> Grid::make_cluster(uint64_t number,
                                                     std::vector<std::unique_ptr<Cta>> finished) {
  if (has_restored_ || finished.size() != 1) return make_cluster(number);
  finished[0]->restart(number);
  return finished;
}

void Grid::print(const Context& context, const std::string& text) {
  const std::lock_guard lock(print_mutex_);
  if (stop_ && *stop_ && ++prints_ % 64 == 0 && (*stop_)()) stopped_ = true;
  if (stopped_) throw Stopped{};
  if (keeps_printed_)
    printed_.push_back({context.cycle, context.cta->linear_index(), text});
  else if (print_)
    print_(text);
}

std::string Grid::printed() const {
  const std::lock_guard lock(print_mutex_);
  std::vector<const Printed*> order;
  for (const Printed& p : printed_) order.push_back(&p);
  std::stable_sort(order.begin(), order.end(), [](const Printed* a, const Printed* b) {
    return std::pair{a->cycle, a->cta} < std::pair{b->cycle, b->cta};
  });
  std::string all;
  for (const Printed* p : order) all += p->text;
  return all;
}

Grid::Counts Grid::run(uint32_t threads, const std::function<bool()>& stop) {
  Part all;
  all.count = cluster_count() - first_cluster();
  all.number = [this](uint64_t i) { return first_cluster() + i; };
  return run(all, threads, stop);
}

std::vector<std::byte> Grid::run_to(const Point& point, uint32_t threads, const std::function<bool()>& stop,
                                    Counts& counts) {
  Part before;
  before.count = point.cta / cluster_size() - first_cluster();
  before.number = [this](uint64_t i) { return first_cluster() + i; };
  before.may_wait = true;
  if (before.count > 0) counts = run(before, threads, stop);
  if (!counts.complete) return {};
  Executor executor(*this);
  std::vector<std::vector<std::unique_ptr<Cta>>> begun;
  for (uint64_t i = 0; i < point.partial; ++i) {
    begun.push_back(make_cluster(point.cta + i));
    Cta& cta = *begun.back()[0];
    std::vector<uint64_t> left(cta.warps().size(), point.instructions);
    for (bool progress = true; progress;) {
      progress = false;
      for (Warp& warp : cta.warps()) {
        uint64_t& rest = left[warp.number()];
        if (warp.finished() || rest == 0) continue;
        const uint64_t start = executor.warp_instructions, completed = cta.barriers_completed;
        executor.run(cta, warp, rest);
        rest -= std::min(rest, executor.warp_instructions - start);
        progress |= executor.warp_instructions != start || cta.barriers_completed != completed;
      }
    }
  }
  counts.warp_instructions += executor.warp_instructions;
  counts.thread_instructions += executor.thread_instructions;
  return launch_state::save(*this, begun);
}

void Grid::restore(const std::vector<std::byte>& state) {
  const uint64_t parameters = launch_state::parameters(state);
  if (parameters != parameters_) {  // pointers to them may be in registers
    if (!memory_.allocate_at(parameters - parameter_gap_, parameter_room(), "parameters of " + kernel().name,
                             Owner::Launch))
      throw std::invalid_argument("its parameters cannot be where they were: memory is too small, or in use");
    memory_.free(parameters_ - parameter_gap_, Owner::Launch);
    parameters_ = parameters;
    std::copy(config_.parameters.begin(), config_.parameters.end(), memory_.host(parameters_));
  }
  for (auto& cluster : launch_state::load(*this, state)) {
    const uint64_t number = cluster[0]->linear_index() / cluster_size();
    restored_[number] = std::move(cluster);
  }
  has_restored_ = true;
}

Grid::Counts Grid::run(const Part& part, uint32_t threads, const std::function<bool()>& stop) {
  GridRun all(*this, part, threads);
  all.advance(stop);
  return all.counts();
}

}  // namespace simt::functional
