#include "machine/source.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>

#include "isa/classify.hpp"
#include "isa/paired_warps.hpp"
#include "machine/block_map.hpp"
#include "machine/executor.hpp"
#include "machine/stop_on_error.hpp"
#include "ptx/stored_parameters.hpp"

namespace simt::functional {
namespace {

/// Thrown by an access that must wait for an outstanding one; it has had no effect yet.
struct Overlap {};

constexpr uint64_t never = ~uint64_t{0};

/// Counts deferred accesses by a hash of their addresses: no false negatives.
class AddressFilter {
 public:
  void add(uint64_t address) { ++counts_[slot(address)]; }
  void remove(uint64_t address) { --counts_[slot(address)]; }
  bool may_hold(uint64_t address) const { return counts_[slot(address)] != 0; }

 private:
  static constexpr uint32_t slots = 2048;
  /// In units of 16 bytes, the size of a lane's largest access.
  static size_t slot(uint64_t address) { return (address >> 4) * 0x9e3779b97f4a7c15ull >> 53; }
  std::array<uint16_t, slots> counts_{};
};

}  // namespace

/// Executes one CTA as the timing engine fetches its instructions.
class ExecutedSource::Stream : public CtaStream, private AccessGate {
 public:
  Stream(ExecutedSource& source, Cta& cta, std::shared_ptr<std::vector<std::unique_ptr<Cta>>> owner)
      : source_(source),
        owner_(std::move(owner)),
        cta_(cta),
        executor_(source.grid_),
        warps_(cta.warps().size()),
        addresses_(std::make_unique_for_overwrite<LaneAddresses[]>(warps_.size() * address_slots)) {
    for (WarpState& w : warps_) w.record.gate = this;
  }

  uint32_t warps() const override { return static_cast<uint32_t>(warps_.size()); }
  void placed(uint32_t sm) override { cta_.sm = sm; }

  Next next(uint32_t number, DynamicRecord& record, uint64_t now) override {
    WarpState& w = warps_[number];
    Warp& warp = cta_.warps()[number];
    now_ = now;
    while (w.next == w.end) {
      if (warp.finished()) return Next::End;
      Warp::Split* split = warp.current();
      w.blocked = !split;
      if (!split || must_wait(w, *split)) return Next::NotYet;
      Executor::Step step;
      try {
        step = executor_.step(cta_, warp, &w.record, &deferred_, now);
      } catch (const Overlap&) {
        return Next::NotYet;
      }
      woken_ |= warp.finished();
      if (!step.executed) continue;
      const Lowering::Range& range = source_.lowering_->of_op[step.op];
      w.next = range.first;
      w.end = range.first + range.count;
      w.access = range.access == UINT32_MAX ? UINT32_MAX : range.first + range.access;
      w.mask = step.mask;
      w.ticket = 0;
      w.barrier = executor_.last_barrier();
      w.sleep = executor_.last_sleep();
      if (deferred_.perform) w.ticket = defer(number, step, deferred_);
    }
    const uint32_t index = w.next++;
    ++w.given;
    record = DynamicRecord{};
    record.static_index = index;
    record.mask = mask_of(w, index);
    if (index == w.access) {
      const StaticInstruction& s = source_.instructions_[index];
      if (s.is_barrier()) {
        record.base = w.barrier.id;
        record.stride = w.barrier.threads;
      } else if (!w.record.nothing && w.record.mask) {
        record.ticket = w.ticket;
        give_addresses(number, s, record);
      }
    } else if (w.access == UINT32_MAX) {
      record.nanoseconds = w.sleep;
      record.ticket = w.ticket;  // of a clock read, which accesses no memory
      w.ticket = 0;
    }
    return Next::Record;
  }

  std::vector<Arrival> arrivals() const override {
    std::vector<Arrival> found;
    if (!source_.resumed_) return found;
    for (const Cta::Arrived& a : cta_.arrived()) found.push_back({a.warp, a.barrier, a.threads, a.waits});
    return found;
  }

  bool take_woken() override {
    const bool woken = woken_ || barriers_seen_ != cta_.barriers_completed;
    woken_ = false;
    barriers_seen_ = cta_.barriers_completed;
    return woken;
  }

  Awaits awaits(uint32_t number) const override {
    const WarpState& w = warps_[number];
    if (!w.blocked) return Awaits::Value;
    return w.barrier.warpgroup ? Awaits::WarpGroup : Awaits::Warps;
  }

  /// Performs, in execution order, accesses that are waiting for their issue.
  void perform_outstanding() {
    std::vector<Pending*> outstanding;
    for (Pending& p : pending_)
      if (p.used && !p.performed) outstanding.push_back(&p);
    std::sort(outstanding.begin(), outstanding.end(),
              [](const Pending* a, const Pending* b) { return a->number < b->number; });
    for (Pending* p : outstanding) {
      Warp& warp = cta_.warps()[p->warp];
      if (p->access.of_clock && p->visible == never) p->access.value[0][0] = now_;
      executor_.perform(cta_, warp, p->access, warp.frame_at(p->frame), p->stack);
      p->performed = true;
    }
  }
  /// Instructions executed but not yet fetched.
  InstructionCounts not_given() const {
    InstructionCounts sum;
    for (const WarpState& w : warps_)
      for (uint32_t index = w.next; index < w.end; ++index)
        sum += {1, static_cast<uint64_t>(std::popcount(mask_of(w, index)))};
    return sum;
  }
  const std::vector<std::unique_ptr<Cta>>& cluster() const { return *owner_; }
  uint32_t rank() const { return cta_.rank(); }

  void issued(uint32_t, uint32_t ticket, uint64_t now, uint64_t visible) override {
    Pending& p = pending_[ticket - 1];
    p.visible = visible;
    if (p.access.of_clock) p.access.value[0][0] = now;
  }

  void perform(uint32_t number, uint32_t ticket) override {
    Pending& p = pending_[ticket - 1];
    Warp& warp = cta_.warps()[number];
    executor_.perform(cta_, warp, p.access, warp.frame_at(p.frame), p.stack);
    p.performed = true;
  }

  std::string waits_for(uint32_t number) const override {
    const WarpState& w = warps_[number];
    const Warp& warp = cta_.warps()[number];
    std::string text;
    for (const Warp::Split& split : warp.splits()) {
      const bool barrier = split.state == Warp::State::Barrier || split.state == Warp::State::Arrival;
      if (!text.empty()) text += "; ";
      if (warp.splits().size() > 1) text += std::to_string(std::popcount(split.mask)) + " of its lanes ";
      text += (barrier                                  ? "at a barrier: "
               : split.state == Warp::State::Collective ? "for lanes named by its member mask: "
               : w.waits_for_value                      ? "for a value: "
                                                        : "at: ") +
              source_.grid_.program().text(split.waits_at());
    }
    if (const uint32_t exited = warp.lanes() & ~warp.alive())
      text += "; " + std::to_string(std::popcount(exited)) + " of its lanes have exited";
    return text;
  }

 private:
  /// The lowest free slots are reused first, to stay in the host's cache.
  static constexpr size_t address_slots = CtaStream::lookahead + 1;
  using LaneAddresses = std::array<uint64_t, warp_lanes>;

  /// A deferred access, from its execution until its effect is visible.
  struct Pending {
    DeferredAccess access;
    uint32_t warp = 0, frame = 0, stack = 0;
    uint64_t number = 0;  ///< in execution order
    uint64_t visible = never;
    bool performed = false, used = false;
  };

  struct WarpState {
    uint32_t next = 0, end = 0, access = UINT32_MAX;
    uint64_t mask = 0;
    uint32_t ticket = 0;
    BarrierRequest barrier;
    uint32_t sleep = 0;
    AccessRecord record;
    std::vector<uint32_t> waits;  ///< tickets of accesses that write registers
    bool waits_for_value = false;
    bool blocked = false;  ///< all its lanes wait, at barriers or for each other
    uint64_t given = 0;    ///< records fetched so far
    /// Per slot of addresses: the number of records after which it may be reused.
    std::array<uint64_t, address_slots> addresses_until{};
    std::array<std::vector<uint64_t>, address_slots> bulk_parts;  ///< per slot, instead of addresses
  };

  /// Whether the warp's next instruction depends on an access that has not returned.
  bool must_wait(WarpState& w, const Warp::Split& split) {
    w.waits_for_value = false;
    if (w.waits.empty()) return false;
    std::erase_if(w.waits, [&](uint32_t ticket) { return visible(ticket); });
    if (w.waits.empty()) return false;
    const Program& program = source_.grid_.program();
    const Op& op = program.code[split.pc];
    const Lowering& lowering = *source_.lowering_;
    bool needs = op.control == Control::Call || op.control == Control::Return ||
                 op.control == Control::Exit || op.orders_memory;
    const auto& touches = lowering.reads_of_op[split.pc];
    for (size_t k = 0; k < w.waits.size() && !needs; ++k) {
      const Pending& p = pending_[w.waits[k] - 1];
      const Op& access = *p.access.op;
      if (access.orders_memory) needs = true;  // an acquire: what follows must wait for it
      const auto& writes = lowering.writes_of_op[static_cast<size_t>(&access - program.code.data())];
      for (uint32_t a = 0; a < writes.count && !needs; ++a)
        for (uint32_t b = 0; b < touches.count && !needs; ++b)
          needs = lowering.touched[writes.first + a] == lowering.touched[touches.first + b];
    }
    w.waits_for_value = needs;
    return needs;
  }

  /// Lanes of record `index` of the warp.
  uint64_t mask_of(const WarpState& w, uint32_t index) const {
    if (index != w.access || source_.instructions_[index].is_barrier()) return w.mask;
    if (w.record.nothing) return 0;
    return w.record.mask ? w.record.mask : w.mask;
  }

  bool visible(uint32_t ticket) const {
    const Pending& p = pending_[ticket - 1];
    return !p.used || (p.performed && p.visible <= now_);
  }

  uint32_t defer(uint32_t number, const Executor::Step& step, const DeferredAccess& access) {
    uint32_t slot = 0;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      slot = static_cast<uint32_t>(pending_.size());
      pending_.emplace_back();
    }
    Pending& p = pending_[slot];
    p = Pending{};
    p.access = access;
    p.warp = number;
    p.frame = step.frame;
    p.stack = step.stack;
    p.number = deferred_so_far_++;
    p.used = true;
    ++outstanding_;
    for (uint32_t i = 0; i < warp_lanes; ++i)
      if (!access.of_clock && access.mask >> i & 1) filter_.add(access.address[i]);
    if (source_.lowering_->writes_of_op[step.op].count > 0 || access.op->orders_memory)
      warps_[number].waits.push_back(slot + 1);
    if (outstanding_ > 256) clean();
    return slot + 1;
  }

  /// Discards accesses whose effect is visible by now.
  void clean() {
    for (uint32_t slot = 0; slot < pending_.size(); ++slot) {
      Pending& p = pending_[slot];
      if (!p.used || !visible(slot + 1)) continue;
      for (uint32_t i = 0; i < warp_lanes; ++i)
        if (!p.access.of_clock && p.access.mask >> i & 1) filter_.remove(p.access.address[i]);
      for (WarpState& w : warps_) std::erase(w.waits, slot + 1);
      p.used = false;
      free_.push_back(slot);
      --outstanding_;
    }
  }

  /// Called before a weak access to global memory takes effect: it must wait for an earlier access to the
  /// same address.
  void check(const AccessRecord& record) override {
    if (outstanding_ == 0) return;
    const auto overlaps = [&] {
      for (uint32_t rest = record.mask; rest; rest &= rest - 1)
        if (filter_.may_hold(record.address[static_cast<size_t>(std::countr_zero(rest))])) return true;
      return false;
    };
    if (!overlaps()) return;
    clean();
    if (overlaps()) throw Overlap{};
  }

  void give_addresses(uint32_t number, const StaticInstruction& s, DynamicRecord& record) {
    WarpState& w = warps_[number];
    size_t slot = 0;
    while (w.addresses_until[slot] > w.given) ++slot;
    w.addresses_until[slot] = w.given + address_slots;
    record.mbarrier = w.record.mbarrier;
    record.cache_policy = w.record.policy;
    if (w.record.bulk) {
      std::vector<uint64_t>& parts = w.bulk_parts[slot];
      parts.swap(w.record.bulk_parts);
      record.bulk_bytes = w.record.bulk_bytes;
      record.bulk_count = static_cast<uint32_t>(parts.size());
      record.base = parts.empty() ? 0 : parts[0];
      record.deltas = parts.empty() ? nullptr : reinterpret_cast<const uint8_t*>(parts.data());
      return;
    }
    LaneAddresses& addresses = addresses_[number * address_slots + slot];
    const uint64_t begin = s.space == MemorySpace::Local ? window::local : 0;
    if (w.record.mask == ~0u) {
      for (uint32_t i = 0; i < warp_lanes; ++i) addresses[i] = w.record.address[i] - begin;
    } else {
      uint32_t count = 0;
      for (uint32_t rest = w.record.mask; rest; rest &= rest - 1)
        addresses[count++] = w.record.address[static_cast<size_t>(std::countr_zero(rest))] - begin;
    }
    record.base = addresses[0];
    record.deltas = reinterpret_cast<const uint8_t*>(addresses.data());
  }

  ExecutedSource& source_;
  std::shared_ptr<std::vector<std::unique_ptr<Cta>>> owner_;
  Cta& cta_;
  Executor executor_;
  std::vector<WarpState> warps_;
  std::unique_ptr<LaneAddresses[]> addresses_;  ///< the slots of each warp
  std::vector<Pending> pending_;
  std::vector<uint32_t> free_;
  uint32_t outstanding_ = 0;
  uint64_t deferred_so_far_ = 0;
  AddressFilter filter_;
  DeferredAccess deferred_;  ///< of the current step
  uint64_t now_ = 0;
  bool woken_ = false;
  uint64_t barriers_seen_ = 0;
};

constexpr uint64_t aligned = 4096;  ///< bytes: allocations with the same address modulo this are alike

ExecutedSource::ExecutedSource(const Program& program, uint32_t function, LaunchConfig config,
                               DeviceMemory& memory, const Machine& machine,
                               std::shared_ptr<const Lowering> lowering, const OpcodeTable& table,
                               Description description)
    : owner_(std::move(description.owner)),
      lowering_(std::move(lowering)),
      poll_(std::move(description.poll)),
      prepare_(std::move(description.prepare)),
      prepare_for_time_(std::move(description.prepare_for_time)),
      grid_(program, function, std::move(config), memory, machine, nullptr) {
  grid_.keep_printed();
  if (prepare_) prepare_(grid_);
  if (!description.state.empty()) {
    grid_.restore(description.state);
    resumed_ = true;
  }
  const LaunchConfig& c = grid_.config();
  launch_.id = c.id;
  launch_.name = description.name;
  launch_.grid = {c.grid[0], c.grid[1], c.grid[2]};
  launch_.block = {c.block[0], c.block[1], c.block[2]};
  launch_.shared_bytes = grid_.kernel().shared_bytes + c.dynamic_shared_bytes;
  launch_.registers_per_thread = description.registers_per_thread;
  launch_.sm_version = description.sm_version;
  launch_.stream = description.stream;
  launch_.shared_base = window::shared;
  launch_.local_base = window::local;
  launch_.window_bytes = uint64_t{1} << 32;
  instructions_ = classify(lowering_->instructions, lowering_->opcodes, table, unknown_);
  for (size_t i = 0; i < instructions_.size(); ++i) {
    StaticInstruction& s = instructions_[i];
    const RawInstruction& raw = lowering_->instructions[i];
    // Registers are listed individually; widths derived from the opcode would add more.
    for (int k = 0; k < s.destination_count; ++k) s.destinations[k].width = raw.destinations[k].width;
    for (int k = 0; k < s.source_count; ++k) s.sources[k].width = raw.sources[k].width;
    if (raw.immediate < 0 && (s.operation == Operation::Barrier || s.operation == Operation::BarrierArrive))
      s.immediate = -1;
  }
}

ExecutedSource::ExecutedSource(const ExecutedSource& other, std::shared_ptr<DeviceMemory> memory)
    : owner_(other.owner_),
      memory_(std::move(memory)),
      lowering_(other.lowering_),
      poll_(other.poll_),
      prepare_(other.prepare_),
      prepare_for_time_(other.prepare_for_time_),
      grid_(other.grid_.program(), other.grid_.function(), other.grid_.config(), *memory_,
            other.grid_.machine(), nullptr),
      launch_(other.launch_),
      instructions_(other.instructions_) {
  grid_.keep_printed();
  if (prepare_) prepare_(grid_);
  if (prepare_for_time_ && leaves_no_values()) prepare_for_time_(grid_);
}

ExecutedSource::~ExecutedSource() = default;

std::shared_ptr<InstructionSource> ExecutedSource::without_effect() const {
  return std::shared_ptr<InstructionSource>(new ExecutedSource(*this, grid_.memory().copy_on_write()));
}

namespace {

/// Whether code of a module may access a variable of global memory.
bool accesses_variables(const ptx::Module& module) {
  const auto is_global = [](const ptx::Variable& v) { return v.space == ptx::Space::Global; };
  const auto points = [](const ptx::Variable& v) { return !v.relocations.empty(); };
  if (std::ranges::any_of(module.variables, points)) return std::ranges::any_of(module.variables, is_global);
  const auto names_global = [&](const ptx::Operand& o) {
    return o.kind == ptx::OperandKind::Variable && !o.local && is_global(module.variables[o.index]);
  };
  return std::ranges::any_of(module.functions, [&](const ptx::Function& f) {
    return std::ranges::any_of(f.operands, names_global);
  });
}

}  // namespace

bool ExecutedSource::leaves_no_values() const {
  const Program& program = grid_.program();
  if (program.is_machine_code() || !grid_.memory().has_unknown()) return false;
  const ptx::Module& module = program.module;
  const auto is_of_system = [](const ptx::Function& f) { return !f.defined; };  // it may print or allocate
  const auto writes_surface = [](const ptx::Mnemonic& m) {
    return m.opcode == "sust" || m.opcode == "sured";
  };
  if (accesses_variables(module) || std::ranges::any_of(module.functions, is_of_system) ||
      std::ranges::any_of(module.mnemonics, writes_surface))
    return false;
  return std::ranges::none_of(buffers(),
                              [&](const Buffer& b) { return b.stored && holds_values(b.address); });
}

std::string ExecutedSource::signature() const {
  if (!leaves_no_values()) return {};
  const LaunchConfig& c = grid_.config();
  std::ostringstream text;
  text << static_cast<const void*>(&grid_.program()) << ' ' << grid_.function() << ' '
       << c.dynamic_shared_bytes << ' ' << c.first_cta;
  for (const auto* sizes : {&c.grid, &c.block, &c.cluster})
    for (const uint32_t n : *sizes) text << ' ' << n;
  std::map<uint64_t, size_t> numbers;  // of allocations, in the order of their first use
  for (size_t offset = 0; offset < c.parameters.size(); offset += 8) {
    uint64_t word = 0;
    std::memcpy(&word, c.parameters.data() + offset, std::min<size_t>(8, c.parameters.size() - offset));
    const Allocation* allocation = grid_.memory().find(word, 1);
    if (!allocation || allocation->owner != Owner::Host) {
      text << ' ' << word;
      continue;
    }
    if (holds_values(word)) return {};
    const size_t number = numbers.emplace(allocation->address, numbers.size()).first->second;
    text << " @" << number << '+' << word - allocation->address << '/' << allocation->size << '%'
         << allocation->address % aligned;
  }
  return text.str();
}

bool ExecutedSource::holds_values(uint64_t address) const {
  const Allocation* allocation = grid_.memory().find(address, 1);
  return !allocation || !allocation->is_unbacked;
}

std::unique_ptr<CtaStream> ExecutedSource::open_cta(uint64_t ordinal) {
  const std::lock_guard lock(mutex_);
  const uint32_t size = grid_.cluster_size();
  const uint64_t number = grid_.first_cluster() + ordinal / size;
  auto& cluster = clusters_[number];
  if (!cluster) cluster = std::make_shared<std::vector<std::unique_ptr<Cta>>>(grid_.make_cluster(number));
  auto stream = std::make_unique<Stream>(*this, *(*cluster)[ordinal % size], cluster);
  if (ordinal % size == size - 1) clusters_.erase(number);
  return stream;
}

uint32_t ExecutedSource::lane_addresses(const DynamicRecord& record, uint64_t* out) const {
  if (!record.deltas) return 0;
  const auto* addresses = reinterpret_cast<const uint64_t*>(record.deltas);
  const uint32_t count =
      record.bulk_count ? record.bulk_count : static_cast<uint32_t>(std::popcount(record.mask));
  std::copy_n(addresses, count, out);
  return count;
}

std::vector<InstructionSource::Buffer> ExecutedSource::buffers() const {
  std::vector<Buffer> found;
  const std::vector<std::byte>& parameters = grid_.config().parameters;
  const Program& program = grid_.program();
  const std::vector<bool> stored =
      program.is_machine_code()
          ? grid_.kernel().stored_parameters
          : ptx::stored_parameters(program.module.functions[grid_.kernel().ptx], program.module);
  for (size_t offset = 0; offset + 8 <= parameters.size(); offset += 8) {
    uint64_t address;
    std::memcpy(&address, parameters.data() + offset, 8);
    const Allocation* allocation = grid_.memory().find(address, 1);
    if (allocation && allocation->owner == Owner::Host)
      found.push_back({address, allocation->address + allocation->size - address,
                       offset / 8 < stored.size() && stored[offset / 8]});
  }
  std::stable_partition(found.begin(), found.end(), [](const Buffer& b) { return !b.stored; });
  return found;
}

std::vector<uint32_t> ExecutedSource::leaders() {
  return functional::leaders(grid_.program(), *lowering_);
}

void ExecutedSource::run_part(Grid& grid, Grid::Part part, const BasicBlocks* blocks, uint32_t threads,
                              BlockCounts& result) {
  result.warps_per_cta = grid.warps_per_cta();
  std::optional<BlockMap> map;
  if (blocks) {
    map.emplace(*blocks, *lowering_);
    result.blocks = blocks->count();
    result.counts.resize((part.begun.size() + part.count) * grid.cluster_size() * result.warps_per_cta *
                         result.blocks);
    part.blocks = &*map;
    part.block_counts = result.counts.data();
    part.block_count = result.blocks;
  }
  StopOnError stop(poll_);
  const Grid::Counts found = grid.run(part, threads, stop.question());
  stop.rethrow();
  result.complete = found.complete;
  if (part.lowering) {
    result.executed = found.timed;
    result.thread_instructions = found.timed.thread_instructions;
    result.warp_instructions = found.timed.warp_instructions;
    result.accesses = found.accesses;
  }
}

BlockCounts ExecutedSource::preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                                    uint32_t threads) {
  const auto memory = grid_.memory().copy_on_write();
  Grid grid(grid_.program(), grid_.function(), grid_.config(), *memory, grid_.machine(), nullptr);
  if (prepare_) prepare_(grid);
  if (prepare_for_time_ && leaves_no_values()) prepare_for_time_(grid);
  const uint32_t size = grid.cluster_size();
  Grid::Part part;
  part.count = ordinals.size() / size;
  part.number = [&](uint64_t i) { return grid_.first_cluster() + ordinals[i * size] / size; };
  part.may_wait = true;
  BlockCounts counts;
  try {
    run_part(grid, std::move(part), &blocks, threads, counts);
  } catch (const ProgramFault&) {
    counts.complete = false;
  }
  return counts;
}

BlockCounts ExecutedSource::execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                                    std::vector<Footprint>* footprints) {
  const uint32_t size = grid_.cluster_size();
  Grid::Part part;
  if (footprints) {
    footprints->resize(end - first);
    for (Footprint& footprint : *footprints) footprint.clear();
    part.follow = {&launch_, &instructions_, footprints};
  }
  part.count = (end - first) / size;
  part.number = [&](uint64_t i) { return grid_.first_cluster() + first / size + i; };
  part.cycle = never;
  part.lowering = lowering_.get();
  part.may_wait = end < cta_count();
  BlockCounts counts;
  run_part(grid_, std::move(part), blocks, threads, counts);
  if (!counts.complete)
    throw ProgramFault("kernel `" + launch_.name + "`: blocks " + std::to_string(first) + " to " +
                       std::to_string(end - 1) + " wait for others");
  return counts;
}

BlockCounts ExecutedSource::finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                                   const BasicBlocks* blocks, uint32_t threads) {
  const uint32_t size = grid_.cluster_size();
  Grid::Part part;
  std::map<const void*, size_t> numbers;  // of clusters
  std::vector<size_t> cluster_of;
  for (const auto& each : begun) {
    auto& stream = static_cast<Stream&>(*each);
    stream.perform_outstanding();
    const auto [it, is_new] = numbers.emplace(&stream.cluster(), part.begun.size());
    if (is_new) {
      part.begun.emplace_back();
      for (const auto& cta : stream.cluster()) part.begun.back().push_back(cta.get());
    }
    cluster_of.push_back(it->second);
  }
  const uint64_t first_cluster = grid_.first_cluster() + (first + size - 1) / size;
  part.count = grid_.cluster_count() - std::min(first_cluster, grid_.cluster_count());
  part.number = [&](uint64_t i) { return first_cluster + i; };
  part.cycle = never;
  part.lowering = lowering_.get();
  const size_t clusters_begun = part.begun.size();
  BlockCounts all;
  run_part(grid_, std::move(part), blocks, threads, all);
  // Converts from clusters to CTAs, in the requested order.
  BlockCounts counts{all.warps_per_cta, all.blocks, {}, true, all.executed};
  const size_t of_cta = size_t{all.warps_per_cta} * all.blocks;
  const auto from = [&](size_t cta) {
    return all.counts.begin() + static_cast<std::ptrdiff_t>(cta * of_cta);
  };
  for (size_t i = 0; i < begun.size(); ++i) {
    const auto& stream = static_cast<Stream&>(*begun[i]);
    *counts.executed += stream.not_given();
    if (of_cta == 0) continue;
    const size_t cta = cluster_of[i] * size + stream.rank();
    counts.counts.insert(counts.counts.end(), from(cta), from(cta + 1));
  }
  counts.counts.insert(counts.counts.end(), from(clusters_begun * size), all.counts.end());
  return counts;
}

std::string ExecutedSource::printed() const {
  return grid_.printed();
}

namespace {

/// Whether what an instruction does to lanes could have been done for those of other instructions: it
/// computes, or it is the control flow of a part of a warp.
bool is_shareable(const RawInstruction& instruction, const std::string& opcode) {
  if (instruction.addresses != AddressKind::None || instruction.memory_bytes > 0) return false;
  if (opcode.starts_with("BAR")) return false;
  return instruction.destination_count > 0 || opcode.starts_with("BRA") || opcode.starts_with("BSSY") ||
         opcode.starts_with("BSYNC");
}

/// Removes so many of a warp's partial records that the rest would have been enough if all threads had
/// executed the same.
void converge_alone(std::vector<TraceRecord>& records, const std::vector<bool>& partial, uint32_t threads) {
  uint32_t lanes = 0;
  size_t i = 0;
  std::erase_if(records, [&](const TraceRecord& r) {
    if (!partial[i++]) return false;
    lanes += static_cast<uint32_t>(std::popcount(r.mask));
    if (lanes < threads) return true;
    lanes -= threads;
    return false;
  });
}

/// The warps' executions of an instruction, each for the same time, by a part of their lanes.
struct Sharing {
  uint32_t lanes = 0;
  std::vector<uint32_t> warps;
  std::vector<size_t> records;
};

/// Removes what a CTA's warps need not execute for some of their lanes only if as few warps as possible did
/// it for all of theirs: of the warps that execute an instruction for the k-th time, so many stay as their
/// lanes fill. Those with the least to do stay, and the same ones on one path: that of the first warp's
/// lanes.
void converge(std::vector<std::vector<TraceRecord>>& warps, const Lowering& lowering, uint32_t lanes,
              uint32_t threads) {
  std::vector<std::vector<bool>> partial(warps.size());
  std::map<std::pair<uint32_t, uint32_t>, size_t> places;
  std::vector<Sharing> shared;
  for (uint32_t w = 0; w < warps.size(); ++w) {
    const uint32_t own = std::min(lanes, threads > w * lanes ? threads - w * lanes : 1);
    std::map<uint32_t, uint32_t> times;
    for (size_t i = 0; i < warps[w].size(); ++i) {
      const TraceRecord& r = warps[w][i];
      const auto active = static_cast<uint32_t>(std::popcount(r.mask));
      const RawInstruction& instruction = lowering.instructions[r.static_index];
      partial[w].push_back(active > 0 && active < own &&
                           is_shareable(instruction, lowering.opcodes[instruction.opcode]));
      if (!partial[w][i] || warps.size() == 1) continue;
      const auto [place, is_new] =
          places.emplace(std::pair(r.static_index, times[r.static_index]++), shared.size());
      if (is_new) shared.emplace_back();
      Sharing& s = shared[place->second];
      s.lanes += active;
      s.warps.push_back(w);
      s.records.push_back(i);
    }
  }
  if (warps.size() == 1) return converge_alone(warps[0], partial[0], std::min(lanes, threads));
  std::vector<uint64_t> load(warps.size());
  std::map<uint64_t, std::vector<uint32_t>> orders;
  for (const Sharing& s : shared) {
    const auto [path, is_new] = orders.try_emplace(warps[s.warps[0]][s.records[0]].mask);
    std::vector<uint32_t>& order = path->second;
    if (is_new) {
      order.resize(warps.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, {}, [&](uint32_t w) { return load[w]; });
    }
    uint32_t stay = (s.lanes + lanes - 1) / lanes;
    for (const uint32_t w : order) {
      const auto found = std::ranges::find(s.warps, w);
      if (stay == 0 || found == s.warps.end()) continue;
      partial[w][s.records[static_cast<size_t>(found - s.warps.begin())]] = false;
      ++load[w];
      --stay;
    }
  }
  for (uint32_t w = 0; w < warps.size(); ++w) {
    size_t i = 0;
    std::erase_if(warps[w], [&](const TraceRecord&) { return partial[w][i++]; });
  }
}

bool is_atomic(std::string_view opcode) {
  const std::string_view name = opcode.substr(0, opcode.find('.'));
  return name == "RED" || name == "REDG" || name == "REDS" || name == "ATOM" || name == "ATOMG" ||
         name == "ATOMS";
}

/// Leaves one lane of those that access the same address; returns how many are left.
uint32_t combine_lanes(uint64_t& mask, std::vector<uint64_t>& addresses) {
  uint32_t given = 0, kept = 0;
  for (uint64_t left = mask; left; left &= left - 1) {
    const uint64_t address = addresses[given++];
    const auto end = addresses.begin() + kept;
    if (std::find(addresses.begin(), end, address) == end)
      addresses[kept++] = address;
    else
      mask &= ~(left & -left);
  }
  return kept;
}

}  // namespace

void ExecutedSource::record(TraceSink& sink, uint32_t lanes, bool converged, bool combined) {
  std::shared_ptr<InstructionSource> source(std::shared_ptr<void>(), this);
  if (lanes != warp_lanes) source = std::make_shared<PairedWarps>(source);
  sink.begin_kernel(source->launch(), lowering_->instructions, lowering_->opcodes);
  // CTAs that may wait for each other run together, and warps in turns, since they may poll for each other.
  const auto size = grid_.config().cooperative ? static_cast<uint32_t>(cta_count()) : grid_.cluster_size();
  constexpr uint64_t turn = 256;  // records; arbitrary
  std::vector<uint64_t> addresses(64);
  for (uint64_t first = 0; first < cta_count(); first += size) {
    std::vector<std::unique_ptr<CtaStream>> streams;
    std::vector<std::vector<std::vector<TraceRecord>>> records(size);
    for (uint32_t rank = 0; rank < size; ++rank) {
      streams.push_back(source->open_cta(first + rank));
      records[rank].resize(streams.back()->warps());
    }
    uint64_t now = 0;
    for (bool any_left = true; any_left;) {
      any_left = false;
      bool progress = false;
      for (uint32_t rank = 0; rank < size; ++rank) {
        CtaStream& stream = *streams[rank];
        for (uint32_t w = 0; w < stream.warps(); ++w) {
          DynamicRecord d;
          for (uint64_t given = 0;; ++given) {
            any_left |= given == turn;
            if (given == turn) break;
            const CtaStream::Next next = stream.next(w, d, ++now);
            if (next == CtaStream::Next::End) break;
            any_left = true;
            if (next == CtaStream::Next::NotYet) break;
            progress = true;
            TraceRecord r;
            r.static_index = d.static_index;
            r.mask = d.mask;
            if (lowering_->instructions[d.static_index].addresses != AddressKind::None) {
              addresses.resize(std::max<size_t>(addresses.size(), d.bulk_count));
              r.address_count = source->lane_addresses(d, addresses.data());
              if (combined && is_atomic(lowering_->opcodes[lowering_->instructions[d.static_index].opcode]))
                r.address_count = combine_lanes(r.mask, addresses);
              r.addresses.base = r.address_count ? addresses[0] : 0;
              for (uint32_t k = 1; k < r.address_count; ++k)
                r.addresses.differences.push_back(static_cast<int64_t>(addresses[k] - addresses[k - 1]));
              r.addresses.find_stride();
              r.bulk.bytes = d.bulk_bytes;
              r.bulk.mbarrier = d.mbarrier;
            }
            records[rank][w].push_back(r);
            if (d.ticket) {
              stream.issued(w, d.ticket, now, now);
              stream.perform(w, d.ticket);
            }
          }
        }
      }
      if (any_left && !progress) {
        throw ProgramFault("kernel `" + launch_.name + "`: no warp can go on: " + streams[0]->waits_for(0));
      }
    }
    for (uint32_t rank = 0; rank < size; ++rank) {
      CtaPosition position;
      position.cta = grid_.position(grid_.config().first_cta + first + rank);
      sink.begin_cta(position);
      if (converged)
        converge(records[rank], *lowering_, lanes, static_cast<uint32_t>(source->launch().block.count()));
      for (uint32_t w = 0; w < records[rank].size(); ++w) {
        sink.begin_warp(w, records[rank][w].size());
        for (const TraceRecord& r : records[rank][w]) sink.record(r);
      }
      sink.end_cta();
    }
  }
}

}  // namespace simt::functional
