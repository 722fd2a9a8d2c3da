#pragma once
#include <cstdint>

#include "machine/address.hpp"

/// Instructions on words of 32 bits whose handlers PTX and machine code share.
namespace simt::functional {

/// d = f(a, b, c), bit by bit: bit 4a + 2b + c of `table`, which is below 256.
Handler logic3_handler(uint32_t table);

/// A logic operation with a second result, the predicate p = (d != 0) OP q. Op::destination: p.
struct LogicTest : Detail {
  Handler logic = nullptr;
  Place result = place::none;  ///< d
  PredicateOperand combined;   ///< q
  bool is_or = false;
};
void run_logic_test(Context& c, const Op& op);

/// d = bytes of b:a, chosen by c. mode: 0 to 5 for F4E, B4E, RC8, ECL, ECR, RC16; below 0 for the default
/// one, in which each byte has a 4-bit selector.
Handler permute_handler(int mode);
/// The same with one selector for all lanes, in Op::immediate; of a mode it is `permute_selector`.
void run_permute_fixed(Context& c, const Op& op);
uint32_t permute_selector(int mode, uint32_t c);

/// d = c plus the products of the four bytes of a and b.
Handler dot4_handler(bool a_signed, bool b_signed);
/// d = c plus the products of the halves of a and bytes 0 and 1, or of the upper ones, of b.
Handler dot2_handler(bool upper, bool a_signed, bool b_signed);

}  // namespace simt::functional
