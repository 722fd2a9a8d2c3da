#include "sass/pairs.hpp"

#include "sass/rows.hpp"

namespace simt::sass {

namespace {

void run_join(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  auto* to = c.lanes<uint64_t>(op.destination);
  for (uint32_t i = 0; i < warp_lanes; ++i) to[i] = pair_at(a, i);
}
void run_split(Context& c, const Op& op) {
  const auto* a = c.lanes<const uint64_t>(op.a);
  map_pairs(c, op.destination, [=](uint32_t i) { return a[i]; });
}

}  // namespace

Place joined(Translation& t, Place rows) {
  const Place array = t.scratch(2);
  Op& op = t.emit(run_join);
  op.destination = array;
  op.a = rows;
  return array;
}

void split(Translation& t, Place rows, Place array) {
  Op& op = t.emit(run_split);
  op.destination = rows;
  op.a = array;
}

}  // namespace simt::sass
