#pragma once
#include <initializer_list>
#include <vector>

#include "operations/matrix_product.hpp"
#include "ptx/translation/translator.hpp"

/// Operands and modifiers of matrix instructions.
namespace simt::functional {

/// Takes a modifier such as m16n8k16.
MatrixShape take_shape(Translation& t);
/// Refuses the instruction unless its shape is among `shapes`.
void expect_shape(Translation& t, const MatrixShape& shape, std::initializer_list<MatrixShape> shapes);

/// Refuses the instruction unless `type` is among `types`.
void expect_type(Translation& t, ptx::Type type, std::initializer_list<ptx::Type> types);

/// Takes two modifiers, `row` or `col` each.
Layouts take_layouts(Translation& t);

/// Places of a vector operand of exactly `count` registers, or of a single scalar register.
std::vector<Place> take_registers(Translation& t, uint32_t operand, ptx::Type type, uint32_t count);
std::vector<Place> take_destinations(Translation& t, uint32_t operand, ptx::Type type, uint32_t count);
struct ProductForm {
  /// Registers per lane, where there are more than A and B need; the rest are copies.
  uint32_t registers_a = 0, registers_b = 0;
  /// A has half its elements; metadata and sparsity selector follow c.
  bool sparse = false;
  uint32_t step = UINT32_MAX;  ///< as RegisterProduct's
};
/// A PTX instruction's product; the operands are d, a, b, c. Takes the rounding modifier of f64.
void emit_product(Translation& t, const MatrixShape& shape, const ProductTypes& types, bool saturate,
                  const ProductForm& form);
/// The same for b1, with .and.popc or .xor.popc instead of products.
void emit_bit_product(Translation& t, const MatrixShape& shape);

}  // namespace simt::functional
