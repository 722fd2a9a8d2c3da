#pragma once
#include "instructions/sass.hpp"
#include "sass/instructions.hpp"

/// Memory.
namespace simt::instructions {

inline constexpr SassRow sass_memory_rows[] = {
    {"LD", ".E[.width][.STRONG.scope] d,address", sass::translate_load},
    {"LDG", ".E[.width][.CONSTANT][.STRONG.scope] d,address", sass::translate_load},
    {"LDS", "[.width] d,address", sass::translate_load},
    {"LDL", "[.width] d,address", sass::translate_load},
    {"ST", ".E[.width][.STRONG.scope] address,a", sass::translate_store},
    {"STG", ".E[.width][.STRONG.scope] address,a", sass::translate_store},
    {"STS", "[.width] address,a", sass::translate_store},
    {"STL", "[.width] address,a", sass::translate_store},
    {"LDC", "[.width] d,constant", sass::translate_load_constant},
    {"ULDC", "[.width] d,constant", sass::translate_load_constant},
    {"MEMBAR", ".{SC,ALL}.scope", sass::translate_fence},
    {"ERRBAR", "", sass::translate_nothing},
    {"CGAERRBAR", "", sass::translate_nothing},
    {"CCTL", ".operation [address]", sass::translate_nothing},
    {"CCTLL", ".operation [address]", sass::translate_nothing},
};

}  // namespace simt::instructions
