#include "isa/tensor_shape.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace simt {
namespace {

using Tokens = std::vector<std::string_view>;

Tokens split(std::string_view text, char separator) {
  Tokens parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

double dimension(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : 0;
}

struct MmaShape {
  std::string_view name;
  double m = 0, n = 0, k = 0;
};
// mma shapes as SASS writes them (PTX ISA, warp-level matrix instructions).
constexpr std::array<MmaShape, 10> shapes = {{{"1684", 16, 8, 4},
                                              {"1688", 16, 8, 8},
                                              {"16816", 16, 8, 16},
                                              {"16832", 16, 8, 32},
                                              {"16864", 16, 8, 64},
                                              {"168128", 16, 8, 128},
                                              {"168256", 16, 8, 256},
                                              {"8816", 8, 8, 16},
                                              {"8832", 8, 8, 32},
                                              {"88128", 8, 8, 128}}};

/// Rows, columns and depth of a warpgroup's multiplication, such as 64x192x16; zeros if there are none.
MmaShape group_shape(const Tokens& tokens) {
  for (std::string_view token : tokens) {
    if (token.find('x') == std::string_view::npos) continue;
    const Tokens sides = split(token, 'x');
    if (sides.size() == 3) return {token, dimension(sides[0]), dimension(sides[1]), dimension(sides[2])};
  }
  return {};
}

double multiply_adds(const Tokens& tokens) {
  const std::string_view name = tokens[0];
  const MmaShape group = group_shape(tokens);
  double found = group.m / 4 * group.n * group.k;
  for (std::string_view token : tokens) {
    for (const MmaShape& shape : shapes)
      if (token == shape.name) found = shape.m * shape.n * shape.k;
    if (name == "DMMA" && token == "884") found = 8 * 8 * 4;
  }
  return found;
}

bool names(const Tokens& tokens, std::string_view token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// Bytes of an operand's element, by family unless a modifier says otherwise.
double element_bytes(const Tokens& tokens) {
  const std::string_view name = tokens[0];
  double bytes = 2;
  if (name == "IMMA" || name == "QMMA" || name == "QGMMA" || name == "IGMMA") bytes = 1;
  if (name == "BMMA" || name == "BGMMA") bytes = 1.0 / 8;
  if (name == "DMMA") bytes = 8;
  if (names(tokens, "TF32")) bytes = 4;
  if (names(tokens, "S4") || names(tokens, "U4")) bytes = 0.5;
  return bytes;
}

}  // namespace

double tensor_multiply_adds(std::string_view opcode) {
  const Tokens tokens = split(opcode, '.');
  // Volta's m8n8k4 for four quad pairs: four steps with FP32 accumulators, two with FP16 ones.
  if (tokens[0] == "HMMA" && names(tokens, "884")) return 4 * 8 * 8 * 4 / (names(tokens, "F32") ? 4 : 2);
  return multiply_adds(tokens);
}

double tensor_work(std::string_view opcode) {
  constexpr double reference = 16.0 * 8 * 16;
  const Tokens tokens = split(opcode, '.');
  const double bytes = element_bytes(tokens);
  double rate = bytes == 8 ? 16 : bytes / 2;
  // Half of a sparse A is not there (NVIDIA A100 Tensor Core GPU Architecture, "Fine-Grained Structured
  // Sparsity": twice the rate).
  if (names(tokens, "SP")) rate /= 2;
  return multiply_adds(tokens) / reference * rate;
}

bool is_group_product(std::string_view opcode) {
  return opcode.substr(0, opcode.find('.')).ends_with("GMMA");
}

uint32_t shared_operand_bytes(std::string_view opcode, bool a_in_registers) {
  if (!is_group_product(opcode)) return 0;
  const Tokens tokens = split(opcode, '.');
  const MmaShape group = group_shape(tokens);
  const double a = a_in_registers ? 0 : group.m * group.k / (names(tokens, "SP") ? 2 : 1);
  return static_cast<uint32_t>((a + group.n * group.k) / 4 * element_bytes(tokens));
}

}  // namespace simt
