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
  /// By architecture, and whether divisions and special functions are plain.
  std::map<std::pair<uint32_t, bool>, std::shared_ptr<const functional::Lowering>> lowered;

  std::shared_ptr<const functional::Lowering> lowering(uint32_t sm_version, bool plain = false) {
    if (program.is_machine_code()) sm_version = 0, plain = false;
    auto& found = lowered[{sm_version, plain}];
    if (!found)
      found = std::make_shared<const functional::Lowering>(functional::lower(program, sm_version, plain));
    return found;
  }

  ~LoadedModule() { functional::free_variables(program, *memory); }
};

inline std::vector<std::byte> contents_of(const nanobind::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

}  // namespace simt::python
