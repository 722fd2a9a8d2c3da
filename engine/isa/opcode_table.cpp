#include "isa/opcode_table.hpp"

#include <algorithm>

namespace simt {
namespace {

constexpr size_t shortest_family_prefix = 3;

bool reads_or_writes_memory(const OpcodeClass& c) {
  switch (c.operation) {
    case Operation::Load:
    case Operation::Store:
    case Operation::Atomic:
    case Operation::Reduction:
    case Operation::AsyncCopy:
    case Operation::BulkLoad:
    case Operation::BulkStore:
      return c.space != MemorySpace::Constant;
    default:
      return false;
  }
}

// A guess may occupy the wrong unit; it must never end a warp or make it wait for an event that does not
// occur.
bool safe_to_guess(const OpcodeClass& c, bool has_addresses) {
  if (reads_or_writes_memory(c)) return has_addresses;
  return !has_addresses && (c.operation == Operation::Arithmetic || c.operation == Operation::Branch);
}

}  // namespace

size_t OpcodeTable::longest_common_prefix(const Opcodes& opcodes, std::string_view mnemonic) {
  size_t longest = 0;
  const auto consider = [&](Opcodes::const_iterator it) {
    const auto end = std::mismatch(mnemonic.begin(), mnemonic.end(), it->first.begin(), it->first.end());
    longest = std::max(longest, static_cast<size_t>(end.first - mnemonic.begin()));
  };
  // In sorted order, the longest common prefix is next to the opcode's own position.
  const auto after = opcodes.lower_bound(mnemonic);
  if (after != opcodes.end()) consider(after);
  if (after != opcodes.begin()) consider(std::prev(after));
  return longest;
}

OpcodeTable::Match OpcodeTable::find(std::string_view mnemonic, bool has_addresses,
                                     bool has_destination) const {
  if (const auto it = opcodes_.find(mnemonic); it != opcodes_.end()) return {it->second, true, {}};
  if (const auto it = related_.find(mnemonic); it != related_.end())
    return {it->second, false, "the same opcode of another architecture"};
  // Among those with the longest common prefix, the first in order is the plainest of the family.
  const size_t own = longest_common_prefix(opcodes_, mnemonic);
  const size_t others = longest_common_prefix(related_, mnemonic);
  const std::string_view family = mnemonic.substr(0, std::max(own, others));
  if (family.size() >= shortest_family_prefix) {
    const Opcodes& opcodes = own >= others ? opcodes_ : related_;
    for (auto it = opcodes.lower_bound(family); it != opcodes.end() && it->first.starts_with(family); ++it)
      if (safe_to_guess(it->second, has_addresses)) return {it->second, false, it->first};
  }
  if (has_addresses) {
    const Operation operation = has_destination ? Operation::Load : Operation::Store;
    return {{Unit::Memory, operation, MemorySpace::Generic, false},
            false,
            has_destination ? "a generic load" : "a generic store"};
  }
  return {{}, false, "an integer operation"};
}

}  // namespace simt
