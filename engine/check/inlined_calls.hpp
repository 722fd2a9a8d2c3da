#pragma once
#include <cstdint>
#include <string>

#include "machine/code.hpp"

namespace simt::check {

/// A call in a source. line: 0 if there is none.
struct Call {
  std::string file;
  uint32_t line = 0;
};

/// The call, in the file of the kernel, of the function that is inlined at an Op of PTX; none if the Op is of
/// that file itself.
Call inlined_call(const functional::Program& program, uint32_t op);

}  // namespace simt::check
