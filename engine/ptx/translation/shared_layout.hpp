#pragma once
#include <cstdint>
#include <vector>

#include "ptx/translation/references.hpp"

namespace simt::functional {

/// The layout of shared variables.
/// Module variables that several kernels use come first. Those used by a single kernel follow, starting at
/// the same offset for every kernel. Then come the variables declared in the bodies of functions that a
/// kernel reaches; those of a device function have the same offset in all kernels that reach it.
class SharedLayout {
 public:
  /// Writes the offsets of the module's variables to `places`, by variable.
  SharedLayout(const ptx::Module& module, const References& references, std::vector<uint64_t>& places);

  /// Bytes of an entry's static variables, including those of everything it calls.
  uint32_t static_bytes(uint32_t function) const { return static_[function]; }
  /// Offsets of a function's own variables, UINT32_MAX for those in other spaces.
  const std::vector<uint32_t>& own(uint32_t function) const { return own_[function]; }
  /// Start of dynamic shared memory, as seen by a function.
  uint32_t dynamic_offset(uint32_t function) const;

 private:
  void place_module_variables(std::vector<uint64_t>& places);
  void place_function_variables();
  void place_own(uint32_t function, const std::vector<uint32_t>& entries);
  void align_dynamic();
  /// Kernels that reach a function.
  std::vector<uint32_t> entries_of(uint32_t function) const;
  uint32_t function_count() const { return static_cast<uint32_t>(module_.functions.size()); }

  const ptx::Module& module_;
  const References& references_;
  std::vector<uint32_t> static_;
  std::vector<std::vector<uint32_t>> own_;
};

}  // namespace simt::functional
