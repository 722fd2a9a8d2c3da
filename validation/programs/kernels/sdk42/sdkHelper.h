// As cutil_inline.h, for the programs that use the later of the two libraries.
#pragma once

#include "cutil_inline.h"

#include <algorithm>

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CLAMP(value, least, most) std::min(std::max(value, uint(least)), uint(most))
#define ConvertSMVer2Cores(major, minor) 1
#define _ConvertSMVer2Cores ConvertSMVer2Cores
#define clockRate major  // CUDA 13 tells none; it only served to choose among GPUs

struct StopWatchInterface {};

inline bool compareData(const float* expected, const float* found, unsigned count, float, float) {
  return std::equal(expected, expected + count, found);
}

inline bool checkCmdLineFlag(int, const char**, const char*) { return false; }
inline int getCmdLineArgumentInt(int, const char**, const char*) { return 0; }
inline bool sdkCreateTimer(StopWatchInterface**) { return true; }
inline bool sdkDeleteTimer(StopWatchInterface**) { return true; }
inline bool sdkResetTimer(StopWatchInterface**) { return true; }
inline bool sdkStartTimer(StopWatchInterface**) { return true; }
inline bool sdkStopTimer(StopWatchInterface**) { return true; }
inline float sdkGetTimerValue(StopWatchInterface**) { return 1; }
