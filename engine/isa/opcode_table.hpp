#pragma once
#include <map>
#include <string>
#include <string_view>

#include "isa/opcode.hpp"

namespace simt {

/// The opcodes of one architecture, with related architectures as a fallback for unknown opcodes.
class OpcodeTable {
 public:
  struct Match {
    OpcodeClass opcode_class;
    bool exact = true;
    std::string nearest;  ///< if not exact: the opcode whose class was used, or a description of the class
  };

  explicit OpcodeTable(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void add(const std::string& mnemonic, OpcodeClass opcode_class) { opcodes_[mnemonic] = opcode_class; }
  /// Adds an opcode of another architecture; it is used only if this one has no exact match.
  void add_related(const std::string& mnemonic, OpcodeClass opcode_class) {
    related_.emplace(mnemonic, opcode_class);
  }

  /// Finds the class of an opcode's first token. An unknown one gets the class of the same opcode elsewhere,
  /// of the known opcode with the longest common prefix (three letters or more), or else a plain memory or
  /// integer class.
  Match find(std::string_view mnemonic, bool has_addresses, bool has_destination) const;

 private:
  using Opcodes = std::map<std::string, OpcodeClass, std::less<>>;
  static size_t longest_common_prefix(const Opcodes& opcodes, std::string_view mnemonic);

  std::string name_;
  Opcodes opcodes_;
  Opcodes related_;
};

}  // namespace simt
