#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace simt::check {

/// One of the two accesses of a finding, or the instruction at fault.
struct Access {
  std::string what;  ///< read, write, atomic, ...; empty: there is none
  std::string file;  ///< of the source; empty if it is not known
  uint32_t line = 0;
  std::string inner;        ///< file and line of the function that is inlined there, if it is of another file
  std::string position;     ///< in PTX or machine code
  std::string instruction;  ///< as written there
  std::array<uint32_t, 3> thread{}, block{};
  uint64_t address = 0;
  std::string space;   ///< shared, global, local; empty: no memory
  std::string object;  ///< the variable or allocation, with its place in it
  std::string kernel;
};

struct Finding {
  std::string check, kind, kernel;
  std::string detail;  ///< what is wrong, where the kind does not tell
  Access first, second;
  uint64_t count = 1;
};

}  // namespace simt::check
