#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "operations/floats.hpp"
#include "operations/fragments.hpp"

/// D = A B + C in tiles of fragments.hpp.
/// All types except b1 can be computed in double precision: starting from c, products are added in ascending
/// order of k, each with one rounding (for f64, this is the result). Products of narrower types are exact in
/// double, as are sums of integers. The result is rounded once to D's type. aligned_product.hpp adds
/// floating-point numbers of up to 32 bits as a tensor core does.
namespace simt::functional {

using Quad [[gnu::vector_size(32)]] = double;

inline Quad load_quad(const double* from) {
  Quad q;
  std::memcpy(&q, from, sizeof q);
  return q;
}
/// Keeps the value in a register from here on; compilers would otherwise reload it for each use.
inline void keep(Quad& q) {
#if defined(__AVX__)
  asm("" : "+x"(q));
#else
  (void)q;
#endif
}
inline void store_quad(double* to, Quad q) {
  std::memcpy(to, &q, sizeof q);
}

/// a * b + c, rounded once.
inline Quad fused(Quad a, Quad b, Quad c) {
#if defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return Quad{std::fma(a[0], b[0], c[0]), std::fma(a[1], b[1], c[1]), std::fma(a[2], b[2], c[2]),
              std::fma(a[3], b[3], c[3])};
#endif
}

/// Accumulators as stored in registers: 32 numbers of a tile's even columns, then 32 of its odd ones.
template <class T>
inline Quad read_accumulators(const T* from) {
  using Four [[gnu::vector_size(4 * sizeof(T))]] = T;
  Four four;
  std::memcpy(&four, from, sizeof four);
  return __builtin_convertvector(four, Quad);
}

inline Quad clamped(Quad q, double low, double high) {
  const Quad least = Quad{} + low, most = Quad{} + high;
  q = q < least ? least : q;
  return q > most ? most : q;
}
inline Quad finite(Quad q, double largest) {
  return clamped(q == q ? q : Quad{}, -largest, largest);
}

/// Conversion of results to accumulators. saturate: clamp to finite numbers, NaN to 0.
template <bool saturate>
struct ToF32 {
  using Plane = float;
  static void write(Quad q, float* to) {
    if constexpr (saturate) q = finite(q, std::numeric_limits<float>::max());
    using Four [[gnu::vector_size(16)]] = float;
    Four four = __builtin_convertvector(q, Four);
    const Four nan = Four{} + std::bit_cast<float>(nan_f32);
    four = four == four ? four : nan;
    std::memcpy(to, &four, sizeof four);
  }
};
/// Prepares a result for narrowing to f16.
template <bool saturate>
struct ToF16 {
  using Plane = float;
  static void write(Quad q, float* to) {
    if constexpr (saturate) q = finite(q, 65504.0);
    // Rounding to odd at f32's last bit makes the subsequent rounding exact (see to_odd in floats.hpp).
    using Bits [[gnu::vector_size(32)]] = uint64_t;
    Bits bits;
    std::memcpy(&bits, &q, sizeof bits);
    constexpr uint64_t below = (uint64_t{1} << 29) - 1;  // the additional mantissa bits of f64
    bits = (bits | ((bits & below) + below)) & ~below;
    std::memcpy(&q, &bits, sizeof bits);
    using Four [[gnu::vector_size(16)]] = float;
    const Four four = __builtin_convertvector(q, Four);
    std::memcpy(to, &four, sizeof four);
  }
};
struct ToF64 {
  using Plane = double;
  static void write(Quad q, double* to) {
    const Quad nan = Quad{} + std::bit_cast<double>(invalid_f64);
    store_quad(to, q == q ? q : nan);
  }
};
template <bool saturate>
struct ToS32 {
  using Plane = int32_t;
  static void write(Quad q, int32_t* to) {
    if constexpr (saturate) {
      q = clamped(q, -0x1p31, 0x1p31 - 1);
    }
    // Adding this constant puts integers of less than 51 bits into the low bits, in two's complement.
    q += 0x1.8p52;
    uint64_t bits[4];
    std::memcpy(bits, &q, sizeof bits);
    for (int i = 0; i < 4; ++i) to[i] = static_cast<int32_t>(static_cast<uint32_t>(bits[i]));
  }
};

/// Columns of B are stored in the order of a tile's accumulators: even ones, then odd ones.
constexpr uint32_t column_place(uint32_t column) {
  return column % 2 * 4 + column / 2;
}

/// out[k][column_place(n)] = tile[n][k].
template <class Number>
inline void transpose_tile(const Number* tile, uint32_t columns, Number* out) {
  using Four [[gnu::vector_size(4 * sizeof(Number))]] = Number;
  const auto load = [](const Number* from) {
    Four four;
    std::memcpy(&four, from, sizeof four);
    return four;
  };
  const auto store = [](Number* to, Four four) { std::memcpy(to, &four, sizeof four); };
  for (uint32_t k = 0; k < columns; k += 4) {
    for (uint32_t odd = 0; odd < 2; ++odd) {
      const Number* from = tile + odd * columns + k;
      const Four a = load(from), b = load(from + 2 * columns), c = load(from + 4 * columns),
                 d = load(from + 6 * columns);
      const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 2, 6);
      const Four ab1 = __builtin_shufflevector(a, b, 1, 5, 3, 7);
      const Four cd0 = __builtin_shufflevector(c, d, 0, 4, 2, 6);
      const Four cd1 = __builtin_shufflevector(c, d, 1, 5, 3, 7);
      Number* to = out + k * tile_rows + 4 * odd;
      store(to, __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5));
      store(to + tile_rows, __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5));
      store(to + 2 * tile_rows, __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7));
      store(to + 3 * tile_rows, __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7));
    }
  }
}

/// Sizes of a product in tiles; columns: elements along k per tile.
struct ProductTiles {
  uint32_t m = 0, n = 0, k = 0, columns = 0;
};

constexpr uint32_t max_product_a = 2048;  ///< elements of A: 16 x 128
constexpr uint32_t max_product_k = 128;

/// Computes four rows of a tile of D. a: rows of A, whose tiles along k are `a_step` apart; b: K x 8.
template <class To, class C>
inline void multiply_rows(const ProductTiles& tiles, const double* a, size_t a_step, const double* b,
                          const C* c_even, const C* c_odd, typename To::Plane* d_even,
                          typename To::Plane* d_odd) {
  Quad even[4] = {}, odd[4] = {};
  if (c_even) {
    for (int r = 0; r < 4; ++r) {
      even[r] = read_accumulators(c_even + 4 * r);
      odd[r] = read_accumulators(c_odd + 4 * r);
    }
  }
  const size_t columns = tiles.columns;
  for (uint32_t tile = 0; tile < tiles.k; ++tile, a += a_step) {
    for (size_t k = 0; k < columns; ++k, b += tile_rows) {
      Quad b_even = load_quad(b), b_odd = load_quad(b + 4);
      keep(b_even);
      keep(b_odd);
      for (size_t r = 0; r < 4; ++r) {
        const double one = a[r * columns + k];
        const Quad row = {one, one, one, one};
        even[r] = fused(row, b_even, even[r]);
        odd[r] = fused(row, b_odd, odd[r]);
      }
    }
  }
  for (int r = 0; r < 4; ++r) {
    To::write(even[r], d_even + 4 * r);
    To::write(odd[r], d_odd + 4 * r);
  }
}

/// load_a(row, k, out): the numbers of a tile of A, 8 x columns. load_b(column, k, out): of B, columns x 8 in
/// the order of column_place. c and d: two planes per tile; without c: zeros. Tiles of d are written once all
/// of A, but not all of B, has been read.
template <class To, class C, class LoadA, class LoadB>
inline void multiply(const ProductTiles& tiles, LoadA load_a, LoadB load_b, const C* const* c,
                     typename To::Plane* const* d) {
  alignas(64) double a[max_product_a], b[max_product_k * tile_rows];
  const size_t tile_size = size_t{tile_rows} * tiles.columns;
  for (uint32_t row = 0; row < tiles.m; ++row)
    for (uint32_t k = 0; k < tiles.k; ++k) load_a(row, k, a + (row * tiles.k + k) * tile_size);
  for (uint32_t column = 0; column < tiles.n; ++column) {
    for (uint32_t k = 0; k < tiles.k; ++k) load_b(column, k, b + k * tile_size);
    for (uint32_t row = 0; row < tiles.m; ++row) {
      const uint32_t tile = band_tile(tiles.m, tiles.n, row, column);
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t lanes = 16 * half;
        multiply_rows<To>(tiles, a + row * tiles.k * tile_size + 4 * half * tiles.columns, tile_size, b,
                          c ? c[2 * tile] + lanes : nullptr, c ? c[2 * tile + 1] + lanes : nullptr,
                          d[2 * tile] + lanes, d[2 * tile + 1] + lanes);
      }
    }
  }
}

/// Converts f16 accumulators between registers of pairs and planes.
inline void split_pairs(const uint32_t* pairs, float* even, float* odd) {
  alignas(64) float wide[2 * warp_lanes];
  widen_lanes<Half, true>(pairs, wide);
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    even[i] = wide[2 * i];
    odd[i] = wide[2 * i + 1];
  }
}
inline void join_pairs(const float* even, const float* odd, uint32_t* pairs) {
  alignas(64) float wide[2 * warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    wide[2 * i] = even[i];
    wide[2 * i + 1] = odd[i];
  }
  alignas(64) uint16_t halves[2 * warp_lanes];
  Half::narrow<2 * warp_lanes>(wide, halves);
  halves_to_lanes<true>(halves, pairs);
}

struct ProductTypes {
  ptx::Type d, a, b, c;
};

/// Which columns of A its registers hold (PTX ISA, "Sparse matrix storage"): two of each chunk of four units,
/// each with a 2-bit index. A unit is an element; for tf32 half an element, for s4 and u4 a pair.
struct Sparsity {
  Place metadata = place::none;  ///< none: A is dense
  uint32_t chunk = 4;            ///< elements
  bool row_per_lane = false;     ///< a lane's metadata cover eight chunks of one row; otherwise four of each
                                 ///< of two rows
  uint32_t first_lane = 0;       ///< first lane, in each group of four, that provides metadata
};

/// How many sparsity selectors there are.
uint32_t sparsity_selectors(ptx::Type a, uint32_t k);
/// selector: which lanes of each group of four provide the metadata.
Sparsity sparsity_of(ptx::Type a, Place metadata, uint32_t k, uint32_t selector);

/// Expands a tile of A, half of whose elements are kept: `kept` has 8 rows of columns / 2 elements, `columns`
/// apart. chunk: index of the tile's first chunk in its row; lower: rows 8 to 15. absent: the others' value.
template <class Number>
inline void spread(const Context& c, const Sparsity& sparsity, const Number* kept, uint32_t columns,
                   uint32_t chunk, bool lower, Number absent, Number* out) {
  const uint32_t* metadata = c.lanes<const uint32_t>(sparsity.metadata);
  const uint32_t chunks = columns / sparsity.chunk, pair = sparsity.chunk / 4,
                 kept_of_chunk = sparsity.chunk / 2;
  std::fill_n(out, tile_rows * columns, absent);
  for (uint32_t row = 0; row < tile_rows; ++row) {
    for (uint32_t i = 0; i < chunks; ++i) {
      const uint32_t q = chunk + i;
      const uint32_t lane =
          4 * row + sparsity.first_lane + (sparsity.row_per_lane ? q / 8 * 2 + lower : q / 4);
      const uint32_t shift = sparsity.row_per_lane ? q % 8 * 4 : q % 4 * 4 + 16 * lower;
      const uint32_t indices[2] = {metadata[lane] >> shift & 3, metadata[lane] >> (shift + 2) & 3};
      const Number* from = kept + row * columns + i * kept_of_chunk;
      Number* to = out + row * columns + i * sparsity.chunk;
      if (sparsity.chunk == 2)  // tf32: both halves of one element
        to[indices[0] / 2] = from[0];
      else
        for (uint32_t k = 0; k < kept_of_chunk; ++k) to[indices[k / pair] * pair + k % pair] = from[k];
    }
  }
}

/// D = A B + C on registers that hold the tiles of fragments.hpp, whatever instruction asks for it.
struct RegisterProduct {
  MatrixShape shape;
  ProductTypes types;
  std::vector<Place> d, a, b, c;  ///< as many as there are tiles, or planes of accumulators
  Sparsity sparsity;
  bool saturate = false;
  bool exclusive = false;       ///< b1: .xor.popc instead of .and.popc
  int rounding = FE_TONEAREST;  ///< of f64
  /// k of the machine instructions it is made of, if less than its own.
  uint32_t step = UINT32_MAX;
};
struct BoundProduct {
  Handler run = nullptr;
  std::unique_ptr<Detail> detail;
};
/// The Op's handler and detail; Op::immediate must be the rounding.
BoundProduct bind_product(RegisterProduct product);

}  // namespace simt::functional
