#include "machine/access.hpp"

namespace simt::functional {

std::byte* host_address(Context& c, AccessSpace space, uint64_t address, uint64_t bytes, int lane) {
  switch (space) {
    case AccessSpace::Global:
      return c.global(address, bytes, lane);
    case AccessSpace::Shared:
      return c.shared(address, bytes, lane);
    case AccessSpace::Local:
      return c.local(address, bytes, lane);
    case AccessSpace::Generic:
      break;
  }
  return c.generic(address, bytes, lane);
}

}  // namespace simt::functional
