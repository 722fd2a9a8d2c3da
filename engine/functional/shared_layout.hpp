#pragma once
#include <cstdint>
#include <vector>

#include "functional/references.hpp"

namespace simt::functional {

/// Where shared variables lie.
///
/// Those that only one kernel uses begin at the same place as those of other kernels; those that several use
/// lie before them. Variables of function bodies lie behind, those of each function that a kernel reaches; a
/// device function that several kernels reach has one place for its own.
class SharedLayout {
 public:
  /// Puts the places of the module's variables into `places`, by variable.
  SharedLayout(const ptx::Module& module, const References& references, std::vector<uint64_t>& places);

  /// Bytes of an entry's static variables, with those of all that it calls.
  uint32_t static_bytes(uint32_t function) const { return static_[function]; }
  /// Places of a function's own variables, UINT32_MAX for those in other spaces.
  const std::vector<uint32_t>& own(uint32_t function) const { return own_[function]; }
  /// Where dynamic shared memory begins as a function sees it.
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
