#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "loaded_module.hpp"
#include "machine/calls.hpp"
#include "operations/texture.hpp"
#include "python_types.hpp"
#include "sass/code.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

using simt::python::contents_of;
using simt::python::LoadableCode;
using simt::python::LoadedModule;

using LineTuple =
    std::tuple<std::string, std::string, std::vector<std::string>, uint64_t, uint64_t, uint32_t, uint32_t>;

simt::sass::Section section_of(const nb::dict& d) {
  simt::sass::Section section;
  section.name = nb::cast<std::string>(d["name"]);
  section.is_kernel = nb::cast<bool>(d["is_kernel"]);
  for (auto& [predicate, opcode, operands, low, high, file, line] :
       nb::cast<std::vector<LineTuple>>(d["lines"]))
    section.lines.push_back(
        {std::move(predicate), std::move(opcode), std::move(operands), low, high, file, line});
  section.functions = nb::cast<std::vector<std::pair<std::string, uint32_t>>>(d["functions"]);
  const auto number = [&](const char* key) { return nb::cast<uint32_t>(d[key]); };
  section.registers = number("registers");
  section.shared_bytes = number("shared_bytes");
  section.reserved_shared = number("reserved_shared");
  section.allocation_mbarrier = number("allocation_mbarrier");
  section.allocation_parity = number("allocation_parity");
  section.stack_bytes = number("stack_bytes");
  section.calls = nb::cast<bool>(d["calls"]);
  for (auto& [offset, size, type] :
       nb::cast<std::vector<std::tuple<uint32_t, uint32_t, std::string>>>(d["parameters"]))
    section.parameters.push_back({offset, size, std::move(type)});
  const auto three = [&](const char* key) { return nb::cast<std::array<uint32_t, 3>>(d[key]); };
  section.max_threads = three("max_threads");
  section.required_threads = three("required_threads");
  section.cluster = three("cluster");
  section.constants = std::make_shared<ConstantBanks>();
  section.constants->parameters = number("parameter_base");
  for (const auto& [bank, contents] :
       nb::cast<std::map<uint32_t, std::pair<nb::bytes, uint64_t>>>(d["constants"])) {
    if (bank >= ConstantBanks::count) throw nb::value_error("a constant bank above 7");
    section.constants->banks[bank] = {contents_of(contents.first), contents.second};
  }
  return section;
}

simt::sass::Module machine_code_of(const LoadableCode& d) {
  simt::sass::Module module;
  module.name = nb::cast<std::string>(d["name"]);
  module.sm = nb::cast<uint32_t>(d["sm"]);
  module.opcodes = nb::cast<const simt::OpcodeTable*>(d["opcodes"]);
  module.independent_samplers = nb::cast<bool>(d["independent_samplers"]);
  module.files = nb::cast<std::vector<std::string>>(d["files"]);
  for (const nb::handle section : nb::cast<nb::list>(d["sections"]))
    module.sections.push_back(section_of(nb::cast<nb::dict>(section)));
  module.system_functions = nb::cast<std::vector<std::string>>(d["system_functions"]);
  return module;
}

std::vector<std::tuple<uint32_t, uint32_t, std::string>> machine_code_refusals(const LoadableCode& d) {
  std::vector<std::tuple<uint32_t, uint32_t, std::string>> found;
  for (auto& [section, instruction, why] : simt::sass::refusals(machine_code_of(d)))
    found.emplace_back(section, instruction, std::move(why));
  return found;
}

/// Index, file (simt::RegisterFile) and width of registers.
using RegisterTuples = std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>;

/// Registers that each instruction writes and reads, section by section.
std::vector<std::pair<RegisterTuples, RegisterTuples>> machine_code_registers(const LoadableCode& d) {
  std::vector<std::pair<RegisterTuples, RegisterTuples>> found;
  for (const simt::RawInstruction& r : simt::sass::translate(machine_code_of(d)).lowering.instructions) {
    const auto tuples = [](const auto& list, uint8_t count) {
      RegisterTuples registers;
      for (uint8_t i = 0; i < count; ++i)
        registers.emplace_back(list[i].index, static_cast<uint32_t>(list[i].file), list[i].width);
      return registers;
    };
    found.emplace_back(tuples(r.destinations, r.destination_count), tuples(r.sources, r.source_count));
  }
  return found;
}

std::shared_ptr<LoadedModule> load_machine_code(
    const LoadableCode& d, std::shared_ptr<DeviceMemory> memory,
    const std::vector<std::tuple<std::string, uint64_t, uint64_t, bool, bool>>& variables,
    const std::vector<std::tuple<std::string, uint64_t, std::string>>& references,
    std::vector<uint64_t> allocations) {
  const simt::sass::Module module = machine_code_of(d);
  nb::gil_scoped_release release;
  simt::sass::Translated translated = simt::sass::translate(module);
  auto loaded = std::make_shared<LoadedModule>();
  loaded->memory = std::move(memory);
  loaded->program = std::move(translated.program);
  loaded->program.allocations = std::move(allocations);
  for (const auto& [name, address, size, managed, hidden] : variables)
    loaded->program.machine_variables.push_back({name, address, size, managed, hidden});
  for (const auto& [name, address, type] : references)
    loaded->program.machine_references.push_back({name, address, type});
  loaded->lowered[{0, false}] = std::make_shared<const Lowering>(std::move(translated.lowering));
  return loaded;
}

/// The descriptor of a reference of machine code to which nothing is bound. type, properties: as PTX writes
/// them.
nb::bytes unbound_reference(const std::string& type, const std::map<std::string, std::string>& properties) {
  simt::ptx::Variable variable;
  variable.type = simt::ptx::type_named(type);
  variable.size = simt::ptx::bytes(variable.type);
  variable.properties.assign(properties.begin(), properties.end());
  const TextureDescriptor descriptor = initial_descriptor(variable);
  return nb::bytes(&descriptor, sizeof descriptor);
}

/// The descriptor of a texture with a sampler of its own, whose descriptors are at these addresses.
nb::bytes texture_with_sampler(uint64_t texture, uint64_t sampler) {
  TextureDescriptor descriptor;
  descriptor.kind = TextureDescriptor::Kind::Pair;
  descriptor.pair = {texture, sampler};
  return nb::bytes(&descriptor, sizeof descriptor);
}

}  // namespace

void bind_machine_code(nb::module_& m) {
  m.attr("machine_code_window") = machine_code_window;
  m.def(
      "load_machine_code", &load_machine_code, "code"_a, "memory"_a, "variables"_a, "references"_a,
      "allocations"_a,
      "Translates machine code; src/simt/sass/program.py describes `code`. variables: (name, address, size, "
      "whether managed, whether hidden). references: (name, address, PTX's type). "
      "allocations: addresses in memory that are freed with the module, if it is made.");
  m.def("unbound_reference", &unbound_reference, "type"_a, "properties"_a,
        "The descriptor of a \"texref\", \"samplerref\" or \"surfref\" to which nothing is bound; "
        "properties: its "
        "initial values, as PTX writes them.");
  m.def("texture_with_sampler", &texture_with_sampler, "texture"_a, "sampler"_a,
        "The descriptor of both together; the addresses of theirs are given.");
  m.def("machine_code_registers", &machine_code_registers, "code"_a,
        "What each instruction, section by section, writes and what it reads: (index, file, width) of "
        "registers; files are 0 for R, 1 for UR, 2 for P, 3 for UP.");
  m.def("machine_code_refusals", &machine_code_refusals, "code"_a,
        "What `load_machine_code` would refuse: (section, instruction, why).");
}
