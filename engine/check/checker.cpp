#include "check/checker.hpp"

#include <algorithm>

#include "machine/fault.hpp"
#include "machine/lanes.hpp"

namespace simt::check {

using functional::AccessSpace;
namespace place = functional::place;
namespace window = functional::window;

const std::vector<uint8_t>& Checker::watched(const Grid& grid) {
  if (grid_ != &grid) {
    settle_reads(Undecided::Report);
    keep_touched();
    grid_ = &grid;
    is_machine_code_ = grid.program().is_machine_code();
    here_ = 0;
    // Hardware gives machine code more than it asks for, and ptxas reads there.
    launched_ = {.name = "shared memory",
                 .end = uint64_t{grid.kernel().reserved_shared} + grid.kernel().shared_bytes +
                        grid.config().dynamic_shared_bytes,
                 .is_shared = true};
    if (works_.try_emplace(&grid, next_work_).second) next_work_ = 0;
    ctas_.clear();
    last_ = {};
    flags_.clear();
    phases_.clear();
    looks_.clear();
    pointers_.clear();
    history_.clear();
    ++epoch_;
    of_cta_ = nullptr;
    Code& code = code_[&grid.program()];
    if (code.facts.empty()) {
      code.facts = facts_of(grid.program());
      code.variables = std::make_unique<Variables>(grid.program());
      code.values = std::make_unique<ValueFlow>(grid.program(), code.facts);
      if (is_machine_code_) code.operands = &functional::MachineOperands::of(grid.program());
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
    settle_reads(Undecided::Drop);
    keep_touched();
    awaited_ = describe_looks();
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
    state.read.clear();
    state.ticket.clear();
    state.warps.clear();
    state.warps.resize(cta.warps().size());
    for (uint32_t w = 0; w < state.warps.size(); ++w) state.warps[w].number = w;
    state.arrivals.clear();
    state.before.clear();
    state.remote.clear();
    state.valid.reset(cta.shared_bytes());
    state.valid.fill(0, grid_->kernel().reserved_shared);
    // What the system has, it has filled.
    state.valid.fill(grid_->own_shared_bytes(), cta.shared_bytes() - grid_->own_shared_bytes());
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

void Checker::enters(Context& c) {
  context_ = &c;
  if (c.grid != grid_) watched(*c.grid);  // launches may take turns
  enter(c);
  everything = warp_->poisoned || !warp_->products.empty();
}

/// In machine code, a compiler leaves out __syncwarp where lanes are together anyway: to be so is an order.
void Checker::come_together(Context& c) {
  const uint32_t lanes = of_warp_split_mask(c);
  if (lanes != of_warp_->alive()) warp_->parted = true;
  if (here_ == lanes) return;
  here_ = lanes;
  ++events_;
}

/// Generic addresses of the lanes of a load, a store or an atomic, the least and the greatest.
void Checker::find_addresses(Context& c, const Op& op, const OpFacts& f) {
  functional::lane_addresses(c, op, f.base, generic_);
  const uint64_t begin = functional::generic_address(f.space, 0);
  // As signed numbers, which vector instructions compare; no address has the highest bit.
  int64_t least = INT64_MAX, most = INT64_MIN;
  if (c.full()) {
    for (uint64_t& a : generic_) {
      a += begin;
      least = std::min(least, static_cast<int64_t>(a));
      most = std::max(most, static_cast<int64_t>(a));
    }
  } else {
    for (uint64_t& a : generic_) a += begin;
    each_of(c.mask, [&](uint32_t i) {
      least = std::min(least, static_cast<int64_t>(generic_[i]));
      most = std::max(most, static_cast<int64_t>(generic_[i]));
    });
  }
  least_ = static_cast<uint64_t>(least), most_ = static_cast<uint64_t>(most);
}

void Checker::before(Context& c, const Op& op, uint32_t pc) {
  const OpFacts& f = running_->facts[pc];
  context_ = &c;
  at_ = pc;
  enter(c);
  if (is_machine_code_) come_together(c);
  if (f.kind == Kind::Refused)
    throw functional::Fault("unsupported",
                            "`simt check` does not follow this instruction in machine code; check the "
                            "program's PTX, or leave `check` out");
  const bool is_plain = f.kind == Kind::Load || f.kind == Kind::Store || f.kind == Kind::Atomic;
  if (is_plain && c.mask) find_addresses(c, op, f);
  if (checks_.init) values_before(c, op, f, pc);
  if (c.mask == 0) return;
  if (checks_.race && (f.kind == Kind::Product || !warp_->products.empty())) accumulators(f, pc);
  switch (f.kind) {
    case Kind::Load:
    case Kind::Store:
    case Kind::Atomic: {
      if (f.space == AccessSpace::Local) return;
      if (checks_.memory && (f.manner & Writes) && !constants_.empty()) require_writable(generic_, c.mask);
      if (checks_.memory)
        if (const Extent* variable = running_->variables->of(pc))
          require_inside(*variable, f, generic_, c.mask);
      if (checks_.memory && is_machine_code_ && (f.manner & Writes))
        require_inside(launched_, f, generic_, c.mask);
      if (!checks_.race) return;
      follow_pointers(c, op, f, generic_);
      if (f.manner & Strong)
        order_by_flags(f, generic_, c.mask, f.kind == Kind::Load || op.destination != place::none,
                       f.manner & Writes);
      access_all(c, f, pc, generic_, c.mask);
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
    case Kind::Arrive:
      if (f.holds_up) hold_up(c, op);
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
      // In machine code, waits for copies do not tell for which.
      if (is_machine_code_ && f.queue == Queue::Copies) wait(Queue::Bulk, f.pending, f.all);
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
  if (f.kind == Kind::Mbarrier && c.record) look_at_mbarrier(c, f);
  if (f.closes) commit(f.queue);
  if (!checks_.race ||
      (f.kind != Kind::Recorded && f.kind != Kind::RecordedStore && f.kind != Kind::Mbarrier))
    return;
  access_all(c, f, pc, c.record->address.data(), c.record->mask);
}

}  // namespace simt::check
