#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace simt {

/// A trace or a trace store that cannot be read. The file's name is added by whoever knows it.
class TraceError : public std::runtime_error {
 public:
  explicit TraceError(const std::string& reason) : std::runtime_error(reason) {}
  TraceError(uint64_t line, const std::string& reason)
      : std::runtime_error("line " + std::to_string(line) + ": " + reason) {}
};

}  // namespace simt
