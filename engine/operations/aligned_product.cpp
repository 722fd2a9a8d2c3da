#include "operations/aligned_product.hpp"

#include <cstring>

namespace simt::functional {

using ptx::Type;

int least_exponent(Type type) {
  switch (type) {
    case Type::F16:
    case Type::E5M2:
      return -14;
    case Type::E4M3:
      return -6;
    case Type::E3M2:
      return -2;
    case Type::E2M3:
    case Type::E2M1:
      return 0;
    default:
      return -126;
  }
}

AdditionForm addition_form(const ProductTypes& types, ProductUnit unit, bool sparse, uint32_t step) {
  return {.additions = find_additions(types.a, unit),
          .least_a = least_exponent(types.a),
          .least_b = least_exponent(types.b),
          .half = types.c == Type::F16 && types.d == Type::F16,
          .sparse = sparse,
          .step = step};
}

SumPlan::SumPlan(const Addition& addition, const AdditionForm& form, uint32_t k)
    : least_a(form.least_a), least_b(form.least_b), sparse(form.sparse), ascending_(!addition.unpacked) {
  const uint32_t factors_per_product = form.sparse ? 2 : 1, half = k / 2, unit = 2 * factors_per_product;
  const uint32_t whole = (addition.unpacked ? half : k) / factors_per_product;
  factors = std::min({whole, uint32_t{addition.products}, form.step}) * factors_per_product;
  if (ascending_) return;
  least_a = least_b = least_exponent(Type::F16);
  for (uint32_t i = 0; i < k; ++i)
    places_[i] = static_cast<uint8_t>(i / (2 * unit) * unit + i % unit + i / unit % 2 * half);
}

template <uint32_t columns>
void AlignedRows::place_rows(const SumPlan& plan, const float* tile, float* to) const {
  for (uint32_t i = 0; i < tile_rows; ++i, tile += columns, to += k_) {
    if (plan.ascending())
      std::memcpy(to, tile, columns * sizeof(float));
    else
      for (uint32_t j = 0; j < columns; ++j) to[plan.place(j)] = tile[j];
  }
}

void AlignedRows::place(const SumPlan& plan, const float* tile, uint32_t columns, uint32_t row, uint32_t k) {
  // In another order, the tile's places are those of the first one, and `k` further along both halves.
  float* to = numbers_ + row * k_ + (plan.ascending() ? k : k / 2);
  switch (columns) {
    case 4:
      return place_rows<4>(plan, tile, to);
    case 8:
      return place_rows<8>(plan, tile, to);
    default:
      return place_rows<16>(plan, tile, to);
  }
}

void AlignedRows::finish(uint32_t count, const SumPlan& plan) {
  take_exponents(numbers_, count, plan.least_a, exponents_);
  if (!plan.sparse) return;
  for (uint32_t i = 0; i < count; ++i) {
    if (numbers_[i] != absent_factor) continue;
    numbers_[i] = 0.0f;
    exponents_[i] = absent_exponent;
  }
}

void AlignedColumns::finish(uint32_t k_count, const SumPlan& plan) {
  if (!plan.ascending()) {
    alignas(64) float ordered[max_product_k * tile_rows];
    for (uint32_t k = 0; k < k_count; ++k)
      std::copy_n(numbers_ + k * tile_rows, tile_rows, ordered + plan.place(k) * tile_rows);
    std::copy_n(ordered, k_count * tile_rows, numbers_);
  }
  alignas(64) int16_t exponents[max_product_k * tile_rows];
  take_exponents(numbers_, k_count * tile_rows, plan.least_b, exponents);
  using Short8 [[gnu::vector_size(16)]] = int16_t;
  for (uint32_t k = 0; k < k_count; k += 2) {
    Short8 first, second;
    std::memcpy(&first, exponents + k * tile_rows, sizeof first);
    std::memcpy(&second, exponents + (k + 1) * tile_rows, sizeof second);
    const auto pairs =
        __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    std::memcpy(exponent_pairs_ + k * tile_rows, &pairs, sizeof pairs);
  }
}

}  // namespace simt::functional
