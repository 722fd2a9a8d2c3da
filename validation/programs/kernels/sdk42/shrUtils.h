// Output of the programs of NVIDIA's SDK 4.2.
#pragma once

#include <cstdio>
#include <cstdlib>

enum { LOGBOTH = 1, MASTER = 2 };

#define shrLog printf
#define shrLogEx(mode, error, ...) printf(__VA_ARGS__)

inline void shrSetLogFileName(const char*) {}
inline bool shrCheckCmdLineFlag(int, const char**, const char*) { return false; }
