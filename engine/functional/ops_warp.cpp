/// Lanes of a warp exchange values: shfl, vote, match, redux, elect, activemask.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "functional/collective.hpp"
#include "functional/handlers.hpp"
#include "functional/instructions.hpp"
#include "functional/lanes.hpp"

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

Place second_destination(const Op& op) {
  return op.details<CollectiveOperands>().predicate;
}

/// Writes the same value to all lanes of the mask.
void write_uniform(Context& c, Place destination, uint32_t value) {
  uint32_t* d = c.lanes<uint32_t>(destination);
  const uint32_t mask = c.mask;
  for (uint32_t i = 0; i < warp_lanes; ++i) d[i] = (mask >> i) & 1 ? value : d[i];
}

/// result[i] = a[index[i]], indices below 32.
void permute(const uint32_t* a, const uint32_t* index, uint32_t* result) {
#if defined(__AVX2__)
  // Permutes each of the four quarters, and selects by the upper bits of the index; gathers would wait for
  // memory.
  __m256i quarter[4];
  for (int q = 0; q < 4; ++q) quarter[q] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a) + q);
  for (int v = 0; v < 4; ++v) {
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index) + v);
    const __m256 bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 28));
    const __m256 bit4 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 27));
    const auto pick = [&](int q) { return _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(quarter[q], k)); };
    const __m256 low = _mm256_blendv_ps(pick(0), pick(1), bit3);
    const __m256 high = _mm256_blendv_ps(pick(2), pick(3), bit3);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(result) + v,
                        _mm256_castps_si256(_mm256_blendv_ps(low, high, bit4)));
  }
#else
  for (uint32_t i = 0; i < warp_lanes; ++i) result[i] = a[index[i]];
#endif
}

/// Packs a word per lane, 0 or 1, into bits, one per lane.
uint32_t pack_bits(const uint32_t* words) {
  uint32_t bits = 0;
#if defined(__AVX2__)
  for (int v = 0; v < 4; ++v) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words) + v);
    const int top = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(eight, 31)));
    bits |= static_cast<uint32_t>(top) << 8 * v;
  }
#else
  for (uint32_t i = 0; i < warp_lanes; ++i) bits |= words[i] << i;
#endif
  return bits;
}

enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };

/// Each lane reads the value of a source lane in its segment, or its own if the source is outside.
template <Shuffle mode>
void run_shuffle(Context& c, const Op& op) {
  const uint32_t* a = c.lanes<const uint32_t>(op.a);
  const uint32_t* b = c.lanes<const uint32_t>(op.b);
  const uint32_t* limits = c.lanes<const uint32_t>(op.c);
  alignas(64) uint32_t source[warp_lanes], result[warp_lanes];
  alignas(64) uint32_t inside[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const auto lane = static_cast<int32_t>(i);
    const auto by = static_cast<int32_t>(b[i] & 31);
    const auto segment = static_cast<int32_t>(limits[i] >> 8 & 31);
    const auto clamp = static_cast<int32_t>(limits[i] & 31);
    const int32_t last = (lane & segment) | (clamp & ~segment);
    int32_t j = 0;
    if constexpr (mode == Shuffle::Up) j = lane - by;
    if constexpr (mode == Shuffle::Down) j = lane + by;
    if constexpr (mode == Shuffle::Butterfly) j = lane ^ by;
    if constexpr (mode == Shuffle::Index) j = (lane & segment) | (by & ~segment);
    const bool holds = mode == Shuffle::Up ? j >= last : j <= last;
    source[i] = static_cast<uint32_t>(holds ? j : lane) & 31;
    inside[i] = holds;
  }
  permute(a, source, result);
  const Place predicate = second_destination(op);
  if (predicate != place::none) write_predicate(c, predicate, pack_bits(inside));
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}

void translate_shuffle(Translation& t) {
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
  Op& op = emit_collective(t, shuffle_handler(mode), sync, 4, operands);
  op.destination = d.value;
  op.a = a;
  op.b = b;
  op.c = c;
}

enum class Vote : uint8_t { All, Any, Uniform, Ballot };

/// a: the predicate; immediate: 1 if it is negated.
template <Vote vote>
void run_vote(Context& c, const Op& op) {
  const uint32_t p = c.predicate(op.a);
  const uint32_t bits = (op.immediate ? ~p : p) & c.mask;
  if constexpr (vote == Vote::Ballot) {
    write_uniform(c, op.destination, bits);
  } else {
    const bool holds = vote == Vote::All   ? bits == c.mask
                       : vote == Vote::Any ? bits != 0
                                           : bits == 0 || bits == c.mask;
    write_predicate(c, op.destination, holds ? full_mask : 0);
  }
}

/// Each lane gets the mask of lanes with the same value.
template <class T>
void run_match_any(Context& c, const Op& op) {
  const T* a = c.lanes<const T>(op.a);
  alignas(64) uint32_t result[warp_lanes];
  for (uint32_t rest = c.mask; rest;) {
    const T value = a[std::countr_zero(rest)];
    alignas(64) uint32_t equal[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) equal[i] = a[i] == value;
    const uint32_t same = pack_bits(equal) & c.mask;
    for (uint32_t of = same; of; of &= of - 1) result[std::countr_zero(of)] = same;
    rest &= ~same;
  }
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}
template <class T>
void run_match_all(Context& c, const Op& op) {
  const T* a = c.lanes<const T>(op.a);
  const T value = a[c.first_lane()];
  bool same = true;
  each_lane(c, [&](int i) { same &= a[i] == value; });
  const Place predicate = second_destination(op);
  if (predicate != place::none) write_predicate(c, predicate, same ? full_mask : 0);
  write_uniform(c, op.destination, same ? c.mask : 0);
}

enum class Reduce : uint8_t { Add, Min, Max, And, Or, Xor };

template <Reduce reduce, class T>
void run_reduce(Context& c, const Op& op) {
  const uint32_t* a = c.lanes<const uint32_t>(op.a);
  T all = from_lane<T>(a[c.first_lane()]);
  for (uint32_t rest = c.mask & (c.mask - 1); rest; rest &= rest - 1) {
    const T b = from_lane<T>(a[std::countr_zero(rest)]);
    if constexpr (reduce == Reduce::Add)
      all = static_cast<T>(static_cast<uint32_t>(all) + static_cast<uint32_t>(b));
    if constexpr (reduce == Reduce::Min) all = std::min(all, b);
    if constexpr (reduce == Reduce::Max) all = std::max(all, b);
    if constexpr (reduce == Reduce::And) all &= b;
    if constexpr (reduce == Reduce::Or) all |= b;
    if constexpr (reduce == Reduce::Xor) all ^= b;
  }
  write_uniform(c, op.destination, to_lane<T>(all));
}

/// The active lanes; lanes whose guard is false are not active.
void run_activemask(Context& c, const Op& op) {
  write_uniform(c, op.destination, c.mask);
}
/// The lowest lane is elected.
void run_elect(Context& c, const Op& op) {
  const int leader = c.first_lane();
  write_predicate(c, second_destination(op), 1u << leader);
  write_uniform(c, op.destination, static_cast<uint32_t>(leader));
}
}  // namespace

Handler shuffle_handler(int mode) {
  static constexpr Handler handlers[] = {run_shuffle<Shuffle::Up>, run_shuffle<Shuffle::Down>,
                                         run_shuffle<Shuffle::Butterfly>, run_shuffle<Shuffle::Index>};
  return handlers[mode];
}

Handler reduction_handler(int operation, bool is_signed) {
  static constexpr Handler handlers[] = {
      run_reduce<Reduce::Add, uint32_t>, run_reduce<Reduce::Min, uint32_t>,
      run_reduce<Reduce::Max, uint32_t>, run_reduce<Reduce::And, uint32_t>,
      run_reduce<Reduce::Or, uint32_t>,  run_reduce<Reduce::Xor, uint32_t>};
  if (is_signed && operation == static_cast<int>(Reduce::Min)) return run_reduce<Reduce::Min, int32_t>;
  if (is_signed && operation == static_cast<int>(Reduce::Max)) return run_reduce<Reduce::Max, int32_t>;
  return handlers[operation];
}

Handler match_any_handler(bool wide) {
  return wide ? run_match_any<uint64_t> : run_match_any<uint32_t>;
}
Handler match_all_handler(bool wide) {
  return wide ? run_match_all<uint64_t> : run_match_all<uint32_t>;
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
  constexpr Handler handlers[] = {run_vote<Vote::All>, run_vote<Vote::Any>, run_vote<Vote::Uniform>,
                                  run_vote<Vote::Ballot>};
  CollectiveOperands operands;
  operands.a = Kind::Predicate;
  operands.destination = ballot ? Kind::Word : Kind::Predicate;
  Op& op = emit_collective(t, handlers[mode], sync, 2, operands);
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
  const Handler run = mode == 0 ? wide ? run_match_any<uint64_t> : run_match_any<uint32_t>
                      : wide    ? run_match_all<uint64_t>
                                : run_match_all<uint32_t>;
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
  const Type type = t.take_type();
  const bool bits = operation >= static_cast<int>(Reduce::And);
  if (bits ? type != Type::B32 : type != Type::U32 && type != Type::S32)
    t.unsupported("this operation on this type");
  const Place destination = t.destination(0, type), a = t.source(1, type);
  CollectiveOperands operands;
  operands.a = operands.destination = Kind::Word;
  Op& op = emit_collective(t, reduction_handler(operation, type == Type::S32), true, 2, operands);
  op.destination = destination;
  op.a = a;
}

void translate_activemask(Translation& t) {
  if (t.take_type() != Type::B32) t.unsupported("activemask has the type .b32");
  const Place destination = t.destination(0, Type::B32);
  t.emit(run_activemask).destination = destination;
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

void translate_shfl(Translation& t) {
  translate_shuffle(t);
}

}  // namespace simt::functional
