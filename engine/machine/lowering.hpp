#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "isa/raw_instruction.hpp"
#include "machine/code.hpp"

namespace simt::functional {

/// What the timing model is given instead of PTX: approximately the SASS that ptxas would generate, under
/// SASS names, so that executed programs and traces are classified and timed alike.
///
/// PTX differs from SASS: values that SASS keeps in constant banks (kernel parameters), address space
/// conversions and copies cost nothing; 64-bit integer operations take two instructions; a multiplication
/// that feeds only a 64-bit addition is one IMAD.WIDE; divisions, square roots and special functions that
/// need scaling are sequences. docs/functional/timing.md lists the rules.
struct Lowering {
  struct Range {
    uint32_t first = 0, count = 0;  ///< into `instructions`
    uint32_t access = UINT32_MAX;   ///< the one that carries the memory access or barrier
  };
  struct Registers {
    uint32_t first = 0, count = 0;  ///< into `touched`
  };

  std::vector<RawInstruction> instructions;
  std::vector<std::string> opcodes;
  std::vector<Range> of_op;            ///< for each Op of the program
  std::vector<Registers> reads_of_op;  ///< registers that an Op reads or writes: place / 128; predicate p is
                                       ///< 0x10000 + p
  std::vector<Registers> writes_of_op;
  std::vector<uint32_t> touched;
};

}  // namespace simt::functional
