#pragma once
#include <string>

#include "api.hpp"

namespace simt::driver {

/// An API function's error code; thrown internally, and caught at the entry point.
struct Failure {
  CUresult code;
};

/// Writes a line about the program's use of the library to standard error: "simt: ...".
void say(const std::string& text);
/// As `say`, but writes each text only once per process.
void say_once(const std::string& text);

[[noreturn]] inline void fail(CUresult code) {
  throw Failure{code};
}
[[noreturn]] inline void fail(CUresult code, const std::string& text) {
  say(text);
  throw Failure{code};
}
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}

}  // namespace simt::driver
