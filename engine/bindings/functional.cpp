#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "bindings.hpp"
#include "functional/calls.hpp"
#include "functional/grid.hpp"
#include "functional/lowering.hpp"
#include "functional/memory_changes.hpp"
#include "functional/source.hpp"
#include "functional/stop_on_error.hpp"
#include "functional/tensor_map.hpp"
#include "functional/texture.hpp"
#include "functional/translator.hpp"
#include "ptx/parser.hpp"
#include "sass/code.hpp"
#include "trace/store_encoder.hpp"
#include "trace/text_parser.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

/// A module loaded into a device's memory. Its variables stay there until it is destroyed.
struct LoadedModule {
  std::shared_ptr<DeviceMemory> memory;
  Program program;
  std::map<uint32_t, std::shared_ptr<const Lowering>> lowered;  ///< by architecture

  std::shared_ptr<const Lowering> lowering(uint32_t sm_version) {
    if (program.is_machine_code()) sm_version = 0;
    auto& found = lowered[sm_version];
    if (!found) found = std::make_shared<const Lowering>(lower(program, sm_version));
    return found;
  }

  ~LoadedModule() { free_variables(program, *memory); }
};

nb::dict describe(const Program& program, uint32_t index) {
  const FunctionCode& f = program.functions[index];
  nb::dict d;
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

Machine machine_of(const nb::dict& d) {
  Machine m;
  const auto set = [&](const char* key, uint32_t& value) {
    if (d.contains(key)) value = nb::cast<uint32_t>(d[key]);
  };
  set("sm_version", m.sm_version);
  set("sm_count", m.sm_count);
  set("warps_per_sm", m.warps_per_sm);
  set("threads_per_cta", m.threads_per_cta);
  set("shared_bytes_per_cta", m.shared_bytes_per_cta);
  set("resident_ctas", m.resident_ctas);
  set("stack_limit", m.stack_limit);
  uint32_t exact = 0;
  set("exact_tensor_arithmetic", exact);
  m.tensor_core = exact ? TensorCore::Exact : tensor_core(m.sm_version);
  if (d.contains("core_khz")) m.core_khz = std::max<uint64_t>(1, nb::cast<uint64_t>(d["core_khz"]));
  return m;
}

std::vector<std::byte> bytes_of(const nb::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

/// A launch as the host describes it, which may be made several times, with other parameters.
struct DescribedLaunch {
  std::shared_ptr<LoadedModule> module;
  uint32_t function;
  LaunchConfig config;
  Machine machine;
  std::vector<std::byte> state;  ///< of CTAs that have begun

  LaunchConfig with(const nb::bytes& parameters, uint64_t id) const {
    LaunchConfig made = config;
    made.parameters = bytes_of(parameters);
    made.id = id;
    return made;
  }
};

/// Writes an executed launch into the blocks of a trace store.
class Recorder {
 public:
  Recorder(ExecutedSource& source, uint32_t lanes) : launch_(source.launch()), opcodes_(source.opcodes()) {
    launch_.warp_size = lanes;
    Counting sink(encoder_, counts_);
    source.record(sink, lanes);
    encoder_.finish();
  }
  nb::list take_blocks() {
    nb::list out;
    for (const auto& b : encoder_.take_blocks())
      out.append(nb::make_tuple(nb::make_tuple(b.summary.first_cta, b.summary.cta_count, b.summary.first_warp,
                                               b.summary.last_warp, b.summary.instructions),
                                nb::bytes(b.bytes.data(), b.bytes.size())));
    return out;
  }
  const simt::LaunchInfo& launch() const { return launch_; }
  const std::vector<std::string>& opcodes() const { return opcodes_; }
  nb::bytes instructions() const {
    const std::string bytes = encoder_.encoded_instructions();
    return nb::bytes(bytes.data(), bytes.size());
  }
  const simt::TextParser::Counts& counts() const { return counts_; }

 private:
  /// Forwards records and counts them as the text parser does.
  class Counting : public simt::TraceSink {
   public:
    Counting(simt::StoreEncoder& encoder, simt::TextParser::Counts& counts)
        : encoder_(encoder), counts_(counts) {}
    void begin_kernel(const simt::LaunchInfo& launch, const std::vector<simt::RawInstruction>& instructions,
                      const std::vector<std::string>& opcodes) override {
      encoder_.begin_kernel(launch, instructions, opcodes);
    }
    void begin_cta(const simt::CtaPosition& position) override {
      ++counts_.ctas;
      encoder_.begin_cta(position);
    }
    void begin_warp(uint32_t warp, uint64_t instructions) override {
      ++counts_.warps;
      counts_.empty_warps += instructions == 0;
      encoder_.begin_warp(warp, instructions);
    }
    void record(const simt::TraceRecord& record) override {
      ++counts_.instructions;
      encoder_.record(record);
    }
    void end_cta() override { encoder_.end_cta(); }

   private:
    simt::StoreEncoder& encoder_;
    simt::TextParser::Counts& counts_;
  };

  simt::LaunchInfo launch_;
  std::vector<std::string> opcodes_;
  simt::StoreEncoder encoder_;
  simt::TextParser::Counts counts_;
};

void bind_errors(nb::module_& m) {
  static PyObject* fault_error =
      PyErr_NewException("simt._engine.functional.ProgramFault", PyExc_RuntimeError, nullptr);
  m.attr("ProgramFault") = nb::handle(fault_error);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const TranslationError& e) {
      PyErr_SetString(nb::module_::import_("simt.errors").attr("PtxError").ptr(), e.what());
    } catch (const simt::sass::CodeError& e) {
      PyErr_SetString(nb::module_::import_("simt.errors").attr("SassError").ptr(), e.what());
    } catch (const ProgramFault& e) {
      nb::object error = nb::steal(PyObject_CallFunction(fault_error, "s", e.what()));
      if (!error.is_valid()) return;
      error.attr("kind") = e.kind;
      error.attr("kernel") = e.kernel;
      error.attr("block") = nb::make_tuple(e.cta[0], e.cta[1], e.cta[2]);
      error.attr("thread") = nb::make_tuple(e.thread[0], e.thread[1], e.thread[2]);
      error.attr("launch") = e.launch;
      error.attr("ptx_line") = e.ptx_line;
      error.attr("instruction") = e.instruction;
      error.attr("source_file") = e.source_file;
      error.attr("source_line") = e.source_line;
      error.attr("address") = e.has_address ? nb::object(nb::int_(e.address)) : nb::none();
      PyErr_SetObject(fault_error, error.ptr());
    }
  });
}

void bind_memory(nb::module_& m) {
  nb::class_<AddressSpace>(m, "AddressSpace", "What the devices of a process share.")
      .def(nb::init<uint64_t, uint64_t, uint32_t>(), "begin"_a, "stride"_a, "devices"_a,
           "Raises MemoryError where the host has too few addresses left.");
  nb::class_<DeviceMemory>(m, "DeviceMemory")
      .def(nb::init<uint64_t, uint64_t, bool>(), "capacity"_a, "base"_a = window::global,
           "exact_bounds"_a = false)
      .def(nb::init<uint64_t, std::shared_ptr<AddressSpace>, uint32_t, bool>(), "capacity"_a, "space"_a,
           "number"_a, "exact_bounds"_a = false)
      .def_prop_ro_static(
          "alignment", [](nb::handle) { return DeviceMemory::alignment; },
          "Of the address of each allocation, in bytes.")
      .def_prop_ro("capacity", &DeviceMemory::capacity)
      .def_prop_ro("used", &DeviceMemory::used)
      .def_prop_ro("file", &DeviceMemory::file, "The file that holds it, which other processes may map.")
      .def_prop_ro("base", &DeviceMemory::base, "Its first address.")
      .def(
          "allocate",
          [](DeviceMemory& self, uint64_t size, std::string label) {
            return self.allocate(size, std::move(label));
          },
          "size"_a, "label"_a, "0 if there is no room.")
      .def(
          "allocate_at",
          [](DeviceMemory& self, uint64_t address, uint64_t size, std::string label, bool by_kernel) {
            return self.allocate_at(address, size, std::move(label), by_kernel ? Owner::Kernel : Owner::Host);
          },
          "address"_a, "size"_a, "label"_a, "by_kernel"_a = false,
          "False where the address is not free or no multiple of 256.")
      .def(
          "allocations",
          [](const DeviceMemory& self) {
            nb::list all;
            for (const Allocation& a : self.allocations())
              if (a.owner != Owner::Launch)
                all.append(nb::make_tuple(a.address, a.size, a.label, a.owner == Owner::Kernel));
            return all;
          },
          "All that programs have allocated: (address, size, label, whether by a kernel's malloc), by "
          "address.")
      .def(
          "free",
          [](DeviceMemory& self, uint64_t address, bool by_kernel) {
            return self.free(address, by_kernel ? Owner::Kernel : Owner::Host);
          },
          "address"_a, "by_kernel"_a = false,
          "False if `address` is not the beginning of an allocation of the host, or of a kernel's malloc.")
      .def(
          "copy_on_write",
          [](const DeviceMemory& self) { return std::shared_ptr<DeviceMemory>(self.copy_on_write()); },
          "A copy that shares pages with this memory until it writes them.")
      .def(
          "apply_changes",
          [](DeviceMemory& self, const nb::bytes& changes) {
            return apply_changes(self, reinterpret_cast<const std::byte*>(changes.c_str()), changes.size());
          },
          "changes"_a, "Makes changes that MemoryChanges found. False if they are malformed.")
      .def("open", &DeviceMemory::open, "address"_a, "devices"_a,
           "Lets other devices of its address space access an allocation: bit n for number n. False if there "
           "is none at the address.")
      .def("reach", &DeviceMemory::reach, "number"_a, "all"_a,
           "Whether kernels of this device may access all memory of that device.")
      .def("describe", &DeviceMemory::describe, "address"_a)
      .def(
          "write",
          [](DeviceMemory& self, uint64_t address, nb::bytes data) {
            if (!self.find(address, data.size()))
              throw nb::index_error(
                  ("no allocation holds what is written: " + self.describe(address)).c_str());
            std::memcpy(self.host(address), data.c_str(), data.size());
          },
          "address"_a, "data"_a)
      .def(
          "read",
          [](DeviceMemory& self, uint64_t address, uint64_t size) {
            if (!self.find(address, size))
              throw nb::index_error(("no allocation holds what is read: " + self.describe(address)).c_str());
            return nb::bytes(reinterpret_cast<const char*>(self.host(address)), size);
          },
          "address"_a, "size"_a)
      .def(
          "view",
          [](nb::handle self, uint64_t address, uint64_t size) {
            auto& memory = nb::cast<DeviceMemory&>(self);
            if (!memory.find(address, size))
              throw nb::index_error(("no allocation holds this: " + memory.describe(address)).c_str());
            return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(memory.host(address)),
                                                     static_cast<Py_ssize_t>(size), PyBUF_WRITE));
          },
          "address"_a, "size"_a, "Writable view of device memory, valid while the memory object lives.");

  nb::class_<MemoryChanges>(m, "MemoryChanges")
      .def(nb::init<DeviceMemory&, const DeviceMemory&>(), "memory"_a, "copy"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), "What a launch on a copy of memory has changed.")
      .def(
          "take",
          [](MemoryChanges& self, size_t limit) {
            std::vector<std::byte> found;
            {
              nb::gil_scoped_release release;
              found = self.take(limit);
            }
            return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size());
          },
          "limit"_a,
          "The next changes, about `limit` bytes, which are made in memory as well; empty at the end.");
}

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
    section.constants->banks[bank] = {bytes_of(contents.first), contents.second};
  }
  return section;
}

simt::sass::Module machine_code_of(const nb::dict& d) {
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

std::vector<std::tuple<uint32_t, uint32_t, std::string>> machine_code_refusals(const nb::dict& d) {
  std::vector<std::tuple<uint32_t, uint32_t, std::string>> found;
  for (auto& [section, instruction, why] : simt::sass::refusals(machine_code_of(d)))
    found.emplace_back(section, instruction, std::move(why));
  return found;
}

/// Index, file (simt::RegisterFile) and width of registers.
using RegisterTuples = std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>;

/// Registers that each instruction writes and reads, section by section.
std::vector<std::pair<RegisterTuples, RegisterTuples>> machine_code_registers(const nb::dict& d) {
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
    const nb::dict& d, std::shared_ptr<DeviceMemory> memory,
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
  loaded->lowered[0] = std::make_shared<const Lowering>(std::move(translated.lowering));
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

void bind_modules(nb::module_& m) {
  nb::class_<LoadedModule>(m, "Module")
      .def_prop_ro("kernels",
                   [](const LoadedModule& self) {
                     nb::dict d;
                     for (uint32_t i = 0; i < self.program.functions.size(); ++i)
                       if (self.program.functions[i].entry &&
                           self.program.functions[i].end > self.program.functions[i].first)
                         d[self.program.functions[i].name.c_str()] = describe(self.program, i);
                     return d;
                   })
      .def_prop_ro("variables",
                   [](const LoadedModule& self) {
                     nb::dict d;
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
                     nb::dict d;
                     for (const MachineVariable& v : self.program.machine_variables)
                       if (v.hidden) d[v.name.c_str()] = nb::make_tuple(v.address, v.size);
                     return d;
                   })
      .def_prop_ro("is_machine_code", [](const LoadedModule& self) { return self.program.is_machine_code(); })
      .def_prop_ro("managed",
                   [](const LoadedModule& self) {
                     nb::list names;
                     for (const MachineVariable& v : self.program.machine_variables)
                       if (v.managed) names.append(v.name);
                     for (const auto& v : self.program.module.variables)
                       if (v.managed) names.append(std::string(v.name));
                     return names;
                   })
      .def_prop_ro("references",
                   [](const LoadedModule& self) {
                     nb::dict d;
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
      .def_prop_ro("is_machine_code", [](const LoadedModule& self) { return self.program.is_machine_code(); })
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

/// Asks Python, while a launch runs without timing, whether a signal has come, and calls `poll`; what they
/// raise stops the launch.
std::function<void()> asking(std::optional<nb::callable> poll) {
  std::shared_ptr<nb::callable> kept;
  if (poll)
    kept = {new nb::callable(std::move(*poll)), [](nb::callable* held) {
              nb::gil_scoped_acquire acquire;
              delete held;
            }};
  return [kept] {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (kept) (*kept)();
  };
}

nb::tuple run(const DescribedLaunch& self, const nb::bytes& parameters, uint64_t id, uint32_t threads,
              std::optional<nb::callable> print, DeviceMemory* memory,
              std::optional<std::tuple<uint64_t, uint64_t, uint64_t>> until,
              std::optional<nb::callable> poll) {
  LaunchConfig config = self.with(parameters, id);
  std::vector<std::byte> reached;
  PrintSink sink;
  if (print)
    sink = [&print](const std::string& text) {
      nb::gil_scoped_acquire acquire;
      (*print)(nb::bytes(text.data(), text.size()));
    };
  StopOnError stop(asking(std::move(poll)));
  Grid::Counts counts;
  {
    nb::gil_scoped_release release;
    Grid launch(self.module->program, self.function, std::move(config),
                memory ? *memory : *self.module->memory, self.machine, sink);
    if (!self.state.empty()) launch.restore(self.state);
    if (until) {
      const auto [cta, partial, instructions] = *until;
      reached = launch.run_to({cta, partial, instructions}, threads, stop.question(), counts);
    } else {
      counts = launch.run(threads, stop.question());
    }
  }
  stop.rethrow();
  if (!counts.complete)
    throw ProgramFault("blocks before " + std::to_string(std::get<0>(*until)) + " wait for later ones");
  return nb::make_tuple(counts.warp_instructions, counts.thread_instructions,
                        nb::bytes(reinterpret_cast<const char*>(reached.data()), reached.size()));
}

std::shared_ptr<ExecutedSource> source(const DescribedLaunch& self, const nb::bytes& parameters, uint64_t id,
                                       const simt::OpcodeTable& table, uint32_t sm_version,
                                       uint32_t registers, uint64_t stream,
                                       std::optional<nb::callable> poll) {
  ExecutedSource::Description description;
  description.name = self.module->program.functions.at(self.function).name;
  description.registers_per_thread = registers;
  description.sm_version = sm_version;
  description.stream = stream;
  description.owner = self.module;
  description.state = self.state;
  if (poll) description.poll = asking(std::move(poll));
  return std::make_shared<ExecutedSource>(self.module->program, self.function, self.with(parameters, id),
                                          *self.module->memory, self.machine,
                                          self.module->lowering(sm_version), table, std::move(description));
}

void bind_launches(nb::module_& m) {
  nb::class_<ExecutedSource, simt::InstructionSource>(m, "ExecutedSource")
      .def_prop_ro("printed",
                   [](const ExecutedSource& self) {
                     const std::string text = self.printed();
                     return nb::bytes(text.data(), text.size());
                   })
      .def_prop_ro("unknown_opcodes", &ExecutedSource::unknown_opcodes);

  nb::class_<DescribedLaunch>(m, "Launch")
      .def(
          "__init__",
          [](DescribedLaunch* self, std::shared_ptr<LoadedModule> module, uint32_t function,
             std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block, std::array<uint32_t, 3> cluster,
             uint32_t dynamic_shared, const nb::dict& machine, bool cooperative, uint64_t first_cta,
             const nb::bytes& state) {
            LaunchConfig config;
            config.grid = grid;
            config.block = block;
            config.cluster = cluster;
            config.dynamic_shared_bytes = dynamic_shared;
            config.cooperative = cooperative;
            config.first_cta = first_cta;
            new (self) DescribedLaunch{std::move(module), function, std::move(config), machine_of(machine),
                                       bytes_of(state)};
          },
          "module"_a, "function"_a, "grid"_a, "block"_a, "cluster"_a, "dynamic_shared"_a, "machine"_a,
          "cooperative"_a = false, "first_cta"_a = 0, "state"_a = nb::bytes("", 0),
          "A launch, to be made once or several times: from `first_cta` on, and from `state` for CTAs that "
          "have begun.")
      .def(
          "run", &run, "parameters"_a, "id"_a, "threads"_a = 1, "print"_a.none() = nb::none(),
          "memory"_a.none() = nb::none(), "until"_a.none() = nb::none(), "poll"_a.none() = nb::none(),
          "Runs it without timing, on a copy of the module's memory if `memory` is given. until: (number of "
          "CTAs to finish, of those to begin after them, instructions per warp of the latter). Returns warp "
          "and thread instructions, and with `until` the state. poll: called again and again meanwhile; what "
          "it raises stops the launch. Raises ValueError for the state of another launch.")
      .def("source", &source, "parameters"_a, "id"_a, "table"_a, "sm_version"_a, "registers"_a, "stream"_a,
           "poll"_a.none() = nb::none(),
           "A launch that executes as the timing engine asks for its instructions. poll: see `run`, for CTAs "
           "that are executed without timing.");

  nb::class_<Recorder>(m, "Recorder")
      .def(nb::init<ExecutedSource&, uint32_t>(), "source"_a, "lanes"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Executes a launch at once and encodes what it did as a trace with warps of 32 or 64 lanes.")
      .def("take_blocks", &Recorder::take_blocks)
      .def_prop_ro("launch", &Recorder::launch)
      .def_prop_ro("opcodes", &Recorder::opcodes)
      .def_prop_ro("instructions", &Recorder::instructions)
      .def_prop_ro("counts", &Recorder::counts);
}

void bind_tensor_maps(nb::module_& m) {
  m.def(
      "encode_tensor_map",
      [](uint32_t type, uint64_t address, std::vector<uint64_t> dims, std::vector<uint64_t> strides,
         std::vector<uint32_t> box, std::vector<uint32_t> element_strides, uint32_t interleave,
         uint32_t swizzle, uint32_t fill,
         std::optional<std::pair<std::vector<int32_t>, std::vector<int32_t>>> corners) {
        TensorMapParameters p;
        p.element = type;
        p.address = address;
        p.dims = std::move(dims);
        p.strides = std::move(strides);
        p.box = std::move(box);
        p.element_strides = std::move(element_strides);
        p.interleave = interleave;
        p.swizzle = swizzle;
        p.fill = fill;
        p.im2col = corners.has_value();
        if (corners) {
          p.lower = std::move(corners->first);
          p.upper = std::move(corners->second);
        }
        try {
          const auto map = encode_tensor_map(p).packed();
          return nb::bytes(reinterpret_cast<const char*>(map.data()), map.size());
        } catch (const std::invalid_argument& e) {
          throw nb::value_error(e.what());
        }
      },
      "type"_a, "address"_a, "dims"_a, "strides"_a, "box"_a, "element_strides"_a, "interleave"_a = 0,
      "swizzle"_a = 0, "fill"_a = 0, "corners"_a = nb::none(),
      "The 128 bytes of a tensor map, from what cuTensorMapEncodeTiled takes, in its order and numbering: "
      "dims and box in elements, strides in bytes, the innermost dimension first. With `corners`, the lower "
      "and upper ones, as cuTensorMapEncodeIm2col; box is then (channels per pixel, pixels per column). "
      "Raises ValueError.");
}

void bind_textures(nb::module_& m) {
  m.def(
      "encode_texture",
      [](const std::string& kind, const nb::dict& fields) {
        const auto choice = [](const std::string& value, std::initializer_list<const char*> names) {
          const auto it = std::find(names.begin(), names.end(), value);
          if (it == names.end()) throw nb::value_error(("unknown: " + value).c_str());
          return static_cast<uint8_t>(it - names.begin());
        };
        const auto text = [&](const char* key) { return nb::cast<std::string>(fields[key]); };
        TextureDescriptor d;
        d.bound = true;
        d.kind = static_cast<TextureDescriptor::Kind>(choice(kind, {"texture", "sampler", "surface"}));
        if (fields.contains("levels")) {
          d.geometry = static_cast<TextureDescriptor::Geometry>(
              choice(text("geometry"), {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"}));
          d.channel = static_cast<TextureDescriptor::Channel>(
              choice(text("channel"), {"unsigned", "signed", "float"}));
          d.channels = nb::cast<uint8_t>(fields["channels"]);
          d.channel_bytes = nb::cast<uint8_t>(fields["channel_bytes"]);
          d.linear_memory = nb::cast<bool>(fields["linear_memory"]);
          d.normalized_float = nb::cast<bool>(fields["normalized_float"]);
          d.srgb = nb::cast<bool>(fields["srgb"]);
          d.mipmapped = nb::cast<bool>(fields["mipmapped"]);
          using Level = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t, uint32_t, uint32_t>;
          const auto levels = nb::cast<std::vector<Level>>(fields["levels"]);
          if (levels.empty() || levels.size() > d.levels.size())
            throw nb::value_error((std::to_string(levels.size()) + " levels").c_str());
          d.level_count = static_cast<uint8_t>(levels.size());
          for (size_t k = 0; k < levels.size(); ++k) {
            TextureLevel& l = d.levels[k];
            std::tie(l.address, l.pitch, l.slice, l.width, l.height, l.layers) = levels[k];
          }
        }
        if (fields.contains("filter")) {
          d.normalized = nb::cast<bool>(fields["normalized"]);
          d.sampler.force_unnormalized =
              d.kind == TextureDescriptor::Kind::Sampler && nb::cast<bool>(fields["force_unnormalized"]);
          d.sampler.filter = static_cast<Sampler::Filter>(choice(text("filter"), {"point", "linear"}));
          d.sampler.level_filter =
              static_cast<Sampler::Filter>(choice(text("level_filter"), {"point", "linear"}));
          const auto modes = nb::cast<std::array<std::string, 3>>(fields["address"]);
          for (size_t k = 0; k < modes.size(); ++k)
            d.sampler.addressing[k] = static_cast<Sampler::Addressing>(
                choice(modes[k], {"wrap", "mirror", "clamp_ogl", "clamp", "border"}));
          d.sampler.border = nb::cast<std::array<float, 4>>(fields["border"]);
          d.sampler.level_bias = nb::cast<float>(fields["level_bias"]);
          d.sampler.least_level = nb::cast<float>(fields["least_level"]);
          d.sampler.most_level = nb::cast<float>(fields["most_level"]);
        }
        if (const std::string why = d.fault(); !why.empty()) throw nb::value_error(why.c_str());
        return nb::bytes(reinterpret_cast<const char*>(&d), sizeof d);
      },
      "kind"_a, "fields"_a,
      "What a texture, sampler or surface handle points to, for src/simt/gpu/texture.py. levels: (address, "
      "bytes from row to row, bytes from layer to layer, width, height, layers or depth). Raises "
      "ValueError.");
}

}  // namespace

void bind_functional(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("functional", "Functional execution of PTX.");
  bind_errors(m);
  bind_memory(m);
  bind_memory_operations(m);
  bind_modules(m);
  bind_launches(m);
  bind_tensor_maps(m);
  bind_textures(m);
}
