#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "handle.hpp"
#include "work.hpp"

// The objects behind API handles.

namespace simt::driver {

struct Context;
struct Device;
struct Capture;

/// Facts about a kernel.
struct KernelFacts {
  struct Parameter {
    uint32_t offset = 0, size = 0;
  };
  std::vector<Parameter> parameters;
  uint32_t shared_bytes = 0, local_bytes = 0, max_threads = 0;
  std::array<uint32_t, 3> cluster{};  ///< fixed at compile time; 0: none
  size_t parameter_bytes() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  }
};

struct Module;

struct Function : Handle {
  static constexpr uint64_t tag = 0x73696d745f66756e;
  Function(Module& of, std::string called) : Handle(tag), module(of), name(std::move(called)) {}
  Module& module;
  std::string name;
  KernelFacts facts;
  uint32_t registers = 0;             ///< per thread; 0: not yet queried
  uint32_t dynamic_shared_limit = 0;  ///< as set by CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; 0: not
                                      ///< set
  std::map<int, int> attributes;      ///< other attributes set by the program
};

struct Variable {
  uint64_t address = 0, size = 0;
};

/// A module in a context; also holds the kernels and variables of a library there.
struct Module : Handle {
  static constexpr uint64_t tag = 0x73696d745f6d6f64;
  explicit Module(Context& of) : Handle(tag), context(of) {}
  Context& context;
  uint64_t id = 0;                             ///< simt's id
  int ptx_version = 0;                         ///< version of its PTX: 10 * major + minor
  std::map<std::string, Function*> functions;  ///< by name
  std::map<std::string, Variable> variables;
  std::map<std::string, Variable> managed;
};

/// The graph nodes on which the next work in a captured stream depends.
struct Frontier {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};

struct Event : Handle {
  static constexpr uint64_t tag = 0x73696d745f657674;
  Event(Context& of, unsigned given) : Handle(tag), context(&of), flags(given) {}
  Context* context;
  unsigned flags;
  uint64_t id = 0;                   ///< of its last record; 0: never recorded
  std::shared_ptr<Capture> capture;  ///< in which it was last recorded; it then stands for `captured_after`
  Frontier captured_after;
};

struct Stream : Handle {
  static constexpr uint64_t tag = 0x73696d745f737472;
  Stream(Context& of, uint64_t number, unsigned given, int level)
      : Handle(tag), context(&of), id(number), flags(given), priority(level) {}
  Context* context;
  uint64_t id;  ///< 0: the legacy default stream
  unsigned flags;
  int priority;
  std::shared_ptr<Capture> capture;  ///< in progress
  std::map<int, CUstreamAttrValue> attributes;
  AccessWindow window;  ///< of launches that bring none
};

/// A primary context, or one created by cuCtxCreate.
struct Context : Handle {
  static constexpr uint64_t tag = 0x73696d745f637478;
  Context(Device& of, unsigned given);
  Device& device;
  unsigned flags;
  Stream legacy;
  std::map<int, size_t> limits;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
};

}  // namespace simt::driver
