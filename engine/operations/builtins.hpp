#pragma once
#include <cstdint>
#include <string_view>

#include "machine/code.hpp"

namespace simt::functional {

/// A function without a body in PTX, provided by the system, such as vprintf. Its arguments and result are in
/// the caller's stack frame, see CallSite.
struct Builtin {
  Handler run = nullptr;
  uint32_t arguments = 0, results = 0;
  /// It changes state shared by all threads: threads call it one at a time, in time order.
  bool ordered = false;
};
/// nullptr if there is none with this name.
const Builtin* find_builtin(std::string_view name);

}  // namespace simt::functional
