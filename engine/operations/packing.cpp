#include "operations/packing.hpp"

#include <algorithm>

#include "machine/lanes.hpp"

namespace simt::functional {

void run_packing(Context& c, const Op& op) {
  const auto& d = op.details<Packing>();
  const uint32_t bits = d.bits, keep = (1u << bits) - 1;
  const int32_t least = d.least, most = d.most;
  const auto pair = [=](int32_t a, int32_t b) {
    return (static_cast<uint32_t>(std::clamp(a, least, most)) & keep) << bits |
           (static_cast<uint32_t>(std::clamp(b, least, most)) & keep);
  };
  if (bits == 16)
    map_lanes<uint32_t, int32_t, int32_t>(c, op.destination, pair, op.a, op.b);
  else
    map_lanes<uint32_t, int32_t, int32_t, uint32_t>(
        c, op.destination,
        [=](int32_t a, int32_t b, uint32_t rest) { return rest << (2 * bits) | pair(a, b); }, op.a, op.b,
        op.c);
}

}  // namespace simt::functional
