/// Asynchronous copies by lanes, from global to shared memory. They take effect at once; groups only affect
/// timing.
#include "functional/copies.hpp"
#include "sass/instructions.hpp"
#include "sass/ordering.hpp"

namespace simt::sass {

/// LDGSTS to, from [, p]: where p does not hold, zeros are written. With .ZFILL, the lowest bits of `from`
/// are a number of bytes at the end that are zeros, too.
void translate_copy_async(Translation& t) {
  functional::CopyDetail d;
  d.skips_bytes = t.take("ZFILL");
  take_ordering(t);
  static constexpr uint32_t bytes[] = {4, 8, 16};
  d.bytes = bytes[t.take_one_of({"32", "64", "128"}, 0)];
  d.to = t.address(0, true);
  d.from = t.address(1);
  if (t.operand_count() > 2) {
    d.ignore = t.predicate(2);
    d.ignore.negated = !d.ignore.negated;
  }
  t.emit(functional::copy_handler(d.bytes));
  t.detail<functional::CopyDetail>() = d;
  t.accesses(d.bytes);
}

}  // namespace simt::sass
