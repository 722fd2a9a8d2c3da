#pragma once
#include <array>

#include "machine/access.hpp"
#include "machine/address.hpp"
#include "operations/element_reduction.hpp"

/// Asynchronous copies and stores without tensor maps, for PTX and machine code.
namespace simt::functional {

struct CopyDetail : Detail {
  Address to, from;
  uint32_t bytes = 0;
  Place source_bytes = place::none;  ///< number of bytes read; the rest is zero-filled
  bool skips_bytes = false;  ///< the rest of source address by `bytes` is how many bytes are zero-filled
  PredicateOperand ignore;   ///< predicate of the lanes that read nothing
};

/// How many of `bytes` each lane reads, and from where: on entry, `from` has its operand.
void find_bytes_read(Context& c, const CopyDetail& d, uint32_t bytes, uint64_t* from, uint32_t* sizes);
/// For copies of 4, 8 or 16 bytes; nullptr for others.
Handler copy_handler(uint32_t bytes);

/// Source and destination of a bulk copy.
struct Direction {
  AccessSpace to = AccessSpace::Global, from = AccessSpace::Global;
};

/// A bulk copy or reduction.
struct BulkDetail : Detail {
  Direction direction;
  Address to, from, mbarrier;
  bool signals = false;  ///< the mbarrier
  bool multicast = false, prefetches = false;
  bool masked = false;                            ///< writes only some bytes of each 16
  Place bytes = place::none, mask = place::none;  ///< mask: 16 bits, of CTAs or of bytes
  Place left = place::none, right = place::none;  ///< bytes at both ends that are not copied, if any
  /// `bytes` holds, as in machine code, the number of 16 bytes, and above it the mask.
  bool packed = false;
  ElementReduction reduction;
};
Handler bulk_handler();

/// A store or reduction in the shared memory of a CTA of the cluster, which an mbarrier there counts.
struct RemoteDetail : Detail {
  Address to, mbarrier;
  uint32_t elements = 1, element_bytes = 4;
  std::array<Place, 4> values{};
  bool in_pairs = false;  ///< a value of 8 bytes is in two rows of registers
  ElementReduction reduction;
};
Handler remote_handler();

}  // namespace simt::functional
