#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "machine/access.hpp"

namespace simt::check {

using functional::Program;

/// A variable of a program in shared memory (offsets) or global memory (addresses).
struct Extent {
  std::string_view name;
  uint64_t begin = 0, end = 0;
  bool is_shared = false;
  uint32_t function = UINT32_MAX;  ///< in which it is declared; none: in the module
};

/// The variables of a program, and which of them the addresses of instructions are made from.
class Variables {
 public:
  explicit Variables(const Program& program);

  /// The variable that the address of an Op begins with, whatever is added to it; nullptr if that cannot be
  /// told, or may be several.
  const Extent* of(uint32_t op) const { return op < of_op_.size() ? of_op_[op] : nullptr; }
  /// The variable in shared memory at an offset, as the kernel of this number sees it; nullptr if there is
  /// none.
  const Extent* shared_at(uint64_t offset, uint32_t kernel) const;

 private:
  void add(const ptx::Variable& variable, uint64_t begin, uint32_t function);
  void add_named(uint32_t op);
  void trace(const Program& program, uint32_t function);

  const Program& program_;
  std::vector<Extent> all_;
  std::vector<const Extent*> of_op_;
};

}  // namespace simt::check
