#pragma once
#include <algorithm>

#include "ptx/module.hpp"

namespace simt::ptx {

/// Registers of a parameter or result of a function: 0 if it is in memory, several if it is a vector. They
/// are the first of Function::registers, those of results before those of parameters.
inline uint32_t register_count(const Variable& variable) {
  if (variable.space != Space::Register) return 0;
  return variable.type == Type::Pred ? 1 : static_cast<uint32_t>(variable.size / bytes(variable.type));
}

/// Registers of all results and parameters.
inline uint32_t interface_registers(const Function& function) {
  uint32_t count = 0;
  for (const std::vector<Variable>* list : {&function.results, &function.parameters})
    for (const Variable& variable : *list) count += register_count(variable);
  return count;
}

}  // namespace simt::ptx
