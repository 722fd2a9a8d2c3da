/// Moves: between registers of all kinds, special registers, predicates, and lanes of a warp.
#include "machine/grid.hpp"
#include "operations/collectives.hpp"
#include "operations/special_registers.hpp"
#include "sass/instructions.hpp"
#include "sass/pairs.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::CollectiveOperands;
using functional::SpecialForm;
using functional::SpecialRegister;
using functional::Vote;

namespace {

template <uint32_t words>
void run_move(Context& c, const Op& op) {
  for (uint32_t k = 0; k < words; ++k) {
    const uint32_t* a = row(c, op.a) + k * warp_lanes;
    map_words(c, op.destination + k * place::register_bytes, [=](uint32_t i) { return a[i]; });
  }
}

void move(Translation& t, Place to, Place from, uint32_t words = 1) {
  Op& op = t.emit(words == 1 ? run_move<1> : run_move<2>);
  op.destination = to;
  op.a = from;
  if (words == 1) op.clock_use = {.kind = ClockUse::Sum};
}

}  // namespace

/// MOV d, a [, lanes]; UMOV d, a.
void translate_mov(Translation& t) {
  if (t.operand_count() > 2 && t.integer(2) != 0xf) t.unsupported("a byte mask");
  const bool wide = t.take("64");
  t.take("U32");
  t.take("SPILL");  // of a uniform register, which R2UR.FILL takes back
  const Operand& o = t.operand(1);
  if (o.negated || o.inverted || o.absolute) t.unsupported("a negated operand");
  const Place to = t.destination(0, wide ? 2 : 1);
  move(t, to, t.source(1, wide ? 2 : 1), wide ? 2 : 1);
}

// --- special registers ------------------------------------------------------------------------------------

namespace {

struct Named {
  std::string_view name, ptx;
};
constexpr Named specials[] = {{"SR_CTAID.X", "ctaid.x"},
                              {"SR_CTAID.Y", "ctaid.y"},
                              {"SR_CTAID.Z", "ctaid.z"},
                              {"SR_NTID.X", "ntid.x"},
                              {"SR_NTID.Y", "ntid.y"},
                              {"SR_NTID.Z", "ntid.z"},
                              {"SR_NCTAID.X", "nctaid.x"},
                              {"SR_NCTAID.Y", "nctaid.y"},
                              {"SR_NCTAID.Z", "nctaid.z"},
                              {"SR_VIRTUALSMID", "smid"},
                              {"SR_NWARPID", "nwarpid"},
                              {"SR_GRIDID", "gridid"},
                              {"SR_SMEMSZ", "total_smem_size"},
                              {"SR_DYN_SMEM_SIZE", "dynamic_smem_size"},
                              {"SR_CgaCtaId", "cluster_ctarank"},
                              {"SR_CLOCKLO", "clock"},
                              {"SR_CLOCKHI", "clock_hi"},
                              {"SR_GLOBALTIMERLO", "globaltimer_lo"},
                              {"SR_GLOBALTIMERHI", "globaltimer_hi"}};
struct NamedPlace {
  std::string_view name;
  Place place;
};
constexpr NamedPlace thread_specials[] = {{"SR_TID.X", functional::thread_place::tid_x},
                                          {"SR_TID.Y", functional::thread_place::tid_y},
                                          {"SR_TID.Z", functional::thread_place::tid_z},
                                          {"SR_LANEID", functional::thread_place::laneid},
                                          {"SR_EQMASK", functional::thread_place::lanemask_eq},
                                          {"SR_LTMASK", functional::thread_place::lanemask_lt},
                                          {"SR_LEMASK", functional::thread_place::lanemask_le},
                                          {"SR_GTMASK", functional::thread_place::lanemask_gt},
                                          {"SR_GEMASK", functional::thread_place::lanemask_ge},
                                          {"SR_WARPID", functional::thread_place::warpid}};

void special(Translation& t, uint32_t words) {
  const Operand& o = t.operand(1);
  if (o.kind != OperandKind::Name) t.unsupported("a special register is expected");
  const Place to = t.destination(0, words);
  if (o.text == "SRZ") return move(t, to, t.constant({0, 0}), words);
  // The least address of the stack; accesses beyond it are faults of their own.
  if (o.text == "SR_LMEMHIOFF") return move(t, to, t.constant({0, 0}), words);
  // Which of the shapes that a launch may have; there is one: machine/launch_values.cpp.
  if (o.text == "SR_CgaSize") return move(t, to, t.constant({0, 0}), words);
  // The window of shared memory in the generic address space.
  if (o.text == "SR_SWINHI") return move(t, to, t.constant({functional::window::shared >> 32}), words);
  if (words == 1)
    for (const NamedPlace& known : thread_specials)
      if (known.name == o.text) return move(t, to, known.place);
  for (const Named& known : specials) {
    if (known.name != o.text) continue;
    std::string_view name = known.ptx;
    if (words == 2 && name == "clock") name = "clock64";
    if (words == 2 && name == "globaltimer_lo") name = "globaltimer";
    const SpecialRegister which = *functional::special_register(name);
    if (which.is_clock) t.order_matters();
    Op& op = t.emit(
        functional::special_register_handler(which, words == 1 ? SpecialForm::Word : SpecialForm::Rows));
    op.destination = to;
    op.immediate = which.number;
    if (which.advances) op.clock_use = {.kind = ClockUse::Read};
    return;
  }
  t.unsupported("special register " + std::string(o.text));
}

}  // namespace

/// S2R d, special; S2UR.
void translate_s2r(Translation& t) {
  special(t, 1);
}

/// CS2R d, special; CS2UR: 64 bits, or .32.
void translate_cs2r(Translation& t) {
  special(t, t.take("32") ? 1 : 2);
}

// --- uniform registers ------------------------------------------------------------------------------------

namespace {

struct FirstLaneDetail : Detail {
  Truth guard;
};

/// The warp has one uniform register, though only some lanes may take part.
void run_first_lane(Context& c, const Op& op) {
  const uint32_t lanes = op.details<FirstLaneDetail>().guard.bits(c) & c.mask;
  if (lanes) functional::splat(c, op.destination, row(c, op.a)[std::countr_zero(lanes)]);
}

/// Lanes whose value is not the one moved, or that were such lanes.
template <bool joins>
void run_unlike_first(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  const uint32_t first = a[c.first_lane()];
  const uint32_t before = joins ? c.predicate(op.destination) : 0;
  write_predicate(c, op.destination, before | test_rows([&](uint32_t i) { return a[i] != first; }));
}

}  // namespace

/// R2UR [p,] d, a: the value of the first active lane. p: lanes with another one; .OR: those of an earlier
/// R2UR too.
void translate_r2ur(Translation& t) {
  t.take_one_of({"FILL", "BROADCAST"});
  const bool joins = t.take("OR");
  const uint32_t first = t.is_predicate(0) ? 1 : 0;
  const Place a = t.source(first + 1);
  if (first && t.operand(0).index != Operand::true_predicate) {
    const Place p = t.predicate_destination(0);
    Op& op = t.emit(joins ? run_unlike_first<true> : run_unlike_first<false>);
    op.a = a;
    op.destination = p;
  }
  const Place to = t.destination(first);
  Op& op = t.emit(run_first_lane);
  op.a = a;
  op.destination = to;
  const Truth guard = t.take_guard(op);
  t.detail<FirstLaneDetail>().guard = guard;
}

// --- predicates -------------------------------------------------------------------------------------------

namespace {

struct PredicateLogicDetail : Detail {
  Truth a, b, c;
  uint32_t tables[2] = {0, 0};
  Place results[2] = {place::none, place::none};
};

void run_predicate_logic(Context& context, const Op& op) {
  const auto& d = op.details<PredicateLogicDetail>();
  const uint32_t a = d.a.bits(context), b = d.b.bits(context), c = d.c.bits(context);
  for (int r = 0; r < 2; ++r) {
    uint32_t result = 0;
    for (uint32_t k = 0; k < 8; ++k)
      if (d.tables[r] >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    if (d.results[r] != place::none) write_predicate(context, d.results[r], result);
  }
}

}  // namespace

namespace {

void run_signs(Context& c, const Op& op) {
  const uint32_t* a = row(c, op.a);
  write_predicate(c, op.destination, test_rows([=](uint32_t i) { return static_cast<int32_t>(a[i]) < 0; }));
}

/// A predicate, or the sign of a register.
Truth truth(Translation& t, uint32_t index) {
  if (t.is_predicate(index)) return t.predicate(index);
  if (!t.operand(index).has("SIGN")) t.unsupported("an operand that is no predicate");
  const Place a = t.source(index), signs = t.scratch(1);
  Op& op = t.emit(run_signs);
  op.destination = signs;
  op.a = a;
  return PredicateOperand{signs, t.operand(index).negated};
}

}  // namespace

/// PLOP3.LUT p, p, a, b, c, table, table: of predicates, or signs of registers.
void translate_plop3(Translation& t) {
  t.take("LUT");
  PredicateLogicDetail d;
  for (uint32_t r = 0; r < 2; ++r)
    if (t.operand(r).index != Operand::true_predicate) d.results[r] = t.predicate_destination(r);
  d.a = truth(t, 2);
  d.b = truth(t, 3);
  d.c = truth(t, 4);
  for (uint32_t r = 0; r < 2; ++r) d.tables[r] = static_cast<uint32_t>(t.integer(5 + r));
  t.emit(run_predicate_logic);
  t.detail<PredicateLogicDetail>() = d;
}

namespace {

struct PredicatesDetail : Detail {
  Place predicates[7] = {};
  uint32_t mask = 0, shift = 0;
};

void run_from_predicates(Context& c, const Op& op) {
  const auto& d = op.details<PredicatesDetail>();
  const uint32_t* a = row(c, op.a);
  uint32_t bits[7];
  for (uint32_t k = 0; k < 7; ++k) bits[k] = c.predicate(d.predicates[k]);
  const uint32_t mask = d.mask, shift = d.shift;
  map_words(c, op.destination, [&](uint32_t i) {
    uint32_t all = 0;
    for (uint32_t k = 0; k < 7; ++k) all |= (bits[k] >> i & 1) << k;
    return ((all & mask) << shift) | (a[i] & ~(mask << shift));
  });
}

void run_to_predicates(Context& c, const Op& op) {
  const auto& d = op.details<PredicatesDetail>();
  const uint32_t* a = row(c, op.a);
  for (uint32_t k = 0; k < 7; ++k)
    if (d.mask >> k & 1)
      write_predicate(c, d.predicates[k],
                      test_rows([&](uint32_t i) { return (a[i] >> (d.shift + k) & 1) != 0; }));
}

/// file_operand: PR or UPR.
PredicatesDetail all_predicates(Translation& t, uint32_t file_operand, uint32_t mask_operand, uint32_t byte,
                                bool written) {
  PredicatesDetail d;
  const bool uniform = t.operand(file_operand).text == "UPR";
  if (!uniform && t.operand(file_operand).text != "PR") t.unsupported("predicates other than PR and UPR");
  d.mask = static_cast<uint32_t>(t.integer(mask_operand)) & 0x7f;
  d.shift = 8 * byte;
  for (uint32_t k = 0; k < 7; ++k)
    d.predicates[k] = d.mask >> k & 1 ? t.predicate_by_number(k, uniform, written) : t.constant({0});
  return d;
}

}  // namespace

/// P2R d, PR, a, mask; UP2UR d, UPR, a, mask: predicates into bits of a.
void translate_p2r(Translation& t) {
  const int byte = t.take_one_of({"B0", "B1", "B2", "B3"}, 0);
  const Place to = t.destination(0), a = t.source(2);
  const PredicatesDetail d = all_predicates(t, 1, 3, static_cast<uint32_t>(byte), false);
  Op& op = t.emit(run_from_predicates);
  op.destination = to;
  op.a = a;
  t.detail<PredicatesDetail>() = d;
}

/// R2P PR, a, mask; UR2UP UPR, a, mask: bits of a byte into predicates.
void translate_r2p(Translation& t) {
  uint32_t byte = 0;
  for (uint32_t k = 1; k < 4; ++k)
    if (t.operand(1).has("B" + std::to_string(k))) byte = k;
  const Place a = t.source(1);
  const PredicatesDetail d = all_predicates(t, 0, 2, byte, true);
  t.emit(run_to_predicates).a = a;
  t.detail<PredicatesDetail>() = d;
}

// --- lanes of a warp --------------------------------------------------------------------------------------

/// SHFL.mode p, d, a, b, c.
void translate_shfl(Translation& t) {
  const int mode = t.take_one_of({"UP", "DOWN", "BFLY", "IDX"});
  if (mode < 0) t.unsupported("this shuffle");
  CollectiveOperands operands;
  if (t.operand(0).index != Operand::true_predicate) operands.predicate = t.predicate_destination(0);
  const Place to = t.destination(1), a = t.source(2), b = t.source(3), c = t.source(4);
  Op& op = t.emit(functional::shuffle_handler(static_cast<functional::Shuffle>(mode)));
  op.destination = to;
  op.a = a;
  op.b = b;
  op.c = c;
  t.detail<CollectiveOperands>() = operands;
}

/// VOTE.mode [d,] p, p: d is the ballot.
void translate_vote(Translation& t) {
  const int mode = t.take_one_of({"ALL", "ANY", "EQ"});
  if (mode < 0) t.unsupported("this vote");
  uint32_t next = 0;
  const Place ballot = t.is_predicate(0) ? place::none : t.destination(next++);
  Place result = place::none;
  if (t.operand_count() > next + 1) {
    if (t.operand(next).index != Operand::true_predicate) result = t.predicate_destination(next);
    ++next;
  }
  const PredicateOperand p = t.predicate(next);
  const auto emit = [&](Vote vote, Place to) {
    Op& op = t.emit(functional::vote_handler(vote));
    op.destination = to;
    op.a = p.place;
    op.immediate = p.negated;
  };
  // The ballot first: the result may be written to the predicate that is voted on.
  if (ballot != place::none) emit(Vote::Ballot, ballot);
  if (result != place::none) emit(static_cast<Vote>(mode), result);
  if (ballot == place::none && result == place::none) translate_nothing(t);
}

/// MATCH.ANY[.U64] d, a; MATCH.ALL[.U64] p, d, a.
void translate_match(Translation& t) {
  const bool all = t.take_one_of({"ANY", "ALL"}, 0) == 1, wide = t.take("U64");
  CollectiveOperands operands;
  uint32_t next = 0;
  if (t.is_predicate(0)) {
    if (t.operand(0).index != Operand::true_predicate) operands.predicate = t.predicate_destination(0);
    ++next;
  }
  const Place to = t.destination(next);
  const Place a = wide ? joined(t, t.source(next + 1, 2)) : t.source(next + 1);
  Op& op = t.emit(all ? functional::match_all_handler(wide) : functional::match_any_handler(wide));
  op.destination = to;
  op.a = a;
  t.detail<CollectiveOperands>() = operands;
}

/// REDUX[.op][.S32] d, a; CREDUX.{MIN,MAX}[.S32], CREDUX.{MIN,MAX,MINABS,MAXABS}.F32[.NAN].
void translate_redux(Translation& t) {
  using enum functional::Reduction;
  const bool is_float = t.take("F32");
  const int of_magnitudes = is_float ? t.take_one_of({"MINABS", "MAXABS"}) : -1;
  const bool abs = of_magnitudes >= 0;
  const auto reduction = abs ? of_magnitudes == 0 ? Min : Max
                             : static_cast<functional::Reduction>(t.take_one_of(
                                   {"SUM", "MIN", "MAX", "AND", "OR", "XOR"}, static_cast<int>(And)));
  if (is_float && reduction != Min && reduction != Max) t.unsupported("this operation on floats");
  const bool is_signed = t.take("S32"), nan = is_float && t.take("NAN");
  t.take("U32");
  const Place to = t.destination(0), a = t.source(1);
  Op& op = t.emit(is_float ? functional::float_reduction_handler(reduction == Max, abs, nan)
                           : functional::reduction_handler(reduction, is_signed));
  op.destination = to;
  op.a = a;
}

// --- code addresses and convergence barriers --------------------------------------------------------------

/// LEPC d [, target]: the address of this instruction, or of the target.
void translate_lepc(Translation& t) {
  const uint64_t address = t.operand_count() > 1 ? t.target(1) : t.code_address();
  const Place to = t.destination(0, 2);
  move(t, to, t.constant({static_cast<uint32_t>(address), static_cast<uint32_t>(address >> 32)}), 2);
}

namespace {

void run_clear(Context& c, const Op& op) {
  functional::splat(c, op.destination, 0u);
}

}  // namespace

/// BMOV.32 between a register and a convergence barrier.
void translate_bmov(Translation& t) {
  t.take("32");
  const bool clears = t.take("CLEAR");
  if (t.is(0, OperandKind::Convergence)) return move(t, t.barrier(0), t.source(1));
  const Place to = t.destination(0), from = t.barrier(1);
  move(t, to, from);
  if (clears) t.emit(run_clear).destination = from;
}

}  // namespace simt::sass
