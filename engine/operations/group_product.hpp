#pragma once
#include <memory>
#include <string>
#include <vector>

#include "machine/address.hpp"
#include "operations/matrix_product.hpp"

/// Products by a warpgroup, for PTX and machine code.
namespace simt::functional {

/// D = A B + D, of single bits the number of those that A and B both have. A or its descriptor, and B's
/// descriptor, lead to shared memory.
struct GroupProduct {
  MatrixShape shape;  ///< of the warpgroup
  ProductTypes types;
  std::vector<Place> d, a;  ///< registers; `a` is empty if A is in shared memory
  Place a_descriptor = place::none, b_descriptor = place::none;
  bool in_pairs = false;  ///< descriptors are in two rows of registers each
  bool a_transposed = false, b_transposed = false;
  bool negative = false;  ///< A B is subtracted
  bool saturate = false;
  bool sparse = false;  ///< A has half its elements
  Sparsity sparsity;
  PredicateOperand keep;  ///< whether to add to D
};

/// Why there is no such product; empty if there is.
std::string group_product_fault(const GroupProduct& product);
/// Registers of D in each lane.
uint32_t group_accumulators(const GroupProduct& product);

/// The Op's handler and detail; Op::a and Op::b must be the descriptors. It is a collective.
struct BoundGroupProduct {
  Handler run = nullptr;
  std::unique_ptr<Detail> detail;
};
BoundGroupProduct bind_group_product(GroupProduct product);

/// Of a barrier of the warpgroup's warps: they go on once all have multiplied.
void wait_for_warpgroup(Context& c, const Op& op);

}  // namespace simt::functional
