/// wgmma: products of matrices in shared memory by a warpgroup.
#include "operations/group_product.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/matrix_operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// Whether an operand that must be 1 or -1 is -1.
bool take_sign(Translation& t, uint32_t operand) {
  const int64_t sign = t.immediate(t.operand(operand));
  if (sign != 1 && sign != -1) t.unsupported("a scale of A and B is 1 or -1");
  return sign < 0;
}
bool take_flag(Translation& t, uint32_t operand) {
  const int64_t flag = t.immediate(t.operand(operand));
  if (flag != 0 && flag != 1) t.unsupported("transposition is 0 or 1");
  return flag != 0;
}

void translate_multiply(Translation& t, bool sparse) {
  GroupProduct product;
  product.sparse = sparse;
  product.shape = take_shape(t);
  product.saturate = t.take("satfinite");
  const Type d = t.take_type(), a = t.take_type(), b = t.take_type();
  product.types = {d, a, b, d};
  const bool halves = a == Type::F16 || a == Type::BF16, integers = d == Type::S32;
  if (a == Type::B1 && !(t.take("and") && t.take("popc"))) t.unsupported("`.and.popc` is missing");
  if (const std::string why = group_product_fault(product); !why.empty()) t.unsupported(why);
  product.d = take_destinations(t, 0, Type::B32, group_accumulators(product));
  const bool a_in_registers = t.operand(1).kind == OperandKind::Vector;
  if (a_in_registers)
    product.a = take_registers(t, 1, Type::B32, 4);
  else
    product.a_descriptor = t.source(1, Type::B64);
  product.b_descriptor = t.source(2, Type::B64);
  uint32_t next = 3;
  if (sparse) {
    const Place metadata = t.source(next, Type::B32);
    const int64_t selector = t.immediate(t.operand(next + 1)),
                  selectors = sparsity_selectors(a, product.shape.k);
    if (selector < 0 || selector >= selectors)
      t.unsupported("sparsity selector " + std::to_string(selector) + ", expected less than " +
                    std::to_string(selectors));
    product.sparsity = sparsity_of(a, metadata, product.shape.k, static_cast<uint32_t>(selector));
    next += 2;
  }
  product.keep = t.predicate_source(t.operand(next++));
  const uint32_t wanted = next + (integers ? 0 : !halves ? 2 : a_in_registers ? 3 : 4);
  if (t.operand_count() != wanted)
    t.unsupported("it has " + std::to_string(t.operand_count()) + " operands, expected " +
                  std::to_string(wanted));
  if (!integers) product.negative = take_sign(t, next) != take_sign(t, next + 1);
  if (halves) {
    if (!a_in_registers) product.a_transposed = take_flag(t, next + 2);
    product.b_transposed = take_flag(t, wanted - 1);
  }
  const Place first = product.d[0], a_at = product.a_descriptor, b_at = product.b_descriptor;
  BoundGroupProduct bound = bind_group_product(std::move(product));
  Op& op = t.emit(bound.run, Control::Collective);
  op.destination = first;
  op.a = a_at;
  op.b = b_at;
  t.take_detail(std::move(bound.detail));
}

void run_nothing(Context&, const Op&) {}

}  // namespace

void translate_wgmma_mma_async(Translation& t) {
  t.take("mma_async");
  t.take("sync");
  t.take("aligned");
  translate_multiply(t, t.take("sp"));
}

void translate_wgmma_wait_group(Translation& t) {
  t.take("wait_group");
  t.take("sync");
  t.take("aligned");
  t.emit(wait_for_warpgroup, Control::Barrier);
}

/// Products take effect immediately here: .fence and .commit_group only affect timing.
void translate_wgmma_order(Translation& t) {
  t.take_one_of({"fence", "commit_group"});
  t.take("sync");
  t.take("aligned");
  t.emit(run_nothing);
}

}  // namespace simt::functional
