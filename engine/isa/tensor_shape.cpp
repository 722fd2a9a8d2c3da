#include "isa/tensor_shape.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "isa/opcode.hpp"

namespace simt {
namespace {

struct NamedShape {
  std::string_view name;
  ProductShape shape;
};
// mma shapes as SASS writes them (PTX ISA, warp-level matrix instructions).
constexpr std::array<NamedShape, 11> shapes = {{{"884", {8, 8, 4}},
                                                {"1684", {16, 8, 4}},
                                                {"1688", {16, 8, 8}},
                                                {"16816", {16, 8, 16}},
                                                {"16832", {16, 8, 32}},
                                                {"16864", {16, 8, 64}},
                                                {"168128", {16, 8, 128}},
                                                {"168256", {16, 8, 256}},
                                                {"8816", {8, 8, 16}},
                                                {"8832", {8, 8, 32}},
                                                {"88128", {8, 8, 128}}}};

/// Of a modifier such as 64x192x16.
ProductShape sides(std::string_view modifier) {
  std::array<uint32_t, 3> found{};
  const char* at = modifier.data();
  const char* const end = at + modifier.size();
  for (size_t k = 0; k < found.size(); ++k) {
    const auto [next, error] = std::from_chars(at, end, found[k]);
    if (error != std::errc{} || (k + 1 < found.size() ? next == end || *next != 'x' : next != end)) return {};
    at = next + 1;
  }
  return {found[0], found[1], found[2]};
}

ProductShape shape_of(std::string_view opcode) {
  while (true) {
    const size_t dot = opcode.find('.');
    if (dot == std::string_view::npos) return {};
    opcode.remove_prefix(dot + 1);
    if (const ProductShape found = product_shape(opcode_name(opcode)); found.m > 0) return found;
  }
}

/// Volta's m8n8k4 for four quad pairs, in four steps with FP32 accumulators, two with FP16 ones.
bool is_step(const OpcodeRow& row, std::string_view opcode) {
  return row.also.elements == Elements::Float16 && has_modifiers(opcode, "884");
}

double elements(uint32_t rows, uint32_t columns) {
  return static_cast<double>(rows) * columns;
}

/// Bytes of an operand's element.
double element_bytes(const OpcodeRow& row, std::string_view opcode) {
  if (has_modifiers(opcode, "TF32")) return 4;
  if (has_modifiers(opcode, "S4") || has_modifiers(opcode, "U4")) return 0.5;
  switch (row.also.elements) {
    case Elements::Float8:
    case Elements::Integer8:
      return 1;
    case Elements::Float4:  // at twice the rate of FP8 (Blackwell)
      return 0.5;
    case Elements::Binary:
      return 1.0 / 8;
    case Elements::Float64:
      return 8;
    default:
      return 2;
  }
}

double accumulator_bytes(const OpcodeRow& row, std::string_view opcode) {
  switch (row.also.elements) {
    case Elements::Float64:
      return 8;
    case Elements::Float16:
    case Elements::Float8: {
      // A warpgroup's are FP32 unless a modifier says otherwise, a warp's FP16.
      const bool narrow = row.also.warp_group ? has_modifiers(opcode, "F16") : !has_modifiers(opcode, "F32");
      return narrow ? 2 : 4;
    }
    default:
      return 4;
  }
}

/// FP16, BF16, TF32 and FP8 with FP16 accumulators, integers and FP4: what GeForce cards have at full rate
/// (NVIDIA's white papers of GA102, AD102 and GB202, peak rates).
bool at_full_rate(const OpcodeRow& row, std::string_view opcode) {
  switch (row.also.elements) {
    case Elements::Float64:
      return false;
    case Elements::Float16:
    case Elements::Float8:
      return accumulator_bytes(row, opcode) == 2;
    default:
      return true;
  }
}

/// The four warps of a warpgroup have a quarter of the rows each.
double warps(const OpcodeRow& row) {
  return row.also.warp_group ? 4 : 1;
}

}  // namespace

ProductShape product_shape(std::string_view modifier) {
  for (const NamedShape& known : shapes)
    if (modifier == known.name) return known.shape;
  return sides(modifier);
}

double tensor_multiply_adds(std::string_view opcode) {
  const OpcodeRow& row = opcode_row(opcode);
  if (is_step(row, opcode)) return 4.0 * 8 * 8 * 4 / (has_modifiers(opcode, "F32") ? 4 : 2);
  const ProductShape shape = shape_of(opcode);
  return elements(shape.m, shape.n) * shape.k / warps(row);
}

double tensor_work(std::string_view opcode, bool half_rate_fp32_accumulation) {
  constexpr double reference = 16.0 * 8 * 16;
  const OpcodeRow& row = opcode_row(opcode);
  if (is_step(row, opcode)) return 0;
  const double bytes = element_bytes(row, opcode);
  double rate = bytes == 8 ? 16 : bytes / 2;
  // Half of a sparse A is not there (NVIDIA A100 Tensor Core GPU Architecture, "Fine-Grained Structured
  // Sparsity": twice the rate).
  if (has_modifiers(opcode, "SP")) rate /= 2;
  if (half_rate_fp32_accumulation && at_full_rate(row, opcode)) rate /= 2;
  return tensor_multiply_adds(opcode) / reference * rate;
}

std::optional<ProductRegisters> product_registers(std::string_view opcode) {
  constexpr double lane_register_bytes = 32 * 4;
  const OpcodeRow& row = opcode_row(opcode);
  const ProductShape shape = shape_of(opcode);
  if (row.also.elements == Elements::None || row.also.stand_in || shape.m == 0 ||
      row.classes.newest().operation == Operation::TensorProduct)
    return std::nullopt;
  if (is_step(row, opcode)) return ProductRegisters{2, 2, 2};
  const auto registers = [&](double count, double bytes) {
    return static_cast<uint8_t>(std::max(1.0, count * bytes / lane_register_bytes));
  };
  const double bytes = element_bytes(row, opcode);
  const double held = has_modifiers(opcode, "SP") ? 2 : 1;  // of A's elements, one is held
  // B of a warpgroup's product is in shared memory, and its uniform registers count for none.
  return ProductRegisters{registers(elements(shape.m, shape.k) / held / warps(row), bytes),
                          row.also.warp_group ? uint8_t{0} : registers(elements(shape.n, shape.k), bytes),
                          registers(elements(shape.m, shape.n) / warps(row), accumulator_bytes(row, opcode))};
}

uint32_t shared_operand_bytes(std::string_view opcode, bool a_in_registers) {
  const OpcodeRow& row = opcode_row(opcode);
  if (!row.also.warp_group) return 0;
  const ProductShape shape = shape_of(opcode);
  const double a = a_in_registers ? 0 : elements(shape.m, shape.k) / (has_modifiers(opcode, "SP") ? 2 : 1);
  return static_cast<uint32_t>((a + elements(shape.n, shape.k)) / 4 * element_bytes(row, opcode));
}

uint32_t tensor_memory_registers(std::string_view opcode) {
  const uint32_t each = has_modifiers(opcode, "16dp256bit") ? 4 : has_modifiers(opcode, "16dp128bit") ? 2 : 1;
  for (uint32_t times = 128; times > 1; times /= 2)
    if (has_modifiers(opcode, "x" + std::to_string(times))) return each * times;
  return each;
}

}  // namespace simt
