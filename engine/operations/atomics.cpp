/// Lanes take effect one after another, in ascending order.
#include "operations/atomics.hpp"

#include <atomic>

#include "operations/reductions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;
using Operation = AtomicOperation;
using Choice = AtomicHandlers;

/// Calls f(lane) for the lanes of the mask.
template <class F>
inline void lanes_in_order(const Context& c, F f) {
  if (c.full())
    for (int i = 0; i < static_cast<int>(warp_lanes); ++i) f(i);
  else
    each_lane(c, f);
}

/// Whether all active lanes access the same address.
inline bool same_address(const Context& c, const uint64_t* address) {
  const uint64_t first = address[c.first_lane()];
  uint64_t differs = 0;
  for (uint32_t i = 0; i < warp_lanes; ++i) differs |= (c.mask >> i) & 1 ? address[i] ^ first : 0;
  return differs == 0;
}

/// Host addresses that the active lanes access: one address for all of them, a block with a value for each
/// lane of a full warp, or an address per lane.
struct Targets {
  std::byte* same = nullptr;
  std::byte* block = nullptr;
  std::byte* lane[warp_lanes];
};

// Independent of the operation: compiled once per state space.
template <AccessSpace space>
[[gnu::noinline]] void find_targets(Context& c, const uint64_t* address, uint64_t bytes, bool concurrent,
                                    Targets& targets) {
  if (same_address(c, address))
    targets.same = host_address<space>(c, address[c.first_lane()], bytes, c.first_lane());
  else if (std::byte* block = concurrent ? nullptr : block_address<space>(c, address, bytes))
    targets.block = block;
  else
    host_addresses<space>(c, address, bytes, targets.lane);
}
void find_targets(Context& c, AccessSpace space, const uint64_t* address, uint64_t bytes, bool concurrent,
                  Targets& targets) {
  if (space == AccessSpace::Shared)
    find_targets<AccessSpace::Shared>(c, address, bytes, concurrent, targets);
  else if (space == AccessSpace::Global)
    find_targets<AccessSpace::Global>(c, address, bytes, concurrent, targets);
  else
    find_targets<AccessSpace::Generic>(c, address, bytes, concurrent, targets);
}

/// The lanes' values of an operand.
template <class T>
const Lane<T>* operand(const Context& c, const AtomicDetail& d, Place at, Lane<T>* joined) {
  if constexpr (sizeof(T) == 8) {
    if (d.pairs) {
      const uint32_t* rows = c.lanes<const uint32_t>(at);
      for (uint32_t i = 0; i < warp_lanes; ++i)
        joined[i] = std::bit_cast<Lane<T>>(rows[i] | uint64_t{rows[i + warp_lanes]} << 32);
      return joined;
    }
  }
  return c.lanes<const Lane<T>>(at);
}

template <class T>
void write_results(Context& c, const Op& op, const Lane<T>* values) {
  if constexpr (sizeof(T) == 8) {
    if (op.details<AtomicDetail>().pairs) {
      alignas(64) uint32_t rows[2][warp_lanes];
      for (uint32_t i = 0; i < warp_lanes; ++i) {
        const auto bits = std::bit_cast<uint64_t>(values[i]);
        rows[0][i] = static_cast<uint32_t>(bits);
        rows[1][i] = static_cast<uint32_t>(bits >> 32);
      }
      write_lanes(c, c.lanes<uint32_t>(op.destination), rows[0]);
      write_lanes(c, c.lanes<uint32_t>(op.destination + place::register_bytes), rows[1]);
      return;
    }
  }
  write_lanes(c, c.lanes<Lane<T>>(op.destination), values);
}

/// Replaces each lane's value in memory by next(value, lane); result(value, lane) of the old values goes to
/// the destination, if there is one.
template <class T, bool may_be_shared_by_threads, class Next, class Result>
void act(Context& c, const Op& op, AccessSpace space, const uint64_t* address, Next next, Result result) {
  const bool concurrent = may_be_shared_by_threads && space == AccessSpace::Global && c.concurrent;
  Targets targets;
  find_targets(c, space, address, sizeof(T), concurrent, targets);
  alignas(64) Lane<T> old[warp_lanes];
  if (targets.same) {
    const auto all = [&](T value) {
      lanes_in_order(c, [&](int i) {
        old[i] = result(value, i);
        value = next(value, i);
      });
      return value;
    };
    if (concurrent) {
      std::atomic_ref<T> memory(*reinterpret_cast<T*>(targets.same));
      T value = memory.load(std::memory_order_relaxed);
      while (!memory.compare_exchange_weak(value, all(value), std::memory_order_relaxed)) {
      }
      return;
    }
    T value;
    std::memcpy(&value, targets.same, sizeof(T));
    value = all(value);
    std::memcpy(targets.same, &value, sizeof(T));
  } else if (targets.block) {
    T values[warp_lanes], results[warp_lanes];
    std::memcpy(values, targets.block, sizeof values);
    for (int i = 0; i < static_cast<int>(warp_lanes); ++i) {
      old[i] = result(values[i], i);
      results[i] = next(values[i], i);
    }
    std::memcpy(targets.block, results, sizeof results);
  } else if (concurrent) {
    each_lane(c, [&](int i) {
      std::atomic_ref<T> memory(*reinterpret_cast<T*>(targets.lane[i]));
      T value = memory.load(std::memory_order_relaxed);
      while (!memory.compare_exchange_weak(value, next(value, i), std::memory_order_relaxed)) {
      }
    });
    return;
  } else {
    lanes_in_order(c, [&](int i) {
      T value;
      std::memcpy(&value, targets.lane[i], sizeof(T));
      old[i] = result(value, i);
      value = next(value, i);
      std::memcpy(targets.lane[i], &value, sizeof(T));
    });
  }
  if (op.destination != place::none) write_results<T>(c, op, old);
}
template <class T, bool may_be_shared_by_threads, class Next>
void act(Context& c, const Op& op, AccessSpace space, const uint64_t* address, Next next) {
  act<T, may_be_shared_by_threads>(c, op, space, address, next, [](T old, int) { return to_lane<T>(old); });
}

/// Those of the lanes whose address is not in global memory that take effect; the predicate tells all that
/// do.
uint32_t reached(Context& c, const AtomicDetail& d, uint32_t near, uint32_t far, const uint64_t* address) {
  uint32_t result = 0;
  if (d.reach == AtomicReach::GlobalAndShared)
    for (uint32_t i = 0; i < warp_lanes; ++i) result |= (near >> i & window::is_shared(address[i])) << i;
  if (d.succeeds != place::none) write_predicate(c, d.succeeds, far | result);
  return result;
}

/// Separates lanes whose access to global memory is deferred from those that take effect immediately, by
/// act(space). `keep` stores the values of deferred lanes.
template <class ActNow, class Keep>
void now_or_later(Context& c, const Op& op, uint64_t bytes, void (*perform)(Context&, DeferredAccess&),
                  ActNow act_now, Keep keep) {
  const auto& d = op.details<AtomicDetail>();
  alignas(64) uint64_t address[warp_lanes];
  lane_addresses(c, op, d.base, address);
  record_access(c, d.space, address);
  check_alignment(c, address, bytes);
  const uint32_t all = c.mask, far = global_lanes(c, d.space, address);
  uint32_t near = all & ~far;
  if (d.reach != AtomicReach::All) [[unlikely]]
    near = reached(c, d, near, far, address);
  if (far) {
    c.mask = far;
    if (c.deferred)
      keep(defer(c, op, far, address, perform));
    else
      act_now(AccessSpace::Global, address);
  }
  if (near) {
    c.mask = near;
    act_now(d.space, address);
  }
  c.mask = all;
}

template <class F>
void perform_atomic(Context& c, DeferredAccess& access) {
  using T = typename F::Value;
  act<T, false>(c, *access.op, AccessSpace::Global, access.address.data(), [&](T old, int i) {
    return F::apply(old, from_lane<T>(static_cast<Lane<T>>(access.value[0][i])));
  });
}

/// Near: what to do in memory other than global.
template <class F, class Near>
void run_atomic(Context& c, const Op& op) {
  using T = typename F::Value;
  alignas(64) Lane<T> joined[sizeof(T) == 8 ? warp_lanes : 1];
  const Lane<T>* b = operand<T>(c, op.details<AtomicDetail>(), op.b, joined);
  now_or_later(
      c, op, sizeof(T), perform_atomic<F>,
      [&](AccessSpace space, const uint64_t* address) {
        if (std::is_same_v<F, Near> || space == AccessSpace::Global)
          act<T, F::commutes>(c, op, space, address,
                              [&](T old, int i) { return F::apply(old, from_lane<T>(b[i])); });
        else
          act<T, false>(c, op, space, address,
                        [&](T old, int i) { return Near::apply(old, from_lane<T>(b[i])); });
      },
      [&](DeferredAccess& access) { std::copy(b, b + warp_lanes, access.value[0].begin()); });
}

/// compare(old) and swap. tells: the result is whether it was swapped, not the old value.
template <class T, bool tells>
void compare_and_swap(Context& c, const Op& op, AccessSpace space, const uint64_t* address, auto compared,
                      auto swapped) {
  act<T, false>(
      c, op, space, address,
      [&](T old, int i) { return old == static_cast<T>(compared[i]) ? static_cast<T>(swapped[i]) : old; },
      [&](T old, int i) { return tells ? Lane<T>{old == static_cast<T>(compared[i])} : to_lane<T>(old); });
}
template <class T, bool tells>
void perform_compare(Context& c, DeferredAccess& access) {
  compare_and_swap<T, tells>(c, *access.op, AccessSpace::Global, access.address.data(),
                             access.value[0].data(), access.value[1].data());
}
template <class T, bool tells = false>
void run_compare(Context& c, const Op& op) {
  const auto& d = op.details<AtomicDetail>();
  alignas(64) Lane<T> joined[2][sizeof(T) == 8 ? warp_lanes : 1];
  const Lane<T>* compared = operand<T>(c, d, op.b, joined[0]);
  const Lane<T>* swapped = operand<T>(c, d, op.c, joined[1]);
  now_or_later(
      c, op, sizeof(T), perform_compare<T, tells>,
      [&](AccessSpace space, const uint64_t* address) {
        compare_and_swap<T, tells>(c, op, space, address, compared, swapped);
      },
      [&](DeferredAccess& access) {
        std::copy(compared, compared + warp_lanes, access.value[0].begin());
        std::copy(swapped, swapped + warp_lanes, access.value[1].begin());
      });
}

/// Two 64-bit words, low word first.
void perform_128(Context& c, DeferredAccess& access, bool compare) {
  const Op& op = *access.op;
  const auto& d = op.details<AtomicDetail>();
  each_lane(c, [&](int i) {
    std::byte* at = host_address(c, d.space, access.address[i], 16, i);
    uint64_t old[2];
    std::memcpy(old, at, 16);
    const uint32_t stored = compare ? 2 : 0;
    if (!compare || (old[0] == access.value[0][i] && old[1] == access.value[1][i])) {
      std::memcpy(at, &access.value[stored][i], 8);
      std::memcpy(at + 8, &access.value[stored + 1][i], 8);
    }
    if (op.destination == place::none) return;
    for (uint32_t w = 0; w < 2; ++w) {
      const Place to = op.destination + w * 2 * place::register_bytes;
      if (!d.pairs) {
        c.lanes<uint64_t>(to)[i] = old[w];
        continue;
      }
      c.lanes<uint32_t>(to)[i] = static_cast<uint32_t>(old[w]);
      c.lanes<uint32_t>(to + place::register_bytes)[i] = static_cast<uint32_t>(old[w] >> 32);
    }
  });
}
template <bool compare>
void perform_128(Context& c, DeferredAccess& access) {
  perform_128(c, access, compare);
}
template <bool compare>
void run_128(Context& c, const Op& op) {
  const auto keep = [&](DeferredAccess& access) {
    for (uint32_t w = 0; w < 4; ++w) {
      if (w >= 2 && !compare) break;
      const Place from = (w < 2 ? op.b : op.c) + w % 2 * 2 * place::register_bytes;
      const uint64_t* lanes = operand<uint64_t>(c, op.details<AtomicDetail>(), from, access.value[w].data());
      if (lanes != access.value[w].data()) std::copy(lanes, lanes + warp_lanes, access.value[w].begin());
    }
  };
  now_or_later(
      c, op, 16, perform_128<compare>,
      [&](AccessSpace, const uint64_t* address) {
        DeferredAccess access;
        access.op = &op;
        std::copy(address, address + warp_lanes, access.address.begin());
        keep(access);
        perform_128(c, access, compare);
      },
      keep);
}

/// Vectors: each element is a separate atomic operation.
template <class F>
void perform_vector(Context& c, DeferredAccess& access) {
  using T = typename F::Value;
  const auto& d = access.op->template details<AtomicDetail>();
  each_lane(c, [&](int i) {
    std::byte* at = host_address(c, d.space, access.address[i], sizeof(T) * d.elements, i);
    for (uint32_t e = 0; e < d.elements; ++e) {
      T old, b;
      std::memcpy(&old, at + e * sizeof(T), sizeof(T));
      const uint32_t offset = e * sizeof(T);
      std::memcpy(&b, reinterpret_cast<const std::byte*>(&access.value[offset / 8][i]) + offset % 8,
                  sizeof(T));
      const T next = F::apply(old, b);
      std::memcpy(at + e * sizeof(T), &next, sizeof(T));
      if (d.returns) c.lanes<uint32_t>(d.results[e])[i] = to_lane<T>(old);
    }
  });
}
template <class F>
void run_vector(Context& c, const Op& op) {
  using T = typename F::Value;
  const auto& d = op.details<AtomicDetail>();
  const auto keep = [&](DeferredAccess& access) {
    for (uint32_t e = 0; e < d.elements; ++e) {
      const uint32_t* lanes = c.lanes<const uint32_t>(d.values[e]);
      const uint32_t offset = e * sizeof(T);
      for (uint32_t i = 0; i < warp_lanes; ++i)
        std::memcpy(reinterpret_cast<std::byte*>(&access.value[offset / 8][i]) + offset % 8, &lanes[i],
                    sizeof(T));
    }
  };
  now_or_later(
      c, op, sizeof(T) * d.elements, perform_vector<F>,
      [&](AccessSpace space, const uint64_t* address) {
        if (space != AccessSpace::Global)
          throw Fault("illegal address", "a vector atomic on memory that is not global", c.first_lane());
        DeferredAccess access;
        access.op = &op;
        std::copy(address, address + warp_lanes, access.address.begin());
        keep(access);
        perform_vector<F>(c, access);
      },
      keep);
}

template <class F, class Near = F>
Choice scalar() {
  return {run_atomic<F, Near>, nullptr, F::commutes};
}
template <class F, class Near = F>
Choice scalar_or_vector() {
  return {run_atomic<F, Near>, run_vector<F>, F::commutes};
}
template <class F>
Choice vector_only() {
  return {nullptr, run_vector<F>, F::commutes};
}

/// Operations on integers of one width, U unsigned and S signed.
template <class U, class S>
Choice choose_integer(Operation operation, bool is_signed) {
  namespace r = reduction;
  switch (operation) {
    case Operation::Add:
      return scalar<r::Add<U>>();
    case Operation::Min:
      return is_signed ? scalar<r::Min<S>>() : scalar<r::Min<U>>();
    case Operation::Max:
      return is_signed ? scalar<r::Max<S>>() : scalar<r::Max<U>>();
    case Operation::And:
      return scalar<r::And<U>>();
    case Operation::Or:
      return scalar<r::Or<U>>();
    case Operation::Xor:
      return scalar<r::Xor<U>>();
    case Operation::Exch:
      return scalar<r::Exchange<U>>();
    case Operation::Cas:
      return {run_compare<U>};
    case Operation::Inc:
      return sizeof(U) == 4 ? scalar<r::Increment<U>>() : Choice{};
    case Operation::Dec:
      return sizeof(U) == 4 ? scalar<r::Decrement<U>>() : Choice{};
  }
  return {};
}

template <class Format>
Choice choose_16(Operation operation) {
  namespace r = reduction;
  switch (operation) {
    case Operation::Add:
      return scalar_or_vector<r::Add16<Format>>();
    case Operation::Min:
      return vector_only<r::Min16<Format>>();
    case Operation::Max:
      return vector_only<r::Max16<Format>>();
    default:
      return {};
  }
}
template <class Format>
Choice choose_packed(Operation operation) {
  namespace r = reduction;
  switch (operation) {
    case Operation::Add:
      return scalar_or_vector<r::Packed<r::Add16<Format>>>();
    case Operation::Min:
      return vector_only<r::Packed<r::Min16<Format>>>();
    case Operation::Max:
      return vector_only<r::Packed<r::Max16<Format>>>();
    default:
      return {};
  }
}

}  // namespace

AtomicHandlers atomic_handlers(Operation operation, Type type) {
  namespace r = reduction;
  switch (type) {
    case Type::U32:
    case Type::B32:
      return choose_integer<uint32_t, int32_t>(operation, false);
    case Type::S32:
      return choose_integer<uint32_t, int32_t>(operation, true);
    case Type::U64:
    case Type::B64:
      return choose_integer<uint64_t, int64_t>(operation, false);
    case Type::S64:
      return choose_integer<uint64_t, int64_t>(operation, true);
    case Type::B16:
      return operation == Operation::Cas ? Choice{run_compare<uint16_t>} : Choice{};
    case Type::B128:
      return operation == Operation::Cas    ? Choice{run_128<true>}
             : operation == Operation::Exch ? Choice{run_128<false>}
                                            : Choice{};
    case Type::F32:
      return operation == Operation::Add ? scalar_or_vector<r::AddF32<true>, r::AddF32<false>>() : Choice{};
    case Type::F64:
      return operation == Operation::Add ? scalar<r::AddF64>() : Choice{};
    case Type::F16:
      return choose_16<Half>(operation);
    case Type::BF16:
      return choose_16<Bfloat>(operation);
    case Type::F16x2:
      return choose_packed<Half>(operation);
    case Type::BF16x2:
      return choose_packed<Bfloat>(operation);
    default:
      return {};
  }
}

Handler compare_and_tell_handler(uint32_t bytes) {
  return bytes == 8 ? run_compare<uint64_t, true> : run_compare<uint32_t, true>;
}

}  // namespace simt::functional
