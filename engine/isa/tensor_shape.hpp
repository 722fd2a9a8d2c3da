#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace simt {

/// Rows, columns and depth of a tensor product; zeros if they are not known.
struct ProductShape {
  uint32_t m = 0, n = 0, k = 0;
};
/// Of a modifier that says it: 16816, 64x192x16.
ProductShape product_shape(std::string_view modifier);

/// Multiply-adds of a tensor-core instruction for one warp, read from the shape in its opcode:
/// HMMA.16816.F32, HGMMA.64x256x16.F32; the four warps of a warpgroup share an HGMMA's rows. HMMA.884 is one
/// step of several. Returns 0 if the opcode has no known shape.
double tensor_multiply_adds(std::string_view opcode);

/// Work of a tensor-core instruction for one warp, relative to FP16 m16n8k16 (2,048 multiply-adds), read from
/// the shape and type in its opcode: HMMA.16816.F32, IMMA.16832.S8.S8, HGMMA.64x256x16.F32. The four warps of
/// a warpgroup share an HGMMA's rows. Rates scale with the width of the type; FP64 has a
/// sixteenth. With `half_rate_fp32_accumulation` (GeForce), FP16 m16n8k16 is meant to accumulate in FP32, and
/// products with FP16 accumulators, integers and FP4 are half of the work. Returns 0 if the opcode has no
/// known shape (HMMA.884: the unit's interval applies to its steps).
double tensor_work(std::string_view opcode, bool half_rate_fp32_accumulation);

/// 32-bit registers per lane of a tensor product's operands.
struct ProductRegisters {
  uint8_t a, b, c;  ///< c: also of the result
};
/// Nothing for opcodes whose shape or operands are not known.
std::optional<ProductRegisters> product_registers(std::string_view opcode);

/// Bytes that each of the four warps fetches from shared memory for a multiplication by a warpgroup
/// (HGMMA.64x192x16.F32): a quarter of B, and its own 16 rows of A unless they are in registers. 0 for other
/// opcodes.
uint32_t shared_operand_bytes(std::string_view opcode, bool a_in_registers);

/// Registers of each lane that LDTM or STTM moves.
uint32_t tensor_memory_registers(std::string_view opcode);

}  // namespace simt
