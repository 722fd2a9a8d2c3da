#pragma once
#include <vector>

#include "machine/access.hpp"
#include "machine/address.hpp"

/// What tcgen05 does besides multiplying: allocation of tensor memory, moves between it and registers or
/// shared memory, and arrivals. All take effect at once; on hardware most of them are asynchronous.
namespace simt::functional {

/// Address in tensor memory, which must be the same in all lanes: `base` holds 32-bit lanes.
struct TensorAddress {
  Place base = place::none;
  int64_t offset = 0;
};
uint32_t tensor_address(const Context& c, const TensorAddress& address);

/// The CTA that works together with this one in .cta_group::2. Throws Fault if there is none.
Cta& peer_of(Context& c);

/// tcgen05.alloc: stores the address in shared memory.
struct TensorAllocationDetail : Detail {
  Address to;
  AccessSpace space = AccessSpace::Generic;
  Place columns = place::none;
  uint32_t ctas = 1;
};
void run_tensor_allocate(Context& c, const Op& op);
/// The CTA's tensor memory, to allocate columns of it, and as many of its peer's with two CTAs. Throws Fault
/// if there is none.
TensorMemory& memory_to_allocate(Context& c, uint32_t ctas);

/// tcgen05.dealloc: Op::a is the address, Op::b the number of columns, Op::immediate the number of CTAs.
void run_tensor_free(Context& c, const Op& op);
/// Op::immediate: the number of CTAs.
void run_tensor_relinquish(Context& c, const Op& op);

/// tcgen05.ld and tcgen05.st, of a warp.
struct TensorMoveDetail : Detail {
  enum class Shape : uint8_t { Lanes32x32b, Lanes16x64b, Lanes16x128b, Lanes16x256b, Lanes16x32bx2 };
  Shape shape = Shape::Lanes32x32b;
  bool halves = false;  ///< a register holds the lower 16 bits of two columns
  TensorAddress at;
  int64_t second_half = 0;  ///< of 16x32bx2: columns from the first part to the second
  uint32_t first_thread = 0, threads = warp_lanes;  ///< those that take part
  std::vector<Place> registers;
};
void run_tensor_load(Context& c, const Op& op);
void run_tensor_store(Context& c, const Op& op);

/// tcgen05.cp: rows of a matrix in shared memory.
struct TensorCopyDetail : Detail {
  enum class Spread : uint8_t {
    All,         ///< rows to as many lanes
    Corners,     ///< 4 rows, to lanes 0, 32, 64 and 96, or as many lanes further
    Pairs02_13,  ///< 64 rows, to lanes 0 to 63, and again to lanes 64 to 127
    Pairs01_23,  ///< rows 0 to 31 to lanes 0 to 63, twice; rows 32 to 63 to the others
    Four         ///< 32 rows, four times
  };
  enum class Unpack : uint8_t { None, Six, Four };  ///< of elements that lie packed in 16 bytes

  Spread spread = Spread::All;
  Unpack unpack = Unpack::None;
  uint32_t rows = 128, bytes = 32;  ///< of a row, in tensor memory
  uint32_t ctas = 1;
  TensorAddress to;
  Place descriptor = place::none;
};
void run_tensor_copy(Context& c, const Op& op);

/// tcgen05.shift: each of the 32 lanes from the address on but the last takes 32 bytes of the next lane.
struct TensorShiftDetail : Detail {
  uint32_t ctas = 1;
  TensorAddress at;
};
void run_tensor_shift(Context& c, const Op& op);

/// tcgen05.commit: an arrival at an mbarrier.
struct TensorCommitDetail : Detail {
  Address mbarrier;
  AccessSpace space = AccessSpace::Generic;
  Place cta_mask = place::none;  ///< of a multicast
  uint32_t ctas = 1;
};
void run_tensor_commit(Context& c, const Op& op);

}  // namespace simt::functional
