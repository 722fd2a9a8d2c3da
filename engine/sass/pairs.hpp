#pragma once
#include "sass/translation.hpp"

/// 64-bit values are in two rows in registers, of one word per lane each; handlers shared with PTX keep them
/// in one array.
namespace simt::sass {

/// Emits an Op that makes one array of two rows; it is in scratch rows.
Place joined(Translation& t, Place rows);
/// Emits an Op that writes an array to two rows.
void split(Translation& t, Place rows, Place array);

/// The place of a number of a type, whose part of a register the operand's suffix says, with its sign
/// applied.
Place number_source(Translation& t, uint32_t index, ptx::Type type);

}  // namespace simt::sass
