#include "check/unbacked.hpp"

#include <string>

#include "machine/fault.hpp"

namespace simt::check {

using functional::Allocation;
using instructions::Memory;

namespace {

/// How an Op accesses global memory.
struct Direction {
  bool reads = true, writes = true;
};

Direction direction_of(const Program& program, uint32_t op) {
  if (program.is_machine_code()) return {true, false};
  const ptx::Mnemonic& mnemonic = program.module.mnemonics[program.instruction(op).mnemonic];
  switch (mnemonic.facts().memory) {
    case Memory::Load:
      return {true, false};
    case Memory::Store:
      return {false, true};
    case Memory::Copy: {
      for (const std::string_view word : mnemonic.modifiers) {
        if (word == "global") return {false, true};
        if (word.starts_with("shared")) break;
      }
      return {true, false};
    }
    case Memory::Atomic:
      return {mnemonic.opcode != "red", true};
    default:
      return {true, false};
  }
}

}  // namespace

Unbacked::Unbacked(const Program& program, functional::DeviceMemory& memory)
    : program_(program), memory_(memory), latest_(program.code.size()) {}

void Unbacked::accessed(const functional::Context& c, uint64_t address) {
  const auto op = static_cast<uint32_t>(c.op - program_.code.data());
  const Extent* known = latest_[op].load(std::memory_order_acquire);
  if (known && address - known->begin < known->size) return;
  const std::lock_guard lock(mutex_);
  const Allocation* found = memory_.find(address, 1);
  if (!found) return;  // what its size is rounded up to
  const Direction direction = direction_of(program_, op);
  bool is_new = false;
  if (direction.reads) is_new |= reads_[op].insert(found->address).second;
  if (direction.writes && program_.functions[program_.origins[op].function].entry)
    is_new |= writes_[program_.origins[op].instruction].insert(found->address).second;
  if (is_new) settle();
  extents_.push_back({found->address, found->size});
  latest_[op].store(&extents_.back(), std::memory_order_release);
}

/// Until no allocation is found to hold no values that was not known to.
void Unbacked::settle() {
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (const auto& [op, allocations] : reads_)
      for (const uint64_t read : allocations) {
        const Allocation* from = memory_.find(read, 0);
        if (!from || from->unknown_from.empty()) continue;
        if (program_.is_machine_code()) refuse(op, *from, {});
        if (!flow_) {
          facts_ = facts_of(program_);
          flow_ = std::make_unique<ValueFlow>(program_, facts_);
        }
        const ValueFlow::Use& use = flow_->use_of(op);
        if (use.decides) refuse(op, *from, use);
        for (const uint32_t store : use.stores)
          for (const uint64_t to : writes_[store]) {
            const Allocation* written = memory_.find(to, 0);
            if (!written || !written->unknown_from.empty()) continue;
            memory_.make_unknown(to, from->unknown_from);
            is_more = true;
          }
      }
  }
}

bool decided_by_products(const Program& program) {
  if (program.is_machine_code()) return true;
  const std::vector<OpFacts> facts = facts_of(program);
  ValueFlow flow(program, facts);
  for (uint32_t op = 0; op < program.code.size(); ++op) {
    const std::string_view opcode = program.module.mnemonics[program.instruction(op).mnemonic].opcode;
    const bool multiplies = opcode == "mma" || opcode == "wmma" || opcode == "wgmma";
    if (multiplies && flow.use_of(op).decides) return true;
  }
  return false;
}

void Unbacked::refuse(uint32_t op, const Allocation& read, const ValueFlow::Use& use) const {
  std::string text =
      "`" + program_.text(op) + "` at " + program_.where(op).position + " reads `" + read.label + "`, ";
  text += read.is_unbacked ? "which is unbacked"
                           : "whose values come from `" + read.unknown_from + "`, which is unbacked";
  if (use.decides) {
    const functional::Origin& origin = program_.origins[op];
    const ptx::Function& function = program_.module.functions[program_.functions[origin.function].ptx];
    const ptx::Instruction& by = function.instructions[use.by];
    text += ", and it decides " + std::string(use.decides) + ": `" +
            std::string(std::string_view(*program_.module.text).substr(by.begin, by.end - by.begin)) +
            "` in line " + std::to_string(by.line) + ". Back it with memory and values";
  } else {
    text += ", and what it decides is not followed in machine code: run the program's PTX (code=\"ptx\")";
  }
  throw functional::Fault("unbacked", text);
}

}  // namespace simt::check
