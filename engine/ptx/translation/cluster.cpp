/// Clusters and warp scheduling: mapa, getctarank, nanosleep, setmaxnreg, griddepcontrol.
#include "ptx/translation/bulk.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// The same offset in the CTA whose rank is in b. immediate: start of the address window.
template <class T>
void run_mapa(Context& c, const Op& op) {
  const auto window = static_cast<uint64_t>(op.immediate);
  const T* a = c.lanes<const T>(op.a);
  const uint32_t* rank = c.lanes<const uint32_t>(op.b);
  alignas(64) T result[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i)
    result[i] = static_cast<T>(window + c.in_cta(uint64_t{a[i]} - window, rank[i]));
  write_lanes(c, c.lanes<T>(op.destination), result);
}

template <class T>
void run_ctarank(Context& c, const Op& op) {
  const T* a = c.lanes<const T>(op.a);
  uint32_t result[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const auto rank = static_cast<uint32_t>(a[i] >> window::rank_shift & 0xff);
    result[i] = rank ? rank - c.first_rank : c.cta->rank();
  }
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}

/// All lanes wake with the one that sleeps shortest; PTX permits shorter sleeps.
void run_sleep(Context& c, const Op& op) {
  const auto* a = c.lanes<const uint32_t>(op.a);
  c.sleep = UINT32_MAX;
  for (uint32_t rest = c.mask; rest; rest &= rest - 1) c.sleep = std::min(c.sleep, a[std::countr_zero(rest)]);
  c.yield = true;
}
void run_nothing(Context&, const Op&) {}

}  // namespace

void translate_mapa(Translation& t) {
  const bool shared = t.take("shared::cluster");
  const Type type = t.take_type();
  if (type != Type::U32 && type != Type::U64) t.unsupported("addresses have the type .u32 or .u64");
  const Place destination = t.destination(0, type), a = t.source(1, type), b = t.source(2, Type::U32);
  Op& op = t.emit(type == Type::U32 ? run_mapa<uint32_t> : run_mapa<uint64_t>);
  op.destination = destination;
  op.a = a;
  op.b = b;
  // The low half of a generic address in the window is the shared memory address.
  op.immediate = shared || type == Type::U32 ? 0 : static_cast<int64_t>(window::shared);
}
void translate_getctarank(Translation& t) {
  t.take("shared::cluster");
  const Type type = t.take_type();
  if (type != Type::U32 && type != Type::U64) t.unsupported("addresses have the type .u32 or .u64");
  const Place destination = t.destination(0, Type::U32), a = t.source(1, type);
  Op& op = t.emit(type == Type::U32 ? run_ctarank<uint32_t> : run_ctarank<uint64_t>);
  op.destination = destination;
  op.a = a;
}

void translate_nanosleep(Translation& t) {
  t.take("u32");
  const Place a = t.source(0, Type::U32);
  t.emit(run_sleep, Control::Yield).a = a;
}

/// Registers are allocated statically.
void translate_setmaxnreg(Translation& t) {
  if (t.take_one_of({"inc", "dec"}) < 0) t.unsupported(".inc or .dec is missing");
  t.take("sync");
  t.take("aligned");
  t.take("u32");
  t.emit(run_nothing);
}

/// A grid begins once those it depends on have ended.
void translate_griddepcontrol(Translation& t) {
  if (t.take_one_of({"launch_dependents", "wait"}) < 0)
    t.unsupported(".launch_dependents or .wait is missing");
  t.emit(run_nothing);
}

}  // namespace simt::functional
