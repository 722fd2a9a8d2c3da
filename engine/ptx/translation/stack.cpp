/// Stack memory of dynamic size: alloca, stacksave, stackrestore.
#include "machine/access.hpp"
#include "machine/fault.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Type;

namespace {

/// Dynamic stack memory grows down from the end of a thread's local memory. `Warp::dynamic_stacks` tells how
/// much is taken. An address is the number of bytes between it and the end of local memory.
struct StackDetail : Detail {
  uint32_t function = 0;
  uint64_t alignment = 8;
};

/// T: type of addresses and sizes.
template <class T>
void run_alloca(Context& c, const Op& op) {
  const auto& d = op.details<StackDetail>();
  const uint64_t frame_end = c.stack + c.grid->program().functions[d.function].stack_bytes;
  const uint64_t local_bytes = c.grid->local_bytes();
  each_lane(c, [&](int lane) {
    const uint64_t size = c.lanes<T>(op.a)[lane];
    uint32_t& taken = c.warp->dynamic_stacks[static_cast<size_t>(lane)];
    const uint64_t room = local_bytes - taken;
    const uint64_t address = size <= room ? (room - size) & ~(d.alignment - 1) : 0;
    if (size > room || address < frame_end)
      throw Fault("stack overflow",
                  "alloca of " + std::to_string(size) + " bytes; " +
                      std::to_string(room - std::min(room, frame_end)) + " of a thread's " +
                      std::to_string(local_bytes) + " bytes of stack are left",
                  lane);
    taken = static_cast<uint32_t>(local_bytes - address);
    c.lanes<T>(op.destination)[lane] = static_cast<T>(address);
  });
}

template <class T>
void run_stacksave(Context& c, const Op& op) {
  each_lane(c, [&](int lane) {
    const uint32_t taken = c.warp->dynamic_stacks[static_cast<size_t>(lane)];
    c.lanes<T>(op.destination)[lane] = static_cast<T>(c.grid->local_bytes() - taken);
  });
}

template <class T>
void run_stackrestore(Context& c, const Op& op) {
  const uint64_t local_bytes = c.grid->local_bytes();
  each_lane(c, [&](int lane) {
    uint32_t& taken = c.warp->dynamic_stacks[static_cast<size_t>(lane)];
    const uint64_t address = c.lanes<T>(op.a)[lane];
    if (address > local_bytes || local_bytes - address > taken)
      throw Fault("illegal address", "stackrestore of " + hex(address) + ", which no stacksave has given",
                  lane);
    taken = static_cast<uint32_t>(local_bytes - address);
  });
}

void run_save_stack(Context& c, const Op& op) {
  uint32_t* saved = c.lanes<uint32_t>(op.destination);
  each_lane(c, [&](int lane) { saved[lane] = c.warp->dynamic_stacks[static_cast<size_t>(lane)]; });
}

void run_restore_stack(Context& c, const Op& op) {
  const uint32_t* saved = c.lanes<uint32_t>(op.a);
  each_lane(c, [&](int lane) { c.warp->dynamic_stacks[static_cast<size_t>(lane)] = saved[lane]; });
}

/// .u32 or .u64: whether addresses are 64 bits wide.
bool take_width(Translation& t) {
  const Type type = t.take_type();
  if (ptx::bytes(type) != 4 && ptx::bytes(type) != 8) t.unsupported("an address of this type");
  return ptx::bytes(type) == 8;
}

}  // namespace

void emit_save_stack(Translation& t) {
  t.emit(run_save_stack).destination = t.saved_stack();
}

void emit_restore_stack(Translation& t) {
  t.emit(run_restore_stack).a = t.saved_stack();
}

void translate_alloca(Translation& t) {
  const bool wide = take_width(t);
  const Type type = wide ? Type::U64 : Type::U32;
  const Place size = t.source(1, type);
  const Place destination = t.destination(0, type);
  const int64_t alignment = t.operand_count() > 2 ? t.immediate(t.operand(2)) : 8;
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096)
    t.unsupported("the alignment must be a power of two up to 4096");
  Op& op = t.emit(wide ? run_alloca<uint64_t> : run_alloca<uint32_t>);
  op.destination = destination;
  op.a = size;
  StackDetail& d = t.detail<StackDetail>();
  d.function = t.function_number();
  d.alignment = static_cast<uint64_t>(alignment);
}

void translate_stacksave(Translation& t) {
  const bool wide = take_width(t);
  const Place destination = t.destination(0, wide ? Type::U64 : Type::U32);
  t.emit(wide ? run_stacksave<uint64_t> : run_stacksave<uint32_t>).destination = destination;
}

void translate_stackrestore(Translation& t) {
  const bool wide = take_width(t);
  const Place from = t.source(0, wide ? Type::U64 : Type::U32);
  t.emit(wide ? run_stackrestore<uint64_t> : run_stackrestore<uint32_t>).a = from;
}

}  // namespace simt::functional
