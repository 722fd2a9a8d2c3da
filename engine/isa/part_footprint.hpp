#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "isa/instruction_source.hpp"

namespace simt {

/// The lines of global memory that some CTAs of a launch access, and how much of it others do.
class PartFootprint {
 public:
  struct Line {
    uint8_t read = 0, written = 0;  ///< bit per sector
    uint32_t own = 0;               ///< CTAs of the part that access it
    double others = 0;              ///< other CTAs of the launch that access it, as far as was looked
    uint64_t last = 0;              ///< CTA that was counted last

    /// How probably a CTA of the part is the first to access it.
    double share() const { return own / (own + others); }
  };
  using Lines = std::unordered_map<uint64_t, Line>;
  /// Some of the other CTAs, each of which stands for so many.
  struct Others {
    InstructionSource* source;
    double each;
  };

  /// Follows all CTAs of the sources, on up to `threads` host threads.
  PartFootprint(InstructionSource& part, const std::vector<Others>& others, uint32_t threads);

  const Lines& lines() const { return lines_; }
  /// Lines that others access, too.
  uint64_t shared() const;
  /// Lines, of which those that others access count in the measure in which these are the first.
  double of_others() const;
  /// Whether CTAs of the part stored to memory that holds values.
  bool leaves_values() const { return leaves_values_; }
  /// Warp instructions of the part's CTAs, and of the others'.
  uint64_t warp_instructions() const { return warp_instructions_; }
  uint64_t other_warp_instructions() const { return other_warp_instructions_; }

 private:
  /// add: is called with each access of each CTA, of which `ctas_` is the number.
  template <class Add>
  uint64_t follow(InstructionSource& source, uint32_t threads, Add add);

  Lines lines_;
  uint64_t ctas_ = 0, warp_instructions_ = 0, other_warp_instructions_ = 0;
  bool leaves_values_ = false;
};

}  // namespace simt
