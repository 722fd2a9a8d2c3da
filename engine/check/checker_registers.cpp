/// Which bits of registers hold no value, kept in a copy of the warp's frames, and how instructions pass them
/// on.
#include <algorithm>
#include <cstring>

#include "check/checker.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::check {

namespace place = functional::place;

/// The registers of an instruction of PTX, and how its result depends on them.
const Checker::Flow& Checker::flow_of(uint32_t pc) {
  auto& found = running_->flows[pc];
  if (found) return *found;
  found = std::make_unique<Flow>();
  Flow& flow = *found;
  const Program& program = grid_->program();
  if (program.is_machine_code()) {
    find_machine_flow(pc, flow);
    return flow;
  }
  const functional::Origin origin = program.origins[pc];
  const functional::FunctionCode& code = program.functions[origin.function];
  const ptx::Function& function = program.module.functions[code.ptx];
  if (origin.instruction >= function.instructions.size() || pc < code.body) return flow;
  const auto same = [&](uint32_t at) {
    return at < program.origins.size() && program.origins[at].function == origin.function &&
           program.origins[at].instruction == origin.instruction;
  };
  flow.first = pc == 0 || !same(pc - 1);
  flow.last = !same(pc + 1);
  const auto operand = [&](uint32_t r) {
    const ptx::RegisterDeclaration& declared = function.registers[r];
    const uint32_t at = code.places[r];
    if (declared.type == ptx::Type::Pred) return Operand{code.registers * place::register_bytes + 4 * at, 0};
    return Operand{at * place::register_bytes, std::max(4u, ptx::bytes(declared.type))};
  };
  const ptx::Access access = ptx::access(function, program.module, origin.instruction);
  const ptx::Instruction& instruction = function.instructions[origin.instruction];
  for (const uint32_t r : access.reads)
    if (static_cast<int32_t>(r) != instruction.guard && code.places[r] != UINT32_MAX)
      flow.reads.push_back(operand(r));
  for (const uint32_t r : access.writes)
    if (code.places[r] != UINT32_MAX) flow.writes.push_back(operand(r));
  const ptx::Mnemonic& mnemonic = program.module.mnemonics[instruction.mnemonic];
  const std::string_view name = mnemonic.opcode;
  const auto register_of = [&](uint32_t k) -> int64_t {
    if (k >= instruction.operand_count) return -1;
    const ptx::Operand& o = function.operands[instruction.first_operand + k];
    return o.kind == ptx::OperandKind::Register ? int64_t{o.index} : -1;
  };
  const auto real = [&](uint32_t k) {
    if (const int64_t r = register_of(k); r >= 0) flow.real.push_back(operand(static_cast<uint32_t>(r)));
  };
  const bool simple = flow.first && flow.last;
  const bool whole_numbers = !mnemonic.has("f32") && !mnemonic.has("f64") && !mnemonic.has("f16") &&
                             !mnemonic.has("bf16") && !mnemonic.has("f16x2");
  if (name == "mov" || (name == "cvt" && simple && whole_numbers && !mnemonic.has("sat")) || name == "cvta") {
    flow.transfer = Transfer::Copy;
  } else if (name == "selp" && simple) {
    flow.transfer = Transfer::Copy;
    real(3);
  } else if ((name == "shl" || name == "shr" || name == "bfe") && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    for (uint32_t k = 2; k < instruction.operand_count; ++k) real(k);
  } else if ((name == "prmt" || name == "shf") && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    real(3);
  } else if (name == "shfl" && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    for (uint32_t k = 2; k < instruction.operand_count; ++k) real(k);
  } else if (name == "and" && simple) {
    flow.transfer = Transfer::And;
    flow.keeps_constants = true;
  } else if (name == "or" && simple) {
    flow.transfer = Transfer::Copy;
  } else if (name == "mma" && mnemonic.has("m16n8k16") + mnemonic.has("m16n8k8") + mnemonic.has("m16n8k32")) {
    flow.transfer = Transfer::Product;
    const auto part = [&](uint32_t k, std::vector<Operand>& to) {
      const ptx::Operand& o = function.operands[instruction.first_operand + k];
      for (uint32_t p = 0; p < std::max(1u, o.part_count); ++p) {
        const ptx::Operand& each = o.part_count ? function.operands[o.first_part + p] : o;
        if (each.kind == ptx::OperandKind::Register) to.push_back(operand(each.index));
      }
    };
    for (uint32_t k = 0; k < 4; ++k) part(k, flow.parts[k]);
  }
  return flow;
}

std::byte* Checker::poison_frame(Context& c) {
  const auto offset = static_cast<size_t>(c.banks[0] - c.warp->frame_at(0));
  const Program& program = grid_->program();
  const size_t wanted = offset + program.functions[program.origins[at_].function].frame_bytes + 64;
  if (warp_->poison.size() < wanted) {
    warp_->poison.resize(wanted);
    warp_->sources.resize(wanted / place::register_bytes + 1);
  }
  return warp_->poison.data() + offset;
}

uint32_t& Checker::source_of(Context& c, Place p) {
  poison_frame(c);
  const auto offset = static_cast<size_t>(c.banks[0] - c.warp->frame_at(0));
  return warp_->sources[(offset + p) / place::register_bytes];
}

/// Lanes of which any bit of a register holds no value.
uint32_t Checker::poisoned(Context& c, const Operand& operand) {
  const std::byte* at = poison_frame(c) + operand.place;
  uint32_t lanes = 0;
  if (operand.bytes == 0) {
    std::memcpy(&lanes, at, sizeof lanes);
    return lanes;
  }
  const uint32_t rows = operand.bytes > 8 ? 2 : 1, bytes = operand.bytes / rows;
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, at + r * 2 * place::register_bytes + i * bytes, bytes);
      lanes |= uint32_t{bits != 0} << i;
    }
  return lanes;
}

void Checker::poison(Context& c, const Operand& operand, uint32_t lanes, uint32_t bad) {
  std::byte* at = poison_frame(c) + operand.place;
  if (operand.bytes == 0) {
    uint32_t bits;
    std::memcpy(&bits, at, sizeof bits);
    bits = (bits & ~lanes) | (bad & lanes);
    std::memcpy(at, &bits, sizeof bits);
    return;
  }
  const uint32_t rows = operand.bytes > 8 ? 2 : 1, bytes = operand.bytes / rows;
  for (uint32_t r = 0; r < rows; ++r)
    each_of(lanes, [&](uint32_t i) {
      std::memset(at + r * 2 * place::register_bytes + i * bytes, bad >> i & 1 ? 0xff : 0, bytes);
    });
}

bool Checker::same_instruction(uint32_t at) const {
  const functional::Origin &a = grid_->program().origins[at], &b = grid_->program().origins[at_];
  return a.function == b.function && a.instruction == b.instruction;
}

/// What the instruction's results will be without a value, kept until it has been executed.
void Checker::foresee(Context& c, const Flow& flow) {
  foreseen_.valid = false;
  if (!flow.first || flow.writes.empty()) return;
  uint32_t bad = 0, source = 0;
  uint32_t count = 0;
  for (const Operand& read : flow.reads)
    if (const uint32_t lanes = poisoned(c, read) & c.mask) {
      bad |= lanes;
      if (count++ == 0) source = source_of(c, read.place);
    }
  foreseen_ = {true, false, bad, source, 0, {}, {}};
  if (bad == 0 || flow.transfer == Transfer::Any) return;
  if (flow.transfer == Transfer::Computed) {
    compute(c, flow);
    return;
  }
  const std::byte* frame = poison_frame(c);
  const Program& program = grid_->program();
  const size_t bytes = program.functions[program.origins[at_].function].frame_bytes;
  if (flow.transfer == Transfer::Product) {
    product(c, flow);
    return;
  }
  if (flow.transfer == Transfer::And && count > 1) return;
  // The same handler moves the bits that say what has no value, where only operands that say how are real.
  foreseen_.frame.assign(bytes + sizeof(functional::Line), std::byte{});
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(foreseen_.frame.data()) + 63) & ~uintptr_t{63});
  std::memcpy(aligned, frame, bytes);
  const auto keep = [&](const Operand& operand) {
    const size_t size = operand.bytes == 0 ? 4 : warp_lanes * operand.bytes;
    std::memcpy(aligned + operand.place, c.banks[0] + operand.place, size);
  };
  uint32_t unknown = 0;
  for (const Operand& operand : flow.real) {
    unknown |= poisoned(c, operand);
    keep(operand);
  }
  if (flow.transfer == Transfer::And)
    for (const Operand& read : flow.reads)
      if (!(poisoned(c, read) & c.mask)) keep(read);
  if (unknown & c.mask) return;
  Context shadow = c;
  shadow.banks[0] = aligned;
  if (!flow.keeps_constants) {
    zeros_.assign((program.constants.size() + 64) * sizeof(functional::Line), std::byte{});
    shadow.banks[1] =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(zeros_.data()) + 63) & ~uintptr_t{63});
    shadow.banks[2] = shadow.banks[3] = shadow.banks[1];
  }
  shadow.record = nullptr;
  shadow.observer = nullptr;
  for (uint32_t at = at_; at < program.code.size() && same_instruction(at); ++at)
    if (program.code[at].run) program.code[at].run(shadow, program.code[at]);
  foreseen_.exact = true;
}

/// Rows of A spoil rows of D, columns of B columns of D; m16n8.
void Checker::product(Context& c, const Flow& flow) {
  uint32_t rows = 0, columns = 0;  // of D
  for (size_t k = 0; k < flow.parts[1].size(); ++k)
    each_of(poisoned(c, flow.parts[1][k]), [&](uint32_t i) { rows |= 1u << (i / 4 + (k % 2) * 8); });
  for (const Operand& part : flow.parts[2])
    each_of(poisoned(c, part), [&](uint32_t i) { columns |= 1u << i / 4; });
  foreseen_.parts.clear();
  for (size_t k = 0; k < flow.parts[1].size(); k += 2)
    if (poisoned(c, flow.parts[1][k])) foreseen_.source = source_of(c, flow.parts[1][k].place);
  const bool pairs = flow.parts[0].size() == 2;
  for (size_t k = 0; k < flow.parts[0].size(); ++k) {
    uint32_t bad = k < flow.parts[3].size() ? poisoned(c, flow.parts[3][k]) : 0;
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      const uint32_t row = i / 4 + (pairs ? k : k / 2) * 8, column = i % 4 * 2 + (pairs ? 0 : k % 2);
      const uint32_t own = pairs ? 3u << column : 1u << column;
      bad |= uint32_t{(rows >> row & 1) || (columns & own)} << i;
    }
    foreseen_.parts.push_back(bad);
  }
}

void Checker::settle(Context& c, const Op& op, const Flow& flow) {
  const auto came_from = [&](const Operand& operand) { source_of(c, operand.place) = foreseen_.source; };
  if (foreseen_.exact) {
    const auto* const aligned = reinterpret_cast<const std::byte*>(
        (reinterpret_cast<uintptr_t>(foreseen_.frame.data()) + 63) & ~uintptr_t{63});
    std::byte* to = poison_frame(c);
    for (const Operand& write : flow.writes) {
      came_from(write);
      if (write.bytes == 0) {
        uint32_t old, now;
        std::memcpy(&old, to + write.place, 4);
        std::memcpy(&now, aligned + write.place, 4);
        now = (old & ~c.mask) | (op.control == functional::Control::None ? now & c.mask : 0);
        std::memcpy(to + write.place, &now, 4);
        continue;
      }
      const uint32_t rows = write.bytes > 8 ? 2 : 1, bytes = write.bytes / rows;
      for (uint32_t r = 0; r < rows; ++r)
        each_of(c.mask, [&](uint32_t i) {
          const size_t at = write.place + r * 2 * place::register_bytes + i * bytes;
          std::memcpy(to + at, aligned + at, bytes);
        });
    }
  } else if (!foreseen_.parts.empty()) {
    for (size_t k = 0; k < flow.parts[0].size(); ++k) {
      came_from(flow.parts[0][k]);
      poison(c, flow.parts[0][k], c.mask, foreseen_.parts[k]);
    }
  } else {
    for (const Operand& write : flow.writes) {
      if (foreseen_.bad) came_from(write);
      poison(c, write, c.mask, foreseen_.bad);
    }
  }
  for (const Operand& write : flow.writes)
    if (foreseen_.unsure) poison(c, write, foreseen_.unsure, foreseen_.unsure);
}

}  // namespace simt::check
