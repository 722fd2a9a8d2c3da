#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "machine/address.hpp"
#include "machine/code.hpp"

namespace simt::functional {

/// What the translations of both instruction sets share: modifiers, each of which must be taken, and Ops with
/// their details and constants.
class BasicTranslation {
 public:
  /// `take` returns whether the instruction has the modifier, and marks it as handled.
  bool take(std::string_view modifier);
  /// Index of the first of these modifiers that the instruction has, or `otherwise`.
  int take_one_of(std::initializer_list<std::string_view> modifiers, int otherwise = -1);
  /// As `take_one_of`, for the first of them in the instruction.
  int take_next_of(std::initializer_list<std::string_view> modifiers, int otherwise = -1);
  /// The next modifier not yet taken, whatever it is; empty if there is none.
  std::string_view take_next();
  bool has(std::string_view modifier) const;

  /// Makes a Detail for the last Op emitted.
  template <class D>
  D& detail() {
    auto owned = std::make_unique<D>();
    D& d = *owned;
    take_detail(std::move(owned));
    return d;
  }
  /// Gives the last Op emitted a Detail.
  void take_detail(std::unique_ptr<Detail> detail) {
    program_.code.back().detail = detail.get();
    program_.details.push_back(std::move(detail));
  }
  Program& program() { return program_; }

 protected:
  explicit BasicTranslation(Program& program) : program_(program) {}

  /// Begins an instruction with these modifiers, which must stay where they are.
  void begin(std::span<const std::string_view> modifiers) {
    modifiers_ = modifiers;
    taken_ = 0;
  }
  void take_all_modifiers() { taken_ = ~uint64_t{0}; }
  /// The first modifier not taken; empty if there is none.
  std::string_view untaken() const;
  /// Takes the first modifier of which f(modifier) holds; empty if there is none.
  template <class F>
  std::string_view take_first(F f) {
    for (size_t i = 0; i < modifiers_.size(); ++i) {
      if (taken_ >> i & 1 || !f(modifiers_[i])) continue;
      taken_ |= uint64_t{1} << i;
      return modifiers_[i];
    }
    return {};
  }
  Op& append(Handler handler, Control control, PredicateOperand guard, Origin origin);
  /// Appends a row of the program's constants that holds `bits`, of 4 or 8 bytes, in all lanes.
  Place append_constant(uint64_t bits, uint32_t bytes);

  Program& program_;

 private:
  std::span<const std::string_view> modifiers_;
  uint64_t taken_ = 0;
};

}  // namespace simt::functional
