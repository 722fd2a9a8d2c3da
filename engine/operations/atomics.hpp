#pragma once
#include <array>

#include "machine/access.hpp"

/// Atomic operations on memory, for PTX and machine code.
namespace simt::functional {

enum class AtomicOperation : uint8_t { Add, Inc, Dec, Min, Max, And, Or, Xor, Exch, Cas };

/// Which generic addresses an instruction acts on: those of other lanes do not take effect.
enum class AtomicReach : uint8_t { All, GlobalAndShared, Global };

struct AtomicDetail : Detail {
  static constexpr uint32_t max_elements = 8;

  Address::Base base = Address::Base::Wide;
  AccessSpace space = AccessSpace::Generic;
  bool pairs = false;  ///< 64-bit values are in two rows, low and high words
  AtomicReach reach = AtomicReach::All;
  Place succeeds = place::none;  ///< predicate of the lanes that take effect, unless all do
  // For vectors and 128-bit values:
  uint32_t elements = 1;
  std::array<Place, max_elements> values{}, results{};
  bool returns = false;
};

/// Handlers of an operation on a type; nullptr where there is none. They read Op::b and, for Cas, Op::c;
/// those of vectors, AtomicDetail::values.
struct AtomicHandlers {
  Handler run = nullptr;
  Handler run_vector = nullptr;
  bool commutes = false;
};
AtomicHandlers atomic_handlers(AtomicOperation operation, ptx::Type type);
/// Compare and swap of 4 or 8 bytes whose result is 1 where it swapped, else 0.
Handler compare_and_tell_handler(uint32_t bytes);

}  // namespace simt::functional
