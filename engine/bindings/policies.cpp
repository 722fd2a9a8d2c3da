#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "timing/policies/compiled_policies.hpp"
#include "timing/policies/policy_library.hpp"

// Policies that are not part of simt.

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt;

namespace {

std::vector<uint8_t> bytes_of(const nb::bytes& bytes) {
  const auto* first = static_cast<const uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

template <class Function>
Function at(uintptr_t address) {
  return reinterpret_cast<Function>(address);
}

}  // namespace

void bind_policies(nb::module_& m) {
  nb::exception<PolicyFault>(m, "PolicyFault", PyExc_RuntimeError);
  m.def(
      "load_policies",
      [](const std::string& path, const std::string& interface, const std::string& suffix) {
        std::vector<std::tuple<std::string, std::string>> found;
        for (const LoadedPolicy& one : load_policies(path, interface, suffix))
          found.emplace_back(one.kind, one.name);
        return found;
      },
      "path"_a, "interface"_a, "suffix"_a,
      "Registers the policies of a library as name@suffix; their kinds and names. Raises PolicyFault if it\n"
      "was not built for this interface.");
  m.def(
      "add_scheduler",
      [](const std::string& name, const std::string& meaning, const nb::bytes& state, bool facts,
         uintptr_t choose, uintptr_t l1_accessed, uintptr_t l1_evicted) {
        compiled::SchedulerFunctions f;
        f.choose = at<decltype(f.choose)>(choose);
        f.l1_accessed = at<decltype(f.l1_accessed)>(l1_accessed);
        f.l1_evicted = at<decltype(f.l1_evicted)>(l1_evicted);
        f.facts = facts;
        f.state = bytes_of(state);
        compiled::add_scheduler(name, meaning, f);
      },
      "name"_a, "meaning"_a, "state"_a, "facts"_a, "choose"_a, "l1_accessed"_a, "l1_evicted"_a,
      "Registers a warp scheduler of functions at addresses (engine/timing/policies/compiled_policies.hpp).");
  m.def(
      "add_replacement",
      [](const std::string& name, const std::string& meaning, const nb::bytes& state, const nb::bytes& line,
         uintptr_t victim, uintptr_t allocated, uintptr_t used) {
        compiled::ReplacementFunctions f;
        f.victim = at<decltype(f.victim)>(victim);
        f.allocated = at<compiled::ReplacementFunctions::Event>(allocated);
        f.used = at<compiled::ReplacementFunctions::Event>(used);
        f.state = bytes_of(state);
        f.line = bytes_of(line);
        compiled::add_replacement(name, meaning, f);
      },
      "name"_a, "meaning"_a, "state"_a, "line"_a, "victim"_a, "allocated"_a, "used"_a,
      "Registers a cache replacement policy of functions at addresses.");
  m.def(
      "add_slice_hash",
      [](const std::string& name, const std::string& meaning, uintptr_t function) {
        compiled::add_slice_hash(name, meaning, at<compiled::SliceHashFunction>(function));
      },
      "name"_a, "meaning"_a, "function"_a, "Registers an L2 slice hash that is a function at an address.");
}
