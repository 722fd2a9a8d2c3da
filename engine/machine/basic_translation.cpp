#include "machine/basic_translation.hpp"

#include <algorithm>
#include <cstring>

namespace simt::functional {

bool BasicTranslation::take(std::string_view modifier) {
  return !take_first([&](std::string_view m) { return m == modifier; }).empty();
}

int BasicTranslation::take_one_of(std::initializer_list<std::string_view> modifiers, int otherwise) {
  int index = 0;
  for (const std::string_view m : modifiers) {
    if (take(m)) return index;
    ++index;
  }
  return otherwise;
}

int BasicTranslation::take_next_of(std::initializer_list<std::string_view> modifiers, int otherwise) {
  const auto place = [&](std::string_view m) { return std::find(modifiers.begin(), modifiers.end(), m); };
  const std::string_view found = take_first([&](std::string_view m) { return place(m) != modifiers.end(); });
  return found.empty() ? otherwise : static_cast<int>(place(found) - modifiers.begin());
}

std::string_view BasicTranslation::take_next() {
  return take_first([](std::string_view) { return true; });
}

bool BasicTranslation::has(std::string_view modifier) const {
  return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
}

std::string_view BasicTranslation::untaken() const {
  for (size_t i = 0; i < modifiers_.size(); ++i)
    if (!(taken_ >> i & 1)) return modifiers_[i];
  return {};
}

Op& BasicTranslation::append(Handler handler, Control control, PredicateOperand guard, Origin origin) {
  Op op;
  op.run = handler;
  op.control = control;
  op.guard = guard.place;
  op.guard_negated = guard.negated;
  program_.code.push_back(op);
  program_.origins.push_back(origin);
  return program_.code.back();
}

Place BasicTranslation::append_constant(uint64_t bits, uint32_t bytes) {
  auto& lines = program_.constants;
  const size_t offset = lines.size() * sizeof(Line);
  lines.resize(lines.size() + warp_lanes * bytes / sizeof(Line));
  auto* at = reinterpret_cast<std::byte*>(lines.data()) + offset;
  for (uint32_t i = 0; i < warp_lanes; ++i) std::memcpy(at + i * bytes, &bits, bytes);
  return place::constants | static_cast<Place>(offset);
}

}  // namespace simt::functional
