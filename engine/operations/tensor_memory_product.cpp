/// Sources: PTX ISA 9.0, sections on tcgen05 (descriptors, layouts, scale factors). Arithmetic: MODEL.md of
/// sf-tensor/tcgen05 ("tcgen05 arithmetic model"), whose authors compared it with a B200. That a lane of D
/// takes A from the same lane of tensor memory, where D has several lanes for a row, follows from CUTLASS,
/// which duplicates A there. Where the metadata of a sparse A and the scale factors of K = 96 lie: CUTLASS
/// (mma_traits_sm100_frag, sm103_blockscaled_mma_warpspecialized); the PTX ISA has figures only.
#include "operations/tensor_memory_product.hpp"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "isa/tensor_memory_work.hpp"
#include "operations/aligned_sum.hpp"
#include "operations/block_scaled_sum.hpp"
#include "operations/floats.hpp"
#include "operations/fragments.hpp"
#include "operations/shared_matrix.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {
namespace {

using Detail5 = TensorMemoryProductDetail;
using Kind = Detail5::Kind;

[[noreturn]] void illegal(const std::string& what) {
  throw Fault("illegal instruction", "tcgen05.mma: " + what);
}

enum class Element : uint8_t { F16, Bf16, Tf32, E4m3, E5m2, E2m3, E3m2, E2m1, U8, S8 };

bool is_scaled(Kind kind) {
  return kind == Kind::Mxf8f6f4 || kind == Kind::Mxf4 || kind == Kind::Mxf4nvf4;
}
bool in_nibbles(Kind kind) {
  return kind == Kind::Mxf4 || kind == Kind::Mxf4nvf4;
}

/// Of an element's place in memory; those of 4 and 6 bits lie in the first bytes of 16 (in tensor memory,
/// each in a byte), except where two share a byte.
uint32_t container_bits(Kind kind) {
  switch (kind) {
    case Kind::F16:
      return 16;
    case Kind::Tf32:
      return 32;
    case Kind::Mxf4:
    case Kind::Mxf4nvf4:
      return 4;
    default:
      return 8;
  }
}
constexpr uint32_t row_bits = 256;  ///< of A as it is stored, along k, and of a dense B
constexpr uint32_t wide_k = 96;     ///< of 4-bit elements, on sm_103

/// What the instruction descriptor says.
struct Instruction {
  Kind kind = Kind::F16;
  uint32_t m = 0, n = 0, k = 0;
  bool sparse = false;    ///< half of A's elements are stored
  uint32_t selector = 0;  ///< column of a sparse A's metadata, from their address on
  uint32_t stored_k = 0;  ///< elements of A that are stored
  uint32_t scales = 0;    ///< scale factors of a row
  Element a = Element::F16, b = Element::F16;
  bool half = false;  ///< D is f16
  bool saturates = false, negates_a = false, negates_b = false, transposes_a = false, transposes_b = false;
  uint32_t scale_a = 0, scale_b = 0;  ///< first byte of the scale factors in a word
  bool exponents_only = true;         ///< scale factors are ue8m0, not ue4m3
  uint32_t most_shift = 0;            ///< of B's columns, by a zero-column mask descriptor
};

Element element_of(Kind kind, uint32_t code) {
  switch (kind) {
    case Kind::F16:
      if (code <= 1) return code == 0 ? Element::F16 : Element::Bf16;
      break;
    case Kind::Tf32:
      if (code == 2) return Element::Tf32;
      break;
    case Kind::I8:
      if (code <= 1) return code == 0 ? Element::U8 : Element::S8;
      break;
    case Kind::Mxf4:
    case Kind::Mxf4nvf4:
      if (code == 1) return Element::E2m1;
      break;
    default:
      switch (code) {
        case 0:
          return Element::E4m3;
        case 1:
          return Element::E5m2;
        case 3:
          return Element::E2m3;
        case 4:
          return Element::E3m2;
        case 5:
          return Element::E2m1;
        default:
          break;
      }
  }
  illegal("the instruction descriptor has " + std::to_string(code) +
          " as the type of A or B, which this kind does not have");
}

void check_shape(const Detail5& d, const Instruction& i) {
  const auto refuse = [&] {
    illegal("the instruction descriptor has M = " + std::to_string(i.m) + " and N = " + std::to_string(i.n) +
            ", which this kind does not have for " + std::to_string(d.ctas) + " CTAs" +
            (d.weights ? " with .ws" : ""));
  };
  if (d.weights) {
    const bool n = i.n == 64 || i.n == 128 || (i.n == 256 && !i.sparse);
    if ((i.m != 32 && i.m != 64 && i.m != 128) || !n) refuse();
    return;
  }
  const bool scaled = is_scaled(i.kind);
  if (scaled && i.sparse && d.ctas == 2 && i.m != 256) refuse();
  const bool m = d.ctas == 2 ? i.m == 128 || i.m == 256 : i.m == 128 || (i.m == 64 && !scaled);
  const uint32_t step = d.ctas == 2 || (i.m == 128 && !scaled) ? 16 : 8;
  if (!m || i.n < step || i.n > 256 || i.n % step != 0) refuse();
}

void decode_sparsity(const Detail5& d, uint32_t word, Instruction& i) {
  i.sparse = word >> 2 & 1;
  if (d.sparse && *d.sparse != i.sparse)
    illegal(i.sparse ? "the instruction descriptor has a sparse matrix A, which needs .sp"
                     : "the instruction descriptor has a dense matrix A, but the instruction .sp");
  i.stored_k = i.k;
  if (!i.sparse) return;
  i.k *= 2;
  if (is_scaled(i.kind)) return;
  i.selector = word & 3;
  if (i.selector > (i.kind == Kind::F16 || i.kind == Kind::Tf32 ? 1 : 0))
    illegal("the instruction descriptor has the sparsity selector " + std::to_string(i.selector) +
            "; .kind::f16 and .kind::tf32 have 0 and 1, the others 0");
}

void decode_scales(const Detail5& d, uint32_t word, Instruction& i) {
  i.scales = d.scales;
  const uint32_t id_a = word >> 29 & 3, id_b = word >> 4 & 3;
  i.scale_a = id_a;
  i.scale_b = id_b;
  i.exponents_only = word >> 23 & 1;
  const bool wide = in_nibbles(i.kind) && word >> 31 & 1;
  if (wide) {
    if (i.sparse) illegal("K = 96 (bit 31 of the instruction descriptor) with a sparse matrix A");
    i.k = i.stored_k = wide_k;
    i.scales = d.scales / 2 * 3;
  }
  if (!i.exponents_only && (i.kind != Kind::Mxf4nvf4 || d.scales != 4))
    illegal("scale factors of type ue4m3 need .kind::mxf4nvf4 and .scale_vec::4X");
  // A row's factors lie in one word, or from there on in the next one, too.
  const uint32_t step = i.scales == 1 || i.scales == 3 ? 1 : 2;
  const uint32_t last = i.scales == 4 ? 0 : i.scales == 2 || i.scales == 6 ? 2 : 3;
  if (id_a > last || id_b > last || (id_a | id_b) % step != 0)
    illegal("the instruction descriptor has scale factor IDs " + std::to_string(id_a) + " and " +
            std::to_string(id_b) + ", which do not fit .scale_vec::" + std::to_string(i.scales) + "X");
}

Instruction decode(const Detail5& d, uint32_t word, uint32_t sm_version) {
  const auto bits = [&](uint32_t from, uint32_t count) { return word >> from & ((1u << count) - 1); };
  Instruction i;
  i.kind = d.of_types && bits(7, 3) == 2 ? Kind::Tf32 : d.kind;
  i.k = row_bits / container_bits(i.kind);
  decode_sparsity(d, word, i);
  i.a = element_of(i.kind, bits(7, 3));
  i.b = element_of(i.kind, bits(10, in_nibbles(i.kind) ? 2 : 3));
  i.negates_a = bits(13, 1);
  i.negates_b = bits(14, 1);
  i.transposes_a = bits(15, 1);
  i.transposes_b = bits(16, 1);
  i.n = bits(17, 6) * 8;
  if (is_scaled(i.kind)) {
    i.m = bits(27, 2) * 128;
    decode_scales(d, word, i);
    if (i.k == wide_k && sm_version != 103)
      illegal("K = 96 (bit 31 of the instruction descriptor), which sm_103 has and sm_" +
              std::to_string(sm_version) + " has not");
    if (in_nibbles(i.kind) && (i.transposes_a || i.transposes_b))
      illegal("4-bit elements are not transposed");
  } else {
    i.m = bits(24, 5) * 16;
    if (d.weights && bits(30, 2)) i.most_shift = 4u << bits(30, 2);
    const uint32_t type = bits(4, 2), wanted = i.kind == Kind::I8 ? 2 : 1;
    i.half = type == 0 && (i.kind == Kind::F16 || i.kind == Kind::F8f6f4);
    if (type != wanted && !i.half)
      illegal("the instruction descriptor has " + std::to_string(type) +
              " as the type of D, which this kind does not have");
    if (i.half && i.a == Element::Bf16) illegal("D of type f16 with A and B of type bf16");
    i.saturates = bits(3, 1) && i.kind == Kind::I8;
    if (i.kind == Kind::I8 && (i.negates_a || i.negates_b)) illegal("integers are not negated");
    if (i.kind == Kind::F16 && i.a != i.b) illegal("A and B of different types");
  }
  check_shape(d, i);
  return i;
}

/// The numbers of 16 bytes of a row. packed: elements of 4 and 6 bits lie one after the other, not in bytes.
void take_chunk(Element element, uint32_t container, bool packed, const std::byte* chunk, float* numbers) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(chunk);
  const uint32_t count = 128 / container;
  const auto piece = [&](uint32_t index, uint32_t bits) {
    const uint32_t bit = index * bits;
    const uint32_t two = bytes[bit / 8] | (bit / 8 + 1 < 16 ? uint32_t{bytes[bit / 8 + 1]} << 8 : 0);
    return two >> bit % 8 & ((1u << bits) - 1);
  };
  for (uint32_t i = 0; i < count; ++i) {
    switch (element) {
      case Element::Tf32: {
        uint32_t word;
        std::memcpy(&word, bytes + 4 * i, 4);
        numbers[i] = std::bit_cast<float>(word & 0xffffe000u);
        break;
      }
      case Element::F16:
      case Element::Bf16: {
        uint16_t half;
        std::memcpy(&half, bytes + 2 * i, 2);
        numbers[i] =
            element == Element::F16 ? Half::widen_one(half) : std::bit_cast<float>(uint32_t{half} << 16);
        break;
      }
      case Element::U8:
        numbers[i] = bytes[i];
        break;
      case Element::S8:
        numbers[i] = static_cast<int8_t>(bytes[i]);
        break;
      case Element::E4m3:
        numbers[i] = small_float<E4m3>(bytes[i]);
        break;
      case Element::E5m2:
        numbers[i] = small_float<E5m2>(bytes[i]);
        break;
      case Element::E2m3:
        numbers[i] = small_float<E2m3>(packed ? piece(i, 6) : bytes[i]);
        break;
      case Element::E3m2:
        numbers[i] = small_float<E3m2>(packed ? piece(i, 6) : bytes[i]);
        break;
      case Element::E2m1:
        numbers[i] = small_float<E2m1>(packed || container == 4 ? piece(i, 4) : bytes[i] >> 2 & 15u);
        break;
    }
  }
}

int least_exponent_of(Element element) {
  switch (element) {
    case Element::F16:
    case Element::E5m2:
      return -14;
    case Element::E4m3:
      return -6;
    case Element::E3m2:
      return -2;
    case Element::E2m3:
    case Element::E2m1:
      return 0;
    default:
      return -126;
  }
}

/// Rows of A or columns of B: `k` numbers each.
struct Numbers {
  uint32_t k = 0;
  std::vector<float> values;

  float* row(uint32_t index) { return values.data() + size_t{index} * k; }
  const float* row(uint32_t index) const { return values.data() + size_t{index} * k; }
};

struct Form {
  Element element;
  uint32_t container;
  bool transposed, negated;
};

void read_shared(Context& c, Cta& cta, uint64_t descriptor, const Form& form, uint32_t count, Numbers& to,
                 uint32_t first) {
  constexpr uint32_t rows = SharedMatrix::rows;
  if (descriptor >> 52 & 1 && to.k != wide_k)
    illegal("a shared memory descriptor with an absolute leading dimension (bit 52), which is for K = 96");
  if (const auto mode = static_cast<uint32_t>(descriptor >> 61); mode == 3 || mode == 5 || mode == 7)
    illegal("a shared memory descriptor with swizzling mode " + std::to_string(mode));
  const SharedMatrix matrix(c, cta, descriptor, form.transposed);
  const uint32_t in_chunk = 128 / form.container;
  std::byte tile[rows * SharedMatrix::row_bytes];
  float numbers[32];
  if (!form.transposed) {
    for (uint32_t outer = 0; outer < count / rows; ++outer)
      for (uint32_t inner = 0; inner < to.k / in_chunk; ++inner) {
        matrix.read(outer, inner, tile);
        for (uint32_t i = 0; i < rows; ++i)
          take_chunk(form.element, form.container, true, tile + i * SharedMatrix::row_bytes,
                     to.row(first + outer * rows + i) + inner * in_chunk);
      }
  } else {
    for (uint32_t outer = 0; outer < to.k / rows; ++outer)
      for (uint32_t inner = 0; inner * in_chunk < count; ++inner) {
        matrix.read(outer, inner, tile);
        for (uint32_t i = 0; i < rows; ++i) {
          take_chunk(form.element, form.container, true, tile + i * SharedMatrix::row_bytes, numbers);
          for (uint32_t j = 0; j < in_chunk && inner * in_chunk + j < count; ++j)
            to.row(first + inner * in_chunk + j)[outer * rows + i] = numbers[j];
        }
      }
  }
}

/// Where D's rows and columns lie: parts of the columns in groups of lanes of their own.
struct Layout {
  uint32_t rows = 0;   ///< of one CTA
  uint32_t parts = 1;  ///< of the columns
  uint32_t lanes_apart = 0;
  bool half_used = false;  ///< 16 lanes of each 32

  uint32_t lane(uint32_t row, uint32_t part) const {
    return (half_used ? row / 16 * 32 + row % 16 : row) + part * lanes_apart;
  }
};

Layout layout_of(const Detail5& d, const Instruction& i) {
  if (d.weights) return {i.m, 128 / i.m, i.m % 128, false};
  if (d.ctas == 2 && i.m == 128) return i.sparse ? Layout{64, 1, 0, true} : Layout{64, 2, 64, false};
  if (d.ctas == 2) return {128};
  return i.m == 128 ? Layout{128} : Layout{64, 1, 0, true};
}

/// Scale factors of rows of A or columns of B, `count` each.
void read_scales(TensorMemory& memory, uint32_t address, uint32_t first_byte, bool exponents_only,
                 uint32_t lines, uint32_t count, bool of_rows, std::vector<ScaleFactor>& to) {
  // CUTLASS hands the ID over in the address's upper bits, too.
  const uint32_t column = address & 0xffff;
  // The words of 128 lines are side by side, and then those words that their factors go on in.
  const uint32_t next_word = (lines + 127) / 128 * 4, last_word = (first_byte + count - 1) / 4;
  memory.check(column, last_word * next_word + (lines + 31) / 32, "a scale factor");
  to.resize(size_t{lines} * count);
  for (uint32_t line = 0; line < lines; ++line) {
    const uint32_t lane = line % 32 + (of_rows ? line / 32 * 32 : 0);
    const uint32_t* words = memory.row(lane) + column + line / 32;
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t byte = first_byte + k;
      to[size_t{line} * count + k] =
          scale_factor(static_cast<uint8_t>(words[byte / 4 * next_word] >> byte % 4 * 8), exponents_only);
    }
  }
}

/// No type of A has this number: it marks elements that are not stored.
constexpr float absent_number = 0x1p-149f;

/// The metadata of `chunks` chunks of a row: four bits each, from tensor memory's lanes from `lane` on, where
/// row 0 of 16 lies. Of 16- and 32-bit elements, two rows share words, and two lanes a row's.
uint32_t chunk_metadata(TensorMemory& memory, uint32_t lane, uint32_t column, uint32_t row, uint32_t chunk,
                        bool shared) {
  if (!shared) return memory.row(lane + row)[column + chunk / 8] >> chunk % 8 * 4 & 15;
  const uint32_t word = memory.row(lane + row % 8 + chunk / 4 * 8)[column];
  return word >> (row / 8 * 16 + chunk % 4 * 4) & 15;
}

/// A product of one CTA's rows and one part of the columns.
struct Part {
  const Numbers& a;
  const Numbers& b;
  uint32_t rows, first_column, columns;
};

/// D of a part: numbers, f16 ones as f32.
struct Accumulators {
  uint32_t columns = 0;
  std::vector<float> values;
};

/// Factors of zero take no part in choosing the largest exponent.
void take_factors(const float* numbers, size_t count, int least, int16_t* exponents) {
  take_exponents(numbers, count, least, exponents);
  for (size_t i = 0; i < count; ++i)
    if (numbers[i] == 0.0f) exponents[i] = zero_factor_exponent;
}

void multiply_in_window(const Part& part, const Instruction& in, Accumulators& d) {
  constexpr uint32_t at_once = 8;
  const uint32_t k = part.a.k;
  const Addition addition{static_cast<uint8_t>(k), 25, 23, false, true};
  const AlignedSum sum(addition, k, k, in.half);
  std::vector<int16_t> exponents(size_t{part.rows} * k);
  const float* numbers = part.a.values.data();
  take_factors(numbers, exponents.size(), least_exponent_of(in.a), exponents.data());
  std::vector<float> stored;
  if (in.sparse) {
    stored = part.a.values;
    for (size_t i = 0; i < stored.size(); ++i)
      if (stored[i] == absent_number) {
        stored[i] = 0;
        exponents[i] = absent_exponent;
      }
    numbers = stored.data();
  }
  constexpr uint32_t most_k = 64;
  alignas(64) float b[most_k * at_once];
  alignas(64) int16_t plain[most_k * at_once], pairs[most_k * at_once];
  alignas(64) float low[4 * at_once], high[4 * at_once];
  const RoundingScope scope(sum.host_rounding());
  for (uint32_t column = 0; column < part.columns; column += at_once) {
    for (uint32_t j = 0; j < at_once; ++j)
      for (uint32_t i = 0; i < k; ++i) b[i * at_once + j] = part.b.row(part.first_column + column + j)[i];
    take_factors(b, size_t{k} * at_once, least_exponent_of(in.b), plain);
    for (uint32_t i = 0; i < k; ++i)
      for (uint32_t j = 0; j < at_once; ++j)
        pairs[(i / 2 * at_once + j) * 2 + i % 2] = plain[i * at_once + j];
    for (uint32_t row = 0; row < part.rows; row += at_once) {
      const auto exchange = [&](auto move) {
        for (uint32_t i = 0; i < at_once; ++i)
          for (uint32_t j = 0; j < at_once; ++j)
            move((j < 4 ? low : high)[4 * i + j % 4], d.values[size_t{row + i} * d.columns + column + j]);
      };
      exchange([](float& to, float from) { to = from; });
      sum.add({numbers + size_t{row} * k, exponents.data() + size_t{row} * k}, {b, pairs}, low, high);
      exchange([](float from, float& to) { to = from; });
    }
  }
}

void multiply_exactly(const Part& part, const Instruction& in, Accumulators& d) {
  for (uint32_t row = 0; row < part.rows; ++row)
    for (uint32_t column = 0; column < part.columns; ++column) {
      float& value = d.values[size_t{row} * d.columns + column];
      const float *a = part.a.row(row), *b = part.b.row(part.first_column + column);
      double total = value;
      for (uint32_t i = 0; i < part.a.k; ++i)
        if (a[i] != absent_number) total += double{a[i]} * double{b[i]};
      value = canonical(in.half ? Half::widen_one(Half::narrow_one(narrowed_to_odd(total)))
                                : static_cast<float>(total));
    }
}

int32_t integer_sum(const float* a, const float* b, uint32_t k, int32_t before, bool saturates) {
  int64_t total = before;
  for (uint32_t i = 0; i < k; ++i) total += static_cast<int64_t>(a[i]) * static_cast<int64_t>(b[i]);
  if (saturates) total = std::clamp<int64_t>(total, INT32_MIN, INT32_MAX);
  return static_cast<int32_t>(static_cast<uint32_t>(total));
}

/// Which columns of B are zeros, as a zero-column mask descriptor says: after a first span of one sort, spans
/// of both sorts take turns. Its table in the PTX ISA calls the fields of the two spans by each other's
/// names; its examples have the "use span" as that of B's columns.
struct ZeroColumns {
  uint64_t descriptor = 0;
  uint32_t shift = 0;  ///< the column of B that is the first

  explicit ZeroColumns(uint64_t word = 0) : descriptor(word), shift(field(56, 6)) {}
  /// Columns of the first span of a part of the columns that are left out.
  uint32_t start(uint32_t part) const { return masks() ? field(8 * part, 8) : 0; }
  uint32_t first_span(uint32_t part) const { return zeros_first(part) ? zeros() : used(); }
  bool holds(uint32_t part, uint32_t column) const {
    if (!masks()) return false;
    const uint32_t at = (column + start(part)) % (zeros() + used());
    return zeros_first(part) ? at < zeros() : at >= used();
  }

 private:
  uint32_t field(uint32_t from, uint32_t bits) const {
    return static_cast<uint32_t>(descriptor >> from) & ((1u << bits) - 1);
  }
  bool masks() const { return field(39, 1); }
  bool zeros_first(uint32_t part) const { return field(32 + part, 1); }
  uint32_t zeros() const { return field(40, 8) + 1; }
  uint32_t used() const { return field(48, 8) + 1; }
};

/// One thread's product.
class Product {
 public:
  Product(Context& c, const Detail5& d, uint32_t lane)
      : c_(c),
        d_(d),
        in_(decode(d, c.lanes<const uint32_t>(d.instruction)[lane], c.grid->machine().sm_version)),
        layout_(layout_of(d, in_)),
        exact_(c.grid->machine().tensor_core == TensorCore::Exact),
        keep_(((c.predicate(d.keep.place) >> lane) & 1) != (d.keep.negated ? 1u : 0u)),
        d_at_(TensorMemory::place(address(d.d, lane))),
        a_at_(d.a_descriptor == place::none ? TensorMemory::place(address(d.a, lane))
                                            : TensorMemory::Place{}),
        lane_(lane) {
    if (d.ctas == 2 && c.cta->rank() % 2 == 1)
      ctas_ = {&peer_of(c), c.cta};
    else
      ctas_ = {c.cta, d.ctas == 2 ? &peer_of(c) : nullptr};
    check_lane(d_at_.lane, "D");
    if (in_a_memory()) check_lane(a_at_.lane, "A");
    if (in_a_memory() && a_at_.lane != d_at_.lane) illegal("A and D begin at different lanes");
    if (in_a_memory() && in_.transposes_a) illegal("A in tensor memory is not transposed");
    if (in_.sparse) {
      metadata_at_ = TensorMemory::place(address(d.metadata, lane));
      if (metadata_at_.lane != d_at_.lane) illegal("the metadata and D begin at different lanes");
      if (metadata_at_.column % 2 != 0)
        illegal("the metadata begin at column " + std::to_string(metadata_at_.column) +
                ", expected an even one");
    }
    if (d.shifts_a && (!in_a_memory() || layout_.rows != TensorMemory::lane_count))
      illegal(".ashift needs A in tensor memory, and M = 128 or 256");
    if (d.zero_columns != place::none) take_zero_columns(c.lanes<const uint64_t>(d.zero_columns)[lane]);
  }

  void run() {
    read_b();
    for (uint32_t rank = 0; rank < d_.ctas; ++rank) multiply(rank);
  }

  void record() const {
    if (!c_.record) return;
    const uint32_t rows = in_a_memory() ? 0 : layout_.rows, columns = in_.n / d_.ctas;
    const auto swizzled = [this](Place descriptor) {
      return SharedMatrix::is_swizzled(c_.lanes<const uint64_t>(descriptor)[lane_]);
    };
    const uint32_t bits = container_bits(in_.kind), of_a = rows * in_.stored_k * bits / 8;
    const TensorMemoryWork time{
        .columns = in_.n / layout_.parts,
        .ctas = d_.ctas,
        .split = d_.ctas == 2 && layout_.parts == 2,
        .row_bytes = of_a,
        .operand_bytes = of_a + columns * in_.k * bits / 8,
        .swizzled = swizzled(d_.b_descriptor) || (!in_a_memory() && swizzled(d_.a_descriptor))};
    c_.record->mask = c_.mask;
    c_.record->bulk = true;
    c_.record->bulk_bytes = 0;
    c_.record->mbarrier = 0;
    c_.record->bulk_parts.assign(1, time.packed());
  }

 private:
  uint32_t address(const TensorAddress& of, uint32_t lane) const {
    return c_.lanes<const uint32_t>(of.base)[lane] + static_cast<uint32_t>(of.offset);
  }
  bool in_a_memory() const { return d_.a_descriptor == place::none; }
  void check_lane(uint32_t lane, const char* what) const {
    if (lane == 0 || (layout_.half_used && lane == 16)) return;
    throw Fault("tensor memory", std::string("tcgen05.mma with ") + what + " at lane " +
                                     std::to_string(lane) + ", expected lane 0" +
                                     (layout_.half_used ? " or 16" : ""));
  }
  void take_zero_columns(uint64_t descriptor) {
    zero_columns_ = ZeroColumns(descriptor);
    const uint32_t shift = zero_columns_.shift, most = std::min(in_.most_shift, in_.m == 32 ? 16u : 32u);
    if (shift > most)
      illegal("the zero-column mask descriptor shifts columns by " + std::to_string(shift) + ", expected " +
              std::to_string(most) + " at most (bits 30 and 31 of the instruction descriptor)");
    for (uint32_t p = 0; p < layout_.parts; ++p)
      if (zero_columns_.start(p) >= zero_columns_.first_span(p))
        illegal("the zero-column mask descriptor skips the whole first span");
  }

  void read_b() {
    constexpr uint32_t rows = SharedMatrix::rows;
    const uint32_t each = in_.n / d_.ctas, shift = zero_columns_.shift;
    b_ = {in_.k, std::vector<float>(size_t{in_.n + (shift + rows - 1) / rows * rows} * in_.k)};
    const uint64_t descriptor = c_.lanes<const uint64_t>(d_.b_descriptor)[lane_];
    for (uint32_t rank = 0; rank < d_.ctas; ++rank)
      read_shared(c_, *ctas_[rank], descriptor, {in_.b, container_bits(in_.kind), in_.transposes_b, false},
                  each + (shift + rows - 1) / rows * rows, b_, rank * each);
    if (in_.negates_b)
      for (float& v : b_.values) v = -v;
    b_.values.erase(b_.values.begin(), b_.values.begin() + size_t{shift} * in_.k);
    const uint32_t columns = in_.n / layout_.parts;
    for (uint32_t n = 0; n < in_.n; ++n)
      if (zero_columns_.holds(n / columns, n % columns)) std::fill_n(b_.row(n), in_.k, 0.0f);
  }

  Numbers read_a(uint32_t rank, uint32_t part) const {
    Numbers a{in_.stored_k, std::vector<float>(size_t{layout_.rows} * in_.stored_k)};
    const uint32_t container = container_bits(in_.kind);
    if (!in_a_memory()) {
      read_shared(c_, *ctas_[rank], c_.lanes<const uint64_t>(d_.a_descriptor)[lane_],
                  {in_.a, container, in_.transposes_a, false}, layout_.rows, a, 0);
    } else {
      TensorMemory& memory = ctas_[rank]->tensor_memory();
      const uint32_t chunks = in_.stored_k * container / 128;
      memory.check(a_at_.column, chunks * 4, "A");
      for (uint32_t row = 0; row < layout_.rows; ++row) {
        uint32_t lane = a_at_.lane + layout_.lane(row, part);
        if (d_.shifts_a && lane % 32 != 31) ++lane;
        const auto* bytes = reinterpret_cast<const std::byte*>(memory.row(lane) + a_at_.column);
        for (uint32_t chunk = 0; chunk < chunks; ++chunk)
          take_chunk(in_.a, container, false, bytes + chunk * SharedMatrix::row_bytes,
                     a.row(row) + chunk * 128 / container);
      }
    }
    if (in_.negates_a)
      for (float& v : a.values) v = -v;
    return in_.sparse ? spread(a, ctas_[rank]->tensor_memory(), part) : a;
  }

  /// The stored elements of a sparse A at their places; the others are `absent_number`, or zero where sums
  /// are of all of k.
  Numbers spread(const Numbers& stored, TensorMemory& memory, uint32_t part) const {
    const uint32_t chunk = in_.kind == Kind::Tf32 ? 2 : in_nibbles(in_.kind) ? 8 : 4, kept = chunk / 2;
    const uint32_t chunks = in_.k / chunk, column = metadata_at_.column + in_.selector;
    const bool shared = container_bits(in_.kind) > 8;
    memory.check(column, chunks / 8, "the metadata of A");
    Numbers a{in_.k, std::vector<float>(size_t{layout_.rows} * in_.k,
                                        addition() == ScaledAddition::FineGroups ? 0 : absent_number)};
    for (uint32_t row = 0; row < layout_.rows; ++row) {
      const uint32_t lane = metadata_at_.lane + layout_.lane(row / 16 * 16, part);
      for (uint32_t i = 0; i < chunks; ++i) {
        const uint32_t code = chunk_metadata(memory, lane, column, row % 16, i, shared);
        const float* from = stored.row(row) + size_t{i} * kept;
        float* to = a.row(row) + size_t{i} * chunk;
        switch (chunk) {
          case 2:  // both halves of one element
            to[(code & 3) / 2] = from[0];
            break;
          case 4:
            to[code & 3] = from[0];
            to[code >> 2] = from[1];
            break;
          default:
            std::copy_n(from, 2, to + 2 * (code & 3));
            std::copy_n(from + 2, 2, to + 2 * (code >> 2));
        }
      }
    }
    return a;
  }

  bool writes(uint32_t rank, uint32_t lane) const {
    const uint32_t word = rank * 4 + lane / 32;
    if (word >= d_.disabled_count) return true;
    return !(c_.lanes<const uint32_t>(d_.disabled[word])[lane_] >> lane % 32 & 1);
  }

  void multiply(uint32_t rank) {
    TensorMemory& memory = ctas_[rank]->tensor_memory();
    memory.use_group(d_.ctas);
    const uint32_t columns = in_.n / layout_.parts;
    memory.check(d_at_.column, columns, "D");
    std::vector<ScaleFactor> scales_a, scales_b;
    if (in_.scales > 0) {
      read_scales(memory, address(d_.scale_a, lane_), in_.scale_a, in_.exponents_only, layout_.rows,
                  in_.scales, true, scales_a);
      read_scales(memory, address(d_.scale_b, lane_), in_.scale_b, in_.exponents_only, in_.n, in_.scales,
                  false, scales_b);
    }
    Numbers a;
    for (uint32_t p = 0; p < layout_.parts; ++p) {
      if (p == 0 || in_a_memory() || in_.sparse) a = read_a(rank, p);
      const Part part{a, b_, layout_.rows, p * columns, columns};
      const auto each = [&](auto f) {
        for (uint32_t row = 0; row < layout_.rows; ++row) {
          const uint32_t lane = d_at_.lane + layout_.lane(row, p);
          f(row, memory.row(lane) + d_at_.column, writes(rank, lane));
        }
      };
      if (in_.kind == Kind::I8) {
        each([&](uint32_t row, uint32_t* words, bool written) {
          for (uint32_t n = 0; written && n < columns; ++n)
            words[n] =
                static_cast<uint32_t>(integer_sum(a.row(row), b_.row(part.first_column + n), in_.k,
                                                  keep_ ? static_cast<int32_t>(words[n]) : 0, in_.saturates));
        });
        continue;
      }
      Accumulators d{columns, std::vector<float>(size_t{layout_.rows} * columns)};
      if (keep_)
        each([&](uint32_t row, const uint32_t* words, bool) {
          for (uint32_t n = 0; n < columns; ++n) {
            const float v =
                in_.half ? Half::widen_one(static_cast<uint16_t>(words[n])) : std::bit_cast<float>(words[n]);
            d.values[size_t{row} * columns + n] =
                d_.shift_down ? std::ldexp(v, -static_cast<int>(d_.shift_down)) : v;
          }
        });
      if (in_.scales > 0)
        multiply_scaled(part, scales_a, scales_b, d);
      else if (exact_)
        multiply_exactly(part, in_, d);
      else
        multiply_in_window(part, in_, d);
      each([&](uint32_t row, uint32_t* words, bool written) {
        for (uint32_t n = 0; written && n < columns; ++n) {
          const float v = d.values[size_t{row} * columns + n];
          words[n] = in_.half ? Half::narrow_one(v) : std::bit_cast<uint32_t>(v);
        }
      });
    }
  }

  ScaledAddition addition() const {
    if (exact_) return ScaledAddition::Exact;
    if (in_.kind == Kind::Mxf8f6f4) return ScaledAddition::Window;
    return in_.exponents_only ? ScaledAddition::Groups : ScaledAddition::FineGroups;
  }

  void multiply_scaled(const Part& part, const std::vector<ScaleFactor>& scales_a,
                       const std::vector<ScaleFactor>& scales_b, Accumulators& d) const {
    // Groups are of the elements that a sparse A stores, except fine ones.
    const bool all = !in_.sparse || addition() == ScaledAddition::FineGroups;
    const BlockScaledSum sum({.k = all ? in_.k : in_.stored_k,
                              .scales = in_.scales,
                              .least_a = least_exponent_of(in_.a),
                              .least_b = least_exponent_of(in_.b),
                              .group = in_.sparse && all ? 32u : 16u,
                              .addition = addition()});
    std::vector<uint32_t> places(in_.stored_k);
    std::vector<float> kept_a(in_.stored_k), kept_b(in_.stored_k);
    for (uint32_t row = 0; row < part.rows; ++row) {
      const float* a = part.a.row(row);
      if (!all) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < in_.k && count < in_.stored_k; ++i)
          if (a[i] != absent_number) places[count++] = i;
        for (uint32_t i = 0; i < in_.stored_k; ++i) kept_a[i] = i < count ? a[places[i]] : 0;
        std::fill(places.begin() + count, places.end(), 0);
      }
      for (uint32_t n = 0; n < part.columns; ++n) {
        const uint32_t column = part.first_column + n;
        const float* b = part.b.row(column);
        if (!all)
          for (uint32_t i = 0; i < in_.stored_k; ++i) kept_b[i] = b[places[i]];
        float& value = d.values[size_t{row} * d.columns + n];
        value = sum.add({all ? a : kept_a.data(), scales_a.data() + size_t{row} * in_.scales},
                        {all ? b : kept_b.data(), scales_b.data() + size_t{column} * in_.scales}, value);
      }
    }
  }

  Context& c_;
  const Detail5& d_;
  Instruction in_;
  Layout layout_;
  bool exact_, keep_;
  TensorMemory::Place d_at_, a_at_, metadata_at_;
  uint32_t lane_;
  std::array<Cta*, 2> ctas_{};
  Numbers b_;
  ZeroColumns zero_columns_;
};

}  // namespace

void run_tensor_memory_product(Context& c, const Op& op) {
  const auto& d = op.details<TensorMemoryProductDetail>();
  each_lane(c, [&](int i) {
    Product product(c, d, static_cast<uint32_t>(i));
    product.run();
    product.record();
  });
}

}  // namespace simt::functional
