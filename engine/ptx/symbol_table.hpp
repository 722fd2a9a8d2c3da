#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace simt::ptx {

/// A declared name. Registers and variables share one name space; families (by prefix) and labels each have
/// their own.
struct Symbol {
  enum class Kind : uint8_t { Register, LocalVariable, ModuleVariable, Family, Label, TargetList, Prototype };
  std::string_view name;
  uint32_t hash = 0;
  uint32_t index = 0;         ///< for a family: its first member
  uint32_t count = 0;         ///< for a family: number of members
  uint32_t element_size = 0;  ///< bytes of an element of a variable; components of a register
  uint32_t depth = 0;         ///< scope depth: 0 for the module
  uint32_t next = 0;          ///< in the chain of its bucket, innermost first
  Kind kind = Kind::Register;
};

/// Names in nested scopes: a hash table with chains, newest symbol first, so that the innermost declaration
/// is found first and a scope is closed by removing symbols from the fronts of the chains.
class SymbolTable {
 public:
  SymbolTable() : buckets_(1024, none) {}

  uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()); }
  void open_scope() { scopes_.push_back(static_cast<uint32_t>(symbols_.size())); }
  void close_scope() {
    for (; symbols_.size() > scopes_.back(); symbols_.pop_back())
      bucket(symbols_.back().hash) = symbols_.back().next;
    scopes_.pop_back();
  }

  const Symbol* value(std::string_view name, uint32_t hash) const {
    return find(name, hash, [](const Symbol& s) { return s.kind <= Symbol::Kind::ModuleVariable; });
  }
  /// The innermost family with this prefix that has member `number`.
  const Symbol* family(std::string_view prefix, uint32_t hash, uint64_t number) const {
    return find(prefix, hash,
                [&](const Symbol& s) { return s.kind == Symbol::Kind::Family && number < s.count; });
  }
  const Symbol* label(std::string_view name, uint32_t hash) const {
    return find(name, hash, [](const Symbol& s) { return s.kind >= Symbol::Kind::Label; });
  }

  /// Declares `symbol` in the current scope; fills in depth and chain.
  void add(Symbol symbol) {
    if (symbols_.size() >= buckets_.size()) grow();
    symbol.depth = depth();
    symbol.next = bucket(symbol.hash);
    bucket(symbol.hash) = static_cast<uint32_t>(symbols_.size());
    symbols_.push_back(symbol);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t& bucket(uint32_t hash) { return buckets_[(hash ^ hash >> 15) & (buckets_.size() - 1)]; }

  template <class Wanted>
  const Symbol* find(std::string_view name, uint32_t hash, Wanted wanted) const {
    for (uint32_t i = buckets_[(hash ^ hash >> 15) & (buckets_.size() - 1)]; i != none;
         i = symbols_[i].next) {
      const Symbol& symbol = symbols_[i];
      if (symbol.hash == hash && wanted(symbol) && symbol.name == name) return &symbol;
    }
    return nullptr;
  }
  void grow() {
    buckets_.assign(buckets_.size() * 2, none);
    for (uint32_t i = 0; i < symbols_.size(); ++i) {
      symbols_[i].next = bucket(symbols_[i].hash);
      bucket(symbols_[i].hash) = i;
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<uint32_t> buckets_;
  std::vector<uint32_t> scopes_;
};

}  // namespace simt::ptx
