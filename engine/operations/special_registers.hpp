#pragma once
#include <optional>
#include <string_view>

#include "machine/code.hpp"

/// Special registers that are the same for all lanes of a CTA, for PTX and machine code. Those of a lane have
/// places of their own (machine/launch_values.hpp).
namespace simt::functional {

struct SpecialRegister {
  int64_t number = 0;  ///< Op::immediate
  bool is_clock = false;
  bool advances = false;  ///< a clock that is not the half of another
};
/// By its name in PTX, such as "ctaid.x".
std::optional<SpecialRegister> special_register(std::string_view name);

/// Where the value goes: a word, 64 bits in one array, 64 bits in two rows, or a predicate, which holds
/// unless the value is 0.
enum class SpecialForm : uint8_t { Word, Wide, Rows, Predicate };
/// With timing, a clock shows the cycle in which its instruction is issued.
Handler special_register_handler(const SpecialRegister& which, SpecialForm form);

}  // namespace simt::functional
