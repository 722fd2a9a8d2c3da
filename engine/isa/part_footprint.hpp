#pragma once
#include <cstdint>
#include <unordered_map>

#include "isa/instruction_source.hpp"

namespace simt {

/// The lines of global memory that some CTAs of a launch access, and which of them others access, too.
class PartFootprint {
 public:
  struct Line {
    uint8_t read = 0, written = 0;  ///< bit per sector
    bool shared = false;
  };
  using Lines = std::unordered_map<uint64_t, Line>;

  /// Follows all CTAs of both sources, on up to `threads` host threads.
  PartFootprint(InstructionSource& part, InstructionSource& others, uint32_t threads);

  const Lines& lines() const { return lines_; }
  uint64_t shared() const { return shared_; }
  /// Whether CTAs of the part stored to memory that holds values.
  bool leaves_values() const { return leaves_values_; }
  /// Warp instructions of the part's CTAs, and of the others'.
  uint64_t warp_instructions() const { return warp_instructions_; }
  uint64_t other_warp_instructions() const { return other_warp_instructions_; }

 private:
  template <class Add>
  static uint64_t follow(InstructionSource& source, uint32_t threads, Add add);

  Lines lines_;
  uint64_t shared_ = 0, warp_instructions_ = 0, other_warp_instructions_ = 0;
  bool leaves_values_ = false;
};

}  // namespace simt
