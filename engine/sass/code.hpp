#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "isa/opcode_table.hpp"
#include "machine/code.hpp"
#include "machine/lowering.hpp"

/// Machine code (SASS): instructions as nvdisasm writes them, translated for execution.
namespace simt::sass {

/// An instruction as it is disassembled.
struct Line {
  std::string predicate;  ///< such as "@!P0", or empty
  std::string opcode;     ///< with its modifiers
  std::vector<std::string> operands;
  uint64_t low = 0, high = 0;          ///< its 128 bits, relocated
  uint32_t file = 0, source_line = 0;  ///< index into Module::files; its line there, 0 if that is not known
};

/// A section of code: a kernel with the functions in it, or functions that several kernels call.
struct Section {
  std::string name;
  bool is_kernel = false;
  std::vector<Line> lines;
  std::vector<std::pair<std::string, uint32_t>> functions;  ///< in it: name and first byte
  uint32_t registers = 0;                                   ///< per thread
  uint32_t shared_bytes = 0, reserved_shared = 0, stack_bytes = 0;
  uint32_t allocation_mbarrier = 0, allocation_parity = 0;  ///< as functional::PairAllocation
  bool calls = false;                                       ///< functions that may need more stack
  struct Parameter {
    uint32_t offset = 0, size = 0;
    std::string type;  ///< of PTX; empty where it is not known
  };
  std::vector<Parameter> parameters;
  std::array<uint32_t, 3> max_threads{}, required_threads{}, cluster{};
  std::shared_ptr<functional::ConstantBanks> constants;
};

/// A cubin whose variables are in memory and whose addresses are bound.
struct Module {
  std::string name;
  uint32_t sm = 0;                       ///< architecture, such as 80
  const OpcodeTable* opcodes = nullptr;  ///< of that architecture: which of them load and store
  bool independent_samplers = false;     ///< handles name a texture and a sampler (texmode_independent)
  std::vector<std::string> files;
  std::vector<Section> sections;
  std::vector<std::string> system_functions;  ///< their code follows that of the sections
};

/// Code for execution, and what the timing model is given.
struct Translated {
  functional::Program program;
  functional::Lowering lowering;
};

/// Machine code that cannot be executed here; what() names the instruction and its address.
struct CodeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Translates all sections. Throws CodeError.
Translated translate(const Module& module);

/// An instruction that is not supported.
struct Refusal {
  uint32_t section = 0, instruction = 0;
  std::string why;
};

/// All instructions that `translate` would refuse.
std::vector<Refusal> refusals(const Module& module);

}  // namespace simt::sass
