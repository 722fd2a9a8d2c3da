#include "timing/decoded_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "isa/tensor_shape.hpp"

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

const UnitSpec& unit_spec(const Spec& spec, Unit unit) {
  return spec.sm.units[static_cast<size_t>(unit)];
}

/// The unit that executes an instruction on this GPU. GPUs without separate integer units run integer work on
/// the FP32 pipe (Fermi to Pascal); missing FP64 units fall to the SFU; what a trace of a newer GPU uses and
/// this one lacks runs on the integer pipe.
///
/// Texture and surface instructions go to memory where their addresses are known, as those of executed
/// programs are. The compared-with model knows only a unit with a fixed latency.
Unit executing_unit(const Spec& spec, const StaticInstruction& s) {
  const Unit alu = unit_spec(spec, Unit::Int).count > 0 ? Unit::Int : Unit::Fp32;
  const bool as_listed = spec.sm.register_file.model == OperandModel::OperandCollector;
  if (s.space == MemorySpace::Texture && s.access_bytes > 0 && !as_listed) return Unit::Memory;
  if (s.unit == Unit::Memory || s.unit == Unit::Tma) return Unit::Memory;
  if (unit_spec(spec, s.unit).count > 0) return s.unit;
  if (s.unit == Unit::Fp64 || s.unit == Unit::Texture || s.unit == Unit::Tensor)
    return unit_spec(spec, Unit::Sfu).count > 0 ? Unit::Sfu : alu;
  return alu;
}

}  // namespace

DecodedKernel::DecodedKernel(InstructionSource& instruction_source, const Spec& spec, uint16_t launch_slot)
    : source(&instruction_source), launch(instruction_source.launch()), slot(launch_slot) {
  const uint64_t threads = launch.block.count();
  warps_per_cta = static_cast<uint32_t>((threads + spec.sm.warp_size - 1) / spec.sm.warp_size);
  // Operand collectors stand for the model that the field compares with: it tracks only the registers that a
  // trace lists, RZ among them. Hardware knows the whole vector and never waits for RZ.
  const bool as_listed = spec.sm.register_file.model == OperandModel::OperandCollector;
  instructions.reserve(instruction_source.instructions().size());
  for (const StaticInstruction& s : instruction_source.instructions()) {
    DecodedInstruction d;
    d.fixed = s;
    d.unit = executing_unit(spec, s);
    // Without memory a store is one more instruction that takes a slot.
    if (s.space == MemorySpace::Texture && d.unit != Unit::Memory && s.operation != Operation::Load)
      d.fixed.operation = Operation::Arithmetic;
    if (as_listed && s.operation == Operation::Sleep) d.fixed.operation = Operation::Branch;
    const bool constant_load = s.operation == Operation::Load && s.space == MemorySpace::Constant;
    if (constant_load) d.unit = unit_spec(spec, Unit::Int).count > 0 ? Unit::Int : Unit::Fp32;
    if (as_listed && (s.operation == Operation::Load || s.operation == Operation::AsyncCopy)) {
      // The compared-with model knows only this way past the L1; hardware also takes .CG, .CV and system
      // scope there.
      const std::string& opcode = instruction_source.opcodes()[s.opcode];
      d.fixed.bypass_l1 =
          opcode.find(".STRONG") != std::string::npos && opcode.find(".GPU") != std::string::npos;
    }
    const UnitSpec& unit = unit_spec(spec, d.unit);
    d.latency = static_cast<uint16_t>(std::max(1u, unit.latency));
    d.initiation_interval = static_cast<uint16_t>(std::max(1u, unit.initiation_interval));
    if (s.half_precision) d.initiation_interval = std::max<uint16_t>(1, d.initiation_interval / 2);
    if (constant_load && spec.constant_cache.latency > 0)
      d.latency = static_cast<uint16_t>(spec.constant_cache.latency);
    if (!spec.constant_cache.perfect) {
      d.constant_load = constant_load && s.access_bytes > 0;
      d.constant_operand = s.constant_operand;
      if (s.constant_operand != StaticInstruction::no_constant) {
        constants_begin =
            constants_end == 0 ? s.constant_operand : std::min(constants_begin, s.constant_operand);
        constants_end = std::max(constants_end, s.constant_operand + 1);
      }
    }
    if (s.operation == Operation::Barrier || s.operation == Operation::BarrierArrive ||
        s.operation == Operation::Exit)
      d.latency = d.initiation_interval = 1;
    if (!as_listed && d.unit == Unit::Tensor) {
      // The unit's interval is that of FP16 m16n8k16; other shapes and types take their share of it.
      const double work = tensor_work(instruction_source.opcodes()[s.opcode]);
      if (work > 0)
        d.initiation_interval =
            static_cast<uint16_t>(std::max(1.0, std::round(unit.initiation_interval * work)));
      d.latency = std::max(d.latency, d.initiation_interval);
    }
    d.memory_pipeline = d.unit == Unit::Memory;
    if (d.memory_pipeline) d.latency = d.initiation_interval = 1;

    const auto add = [&](RegisterSet& set, const Register& r) {
      const uint32_t width = as_listed ? 1 : std::max<uint32_t>(1, r.width);
      for (uint32_t k = 0; k < width; ++k) {
        if (!as_listed && r.file == RegisterFile::General && r.index + k >= zero_register) break;
        const uint32_t bit = flat_index(r, k);
        set[bit / 64] |= uint64_t{1} << (bit % 64);
      }
    };
    for (uint32_t i = 0; i < s.source_count; ++i) {
      const Register& r = s.sources[i];
      add(d.touches, r);
      if (r.file != RegisterFile::General || (!as_listed && r.index == zero_register)) continue;
      const uint8_t* begin = d.reads.data();
      const uint8_t* end = begin + d.read_count;
      if (std::find(begin, end, static_cast<uint8_t>(r.index)) == end)
        d.reads[d.read_count++] = static_cast<uint8_t>(r.index);
    }
    for (uint32_t i = 0; i < s.destination_count; ++i) {
      const Register& r = s.destinations[i];
      add(d.touches, r);
      add(d.writes, r);
      if (r.file == RegisterFile::General && (as_listed || r.index != zero_register))
        d.writes_at[d.write_count++] = static_cast<uint8_t>(r.index);
    }
    instructions.push_back(d);
  }
}

}  // namespace simt
