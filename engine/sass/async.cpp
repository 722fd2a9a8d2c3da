/// Asynchronous copies by lanes, from global to shared memory. They take effect at once; groups only affect
/// timing.
#include "operations/copies.hpp"
#include "sass/instructions.hpp"
#include "sass/ordering.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

/// LDGSTS to, from [, p]: where p does not hold, zeros are written. With .ZFILL, the lowest bits of `from`
/// are a number of bytes at the end that are zeros, too.
void translate_copy_async(Translation& t) {
  functional::CopyDetail d;
  d.skips_bytes = t.take("ZFILL");
  take_ordering(t);
  static constexpr uint32_t bytes[] = {4, 8, 16};
  d.bytes = bytes[t.take_one_of({"32", "64", "128"}, 0)];
  d.to = t.own_address(0, true);
  d.from = t.address(1);
  if (t.operand_count() > 2) {
    d.ignore = t.predicate(2);
    d.ignore.negated = !d.ignore.negated;
  }
  t.emit(functional::copy_handler(d.bytes));
  t.detail<functional::CopyDetail>() = d;
  t.accesses(d.bytes);
}

/// STAS [pair], a; REDAS.operation[.type] [pair], a: the pair holds addresses in shared memory of the
/// cluster: where to store, and of the mbarrier that counts the bytes.
void translate_store_async(Translation& t) {
  using ptx::Type;
  functional::RemoteDetail d;
  const Operand& pair = t.operand(0);
  if (pair.kind != OperandKind::Memory || !pair.wide_base || pair.value != 0 || pair.uniform != Operand::none)
    t.unsupported("an address that is no pair of registers");
  const Place addresses = t.general(pair.base, 2, false);
  d.to.base = d.mbarrier.base = Address::Base::Narrow;
  d.to.place = addresses;
  d.mbarrier.place = addresses + place::register_bytes;
  const bool reduces = t.what().operation == Operation::Reduction;
  uint32_t words = 1;
  if (reduces) {
    static constexpr std::string_view operations[] = {"add", "inc", "dec", "min", "max", "and", "or", "xor"};
    const int operation = t.take_one_of({"ADD", "INC", "DEC", "MIN", "MAX", "AND", "OR", "XOR"});
    if (operation < 0) t.unsupported("its operation is missing");
    const bool is_signed = t.take("S32");
    words = t.take("64") ? 2 : 1;
    d.element_bytes = 4 * words;
    d.in_pairs = words == 2;
    const Type type = words == 2 ? Type::U64 : is_signed ? Type::S32 : operation > 4 ? Type::B32 : Type::U32;
    d.reduction = functional::element_reduction(operations[operation], type);
    if (!d.reduction.combine) t.unsupported("this operation on this type");
    d.values[0] = t.source(1, words);
  } else {
    words = 1u << t.take_one_of({"32", "64", "128"}, 0);
    d.elements = words;
    const Place first = t.source(1, words);
    for (uint32_t k = 0; k < words; ++k) d.values[k] = first + k * place::register_bytes;
  }
  t.emit(functional::remote_handler());
  t.detail<functional::RemoteDetail>() = d;
  t.accesses(4 * words);
}

}  // namespace simt::sass
