#include "timing/warps/decoded_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "isa/opcode.hpp"
#include "isa/tensor_shape.hpp"
#include "timing/warps/access_costs.hpp"
#include "timing/warps/core_traits.hpp"

namespace simt {
namespace {

constexpr uint32_t zero_register = 255;

uint32_t flat_index(const Register& r, uint32_t offset) {
  switch (r.file) {
    case RegisterFile::General:
      return std::min<uint32_t>(r.index + offset, 255);
    case RegisterFile::Uniform:
      return 256 + std::min<uint32_t>(r.index + offset, 63);
    case RegisterFile::Predicate:
      return 320 + (r.index & 7);
    case RegisterFile::UniformPredicate:
      return 328 + (r.index & 7);
  }
  return 0;
}

/// Whether `opcode` is `form`, or is that with further modifiers.
bool is_opcode_or_form(std::string_view opcode, std::string_view form) {
  return opcode.starts_with(form) && (opcode.size() == form.size() || opcode[form.size()] == '.');
}

/// Whether Sm::synchronise() has work to do.
constexpr bool synchronises(Operation operation) {
  constexpr auto bit = [](Operation o) { return 1u << static_cast<uint32_t>(o); };
  constexpr uint32_t operations =
      bit(Operation::Barrier) | bit(Operation::BarrierArrive) | bit(Operation::MemoryBarrier) |
      bit(Operation::AsyncCopy) | bit(Operation::AsyncCommit) | bit(Operation::AsyncWait) |
      bit(Operation::BulkLoad) | bit(Operation::MbarrierWait) | bit(Operation::Sleep) |
      bit(Operation::TensorProduct) | bit(Operation::TensorCopy) | bit(Operation::TensorCommit);
  return bit(operation) & operations;
}

/// The least distance of independent instructions in code of ptxas 12.9 for sm_70, sm_75, sm_80, sm_86 and
/// sm_90 (`validation/intervals.py`): 2 cycles after an IMAD, 4 after an IMAD.HI or IMAD.WIDE.
constexpr uint32_t wide_product_intervals = 2;

bool has_wide_product(std::string_view opcode) {
  return opcode_row(opcode).also.widths == Widths::WideProduct &&
         (has_modifiers(opcode, "HI") || has_modifiers(opcode, "WIDE"));
}

/// Decodes instructions as the core model of a specification understands them.
class Decoder {
 public:
  Decoder(const InstructionSource& source, const Spec& spec)
      : spec_(spec),
        traits_(core_traits(spec)),
        opcodes_(source.opcodes()),
        control_bits_(traits_.control_bits && !source.instructions().empty() &&
                      std::all_of(source.instructions().begin(), source.instructions().end(),
                                  [](const StaticInstruction& s) { return s.control.present(); })) {
    find_special_units();
  }
  bool control_bits() const { return control_bits_; }

  DecodedInstruction decode(const StaticInstruction& s) const {
    DecodedInstruction d;
    d.fixed = s;
    d.unit = executing_unit(s);
    set_operation(d, s);
    set_timing(d, s);
    set_registers(d, s);
    d.awaited = s.destination_count > 0;
    if (control_bits_) set_issue_rule(d, s);
    d.synchronises = synchronises(d.fixed.operation);
    d.uses_record = d.memory_pipeline || d.constant_load || d.synchronises;
    d.tensor_map = (s.operation == Operation::BulkLoad || s.operation == Operation::BulkStore) &&
                   opcodes_[s.opcode].starts_with("UTMA");
    return d;
  }

 private:
  const UnitSpec& unit_spec(Unit unit) const { return spec_.sm.units[static_cast<size_t>(unit)]; }
  Unit integer_unit() const { return unit_spec(Unit::Int).count > 0 ? Unit::Int : Unit::Fp32; }
  static bool loads_constant(const StaticInstruction& s) {
    return s.operation == Operation::Load && s.space == MemorySpace::Constant;
  }
  void find_special_units();
  Unit executing_unit(const StaticInstruction& s) const;
  Unit own_unit(const StaticInstruction& s) const;
  void set_operation(DecodedInstruction& d, const StaticInstruction& s) const;
  void set_timing(DecodedInstruction& d, const StaticInstruction& s) const;
  void set_registers(DecodedInstruction& d, const StaticInstruction& s) const;
  void set_issue_rule(DecodedInstruction& d, const StaticInstruction& s) const;
  void set_result_times(DecodedInstruction& d, const OpcodeRow& row, std::string_view opcode) const;
  void set_operand_slots(DecodedInstruction& d, const StaticInstruction& s) const;
  void add(RegisterSet& set, const Register& r) const;
  bool is_tracked(const Register& r) const {
    return r.file == RegisterFile::General && !(traits_.vector_registers && r.index == zero_register);
  }

  const Spec& spec_;
  const CoreTraits& traits_;
  const std::vector<std::string>& opcodes_;
  bool control_bits_;
  std::vector<Unit> special_;  // by opcode; Unit::Count: none. Empty if the GPU has no special units
};

void Decoder::find_special_units() {
  const SpecialUnitsSpec& units = spec_.sm.special_units;
  if (units.empty()) return;
  special_.assign(opcodes_.size(), Unit::Count);
  for (size_t k = 0; k < opcodes_.size(); ++k) {
    size_t longest = 0;  // MUFU.RCP says more than MUFU
    auto next = static_cast<size_t>(Unit::Special);
    for (const auto& [name, unit] : units) {
      for (const std::string& opcode : unit.opcodes) {
        if (opcode.size() <= longest || !is_opcode_or_form(opcodes_[k], opcode)) continue;
        longest = opcode.size();
        special_[k] = static_cast<Unit>(next);
      }
      ++next;
    }
  }
}

/// The unit that executes an instruction on this GPU: a special one that has its opcode, or its own. Accesses
/// to memory stay with the load/store unit.
Unit Decoder::executing_unit(const StaticInstruction& s) const {
  const Unit own = own_unit(s);
  const bool special = !special_.empty() && own != Unit::Memory && special_[s.opcode] != Unit::Count;
  return special ? special_[s.opcode] : own;
}

/// Without special units. GPUs without separate integer units run integer work on
/// the FP32 pipe (Fermi to Pascal); work for missing FP64 units runs on the SFU; instructions in a trace of a
/// newer GPU that this one lacks run on the integer pipe.
Unit Decoder::own_unit(const StaticInstruction& s) const {
  if (loads_constant(s)) return integer_unit();
  // Addresses of texture and surface instructions are known in executed programs.
  if (s.space == MemorySpace::Texture && s.access_bytes > 0 && traits_.textures_in_memory)
    return Unit::Memory;
  if (s.unit == Unit::Memory || s.unit == Unit::Tma) return Unit::Memory;
  if (s.unit == Unit::Conversion && spec_.sm.conversion_latency > 0) {
    // From and to FP64, no faster than FP64 arithmetic (CUDA programming guide, arithmetic instructions).
    const bool slow = unit_spec(Unit::Fp64).initiation_interval > unit_spec(Unit::Sfu).initiation_interval;
    return slow && opcodes_[s.opcode].find(".F64") != std::string::npos ? Unit::Fp64 : Unit::Sfu;
  }
  if (s.unit == Unit::Conversion) return integer_unit();
  if (s.unit == Unit::Multiply) return spec_.sm.multiplications_on_fp32 ? Unit::Fp32 : integer_unit();
  if (s.unit == Unit::Compare) return spec_.sm.multiplications_on_fp32 ? integer_unit() : Unit::Fp32;
  if (unit_spec(s.unit).count > 0) return s.unit;
  if (s.unit == Unit::Fp64 || s.unit == Unit::Texture || s.unit == Unit::Tensor)
    return unit_spec(Unit::Sfu).count > 0 ? Unit::Sfu : integer_unit();
  return integer_unit();
}

void Decoder::set_operation(DecodedInstruction& d, const StaticInstruction& s) const {
  d.memory_pipeline = d.unit == Unit::Memory;
  // Without memory accesses, a store is just another instruction that takes a slot.
  if (s.space == MemorySpace::Texture && !d.memory_pipeline && s.operation != Operation::Load)
    d.fixed.operation = Operation::Arithmetic;
  if (s.operation == Operation::Sleep && !traits_.sleeps) d.fixed.operation = Operation::Branch;
  const bool loads = s.operation == Operation::Load || s.operation == Operation::AsyncCopy;
  if (loads && traits_.bypass_only_strong_gpu) {
    const std::string& opcode = opcodes_[s.opcode];
    d.fixed.bypass_l1 =
        opcode.find(".STRONG") != std::string::npos && opcode.find(".GPU") != std::string::npos;
  }
  if (spec_.constant_cache.perfect) return;
  d.constant_load = loads_constant(s) && s.access_bytes > 0;
  d.constant_operand = s.constant_operand;
}

void Decoder::set_timing(DecodedInstruction& d, const StaticInstruction& s) const {
  if (d.memory_pipeline || s.operation == Operation::Barrier || s.operation == Operation::BarrierArrive ||
      s.operation == Operation::Exit) {
    d.latency = d.initiation_interval = 1;
    return;
  }
  const bool special = d.unit >= Unit::Special;
  // All lanes of FP32 do not multiply integers: 16 of 32 on GA102 and GH100.
  const UnitSpec& unit = unit_spec(s.unit == Unit::Multiply && !special ? integer_unit() : d.unit);
  d.latency = static_cast<uint16_t>(std::max(1u, unit.latency));
  d.initiation_interval = static_cast<uint16_t>(std::max(1u, unit.initiation_interval));
  if (s.unit == Unit::Conversion && d.unit == Unit::Sfu)
    d.latency = static_cast<uint16_t>(spec_.sm.conversion_latency);
  if (spec_.sm.multiplications_on_fp32 && s.unit == Unit::Multiply && !special &&
      has_wide_product(opcodes_[s.opcode]))
    d.initiation_interval = static_cast<uint16_t>(d.initiation_interval * wide_product_intervals);
  if (s.half_precision && !special)
    d.initiation_interval = spec_.sm.half_precision_interval > 0
                                ? static_cast<uint16_t>(spec_.sm.half_precision_interval)
                                : std::max<uint16_t>(1, d.initiation_interval / 2);
  if (loads_constant(s) && spec_.constant_cache.latency > 0)
    d.latency = static_cast<uint16_t>(spec_.constant_cache.latency);
  if (s.operation == Operation::TensorProduct) {  // what takes long is in the SM's queue
    d.latency = d.initiation_interval = 1;
    return;
  }
  if (s.operation == Operation::TensorMove && spec_.sm.tensor_memory_bandwidth > 0) {
    const uint32_t bytes = tensor_memory_registers(opcodes_[s.opcode]) * spec_.sm.warp_size * 4;
    const uint32_t interval =
        (bytes + spec_.sm.tensor_memory_bandwidth - 1) / spec_.sm.tensor_memory_bandwidth;
    d.initiation_interval = static_cast<uint16_t>(interval);
    d.latency =
        static_cast<uint16_t>(std::min<uint64_t>(limits::latency, spec_.sm.tensor_memory_latency + interval));
    return;
  }
  if (d.unit != Unit::Tensor || !traits_.tensor_shapes) return;
  // The unit's interval is that of FP16 m16n8k16; other shapes and types take a proportional interval.
  const double work = tensor_work(opcodes_[s.opcode], spec_.sm.half_rate_fp32_accumulation);
  const double interval =
      work > 0 ? std::max(1.0, std::round(unit.initiation_interval * work)) : d.initiation_interval;
  if (interval > limits::latency)
    throw std::invalid_argument(opcodes_[s.opcode] + " would take " + std::to_string(std::llround(interval)) +
                                " cycles of a tensor unit of " + spec_.name + ", expected at most " +
                                std::to_string(limits::latency) +
                                "; lower sm.units.tensor.initiation_interval");
  d.initiation_interval = static_cast<uint16_t>(interval);
  d.latency = std::max(d.latency, d.initiation_interval);
  // The accumulators are the destination; what else is in general registers is A.
  const auto is_a = [&](const Register& r) {
    return r.file == RegisterFile::General && r.index != zero_register && r.index != s.destinations[0].index;
  };
  const bool a_in_registers = std::any_of(s.sources.begin(), s.sources.begin() + s.source_count, is_a);
  d.shared_operands = static_cast<uint16_t>(shared_operand_bytes(opcodes_[s.opcode], a_in_registers));
}

void Decoder::add(RegisterSet& set, const Register& r) const {
  const uint32_t width = traits_.vector_registers ? std::max<uint32_t>(1, r.width) : 1;
  for (uint32_t k = 0; k < width; ++k) {
    if (traits_.vector_registers && r.file == RegisterFile::General && r.index + k >= zero_register) break;
    const uint32_t bit = flat_index(r, k);
    set[bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

void Decoder::set_registers(DecodedInstruction& d, const StaticInstruction& s) const {
  for (uint32_t i = 0; i < s.source_count; ++i) {
    const Register& r = s.sources[i];
    add(d.touches, r);
    if (!is_tracked(r)) continue;
    const uint8_t* begin = d.reads.data();
    const uint8_t* end = begin + d.read_count;
    if (std::find(begin, end, static_cast<uint8_t>(r.index)) == end)
      d.reads[d.read_count++] = static_cast<uint8_t>(r.index);
  }
  for (uint32_t i = 0; i < s.destination_count; ++i) {
    const Register& r = s.destinations[i];
    add(d.touches, r);
    add(d.writes, r);
    if (is_tracked(r)) d.writes_at[d.write_count++] = static_cast<uint8_t>(r.index);
  }
}

/// Cycles from the issue of an instruction to that of the warp's next one (Huerta et al., section 4.1).
uint8_t cycles_to_next(const ControlBits& control) {
  constexpr uint32_t long_wait = 45;  // no stall and yield
  constexpr uint32_t longest = 11;    // stalls beyond it need yield
  constexpr uint32_t ignored_wait = 2;
  if (control.stall() == 0 && control.yields()) return long_wait;
  if (control.stall() > longest && !control.yields()) return ignored_wait;
  return static_cast<uint8_t>(std::max(control.stall(), control.yields() ? 2u : 1u));
}

void Decoder::set_issue_rule(DecodedInstruction& d, const StaticInstruction& s) const {
  const ControlBits& control = s.control;
  const std::string_view opcode = opcodes_[s.opcode];
  const OpcodeRow& row = opcode_row(opcode);
  IssueRule& rule = d.issue;
  rule.present = true;
  rule.next = cycles_to_next(control);
  rule.waits = static_cast<uint8_t>(control.waits());
  rule.write_counter = static_cast<uint8_t>(control.write_counter());
  rule.read_counter = static_cast<uint8_t>(control.read_counter());
  rule.warp_group = row.also.warp_group;
  rule.closes_group = s.commits_group;
  const IfModified<CountedWait>& wait = row.also.wait;
  if (wait.value != CountedWait::None && has_modifiers(opcode, wait.modifiers)) {
    d.fixed.operation = Operation::Arithmetic;
    rule.limited =
        static_cast<uint8_t>(wait.value == CountedWait::Groups ? IssueRule::group_counter : s.immediate2);
    rule.limit = static_cast<uint8_t>(std::clamp<int64_t>(s.immediate, 0, 255));
  }
  const auto raises = [](uint32_t counter) { return counter < ControlBits::counters; };
  d.variable_latency = d.memory_pipeline || d.constant_load || rule.warp_group || raises(rule.write_counter);
  d.awaited = d.memory_pipeline || d.constant_load || d.variable_latency || s.destination_count > 0;
  set_result_times(d, row, opcode);
  set_access_costs(d);
  set_operand_slots(d, s);
}

/// When results can be read, from the least distance between two instructions in code of ptxas 12.9 and 13.0
/// for sm_75, sm_80 and sm_90 (`validation/distances.py`): an instruction with the upper half of an
/// IMAD.WIDE's sum follows it as others do, one with the lower half two cycles sooner. What ULDC, UMOV, VOTEU
/// and ELECT write can be read two cycles later, from sm_100 on predicates after one (ptxas 13.0), what R2UR
/// writes, 13 cycles later, its predicate after 8. Other results of the uniform datapath take their latency
/// of 4 to another uniform instruction, 6 to one of the warp's lanes, 7 to a UMOV and 9 to a memory
/// instruction or a warp-group multiplication. A predicate of DSETP takes 6 instead of 8.
void Decoder::set_result_times(DecodedInstruction& d, const OpcodeRow& row, std::string_view opcode) const {
  constexpr uint32_t between_halves = 2, after_move = 2, after_transfer = 13;
  constexpr uint8_t earlier_comparison = 2, earlier_test = 5, earlier_vote = 1;
  constexpr uint32_t to_lanes = 2, to_move = 3, to_memory = 5;
  IssueRule& rule = d.issue;
  const bool is_blackwell = spec_.sm_version >= 100;
  const bool moves = row.also.result == ResultTime::UniformMove,
             transfers = row.also.result == ResultTime::Transfer;
  rule.reaches_all = moves || transfers;
  rule.result_after = transfers ? after_transfer
                      : moves   ? std::min<uint32_t>(after_move, d.latency)
                                : d.latency;
  rule.predicate_early = transfers               ? earlier_test
                         : moves && is_blackwell ? earlier_vote
                         : d.unit == Unit::Fp64  ? earlier_comparison
                                                 : 0;
  const bool uniform = d.fixed.unit == Unit::Uniform;
  if (!uniform && row.also.widths == Widths::WideProduct && has_modifiers(opcode, "WIDE"))
    rule.halves_apart = between_halves;
  rule.uniform_lead = d.memory_pipeline || rule.warp_group ? to_memory
                      : !uniform                           ? to_lanes
                      : row.also.reads_uniform_late        ? to_move
                                                           : 0;
}

/// The operand cache is indexed by operand slot. A tensor core reads its wide operands over the time for
/// which it is occupied; only the first register of each counts.
void Decoder::set_operand_slots(DecodedInstruction& d, const StaticInstruction& s) const {
  d.read_count = 0;
  for (uint32_t i = 0; i < s.source_count; ++i) {
    const Register& r = s.sources[i];
    if (!is_tracked(r)) continue;
    const uint32_t width = d.unit == Unit::Tensor ? 1 : std::max<uint32_t>(1, r.width);
    for (uint32_t k = 0; k < width && d.read_count < d.reads.size(); ++k) {
      d.reads[d.read_count] = static_cast<uint8_t>(r.index + k);
      d.read_slots[d.read_count++] = s.source_slots[i];
    }
  }
}

}  // namespace

DecodedKernel::DecodedKernel(InstructionSource& instruction_source, const Spec& spec, uint16_t launch_slot)
    : source(&instruction_source), launch(instruction_source.launch()), slot(launch_slot) {
  const uint64_t threads = launch.block.count();
  warps_per_cta = static_cast<uint32_t>((threads + spec.sm.warp_size - 1) / spec.sm.warp_size);
  const Decoder decoder(instruction_source, spec);
  control_bits = decoder.control_bits();
  instructions.reserve(instruction_source.instructions().size());
  for (const StaticInstruction& s : instruction_source.instructions()) {
    const DecodedInstruction& d = instructions.emplace_back(decoder.decode(s));
    if (d.constant_operand == StaticInstruction::no_constant) continue;
    constants_begin = constants_end == 0 ? d.constant_operand : std::min(constants_begin, d.constant_operand);
    constants_end = std::max(constants_end, d.constant_operand + 1);
  }
}

}  // namespace simt
