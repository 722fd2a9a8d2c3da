#pragma once
#include <cstdint>
#include <vector>

#include "machine/context.hpp"
#include "machine/fault.hpp"

/// Matrices in the registers of a warp (PTX ISA, "Matrix Fragments").
///
/// All layouts except those of m8n8k4 with f16 follow one scheme. A matrix is cut into tiles of 8 rows by 16
/// bytes (32 for f64), and each register of the warp holds a tile: lane l holds quarter l % 4 of row l / 4.
/// This applies to A and to the transpose of B. Tiles are numbered along k; those of A in bands of 16 rows,
/// upper tile first. Accumulators are cut into 8 x 8 tiles: one register holds the even columns and the next
/// the odd ones, or a single register both for f16; they are numbered along n, also in bands of 16 rows.
namespace simt::functional {

struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

/// How A and B lie in memory, or in the registers of Volta's m8n8k4.
struct Layouts {
  bool a_by_column = false, b_by_column = false;
};
constexpr uint32_t tile_rows = 8;
constexpr uint32_t max_tile_columns = 32;  ///< for types multiplied as numbers; b1 has 128

/// Bits of an element in memory and registers.
uint32_t element_bits(ptx::Type type);
/// Elements in a row of a tile.
inline uint32_t tile_columns(ptx::Type type) {
  return (type == ptx::Type::F64 ? 256 : 128) / element_bits(type);
}
/// Registers per lane that hold rows x columns elements of A, or columns x rows of B.
inline uint32_t tile_count(ptx::Type type, uint32_t rows, uint32_t columns) {
  return rows / tile_rows * (columns / tile_columns(type));
}
/// Registers per lane that hold an accumulator.
inline uint32_t accumulator_registers(ptx::Type type, const MatrixShape& shape) {
  return shape.m / tile_rows * (shape.n / tile_rows) * (type == ptx::Type::F16 ? 1 : 2);
}
/// Index of A's tile at (row, column), both in tiles, in a matrix of `rows` x `columns` tiles. The same for
/// accumulators.
inline uint32_t band_tile(uint32_t rows, uint32_t columns, uint32_t row, uint32_t column) {
  return rows == 1 ? column : (row / 2 * columns + column) * 2 + row % 2;
}

/// Converts a tile's bytes to 8 rows of tile_columns(type) numbers; to f32 only floating-point ones of up to
/// 32 bits.
struct Expand {
  void (*doubles)(const void* tile, double* numbers) = nullptr;
  void (*floats)(const void* tile, float* numbers) = nullptr;

  void operator()(const void* tile, double* numbers) const { doubles(tile, numbers); }
  void operator()(const void* tile, float* numbers) const { floats(tile, numbers); }
};
Expand expansion(ptx::Type type);

/// The type of the registers that hold elements of `type`.
inline ptx::Type fragment_register(ptx::Type type) {
  return type == ptx::Type::F64 ? ptx::Type::B64 : ptx::Type::B32;
}

/// Matrix instructions need all lanes of a warp.
inline void need_whole_warp(const Context& c) {
  if (c.full()) [[likely]]
    return;
  throw Fault("divergent warp operation", "a matrix instruction needs all 32 lanes of the warp",
              c.first_lane());
}

}  // namespace simt::functional
