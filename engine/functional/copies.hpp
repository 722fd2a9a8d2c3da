#pragma once
#include "functional/translator.hpp"

/// Asynchronous copies by lanes, from global to shared memory, for PTX and machine code.
namespace simt::functional {

struct CopyDetail : Detail {
  Address to, from;
  uint32_t bytes = 0;
  Place source_bytes = place::none;  ///< number of bytes read; the rest is zero-filled
  bool skips_bytes = false;  ///< the rest of source address by `bytes` is how many bytes are zero-filled
  PredicateOperand ignore;   ///< predicate of the lanes that read nothing
};

/// For copies of 4, 8 or 16 bytes; nullptr for others.
Handler copy_handler(uint32_t bytes);

}  // namespace simt::functional
