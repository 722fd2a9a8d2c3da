#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace simt::functional {

/// An error in the simulated program. Thrown where it occurs, with what is known there; the executor adds
/// kernel, CTA, thread and source line.
struct Fault : std::runtime_error {
  /// `lane`: the lane at fault, or -1 if the whole warp is.
  Fault(std::string kind_name, const std::string& what_happened, int lane_index = -1)
      : std::runtime_error(what_happened), kind(std::move(kind_name)), lane(lane_index) {}

  std::string kind;  ///< "illegal address", "misaligned address", "trap", "assert", ...
  int lane;
  uint64_t address = 0;  ///< for faults on memory
  bool has_address = false;
};

/// An address in hexadecimal, for messages.
std::string hex(uint64_t value);

/// A Fault with its location, ready to be shown.
struct ProgramFault : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::string kind, kernel, instruction, source_file;
  uint32_t cta[3] = {0, 0, 0}, thread[3] = {0, 0, 0};
  uint32_t ptx_line = 0, source_line = 0;
  uint64_t launch = 0;  ///< LaunchConfig::id
  uint64_t address = 0;
  bool has_address = false;
};

}  // namespace simt::functional
