/// Moves: mov with packing and unpacking, special registers, cvta, isspacep.
#include <algorithm>

#include "machine/calls.hpp"
#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "operations/special_registers.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

template <class T>
void run_mov(Context& c, const Op& op) {
  map_lanes<T, T>(c, op.destination, [](T v) { return v; }, op.a);
}

void run_mov128(Context& c, const Op& op) {
  run_mov<uint64_t>(c, op);
  Op high = op;
  high.destination += 2 * place::register_bytes;
  high.a += 2 * place::register_bytes;
  run_mov<uint64_t>(c, high);
}

void run_mov_predicate(Context& c, const Op& op) {
  const uint32_t p = c.predicate(op.a);
  write_predicate(c, op.destination, op.immediate ? ~p : p);
}

/// Address in the running function's stack frame: a .local one, or generic if `b` is set.
void run_stack_address(Context& c, const Op& op) {
  splat<uint64_t>(c, op.destination, c.stack + static_cast<uint64_t>(op.immediate));
}
void run_stack_address32(Context& c, const Op& op) {
  splat<uint32_t>(c, op.destination, c.stack + static_cast<uint32_t>(op.immediate));
}
void run_parameter_address(Context& c, const Op& op) {
  splat<uint64_t>(c, op.destination, c.grid->parameter_address() + static_cast<uint64_t>(op.immediate));
}

/// The address of a shared variable that names the CTA.
template <class T>
void run_named_shared_address(Context& c, const Op& op) {
  const auto address = static_cast<uint64_t>(op.immediate);
  splat<T>(c, op.destination,
           static_cast<T>((address & ~window::own_shared) + c.in_cta(address, c.cta->rank())));
}

/// Converts a .param address to a generic one, or back if `immediate` is set.
void run_convert_parameter_address(Context& c, const Op& op) {
  const uint64_t base = c.grid->parameter_address(), add = op.immediate ? -base : base;
  map_lanes<uint64_t, uint64_t>(c, op.destination, [add](uint64_t v) { return v + add; }, op.a);
}

/// Parts of a packed value.
struct Parts : Detail {
  std::vector<Place> places;
  uint32_t part_bits = 0;
  uint32_t whole_bytes = 0;
};

void run_pack(Context& c, const Op& op) {
  const auto& d = op.details<Parts>();
  alignas(64) uint64_t value[2][warp_lanes] = {};
  for (size_t k = 0; k < d.places.size(); ++k) {
    const size_t bit = k * d.part_bits;
    const auto put = [&](const auto* part) {
      const uint64_t keep = d.part_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << d.part_bits) - 1;
      for (uint32_t i = 0; i < warp_lanes; ++i)
        value[bit / 64][i] |= (static_cast<uint64_t>(part[i]) & keep) << (bit % 64);
    };
    if (d.part_bits == 64)
      put(c.lanes<const uint64_t>(d.places[k]));
    else
      put(c.lanes<const uint32_t>(d.places[k]));
  }
  if (d.whole_bytes <= 4) {
    alignas(64) uint32_t narrow[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) narrow[i] = static_cast<uint32_t>(value[0][i]);
    write_lanes(c, c.lanes<uint32_t>(op.destination), narrow);
    return;
  }
  write_lanes(c, c.lanes<uint64_t>(op.destination), value[0]);
  if (d.whole_bytes == 16)
    write_lanes(c, c.lanes<uint64_t>(op.destination + 2 * place::register_bytes), value[1]);
}

void run_unpack(Context& c, const Op& op) {
  const auto& d = op.details<Parts>();
  alignas(64) uint64_t value[2][warp_lanes] = {};
  if (d.whole_bytes <= 4) {
    const auto* s = c.lanes<const uint32_t>(op.a);
    for (uint32_t i = 0; i < warp_lanes; ++i) value[0][i] = s[i];
  } else {
    std::copy_n(c.lanes<const uint64_t>(op.a), warp_lanes, value[0]);
    if (d.whole_bytes == 16)
      std::copy_n(c.lanes<const uint64_t>(op.a + 2 * place::register_bytes), warp_lanes, value[1]);
  }
  for (size_t k = 0; k < d.places.size(); ++k) {
    const size_t bit = k * d.part_bits;
    if (d.part_bits == 64) {
      write_lanes(c, c.lanes<uint64_t>(d.places[k]), value[bit / 64]);
      continue;
    }
    alignas(64) uint32_t part[warp_lanes];
    const auto keep = static_cast<uint32_t>((uint64_t{1} << d.part_bits) - 1);
    for (uint32_t i = 0; i < warp_lanes; ++i)
      part[i] = static_cast<uint32_t>(value[bit / 64][i] >> (bit % 64)) & keep;
    write_lanes(c, c.lanes<uint32_t>(d.places[k]), part);
  }
}

void emit_move(Translation& t, Place destination, Place source, uint32_t bytes) {
  const Handler h = bytes == 16 ? run_mov128 : bytes == 8 ? run_mov<uint64_t> : run_mov<uint32_t>;
  Op& op = t.emit(h);
  op.destination = destination;
  op.a = source;
  const bool wide = bytes == 8;
  if (bytes <= 8) op.clock_use = {.kind = ClockUse::Sum, .wide_operands = wide, .wide_result = wide};
}

Type part_type(uint32_t bits) {
  return bits == 8 ? Type::B8 : bits == 16 ? Type::B16 : bits == 32 ? Type::B32 : Type::B64;
}

/// mov from or to {a, b, ...}.
void translate_packing(Translation& t, Type type) {
  const bool packs = t.operand(1).kind == OperandKind::Vector;
  const ptx::Operand& vector = t.operand(packs ? 1 : 0);
  const uint32_t whole = ptx::bytes(type);
  if (vector.part_count == 0 || whole * 8 % vector.part_count != 0) t.unsupported("a vector of odd size");
  const uint32_t bits = whole * 8 / vector.part_count;
  const Type each = part_type(bits);
  std::vector<Place> places;
  for (uint32_t k = 0; k < vector.part_count; ++k) {
    const ptx::Operand& p = t.part(vector, k);
    places.push_back(packs ? t.source(p, each) : t.destination(p, each));
  }
  const Place other = packs ? t.destination(0, type) : t.source(1, type);
  Op& op = t.emit(packs ? run_pack : run_unpack);
  (packs ? op.destination : op.a) = other;
  Parts& d = t.detail<Parts>();
  d.places = std::move(places);
  d.part_bits = bits;
  d.whole_bytes = whole;
}

/// Moves the address of a variable, function or parameter into a register.
void emit_address(Translation& t, const ptx::Operand& operand, Place destination, uint32_t bytes,
                  bool generic) {
  const ptx::Variable& v = t.variable(operand);
  if (operand.local && (v.space == Space::Param || v.space == Space::Local)) {
    const uint32_t offset = t.stack_offset(operand);
    const bool parameter =
        v.space == Space::Param && t.in_entry() && operand.index < t.function().parameters.size();
    // In .param, addresses of kernel parameters are offsets in their block; they fit into 32 bits.
    if (parameter && !generic) return emit_move(t, destination, t.constant(offset, bytes), bytes);
    Op& op = t.emit(parameter ? run_parameter_address : bytes == 8 ? run_stack_address : run_stack_address32);
    op.destination = destination;
    op.immediate = offset + (!parameter && generic ? static_cast<int64_t>(window::local) : 0);
    return;
  }
  uint64_t address = t.variable_address(operand);
  if (generic && v.space == Space::Shared) address += window::shared;
  // Programs for pairs of CTAs clear bit 24 of an address, as on hardware, to name the first CTA of the pair.
  const auto& mnemonics = t.module().mnemonics;
  if (v.space == Space::Shared &&
      std::any_of(mnemonics.begin(), mnemonics.end(), [](const auto& m) { return m.has("cta_group::2"); })) {
    Op& op = t.emit(bytes == 8 ? run_named_shared_address<uint64_t> : run_named_shared_address<uint32_t>);
    op.destination = destination;
    op.immediate = static_cast<int64_t>(address);
    return;
  }
  emit_move(t, destination, t.constant(address, bytes), bytes);
}

void emit_special(Translation& t, Place destination, const SpecialRegister& which, SpecialForm form) {
  if (which.is_clock) t.order_matters();
  Op& op = t.emit(special_register_handler(which, form));
  op.destination = destination;
  op.immediate = which.number;
  if (which.advances) op.clock_use = {.kind = ClockUse::Read, .wide_result = form == SpecialForm::Wide};
}

/// mov.v2, mov.v4: each component separately. A special register has its own components.
void translate_vector_move(Translation& t, Type type, uint32_t count) {
  const ptx::Operand &d = t.operand(0), &s = t.operand(1);
  if (d.kind != OperandKind::Vector || d.part_count != count || s.kind != OperandKind::Vector ||
      s.part_count != count)
    t.unsupported("operands of " + std::to_string(count) + " components are expected");
  const uint32_t bytes = std::max(4u, ptx::bytes(type));
  std::vector<Place> values;
  for (uint32_t k = 0; k < count; ++k) {  // all are read before any is written
    values.push_back(t.scratch(bytes));
    emit_move(t, values.back(), t.source(t.part(s, k), type), bytes);
  }
  for (uint32_t k = 0; k < count; ++k) emit_move(t, t.destination(t.part(d, k), type), values[k], bytes);
}

template <class D, class S>
void run_add_constant(Context& c, const Op& op) {
  const auto add = static_cast<uint64_t>(op.immediate);
  map_lanes<D, S>(c, op.destination, [add](S v) { return static_cast<D>(uint64_t{v} + add); }, op.a);
}

/// Where the module's constants are.
struct ConstantRanges : Detail {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  ///< begin and end

  bool hold(uint64_t address) const {
    return std::any_of(ranges.begin(), ranges.end(),
                       [=](const auto& r) { return address >= r.first && address < r.second; });
  }
};

void run_isspacep(Context& c, const Op& op) {
  const auto kind = op.immediate;
  const auto& constants = op.details<ConstantRanges>();
  const uint64_t begin = c.grid->parameter_address(), end = begin + c.grid->kernel().parameter_bytes;
  const uint32_t bits = test_lanes<uint64_t>(
      c,
      [&](uint64_t a) {
        const bool shared = window::is_shared(a), local = window::is_local(a);
        const uint64_t named = (a & 0xffffffffu) >> window::rank_shift;
        const bool own = shared && (named == 0 || named == c.cta->rank() + c.first_rank);
        const bool parameter = a >= begin && a < end;
        return kind == 0   ? a >= window::global && !constants.hold(a)
               : kind == 1 ? own
               : kind == 2 ? shared
               : kind == 3 ? local
               : kind == 4 ? constants.hold(a)
                           : parameter;
      },
      op.a);
  write_predicate(c, op.destination, bits);
}

}  // namespace

void translate_mov(Translation& t) {
  const int vector = t.take_one_of({"v2", "v4"});
  const Type type = t.take_type();
  if (vector >= 0) return translate_vector_move(t, type, 2u << vector);
  const ptx::Operand& s = t.operand(1);
  if (s.kind == OperandKind::Vector || t.operand(0).kind == OperandKind::Vector)
    return translate_packing(t, type);
  if (type == Type::Pred) {
    const Place d = t.predicate_destination(t.operand(0));
    if (s.kind == OperandKind::Special && s.text == "is_explicit_cluster")
      return emit_special(t, d, *special_register(s.text), SpecialForm::Predicate);
    const PredicateOperand p = t.predicate_source(s);
    Op& op = t.emit(run_mov_predicate);
    op.destination = d;
    op.a = p.place;
    op.immediate = p.negated;
    return;
  }
  const Place d = t.destination(0, type);
  const uint32_t bytes = ptx::bytes(type);
  if (s.kind == OperandKind::Special) {
    if (s.text == "envreg1") t.program().asks_for_workspace = true;
    if (s.text.starts_with("reserved_smem_offset_")) t.program().asks_for_reserved_shared = true;
    if (const auto which = special_register(s.text))
      return emit_special(t, d, *which, bytes == 8 ? SpecialForm::Wide : SpecialForm::Word);
    if (s.text.starts_with("envreg") || s.text.starts_with("pm"))
      return emit_move(t, d, t.constant(0, std::max(4u, bytes)), bytes);
  }
  if (s.kind == OperandKind::Variable) return emit_address(t, s, d, bytes, false);
  emit_move(t, d, t.source(s, type), bytes);
}

void translate_cvta(Translation& t) {
  const bool to = t.take("to");
  const int space = t.take_one_of(
      {"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
  if (space < 0) t.unsupported("a state space is missing");
  const Type type = t.take_type();
  const uint32_t bytes = ptx::bytes(type);
  const Place d = t.destination(0, type);
  const ptx::Operand& s = t.operand(1);
  const bool is_shared = space >= 2 && space <= 4, is_local = space == 5;
  if (s.kind == OperandKind::Variable) return emit_address(t, s, d, bytes, !to);
  uint32_t source_bytes = 0;
  const Place a = t.source_of_any_size(s, type, source_bytes);
  if (space >= 6) {
    if (bytes != 8 || source_bytes != 8) t.unsupported("addresses of parameters have the type .u64");
    Op& op = t.emit(run_convert_parameter_address);
    op.destination = d;
    op.a = a;
    op.immediate = to;
    return;
  }
  uint64_t add = is_shared ? window::shared : is_local ? window::local : 0;
  if (to) add = -add;
  Handler h = run_add_constant<uint64_t, uint64_t>;
  if (bytes == 4 && source_bytes == 8)
    h = run_add_constant<uint32_t, uint64_t>;
  else if (bytes == 8 && source_bytes == 4)
    h = run_add_constant<uint64_t, uint32_t>;
  else if (bytes == 4)
    h = run_add_constant<uint32_t, uint32_t>;
  Op& op = t.emit(h);
  op.destination = d;
  op.a = a;
  op.immediate = static_cast<int64_t>(add);
}

void translate_isspacep(Translation& t) {
  int kind = t.take_one_of(
      {"global", "shared", "shared::cluster", "local", "const", "param", "shared::cta", "param::entry"});
  if (kind < 0) t.unsupported("a state space is missing");
  if (kind == 6) kind = 1;
  if (kind == 7) kind = 5;
  const Place d = t.predicate_destination(t.operand(0));
  const Place a = t.source(1, Type::B64);
  Op& op = t.emit(run_isspacep);
  op.destination = d;
  op.a = a;
  op.immediate = kind;
  auto& ranges = t.detail<ConstantRanges>().ranges;
  const std::vector<ptx::Variable>& variables = t.module().variables;
  for (size_t k = 0; k < variables.size(); ++k) {
    const uint64_t address = t.program().variables[k];
    if (variables[k].space == Space::Constant && address != UINT64_MAX)
      ranges.emplace_back(address, address + variables[k].size);
  }
}

}  // namespace simt::functional
