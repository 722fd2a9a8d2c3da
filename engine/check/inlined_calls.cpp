#include "check/inlined_calls.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace simt::check {
namespace {

/// File, line and column of a .loc, and of the call where it is inlined; 0 if it is not.
struct Location {
  std::array<uint32_t, 3> at{}, call{};
};

std::array<uint32_t, 3> numbers_of(std::string_view text) {
  std::array<uint32_t, 3> found{};
  const char* from = text.data();
  const char* const end = from + text.size();
  for (uint32_t& number : found) {
    while (from != end && (*from == ' ' || *from == '\t')) ++from;
    from = std::from_chars(from, end, number).ptr;
  }
  return found;
}

/// The locations of the text of a function before a line, the nearest first.
std::vector<Location> locations_before(std::string_view text, uint32_t line) {
  constexpr std::string_view directive = ".loc", inlined = "inlined_at";
  size_t end = 0;
  for (uint32_t k = 1; k < line && end != std::string_view::npos; ++k) end = text.find('\n', end + (k > 1));
  std::vector<Location> found;
  while (end != std::string_view::npos && end > 0) {
    const size_t before = text.rfind('\n', end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view one = text.substr(begin, end - begin);
    if (one.starts_with('{') || one.starts_with(".func") || one.starts_with(".entry")) break;
    if (const size_t first = one.find_first_not_of(" \t");
        first != std::string_view::npos && one.substr(first).starts_with(directive)) {
      Location location;
      location.at = numbers_of(one.substr(first + directive.size()));
      if (const size_t at = one.find(inlined); at != std::string_view::npos)
        location.call = numbers_of(one.substr(at + inlined.size()));
      found.push_back(location);
    }
    end = before;
  }
  return found;
}

}  // namespace

Call inlined_call(const functional::Program& program, uint32_t op) {
  if (program.is_machine_code() || !program.module.text) return {};
  const std::vector<Location> all = locations_before(*program.module.text, program.instruction(op).line);
  if (all.empty() || all.front().call[0] == 0) return {};
  std::vector<std::array<uint32_t, 3>> chain{all.front().at};  // from the inlined function outwards
  std::array<uint32_t, 3> next = all.front().call;
  for (const Location& each : all) {
    if (next[0] == 0) break;
    if (each.at != next) continue;
    chain.push_back(next);
    next = each.call;
  }
  if (next[0]) chain.push_back(next);
  const uint32_t own = chain.back()[0];
  if (chain.front()[0] == own) return {};
  for (const auto& [file, line, column] : chain)
    if (file == own)
      for (const auto& [number, name] : program.module.files)
        if (number == own) return {std::string(name), line};
  return {};
}

}  // namespace simt::check
