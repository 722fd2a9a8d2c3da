/// Which file's conversion it is.
#include "operations/conversion.hpp"

#include "operations/conversion_families.hpp"

namespace simt::functional {

using ptx::Type;

Handler conversion_handler(const Conversion& conversion) {
  const auto is_f8 = [](Type type) { return type == Type::E4M3x2 || type == Type::E5M2x2; };
  const Type to = conversion.to, from = conversion.from;
  if (to == Type::TF32) return from == Type::F32 ? tf32_conversion() : nullptr;
  if (is_f8(to) || is_f8(from)) return f8_conversion(conversion);
  if (Handler h = integer_conversion(conversion)) return h;
  if (Handler h = float_conversion(conversion)) return h;
  return half_conversion(conversion);
}

}  // namespace simt::functional
