#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.hpp"
#include "loaded_module.hpp"
#include "ptx/parser.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

using simt::python::LoadedKernel;
using simt::python::LoadedModule;

LoadedKernel describe(const Program& program, uint32_t index) {
  const FunctionCode& f = program.functions[index];
  LoadedKernel d;
  d["index"] = index;
  d["name"] = f.name;
  nb::list parameters;
  for (size_t i = 0; i < f.parameter_sizes.size(); ++i)
    parameters.append(nb::make_tuple(f.parameter_offsets[i], f.parameter_sizes[i], f.parameter_types[i]));
  d["parameters"] = parameters;
  d["parameter_bytes"] = f.parameter_bytes;
  d["shared_bytes"] = f.shared_bytes;
  d["stack_bytes"] = f.stack_bytes;
  d["registers"] = f.registers;
  d["max_live"] = f.max_live;
  d["max_threads"] = f.max_threads;
  d["required_threads"] = f.required_threads;
  d["cluster"] = f.cluster;
  d["order_sensitive"] = f.order_sensitive;
  nb::list stored;
  for (size_t word = 0; word < f.stored_parameters.size(); ++word)
    if (f.stored_parameters[word]) stored.append(word);
  d["stored_parameters"] = stored;
  return d;
}

/// Address and size of variables, by name.
using Places = nb::typed<nb::dict, nb::str, nb::typed<nb::tuple, uint64_t, uint64_t>>;

}  // namespace

void bind_modules(nb::module_& m) {
  nb::class_<LoadedModule>(m, "Module")
      .def_prop_ro("kernels",
                   [](const LoadedModule& self) {
                     nb::typed<nb::dict, nb::str, LoadedKernel> d;
                     for (uint32_t i = 0; i < self.program.functions.size(); ++i)
                       if (self.program.functions[i].entry &&
                           self.program.functions[i].end > self.program.functions[i].first)
                         d[self.program.functions[i].name.c_str()] = describe(self.program, i);
                     return d;
                   })
      .def_prop_ro("variables",
                   [](const LoadedModule& self) {
                     Places d;
                     for (const MachineVariable& v : self.program.machine_variables)
                       if (!v.hidden) d[v.name.c_str()] = nb::make_tuple(v.address, v.size);
                     for (size_t i = 0; i < self.program.variables.size(); ++i) {
                       const auto& v = self.program.module.variables[i];
                       const bool global =
                           v.space == simt::ptx::Space::Global || v.space == simt::ptx::Space::Constant;
                       if (global && !simt::ptx::is_opaque(v.type))
                         d[std::string(v.name).c_str()] = nb::make_tuple(self.program.variables[i], v.size);
                     }
                     return d;
                   })
      .def_prop_ro("hidden_variables",
                   [](const LoadedModule& self) {
                     Places d;
                     for (const MachineVariable& v : self.program.machine_variables)
                       if (v.hidden) d[v.name.c_str()] = nb::make_tuple(v.address, v.size);
                     return d;
                   })
      .def_prop_ro("is_machine_code", [](const LoadedModule& self) { return self.program.is_machine_code(); })
      .def_prop_ro("managed",
                   [](const LoadedModule& self) {
                     std::vector<std::string> names;
                     for (const MachineVariable& v : self.program.machine_variables)
                       if (v.managed) names.push_back(v.name);
                     for (const auto& v : self.program.module.variables)
                       if (v.managed) names.emplace_back(v.name);
                     return names;
                   })
      .def_prop_ro("references",
                   [](const LoadedModule& self) {
                     nb::typed<nb::dict, nb::str, nb::typed<nb::tuple, uint64_t, std::string>> d;
                     for (const MachineReference& r : self.program.machine_references)
                       d[r.name.c_str()] = nb::make_tuple(r.address, r.type);
                     for (size_t i = 0; i < self.program.variables.size(); ++i) {
                       const auto& v = self.program.module.variables[i];
                       if (simt::ptx::is_opaque(v.type) && v.linkage != simt::ptx::Linkage::Extern)
                         d[std::string(v.name).c_str()] =
                             nb::make_tuple(self.program.variables[i], std::string(simt::ptx::name(v.type)));
                     }
                     return d;
                   })
      .def(
          "order",
          [](const LoadedModule& self, const std::string& kernel) {
            const FunctionCode* f = self.program.find(kernel);
            if (!f) throw nb::key_error(kernel.c_str());
            std::vector<std::string> names;
            if (self.program.is_machine_code()) {
              for (uint32_t op = f->first; op < f->end; ++op) names.push_back(self.program.text(op));
              return names;
            }
            const auto& ptx = self.program.module.functions[f->ptx];
            for (const auto& i : ptx.instructions)
              names.emplace_back(self.program.module.mnemonics[i.mnemonic].text);
            return names;
          },
          "kernel"_a, "The mnemonics of a kernel's instructions in the order in which they are executed.")
      .def(
          "listing",
          [](LoadedModule& self, uint32_t sm_version) {
            const auto lowering = self.lowering(sm_version);
            std::vector<std::tuple<uint32_t, std::string, uint32_t>> rows(lowering->instructions.size());
            for (uint32_t op = 0; op < lowering->of_op.size(); ++op) {
              const Lowering::Range& range = lowering->of_op[op];
              if (range.count == 0) continue;
              const InstructionPlace place = self.program.where(op);
              std::fill_n(rows.begin() + range.first, range.count,
                          std::tuple{place.line, place.source_line ? std::string(place.file) : std::string(),
                                     place.source_line});
            }
            return rows;
          },
          "sm_version"_a,
          "Where the timed instructions come from, in their order: (line of the PTX, source file, "
          "line in it); an empty file and 0 where that is not known.")
      .def_prop_ro("target", [](const LoadedModule& self) { return self.program.module.target; });

  m.def(
      "load",
      [](std::string text, std::string name, std::shared_ptr<DeviceMemory> memory,
         const std::map<std::string, uint64_t>& places) {
        nb::gil_scoped_release release;
        auto loaded = std::make_shared<LoadedModule>();
        loaded->memory = std::move(memory);
        loaded->program =
            translate(simt::ptx::parse(std::move(text), std::move(name)), *loaded->memory, places);
        return loaded;
      },
      "text"_a, "name"_a, "memory"_a, "places"_a = std::map<std::string, uint64_t>{},
      "Parses and translates PTX and puts its variables into memory, those named in `places` at the "
      "addresses given there.");
}
