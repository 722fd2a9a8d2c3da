#pragma once
#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <vector>

#include "machine/lowering.hpp"
#include "machine/memory.hpp"
#include "ptx/lowering/lowerer.hpp"
#include "ptx/translation/translator.hpp"

namespace simt::python {

/// A module loaded into a device's memory. Its variables stay there until it is destroyed.
struct LoadedModule {
  std::shared_ptr<functional::DeviceMemory> memory;
  functional::Program program;
  std::map<uint32_t, std::shared_ptr<const functional::Lowering>> lowered;  ///< by architecture

  std::shared_ptr<const functional::Lowering> lowering(uint32_t sm_version) {
    if (program.is_machine_code()) sm_version = 0;
    auto& found = lowered[sm_version];
    if (!found) found = std::make_shared<const functional::Lowering>(functional::lower(program, sm_version));
    return found;
  }

  ~LoadedModule() { functional::free_variables(program, *memory); }
};

inline std::vector<std::byte> contents_of(const nanobind::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

}  // namespace simt::python
