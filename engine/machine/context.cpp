#include "machine/context.hpp"

#include "machine/cta.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"

namespace simt::functional {

std::string hex(uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

namespace {

[[noreturn]] void illegal(uint64_t address, const std::string& what, int lane) {
  Fault fault("illegal address", what, lane);
  fault.address = address;
  fault.has_address = true;
  throw fault;
}

}  // namespace

void misaligned(uint64_t address, uint64_t size, int lane) {
  Fault fault("misaligned address",
              "access of " + std::to_string(size) + " bytes at " + hex(address) +
                  ", which is not a multiple of its size",
              lane);
  fault.address = address;
  fault.has_address = true;
  throw fault;
}

std::byte* Context::look_up(uint64_t address, uint64_t size) {
  if (tracker) [[unlikely]] {  // each access comes here
    if (memory->accessible(address, size).second == 0) return nullptr;
    tracker->accessed(*this, address);
    return memory->host(address);
  }
  const uint64_t generation = memory->generation();
  if (generation_ != generation) {
    recent_ = {};
    generation_ = generation;
  }
  for (uint32_t k = 0; k < recent_.size(); ++k) {
    if (!recent_[k].holds(address, size)) continue;
    latest_ = k;
    return memory->host(address);
  }
  const auto [begin, bytes] = memory->accessible(address, size);
  if (bytes == 0) return nullptr;
  latest_ = next_;
  next_ = (next_ + 1) % recent_.size();
  recent_[latest_] = {begin, bytes};
  return memory->host(address);
}

void Context::illegal_global(uint64_t address, uint64_t size, int lane) {
  illegal(
      address,
      "access of " + std::to_string(size) + " bytes at " + hex(address) + ": " + memory->describe(address),
      lane);
}

std::byte* Context::shared(uint64_t address, uint64_t size, int lane) {
  Cta* owner = cta;
  uint64_t offset = address - own_shared;
  if (!is_own(address)) {
    const uint64_t rank = (address >> window::rank_shift) - first_rank;
    if (rank >= cta->cluster().ctas.size())
      illegal(address,
              "shared memory of CTA " + std::to_string(rank) + " of a cluster of " +
                  std::to_string(cta->cluster().ctas.size()),
              lane);
    owner = cta->cluster().ctas[rank];
    offset = address & window::own_shared;
    if (!owner) illegal(address, "shared memory of a CTA of the cluster that has finished", lane);
  }
  if (offset > owner->shared_bytes() || size > owner->shared_bytes() - offset)
    illegal(address,
            "access of " + std::to_string(size) + " bytes at " + hex(offset) +
                " of shared memory, which has " + std::to_string(owner->shared_bytes()) + " bytes",
            lane);
  return owner->shared() + offset;
}

std::byte* Context::local(uint64_t address, uint64_t size, int lane) {
  const uint64_t limit = grid->local_bytes();
  // In machine code the stack grows down from the end of local memory.
  if (grid->program().is_machine_code() && static_cast<int32_t>(address) < 0)
    throw Fault("stack overflow",
                "access " + std::to_string(-int64_t{static_cast<int32_t>(address)}) +
                    " bytes below the end of the stack; a thread has " + std::to_string(limit) +
                    " bytes of stack",
                lane);
  if (address > limit || size > limit - address)
    illegal(address,
            "access of " + std::to_string(size) + " bytes at " + hex(address) +
                " of a thread's local memory, which has " + std::to_string(limit) + " bytes",
            lane);
  return cta->local(warp->number(), static_cast<uint32_t>(lane)) + address;
}

std::byte* Context::generic(uint64_t address, uint64_t size, int lane) {
  if (window::is_shared(address)) return shared(address - window::shared, size, lane);
  if (window::is_local(address)) return local(address - window::local, size, lane);
  return global(address, size, lane);
}

}  // namespace simt::functional
