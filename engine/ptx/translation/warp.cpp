/// Lanes of a warp exchange values: shfl, vote, match, redux, elect, activemask.
#include "operations/collectives.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// d|p, or d alone.
struct Destinations {
  Place value = place::none, predicate = place::none;
};
Destinations take_destinations(Translation& t, const ptx::Operand& o) {
  if (o.kind != OperandKind::Pair) return {t.destination(o, Type::B32), place::none};
  return {t.destination(t.part(o, 0), Type::B32), t.predicate_destination(t.part(o, 1))};
}

using Kind = CollectiveOperands::Kind;

/// A collective over the lanes named by the last operand. Without .sync, as before sm_70: over the active
/// lanes.
Op& emit_collective(Translation& t, Handler run, bool sync, uint32_t member_operand,
                    const CollectiveOperands& operands) {
  const Place members = sync ? t.source(member_operand, Type::B32) : place::none;
  Op& op = t.emit(run, sync ? Control::Collective : Control::None);
  op.member_mask = members;
  t.detail<CollectiveOperands>() = operands;
  return op;
}

}  // namespace

void translate_shfl(Translation& t) {
  const bool sync = t.take("sync");
  const int mode = t.take_one_of({"up", "down", "bfly", "idx"});
  if (mode < 0) t.unsupported("a shuffle needs .up, .down, .bfly or .idx");
  if (t.take_type() != Type::B32) t.unsupported("shuffles have the type .b32");
  const Destinations d = take_destinations(t, t.operand(0));
  const Place a = t.source(1, Type::B32), b = t.source(2, Type::B32), c = t.source(3, Type::B32);
  CollectiveOperands operands;
  operands.a = operands.b = operands.c = operands.destination = Kind::Word;
  operands.predicate = d.predicate;
  operands.lane_by_lane = true;
  Op& op = emit_collective(t, shuffle_handler(static_cast<Shuffle>(mode)), sync, 4, operands);
  op.destination = d.value;
  op.a = a;
  op.b = b;
  op.c = c;
}

void translate_vote(Translation& t) {
  const bool sync = t.take("sync");
  const int mode = t.take_one_of({"all", "any", "uni", "ballot"});
  if (mode < 0) t.unsupported("a vote needs .all, .any, .uni or .ballot");
  const bool ballot = mode == 3;
  if (!t.take(ballot ? "b32" : "pred"))
    t.unsupported(ballot ? "ballots have the type .b32" : "votes are of .pred");
  const Place destination = ballot ? t.destination(0, Type::B32) : t.predicate_destination(t.operand(0));
  const PredicateOperand a = t.predicate_source(t.operand(1));
  CollectiveOperands operands;
  operands.a = Kind::Predicate;
  operands.destination = ballot ? Kind::Word : Kind::Predicate;
  operands.lane_by_lane = true;
  Op& op = emit_collective(t, vote_handler(static_cast<Vote>(mode)), sync, 2, operands);
  op.destination = destination;
  op.a = a.place;
  op.immediate = a.negated;
}

void translate_match(Translation& t) {
  const int mode = t.take_one_of({"any", "all"});
  if (mode < 0 || !t.take("sync")) t.unsupported("match needs .any or .all, and .sync");
  const Type type = t.take_type();
  if (type != Type::B32 && type != Type::B64) t.unsupported("matches have the type .b32 or .b64");
  const bool wide = type == Type::B64;
  const Destinations d = take_destinations(t, t.operand(0));
  if (mode == 0 && d.predicate != place::none) t.unsupported("match.any has no predicate result");
  const Place a = t.source(1, type);
  const Handler run = mode == 0 ? match_any_handler(wide) : match_all_handler(wide);
  CollectiveOperands operands;
  operands.a = wide ? Kind::Wide : Kind::Word;
  operands.destination = Kind::Word;
  operands.predicate = d.predicate;
  Op& op = emit_collective(t, run, true, 2, operands);
  op.destination = d.value;
  op.a = a;
}

void translate_redux(Translation& t) {
  if (!t.take("sync")) t.unsupported("redux needs .sync");
  const int operation = t.take_one_of({"add", "min", "max", "and", "or", "xor"});
  if (operation < 0) t.unsupported("an operation is missing");
  const auto reduction = static_cast<Reduction>(operation);
  const bool abs = t.take("abs"), nan = t.take("NaN");
  const Type type = t.take_type();
  const bool extreme = reduction == Reduction::Min || reduction == Reduction::Max;
  if (type == Type::F32 ? !extreme : abs || nan) t.unsupported("this operation on this type");
  const bool bits = reduction >= Reduction::And;
  if (bits ? type != Type::B32 : type != Type::U32 && type != Type::S32 && type != Type::F32)
    t.unsupported("this operation on this type");
  const Place destination = t.destination(0, type), a = t.source(1, type);
  CollectiveOperands operands;
  operands.a = operands.destination = Kind::Word;
  const Handler run = type == Type::F32 ? float_reduction_handler(reduction == Reduction::Max, abs, nan)
                                        : reduction_handler(reduction, type == Type::S32);
  Op& op = emit_collective(t, run, true, 2, operands);
  op.destination = destination;
  op.a = a;
}

void translate_activemask(Translation& t) {
  if (t.take_type() != Type::B32) t.unsupported("activemask has the type .b32");
  const Place destination = t.destination(0, Type::B32);
  t.emit(run_active_lanes).destination = destination;
}

void translate_elect(Translation& t) {
  if (!t.take("sync")) t.unsupported("elect needs .sync");
  const Destinations d = take_destinations(t, t.operand(0));
  if (d.predicate == place::none) t.unsupported("a predicate is expected: d|p");
  CollectiveOperands operands;
  operands.destination = Kind::Word;
  operands.predicate = d.predicate;
  emit_collective(t, run_elect, true, 1, operands).destination = d.value;
}

}  // namespace simt::functional
