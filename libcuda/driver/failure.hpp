#pragma once
#include <string>

#include "api.hpp"

namespace simt::driver {

/// What an API function returns instead of success; thrown inside, caught where the program called.
struct Failure {
  CUresult code;
};

/// Writes a line about the program's use of the library to standard error: "simt: ...".
void say(const std::string& text);
/// As `say`, but each text once in a process.
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
