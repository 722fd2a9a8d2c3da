#pragma once
#include <array>

#include "machine/access.hpp"

/// Loads and stores of registers, for PTX and machine code.
namespace simt::functional {

/// How a value in memory is extended in a register.
enum class Widen : uint8_t { Zero, Sign };

struct AccessDetail : Detail {
  static constexpr uint32_t max_elements = 8;

  Address::Base base = Address::Base::Wide;
  AccessSpace space = AccessSpace::Generic;
  bool in_parameters = false;  ///< addresses are offsets in the kernel's parameter block
  uint32_t elements = 1;
  uint32_t element_bytes = 4;
  Widen widen = Widen::Zero;
  std::array<Place, max_elements> places{};
  std::array<uint8_t, max_elements> place_bytes{};  ///< 4, 8 or 16
  bool words = false;                               ///< elements and places of 4 bytes
};

/// Handlers that the detail chooses; it must be the Op's.
Handler load_handler(const AccessDetail& detail);
Handler store_handler(const AccessDetail& detail);

}  // namespace simt::functional
