#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "bindings.hpp"
#include "ptx/control_flow.hpp"
#include "ptx/module.hpp"
#include "ptx/own_instructions.hpp"
#include "ptx/parser.hpp"
#include "ptx/register_allocation.hpp"
#include "ptx/stored_parameters.hpp"
#include "python_types.hpp"

// The engine's view of PTX, as plain Python values.

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt;

namespace {

/// Paths in PTX need not be UTF-8.
nb::object text(std::string_view s) {
  return nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

template <class Items, class Convert>
nb::list list_of(const Items& items, Convert convert) {
  nb::list list;
  for (const auto& item : items) list.append(convert(item));
  return list;
}

constexpr const char* space_names[] = {"none", "reg", "const", "global", "local", "param", "shared"};
constexpr const char* linkage_names[] = {"internal", "visible", "extern", "weak", "common"};
constexpr const char* kind_names[] = {"none",     "register", "special", "integer", "float",
                                      "variable", "symbol",   "label",   "address", "vector",
                                      "list",     "pair",     "discard"};

nb::dict variable_dict(const ptx::Variable& v) {
  nb::dict d;
  d["name"] = text(v.name);
  d["space"] = space_names[static_cast<size_t>(v.space)];
  d["type"] = text(ptx::name(v.type));
  d["linkage"] = linkage_names[static_cast<size_t>(v.linkage)];
  d["alignment"] = v.alignment;
  d["size"] = v.size;
  d["managed"] = v.managed;
  d["line"] = v.line;
  d["initial"] = nb::bytes(v.initial.data(), v.initial.size());
  d["relocations"] = list_of(v.relocations, [](const ptx::Relocation& r) {
    return nb::make_tuple(r.offset, r.bytes, r.generic, r.mask_shift, text(r.symbol), r.addend);
  });
  nb::dict properties;
  for (const auto& [property, value] : v.properties) properties[text(property)] = text(value);
  d["properties"] = properties;
  return d;
}

/// Omits fields without meaning for the operand's kind.
nb::dict operand_dict(const ptx::Function& function, const ptx::Operand& o) {
  using Kind = ptx::OperandKind;
  nb::dict d;
  d["kind"] = kind_names[static_cast<size_t>(o.kind)];
  if (o.negated) d["negated"] = true;
  if (o.kind == Kind::Float) d["single"] = o.single;
  if (o.kind == Kind::Variable || (o.kind == Kind::Symbol && o.local)) d["local"] = o.local;
  if (o.component) d["component"] = o.component;
  if (o.kind == Kind::Register || o.kind == Kind::Variable || o.kind == Kind::Label || o.local)
    d["index"] = o.index;
  if (o.kind == Kind::Integer || o.kind == Kind::Float || o.kind == Kind::Variable ||
      o.kind == Kind::Address || o.value != 0)
    d["value"] = o.value;
  if (!o.text.empty()) d["text"] = text(o.text);
  if (o.kind == Kind::Address || o.kind == Kind::Vector || o.kind == Kind::List || o.kind == Kind::Pair) {
    nb::list parts;
    for (uint32_t k = 0; k < o.part_count; ++k)
      parts.append(operand_dict(function, function.operands[o.first_part + k]));
    d["parts"] = parts;
  }
  return d;
}

nb::dict instruction_dict(const ptx::Module& module, const ptx::Function& function,
                          const ptx::Instruction& i) {
  nb::dict d;
  const ptx::Mnemonic& mnemonic = module.mnemonics[i.mnemonic];
  d["mnemonic"] = text(mnemonic.text);
  d["opcode"] = text(mnemonic.opcode);
  d["row"] = text(mnemonic.row->name);
  d["modifiers"] = list_of(mnemonic.modifiers, text);
  d["line"] = i.line;
  d["begin"] = i.begin;
  d["end"] = i.end;
  const ptx::Location& location = module.locations[i.location];
  d["location"] = i.location ? nb::object(nb::make_tuple(location.file, location.line, location.column))
                             : nb::object(nb::none());
  d["guard"] = i.guard;
  d["guard_negated"] = i.guard_negated;
  nb::list operands;
  for (uint32_t k = 0; k < i.operand_count; ++k)
    operands.append(operand_dict(function, function.operands[i.first_operand + k]));
  d["operands"] = operands;
  return d;
}

const char* name(instructions::Memory memory) {
  using instructions::Memory;
  switch (memory) {
    case Memory::None:
      return "none";
    case Memory::Load:
      return "load";
    case Memory::Store:
      return "store";
    case Memory::Atomic:
      return "atomic";
    case Memory::Copy:
      return "copy";
    case Memory::Fence:
      return "fence";
    case Memory::Mbarrier:
      return "mbarrier";
    case Memory::StackAllocation:
      return "stack allocation";
  }
  return "";
}

const char* name(instructions::Space space) {
  using instructions::Space;
  switch (space) {
    case Space::None:
      return "none";
    case Space::Named:
      return "named";
    case Space::Shared:
      return "shared";
    case Space::Texture:
      return "texture";
  }
  return "";
}

const char* name(instructions::Control control) {
  using instructions::Control;
  switch (control) {
    case Control::Next:
      return "next";
    case Control::Branch:
      return "branch";
    case Control::IndirectBranch:
      return "indirect branch";
    case Control::Call:
      return "call";
    case Control::Return:
      return "return";
    case Control::Exit:
      return "exit";
    case Control::Trap:
      return "trap";
  }
  return "";
}

const char* name(instructions::Result result) {
  using instructions::Result;
  switch (result) {
    case Result::OfInputs:
      return "inputs";
    case Result::OfTime:
      return "time";
    case Result::OfAddresses:
      return "addresses";
    case Result::OfOrder:
      return "order";
    case Result::Late:
      return "late";
  }
  return "";
}

/// The machine opcodes that a row gives as data.
nb::list machine_opcodes(const instructions::PtxRow& row) {
  nb::list all;
  for (uint32_t k = 0; k < row.lowering.count; ++k)
    for (const char* opcode : row.lowering.cases[k].code.opcodes)
      if (opcode) all.append(opcode);
  return all;
}

python::PtxTableRow row_dict(const instructions::PtxRow& row) {
  python::PtxTableRow d;
  d["name"] = text(row.name);
  d["opcode"] = text(row.opcode());
  d["executable"] = instructions::is_executable(row);
  d["forms"] = text(row.forms);
  d["later_forms"] = text(row.later_forms);
  d["memory"] = name(row.facts.memory);
  d["space"] = name(row.facts.space);
  d["typed"] = row.facts.extent == instructions::Extent::Typed;
  d["control"] = name(row.facts.control);
  d["result"] = name(row.facts.result);
  d["copies"] = row.facts.algebra == instructions::Algebra::Copy;
  d["movable"] = row.facts.motion == instructions::Motion::Free;
  d["machine_opcodes"] = machine_opcodes(row);
  return d;
}

nb::tuple extent(const std::array<uint32_t, 3>& e) {
  return nb::make_tuple(e[0], e[1], e[2]);
}

nb::dict function_dict(const ptx::Module& module, const ptx::Function& f) {
  nb::dict d;
  d["name"] = text(f.name);
  d["entry"] = f.entry;
  d["defined"] = f.defined;
  d["noreturn"] = f.noreturn;
  d["linkage"] = linkage_names[static_cast<size_t>(f.linkage)];
  d["line"] = f.line;
  d["body_begin"] = f.body_begin;
  d["body_end"] = f.body_end;
  d["results"] = list_of(f.results, variable_dict);
  d["parameters"] = list_of(f.parameters, variable_dict);
  d["variables"] = list_of(f.variables, variable_dict);
  d["registers"] = list_of(f.registers, [](const ptx::RegisterDeclaration& r) {
    const std::string number = r.number < 0 ? "" : std::to_string(r.number);
    return nb::make_tuple(text(std::string(r.name) + number), text(ptx::name(r.type)), r.vector);
  });
  d["instructions"] =
      list_of(f.instructions, [&](const ptx::Instruction& i) { return instruction_dict(module, f, i); });
  d["labels"] = list_of(
      f.labels, [](const ptx::Label& label) { return nb::make_tuple(text(label.name), label.target); });
  d["targets"] = list_of(f.targets, [](const ptx::TargetList& t) {
    return nb::make_tuple(text(t.name), list_of(t.labels, [](uint32_t label) { return label; }),
                          list_of(t.functions, text));
  });
  d["prototypes"] = list_of(f.prototypes, [](const ptx::Prototype& p) {
    return nb::make_tuple(text(p.name), list_of(p.results, variable_dict),
                          list_of(p.parameters, variable_dict));
  });
  d["max_threads"] = extent(f.max_threads);
  d["required_threads"] = extent(f.required_threads);
  d["cluster"] = extent(f.cluster);
  d["max_registers"] = f.max_registers;
  d["min_ctas"] = f.min_ctas;
  d["explicit_cluster"] = f.explicit_cluster;
  d["blocks_are_clusters"] = f.blocks_are_clusters;
  nb::list stored;
  if (f.entry && f.defined) {
    const std::vector<bool> words = ptx::stored_parameters(f, module);
    for (size_t word = 0; word < words.size(); ++word)
      if (words[word]) stored.append(word);
  }
  d["stored_parameters"] = stored;
  return d;
}

python::PtxDump module_dict(const ptx::Module& module) {
  const auto pair = [](const auto& p) { return nb::make_tuple(text(p.first), text(p.second)); };
  python::PtxDump d;
  d["name"] = module.name;
  d["version"] = module.version;
  d["target"] = module.target;
  d["target_suffix"] = text(module.target_suffix);
  d["address_size"] = module.address_size;
  d["files"] = list_of(module.files, [](const auto& f) { return nb::make_tuple(f.first, text(f.second)); });
  d["variables"] = list_of(module.variables, variable_dict);
  d["functions"] =
      list_of(module.functions, [&](const ptx::Function& f) { return function_dict(module, f); });
  d["aliases"] = list_of(module.aliases, pair);
  return d;
}

/// What a launch needs to know about each kernel.
nb::typed<nb::list, python::PtxKernelFacts> kernels(const ptx::Module& module) {
  nb::typed<nb::list, python::PtxKernelFacts> all;
  for (const ptx::Function& f : module.functions) {
    if (!f.entry || !f.defined) continue;
    nb::list parameters;
    const std::vector<uint64_t> offsets = ptx::parameter_offsets(f.parameters);
    for (size_t k = 0; k < offsets.size(); ++k) {
      const ptx::Variable& p = f.parameters[k];
      parameters.append(
          nb::make_tuple(text(p.name), text(ptx::name(p.type)), p.size, p.alignment, offsets[k]));
    }
    python::PtxKernelFacts d;
    d["name"] = text(f.name);
    d["parameters"] = parameters;
    d["max_threads"] = extent(f.max_threads);
    d["required_threads"] = extent(f.required_threads);
    d["cluster"] = extent(f.cluster);
    d["explicit_cluster"] = f.explicit_cluster;
    d["blocks_are_clusters"] = f.blocks_are_clusters;
    d["max_registers"] = f.max_registers;
    d["min_ctas"] = f.min_ctas;
    all.append(d);
  }
  return all;
}

const ptx::Function& function_at(const ptx::Module& module, size_t index) {
  if (index >= module.functions.size()) throw nb::index_error("no such function");
  return module.functions[index];
}

/// First instruction, one past the last, successors, immediate post-dominator.
using BasicBlock = std::tuple<uint32_t, uint32_t, std::vector<uint32_t>, std::optional<uint32_t>>;

std::vector<BasicBlock> blocks(const ptx::Module& module, size_t function) {
  const ptx::ControlFlow flow = ptx::control_flow(function_at(module, function), module);
  std::vector<BasicBlock> found;
  for (const ptx::ControlFlow::Block& block : flow.blocks) {
    const bool none = block.post_dominator == ptx::ControlFlow::none;
    found.emplace_back(block.first, block.last, block.successors,
                       none ? std::nullopt : std::optional<uint32_t>(block.post_dominator));
  }
  return found;
}

std::pair<std::vector<uint32_t>, std::vector<uint32_t>> accesses(const ptx::Module& module, size_t function,
                                                                 uint32_t instruction) {
  const ptx::Function& f = function_at(module, function);
  if (instruction >= f.instructions.size()) throw nb::index_error("no such instruction");
  const ptx::Access access = ptx::access(f, module, instruction);
  return {access.reads, access.writes};
}

python::PtxAllocation allocation(const ptx::Module& module, size_t function) {
  const ptx::Function& f = function_at(module, function);
  const ptx::RegisterAllocation a = [&] {
    const nb::gil_scoped_release no_gil;
    return ptx::allocate_registers(f, module, ptx::control_flow(f, module));
  }();
  python::PtxAllocation d;
  d["places"] = list_of(a.place, [](uint32_t place) {
    return place == ptx::RegisterAllocation::unused ? nb::object(nb::none()) : nb::cast(place);
  });
  d["registers"] = a.registers;
  d["predicates"] = a.predicates;
  d["max_live"] = a.max_live;
  return d;
}

}  // namespace

void bind_ptx(nb::module_& m) {
  m.def(
      "is_library", [](const std::string& path) { return ptx::is_library(path); }, "path"_a,
      "Whether a source is of a CUDA toolkit or an installed Python package, by its path.");
  m.def(
      "instruction_table",
      []() -> nb::typed<nb::list, python::PtxTableRow> {
        return list_of(instructions::ptx_table(), [](const auto* row) { return row_dict(*row); });
      },
      "The rows of the PTX instruction table, by name: engine/instructions/.");
  m.def(
      "add_own_instruction",
      [](const std::string& mnemonic, const std::string& opcode, const std::vector<std::string>& types,
         uintptr_t function) {
        std::vector<ptx::Type> named;
        for (const std::string& type : types) named.push_back(ptx::type_named(type));
        ptx::add_own_instruction(
            {mnemonic, opcode, std::move(named), reinterpret_cast<ptx::OwnInstruction::Function>(function)});
      },
      "mnemonic"_a, "opcode"_a, "types"_a, "function"_a,
      "Defines a PTX instruction by a function at an address (engine/ptx/own_instructions.hpp).");
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const ptx::ParseError& e) {
      const nb::object type = nb::module_::import_("simt.errors").attr("PtxError");
      PyErr_SetString(type.ptr(), e.what());
    }
  });
  nb::class_<ptx::Module>(m, "PtxModule")
      .def(
          "__init__",
          [](ptx::Module* self, const nb::bytes& source, std::string name) {
            std::string copy(source.c_str(), source.size());
            const nb::gil_scoped_release no_gil;
            new (self) ptx::Module(ptx::parse(std::move(copy), std::move(name)));
          },
          "text"_a, "name"_a = "PTX", "Raises simt.errors.PtxError where `text` is no PTX.")
      .def("kernels", &kernels,
           "For each kernel: its name, its parameters as (name, type, size, alignment, offset), and its "
           "limits.")
      .def("dump", &module_dict, "Everything, as plain values.")
      .def(
          "instruction_counts",
          [](const ptx::Module& module) {
            std::vector<size_t> counts;
            for (const ptx::Function& f : module.functions) counts.push_back(f.instructions.size());
            return counts;
          },
          "Of each function.")
      .def("blocks", &blocks, "function"_a,
           "(first instruction, one past the last, successors, immediate post-dominator or None) of each.")
      .def("accesses", &accesses, "function"_a, "instruction"_a,
           "Registers that it reads, and that it writes.")
      .def("allocation", &allocation, "function"_a,
           "places: of each register, None where it is never named; registers, predicates and max_live.");
}
