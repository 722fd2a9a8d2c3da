// Opcodes, the classes of opcode tables, and the tables.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "isa/classify.hpp"
#include "isa/control_bits.hpp"
#include "isa/opcode.hpp"
#include "isa/opcode_energy.hpp"
#include "isa/opcode_table.hpp"
#include "isa/tensor_shape.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace simt;

using ClassTuple = std::tuple<Unit, Operation, MemorySpace, bool>;

ClassTuple class_tuple(const OpcodeClass& c) {
  return {c.unit, c.operation, c.space, c.half_precision};
}

std::vector<std::string_view> classes_of(const OpcodeRow& row) {
  std::vector<std::string_view> names;
  for (size_t g = 0; g < std::size(generations); ++g)
    names.push_back(classes[static_cast<size_t>(row.classes.in(static_cast<Generation>(g)))].name);
  return names;
}

bool accesses_shared(const OpcodeRow& row) {
  const OpcodeClass& c = row.classes.newest();
  return c.space == MemorySpace::Shared &&
         (c.operation == Operation::Load || c.operation == Operation::Store ||
          c.operation == Operation::Atomic || c.operation == Operation::Reduction);
}

void bind_opcodes(nb::module_& m) {
  nb::class_<OpcodeRow>(m, "OpcodeRow", "What is known of an opcode: engine/isa/opcode.hpp.")
      .def_prop_ro("name", [](const OpcodeRow& row) { return row.name.value; })
      .def_prop_ro("classes", &classes_of, "By generation; empty where it does not exist.")
      .def_prop_ro(
          "forms", [](const OpcodeRow& row) { return row.forms.value; },
          "Modifiers and operands that are executed.")
      .def_prop_ro("is_executed", &OpcodeRow::is_executed)
      .def_prop_ro("accesses_shared_memory", &accesses_shared,
                   "Whether it loads, stores or modifies shared memory.")
      .def_prop_ro(
          "flops", [](const OpcodeRow& row) { return row.also.flops; },
          "Floating-point operations of a lane; of tensor products 0.")
      .def_prop_ro(
          "stand_in", [](const OpcodeRow& row) { return row.also.stand_in; },
          "What it does is not modelled; its class stands in for it.");
  m.def(
      "opcode_rows",
      []() -> nb::typed<nb::list, OpcodeRow> {
        nb::list rows;
        for (const OpcodeRow* row : opcode_rows()) rows.append(nb::cast(row, nb::rv_policy::reference));
        return rows;
      },
      "All opcodes from Kepler to Blackwell, by name: engine/instructions/sass/.");
  m.def(
      "opcode_generations",
      [] {
        std::vector<std::tuple<std::string_view, std::vector<uint32_t>>> found;
        for (const GenerationFacts& generation : generations) {
          std::vector<uint32_t> versions;
          for (const uint16_t version : generation.sm_versions)
            if (version) versions.push_back(version);
          found.emplace_back(generation.name, versions);
        }
        return found;
      },
      "Name and SM versions of each generation, oldest first.");
  m.def(
      "opcode_classes",
      [] {
        std::map<std::string_view, ClassTuple> found;
        for (const ClassFacts& c : classes)
          if (!c.name.empty()) found.emplace(c.name, class_tuple(c.what));
        return found;
      },
      "Unit, operation, space, and whether of half precision, of each class of opcodes.");
  m.def(
      "opcode_energy",
      [](std::string_view opcode) {
        const OpcodeEnergy energy = energy_of(opcode);
        return std::make_tuple(energy.section, energy.key, energy.multiply_adds, energy.known);
      },
      "opcode"_a,
      "Section and key of its energy, multiply-adds of a warp if it is a tensor product, and whether the "
      "energy is its own.");
  m.def("lane_access_bytes", &lane_access_bytes, "opcode"_a,
        "Bytes that each lane of a memory instruction accesses, as its opcode says.");
  m.def(
      "tensor_work", &tensor_work, "opcode"_a, "half_rate_fp32_accumulation"_a = false,
      "Time of a tensor-core instruction relative to FP16 m16n8k16 with FP32 accumulators, by its shape and "
      "type; 0 if its opcode does not tell.");
  m.def("tensor_multiply_adds", &tensor_multiply_adds, "opcode"_a,
        "Multiply-adds of a tensor-core instruction for one warp; 0 if its opcode does not tell.");
}

}  // namespace

void bind_isa(nb::module_& m) {
  nb::enum_<Unit>(m, "Unit")
      .value("Int", Unit::Int)
      .value("Fp32", Unit::Fp32)
      .value("Fp64", Unit::Fp64)
      .value("Sfu", Unit::Sfu)
      .value("Tensor", Unit::Tensor)
      .value("Branch", Unit::Branch)
      .value("Texture", Unit::Texture)
      .value("Uniform", Unit::Uniform)
      .value("Memory", Unit::Memory)
      .value("Tma", Unit::Tma)
      .value("Conversion", Unit::Conversion)
      .value("Multiply", Unit::Multiply)
      .value("Compare", Unit::Compare);
  nb::enum_<Operation>(m, "Operation")
      .value("Arithmetic", Operation::Arithmetic)
      .value("Branch", Operation::Branch)
      .value("Load", Operation::Load)
      .value("Store", Operation::Store)
      .value("Atomic", Operation::Atomic)
      .value("Reduction", Operation::Reduction)
      .value("AsyncCopy", Operation::AsyncCopy)
      .value("AsyncCommit", Operation::AsyncCommit)
      .value("AsyncWait", Operation::AsyncWait)
      .value("Sleep", Operation::Sleep)
      .value("Barrier", Operation::Barrier)
      .value("BarrierArrive", Operation::BarrierArrive)
      .value("MemoryBarrier", Operation::MemoryBarrier)
      .value("Exit", Operation::Exit)
      .value("BulkLoad", Operation::BulkLoad)
      .value("BulkStore", Operation::BulkStore)
      .value("TensorProduct", Operation::TensorProduct)
      .value("TensorCopy", Operation::TensorCopy)
      .value("TensorCommit", Operation::TensorCommit)
      .value("TensorMove", Operation::TensorMove)
      .value("MbarrierArrive", Operation::MbarrierArrive)
      .value("MbarrierWait", Operation::MbarrierWait)
      .value("Nop", Operation::Nop);
  nb::enum_<MemorySpace>(m, "MemorySpace")
      .value("None_", MemorySpace::None)
      .value("Global", MemorySpace::Global)
      .value("Local", MemorySpace::Local)
      .value("Shared", MemorySpace::Shared)
      .value("Constant", MemorySpace::Constant)
      .value("Generic", MemorySpace::Generic)
      .value("Texture", MemorySpace::Texture);
  nb::class_<ControlBits>(m, "ControlBits", "The control bits of an instruction of machine code.")
      .def_static("of", &ControlBits::of, "high"_a, "high: the second 64-bit word of the instruction.")
      .def_prop_ro("stall", &ControlBits::stall)
      .def_prop_ro("yields", &ControlBits::yields)
      .def_prop_ro("write_counter", &ControlBits::write_counter)
      .def_prop_ro("read_counter", &ControlBits::read_counter)
      .def_prop_ro("waits", &ControlBits::waits, "Bit per dependence counter.")
      .def_prop_ro("reuse", &ControlBits::reuse, "Bit per operand slot.")
      .def_prop_ro_static(
          "NO_COUNTER", [](nb::handle) { return ControlBits::no_counter; },
          "In place of the number of a dependence counter: none.");
  nb::class_<OpcodeTable>(m, "OpcodeTable")
      .def(nb::init<std::string>(), "name"_a)
      .def_prop_ro("name", &OpcodeTable::name)
      .def(
          "add",
          [](OpcodeTable& t, const std::string& mnemonic, Unit unit, Operation operation, MemorySpace space,
             bool half_precision) { t.add(mnemonic, {unit, operation, space, half_precision}); },
          "mnemonic"_a, "unit"_a, "operation"_a, "space"_a, "half_precision"_a)
      .def(
          "add_related",
          [](OpcodeTable& t, const std::string& mnemonic, Unit unit, Operation operation, MemorySpace space,
             bool half_precision) { t.add_related(mnemonic, {unit, operation, space, half_precision}); },
          "mnemonic"_a, "unit"_a, "operation"_a, "space"_a, "half_precision"_a)
      .def(
          "find",
          [](const OpcodeTable& t, std::string_view mnemonic, bool has_addresses, bool has_destination) {
            const auto match = t.find(mnemonic, has_addresses, has_destination);
            const OpcodeClass& c = match.opcode_class;
            return std::make_tuple(c.unit, c.operation, c.space, c.half_precision, match.exact,
                                   match.nearest);
          },
          "mnemonic"_a, "has_addresses"_a = false, "has_destination"_a = false,
          "(unit, operation, space, half_precision, exact, nearest) of an opcode's first token.");
  bind_opcodes(m);
}
