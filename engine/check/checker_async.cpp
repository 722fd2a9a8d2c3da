/// Work that its instruction only begins: copies, products, mbarriers and their waits.
#include <algorithm>
#include <cstring>

#include "check/checker.hpp"
#include "machine/lanes.hpp"
#include "operations/copies.hpp"
#include "operations/mbarrier.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::check {

using functional::BulkDetail;
using functional::CopyDetail;
using functional::Mbarrier;
namespace window = functional::window;

void Checker::signals(Context& c, uint64_t address, int lane, bool completed) {
  context_ = &c;
  enter(c);
  const auto i = static_cast<uint32_t>(lane);
  const OpFacts& f = running_->facts[at_];
  Phase& phase = phases_[flag_key(address)];
  warp_->clock = std::max(warp_->clock, cta_->floor + 1);
  const bool arrives = f.kind == Kind::Mbarrier;
  if (checks_.sync && arrives && phase.last.clock) require_phase(phase, i);
  if (f.kind == Kind::Bulk || f.kind == Kind::Tensor || f.kind == Kind::Remote) {
    phase.pending.raise(party(cta_->index, warp_->number + asynchronous), warp_->clock);
  } else {
    if (f.kind == Kind::Arrive) complete_copies_at(phase);
    phase.pending.join(published(i, false));
  }
  Moment last = here(at_);
  last.clock = arrives ? warp_->clock : 0;
  tick();
  if (!completed) return;
  phase.last = last;
  phase.last_lane = i;
  phase.complete.join(phase.pending);
  phase.pending.clear();
}

/// An arrival must not be one too many of the phase before: it comes after that has ended.
void Checker::require_phase(const Phase& phase, uint32_t lane) {
  if (follows(phase.last, phase.last_lane, lane)) return;
  Finding found;
  found.check = "sync";
  found.kind = "mbarrier";
  found.detail =
      "it gets more arrivals than it was initialised for: nothing orders an arrival after the end of the "
      "phase before, which has had all of its own";
  found.first = describe(phase.last, phase.last_lane, 0, 0);
  found.second = describe(here(at_), lane, 0, 0);
  found.first.what = found.second.what = "arrival";
  add(std::move(found));
}

void Checker::look_at_mbarrier(Context& c, const OpFacts& f) {
  if (c.record->mask == 0) return;
  const auto lane = static_cast<uint32_t>(std::countr_zero(c.record->mask));
  const uint64_t address = c.record->address[lane];
  if (!(f.manner & Atomic)) {
    phases_.erase(flag_key(address));
    return;
  }
  Look& look = looks_[at_];
  look = {address, 0, ++turn_};
  std::memcpy(&look.word, c.generic(address, sizeof look.word, static_cast<int>(lane)), sizeof look.word);
}

std::vector<std::string> Checker::describe_looks() const {
  constexpr uint64_t recent = 4096;
  std::vector<std::string> all;
  for (const auto& [op, look] : looks_) {
    if (look.turn + recent < turn_) continue;
    Access place;
    name_memory(place, look.generic);
    const int64_t bytes = Mbarrier::bytes(look.word);
    std::string text = "the mbarrier at " + std::to_string(place.address) + " of shared memory";
    if (const size_t plus = place.object.rfind('+'); plus != std::string::npos)
      text =
          "the mbarrier `" + place.object.substr(0, plus) + "` + " + place.object.substr(plus + 1) + " bytes";
    text += " waits for " + std::to_string(Mbarrier::pending(look.word)) + " arrivals";
    if (bytes > 0) text += " and " + std::to_string(bytes) + " bytes";
    if (bytes < 0) text += ", and " + std::to_string(-bytes) + " bytes more have come than it expects";
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }
  return all;
}

/// An mbarrier's phase is not complete before the copies that the warp has begun.
void Checker::complete_copies_at(Phase& phase) {
  phase.pending.raise(party(cta_->index, warp_->number + asynchronous), warp_->clock);
  Groups& groups = warp_->groups[static_cast<size_t>(Queue::Copies)];
  groups.open = 0;
  groups.committed.clear();
}

/// cp.async.mbarrier.arrive without .noinc: its handler does nothing, as it has no arrival of its own.
void Checker::hold_up(Context& c, const Op& op) {
  uint64_t at[warp_lanes];
  functional::lane_addresses(c, op.details<CopyDetail>().to, at);
  each_of(c.mask, [&](uint32_t i) { complete_copies_at(phases_[flag_key(at[i] + window::shared)]); });
  tick();
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
  if (queue == Queue::Products)
    std::erase_if(warp_->products, [&](const Product& p) { return p.clock <= clock; });
  if (clock) warp_->known.raise(party(cta_->index, warp_->number + asynchronous), clock);
  ++events_;
}

void Checker::copy(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  const auto& d = op.details<CopyDetail>();
  uint64_t to[warp_lanes], from[warp_lanes];
  uint32_t sizes[warp_lanes];
  functional::lane_addresses(c, d.to, to);
  functional::lane_addresses(c, d.from, from);
  functional::find_bytes_read(c, d, f.bytes, from, sizes);
  const uint32_t reading = moment(pc, Later), writing = moment(pc, Later | Writes);
  each_of(c.mask, [&](uint32_t i) {
    const uint32_t size = std::min(sizes[i], f.bytes);
    access(c, from[i], size, i, reading, Later);
    access(c, to[i] + window::shared, f.bytes, i, writing, Later | Writes);
    fills(c, to[i] + window::shared, f.bytes, i);
    copies(c, to[i] + window::shared, from[i], size, i);
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
  const uint32_t copying = is_machine_code_ ? c.mask & (~c.mask + 1) : c.mask;  // there, once a warp
  each_of(copying, [&](uint32_t i) {
    const uint64_t bytes = d.packed ? (words[i] & 0xffff) * 16 : words[i];
    access(c, functional::generic_address(d.direction.from, from[i]), bytes, i, reading, Later);
    const uint32_t ctas = !d.multicast ? 0
                          : d.packed   ? words[i] >> 16
                                       : c.lanes<const uint32_t>(d.mask)[i] & 0xffff;
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

/// The Op that writes an accumulator or an operand in registers of a product, although no wgmma.fence comes
/// between them; UINT32_MAX if there is none in the code that leads straight to it.
uint32_t Checker::unfenced(uint32_t pc) const {
  const Program& program = grid_->program();
  const functional::Origin origin = program.origins[pc];
  const ptx::Function& function = program.module.functions[program.functions[origin.function].ptx];
  std::set<uint32_t> wanted;
  const ptx::Instruction& product = function.instructions[origin.instruction];
  for (uint32_t k = 0; k < std::min<uint32_t>(2, product.operand_count); ++k) {
    const ptx::Operand& o = function.operands[product.first_operand + k];
    for (uint32_t p = 0; o.kind == ptx::OperandKind::Vector && p < o.part_count; ++p)
      if (const ptx::Operand& part = function.operands[o.first_part + p];
          part.kind == ptx::OperandKind::Register)
        wanted.insert(part.index);
  }
  const auto is_target = [&](uint32_t i) {
    return std::any_of(function.labels.begin(), function.labels.end(),
                       [&](const ptx::Label& label) { return label.target == i; });
  };
  for (uint32_t i = origin.instruction; i > 0 && !is_target(i); --i) {
    const ptx::Instruction& instruction = function.instructions[i - 1];
    const ptx::Mnemonic& mnemonic = program.module.mnemonics[instruction.mnemonic];
    if (mnemonic.opcode == "wgmma" && mnemonic.has("fence")) break;
    for (const uint32_t r : ptx::access(function, program.module, i - 1).writes) {
      if (!wanted.erase(r) || mnemonic.opcode == "wgmma") continue;
      if (mnemonic.opcode == "mov") {  // the compiler's: what it moves counts
        const ptx::Operand& from = function.operands[instruction.first_operand + 1];
        if (from.kind == ptx::OperandKind::Register) wanted.insert(from.index);
        continue;
      }
      const auto is_it = [&](const functional::Origin& o) {
        return o.function == origin.function && o.instruction == i - 1;
      };
      return static_cast<uint32_t>(std::find_if(program.origins.begin(), program.origins.end(), is_it) -
                                   program.origins.begin());
    }
  }
  return UINT32_MAX;
}

/// Between ordinary accesses to registers and a product that uses them must be a wgmma.fence.
void Checker::require_fence(uint32_t pc) {
  if (grid_->program().is_machine_code()) return;
  const auto [at, is_new] = running_->unfenced.try_emplace(pc, UINT32_MAX);
  if (is_new) at->second = unfenced(pc);
  if (at->second == UINT32_MAX) return;
  Finding found;
  found.check = "race";
  found.kind = "race-async";
  found.detail = "a register that a product uses is written, and no wgmma.fence comes between";
  found.first = describe(here(at->second), 0, Writes, 0);
  found.second = describe(here(pc), 0, Later | Writes, 0);
  add(std::move(found));
}

/// Registers that a product is still writing are touched.
void Checker::accumulators(const OpFacts& f, uint32_t pc) {
  const Flow& flow = flow_of(pc);
  if (f.kind == Kind::Product) {
    require_fence(pc);
    for (const Operand& write : flow.writes) warp_->products.push_back({write, pc, warp_->clock});
    everything = true;
    return;
  }
  const auto touch_register = [&](const Operand& operand) {
    for (const Product& product : warp_->products) {
      if (product.to.place != operand.place) continue;
      Finding found;
      found.check = "race";
      found.kind = "race-async";
      found.detail = "a register is used that a product still accumulates in, before wgmma.wait_group";
      found.first = describe(here(product.op), 0, Later | Writes, 0);
      found.second = describe(here(pc), 0, 0, 0);
      add(std::move(found));
      return;
    }
  };
  if (f.kind == Kind::Wait || f.kind == Kind::Commit) return;
  for (const Operand& read : flow.reads) touch_register(read);
  for (const Operand& write : flow.writes) touch_register(write);
}

}  // namespace simt::check
