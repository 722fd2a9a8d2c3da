/// clusterlaunchcontrol.
#include "operations/launch_control.hpp"

#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

void run_not_canceled(Context& c, const Op& op) {
  write_predicate(c, op.destination, 0);
}
void run_no_cta(Context& c, const Op& op) {
  const uint32_t zero[warp_lanes] = {};
  write_lanes(c, c.lanes<uint32_t>(op.destination), zero);
}

void emit_no_cta(Translation& t, const ptx::Operand& to) {
  const Place place = t.destination(to, Type::B32);
  t.emit(run_no_cta).destination = place;
}

}  // namespace

void translate_try_cancel(Translation& t) {
  t.take("try_cancel");
  if (!t.take("async")) t.unsupported("`.async` is missing");
  t.take("shared::cta");
  if (!t.take("mbarrier::complete_tx::bytes")) t.unsupported("the completion mechanism is missing");
  CancelDetail d;
  d.everywhere = t.take("multicast::cluster::all");
  t.take("b128");
  d.answer = memory_address(t, 0);
  d.mbarrier = memory_address(t, 1);
  t.emit(try_cancel_handler());
  t.detail<CancelDetail>() = d;
}

/// The answer, in the last operand, is always the same.
void translate_query_cancel(Translation& t) {
  t.take("query_cancel");
  const bool canceled = t.take("is_canceled");
  if (!canceled && t.take_one_of({"get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y",
                                  "get_first_ctaid::z"}) < 0)
    t.unsupported("`.is_canceled` or `.get_first_ctaid` is missing");
  t.take_all();
  if (canceled) {
    const Place to = t.predicate_destination(t.operand(0));
    t.emit(run_not_canceled).destination = to;
    return;
  }
  const ptx::Operand& to = t.operand(0);
  if (to.kind != OperandKind::Vector) return emit_no_cta(t, to);
  for (uint32_t k = 0; k < to.part_count; ++k)
    if (const ptx::Operand& part = t.part(to, k); part.kind != OperandKind::Discard) emit_no_cta(t, part);
}

}  // namespace simt::functional
