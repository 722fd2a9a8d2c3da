#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace simt {

/// A trace or a trace store cannot be read. A caller that knows the file's name adds it.
class TraceError : public std::runtime_error {
 public:
  explicit TraceError(const std::string& reason) : std::runtime_error(reason) {}
  TraceError(uint64_t line, const std::string& reason)
      : std::runtime_error("line " + std::to_string(line) + ": " + reason) {}
};

}  // namespace simt
