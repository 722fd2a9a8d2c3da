#include "timing/core/front_end.hpp"

#include <algorithm>

namespace simt {

bool FrontEnd::take(Cycle now, LoadStoreUnit& load_store, ConstantCache& constant_cache) {
  bool changed = false;
  for (; !wakes_.empty() && wakes_.front().cycle <= now; wakes_.pop_front())
    changed |= ctas_.wake(wakes_.front().cta_slot);
  for (; !targets_.empty() && targets_.front().cycle <= now; targets_.pop_front()) {
    const uint32_t w = targets_.front().warp;
    warps_.go_on(w);
    if (warps_[w].dropped) fill(w, now);
    changed = true;
  }
  if (caches_.idle()) return changed;
  arrived_.clear();
  changed |= caches_.cycle(now, load_store, arrived_);
  if (!caches_.constants().empty()) constant_cache.take_lines(now);
  for (uint32_t w : arrived_) {
    if (!warps_[w].resident) continue;
    warps_.set_fetch_pending(w, false);
    fill(w, now);
  }
  return changed;
}

Cycle FrontEnd::next_event(Cycle now) const {
  Cycle next = caches_.next_event(now);
  if (!wakes_.empty()) next = std::min(next, std::max(now + 1, wakes_.front().cycle));
  if (!targets_.empty()) next = std::min(next, std::max(now + 1, targets_.front().cycle));
  return next;
}

}  // namespace simt
