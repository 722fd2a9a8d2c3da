#pragma once
#include "sass/translation.hpp"

/// 64-bit values are in two rows in registers, of one word per lane each; handlers shared with PTX keep them
/// in one array.
namespace simt::sass {

/// Emits an Op that makes one array of two rows; it is in scratch rows.
Place joined(Translation& t, Place rows);
/// Emits an Op that writes an array to two rows.
void split(Translation& t, Place rows, Place array);

}  // namespace simt::sass
