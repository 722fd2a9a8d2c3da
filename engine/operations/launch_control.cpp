#include "operations/launch_control.hpp"

#include "machine/access.hpp"
#include "operations/mbarrier.hpp"

namespace simt::functional {
namespace {

constexpr uint32_t answer_bytes = 16;

void run_try_cancel(Context& c, const Op& op) {
  const auto& d = op.details<CancelDetail>();
  uint64_t answer[warp_lanes], mbarrier[warp_lanes];
  lane_addresses(c, d.answer, answer);
  lane_addresses(c, d.mbarrier, mbarrier);
  check_alignment(c, answer, answer_bytes);
  const auto reply = [&](uint64_t at, uint64_t signal, int lane) {
    std::memset(c.shared(at, answer_bytes, lane), 0, answer_bytes);
    Mbarrier(c, AccessSpace::Shared, signal, lane).expect(-int64_t{answer_bytes});
  };
  each_lane(c, [&](int i) {
    if (!d.everywhere) return reply(answer[i], mbarrier[i], i);
    for (uint32_t rank = 0; rank < c.cta->cluster().ctas.size(); ++rank)
      reply(c.in_cta(answer[i], rank), c.in_cta(mbarrier[i], rank), i);
  });
}

}  // namespace

Handler try_cancel_handler() {
  return run_try_cancel;
}

}  // namespace simt::functional
