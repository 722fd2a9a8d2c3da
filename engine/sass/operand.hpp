#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simt::sass {

enum class OperandKind : uint8_t {
  Register,          ///< R: index, 255 for RZ
  Uniform,           ///< UR: index, 255 for URZ
  Predicate,         ///< P: index, 7 for PT
  UniformPredicate,  ///< UP: index, 7 for UPT
  Convergence,       ///< B: index
  Dependence,        ///< SB: index
  Integer,           ///< value
  Number,            ///< a floating-point number; its bits are in the instruction
  Constant,          ///< c[bank][base + value]
  Memory,            ///< [base + uniform + value]
  Name,              ///< a special register, a symbol, PR
  Address,           ///< 32@lo(...), 32@hi(...): half of an address, which the relocated instruction holds
  Set,               ///< {...}: the numbers in it are bits of value
};

/// An operand as nvdisasm writes it.
struct Operand {
  static constexpr uint32_t zero = 255;          ///< index of RZ and URZ
  static constexpr uint32_t true_predicate = 7;  ///< index of PT and UPT
  static constexpr uint32_t none = UINT32_MAX;

  OperandKind kind = OperandKind::Name;
  uint32_t index = none;
  int64_t value = 0;
  bool negated = false;   ///< -x; for a predicate, !p
  bool absolute = false;  ///< |x|
  bool inverted = false;  ///< ~x
  bool reused = false;    ///< .reuse
  std::string_view text;  ///< of a Name or an Address; of a descriptor its kind: desc, gdesc, tmem, idesc
  std::vector<std::string_view> suffixes;  ///< such as H0_H0, ROW; without dots

  uint32_t bank = 0;                            ///< of a Constant; `none` if it is in `uniform`
  uint32_t base = none;                         ///< register in a Constant or Memory
  uint32_t scale = 1;                           ///< of `base`: X4, X8, X16
  bool wide_base = false;                       ///< .64
  bool unsigned_base = false;                   ///< .U32: a 32-bit register that is added to `uniform`
  uint32_t uniform = none;                      ///< UR in a Memory or Constant, or the bank of cx[UR]
  bool wide_uniform = false;                    ///< .64
  uint32_t descriptor = none;                   ///< UR of desc[UR] or gdesc[UR]
  std::vector<std::string_view> base_suffixes;  ///< others of `base`

  bool has(std::string_view suffix) const;
  bool is_zero() const;  ///< RZ or URZ
};

/// Parses an operand. `text` must outlive the result. Throws std::invalid_argument, which says what is wrong.
Operand parse_operand(std::string_view text);

}  // namespace simt::sass
