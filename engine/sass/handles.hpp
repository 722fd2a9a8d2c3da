#pragma once
#include "operations/texture_operands.hpp"
#include "sass/translation.hpp"

namespace simt::sass {

/// The texture or surface that an operand names: a register, or, in two operands, a word of a constant bank.
functional::TextureReference take_handle(Translation& t, uint32_t index);

}  // namespace simt::sass
