/// What instructions of machine code make of registers whose bits hold no value: they are executed with
/// several values in place of these bits, and where the results differ, they have no value either.
#include <algorithm>
#include <array>
#include <cstring>

#include "check/checker.hpp"
#include "machine/fault.hpp"

namespace simt::check {

using functional::Control;
namespace place = functional::place;

void Checker::find_machine_flow(uint32_t pc, Flow& flow) const {
  const Program& program = grid_->program();
  const uint32_t number = program.origins[pc].instruction;
  const auto& [first, reads, writes, computes] = running_->operands->instructions[number];
  const Place predicates = running_->operands->predicates[program.origins[pc].function];
  const auto same = [&](uint32_t at) {
    return at < program.origins.size() && program.origins[at].instruction == number;
  };
  flow.first = pc == 0 || !same(pc - 1);
  flow.last = !same(pc + 1);
  for (uint32_t k = 0; k < uint32_t{reads} + writes; ++k) {
    const Place p = running_->operands->places[first + k];
    const Operand operand{p, p - predicates < place::register_bytes ? 0u : 4u};
    if (k >= reads)
      flow.writes.push_back(operand);
    else if (p >> place::bank_shift)
      flow.real.push_back(operand);
    else if (p != program.code[pc].guard)
      flow.reads.push_back(operand);
  }
  if (computes) flow.transfer = Transfer::Computed;
}

/// Whether what the Op reads decides where lanes go on.
bool Checker::decides(uint32_t pc) const {
  const Control control = grid_->program().code[pc].control;
  return control == Control::Branch || control == Control::BranchIndirect || control == Control::Jump ||
         control == Control::Exit;
}

/// Lanes of which it is not known whether they execute an instruction have no values in what it writes.
void Checker::doubt(Context& c, const Flow& flow, uint32_t lanes, Place guard) {
  if (!flow.first) return;
  const uint32_t source = source_of(c, guard);
  for (const Operand& write : flow.writes) {
    source_of(c, write.place) = source;
    poison(c, write, lanes & ~c.mask, lanes);
  }
  foreseen_.unsure = lanes & c.mask;
  if (foreseen_.bad == 0) foreseen_.source = source;
}

void Checker::compute(Context& c, const Flow& flow) {
  constexpr uint32_t patterns[] = {0, ~0u, 0x55555555, 0xaaaaaaaa, 0x3f9d70a4};
  constexpr size_t constant_patterns = std::size(patterns), most = 12;
  constexpr size_t row = place::register_bytes;
  const Program& program = grid_->program();
  const size_t bytes = program.functions[program.origins[at_].function].frame_bytes;
  foreseen_.frame.assign(bytes + sizeof(functional::Line), std::byte{});
  auto* const frame = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(foreseen_.frame.data()) + 63) & ~uintptr_t{63});
  std::memcpy(frame, c.banks[0], bytes);
  // What an operand is compared with is a value that matters, too.
  std::vector<const std::byte*> others;
  for (const std::vector<Operand>* from : {&flow.real, &flow.reads})
    for (const Operand& each : *from)
      if (each.bytes && others.size() + constant_patterns < most)
        others.push_back(c.lanes<const std::byte>(each.place));
  const auto size_of = [](const Operand& o) { return o.bytes ? row : sizeof(uint32_t); };
  const auto prepare = [&](size_t sample) {
    for (size_t k = 0; k < flow.reads.size(); ++k) {
      const Operand& read = flow.reads[k];
      std::array<uint32_t, warp_lanes> value, gone;
      std::memcpy(value.data(), c.banks[0] + read.place, size_of(read));
      std::memcpy(gone.data(), poison_frame(c) + read.place, size_of(read));
      const size_t which = sample * (k + 1) % (constant_patterns + others.size());
      for (size_t i = 0; i < size_of(read) / sizeof(uint32_t); ++i) {
        uint32_t pattern = which < constant_patterns ? patterns[which] : 0;
        if (which >= constant_patterns)
          std::memcpy(&pattern, others[which - constant_patterns] + i * sizeof pattern, sizeof pattern);
        if (read.bytes == 0) pattern = sample * (k + 1) & 1 ? ~0u : 0;
        value[i] = (value[i] & ~gone[i]) | (pattern & gone[i]);
      }
      std::memcpy(frame + read.place, value.data(), size_of(read));
    }
  };
  Context shadow = c;
  shadow.banks[0] = frame;
  shadow.record = nullptr;
  shadow.observer = nullptr;
  std::vector<std::array<uint32_t, warp_lanes>> before(flow.writes.size()), differ(flow.writes.size());
  try {
    for (size_t sample = 0; sample < constant_patterns + others.size(); ++sample) {
      prepare(sample);
      for (uint32_t at = at_; at < program.code.size() && same_instruction(at); ++at) {
        const Op& op = program.code[at];
        shadow.mask = of_warp_split_mask(c);
        if (op.guard != place::none)
          shadow.mask &= op.guard_negated ? ~shadow.predicate(op.guard) : shadow.predicate(op.guard);
        if (shadow.mask) op.run(shadow, op);
      }
      for (size_t k = 0; k < flow.writes.size(); ++k) {
        std::array<uint32_t, warp_lanes> result{};
        std::memcpy(result.data(), frame + flow.writes[k].place, size_of(flow.writes[k]));
        for (size_t i = 0; i < warp_lanes; ++i) differ[k][i] |= sample ? result[i] ^ before[k][i] : 0;
        before[k] = result;
      }
    }
  } catch (const functional::Fault&) {
    return;  // a value that it does not take
  }
  for (size_t k = 0; k < flow.writes.size(); ++k)
    std::memcpy(frame + flow.writes[k].place, differ[k].data(), size_of(flow.writes[k]));
  foreseen_.exact = true;
}

}  // namespace simt::check
