// A program of NVIDIA's SDK 4.2 ends with its own verdict.
#pragma once

#include <cstdio>
#include <cstdlib>

enum { QA_PASSED = 0, QA_FAILED = 1, QA_WAIVED = 2 };

inline void shrQAStart(int, char**) {}
inline void shrQAFinishExit(int, const char**, int verdict) {
  printf(verdict == QA_PASSED ? "passed\n" : "not passed\n");
  exit(verdict);
}
