#include "operations/memory_access.hpp"

#include "machine/fault.hpp"

namespace simt::functional {
namespace {

template <class T, class L>
inline L widened(T value, Widen widen) {
  return widen == Widen::Sign
             ? static_cast<L>(static_cast<std::make_signed_t<L>>(static_cast<std::make_signed_t<T>>(value)))
             : static_cast<L>(value);
}

// Vectors of two and four words, four lanes at a time: memory holds the words of each lane together,
// registers hold the lanes of each word together.
using Words = uint32_t __attribute__((vector_size(16)));
template <uint32_t elements>
using LaneWords = std::array<Words, elements>;  ///< of four lanes

template <uint32_t elements>
LaneWords<elements> load_four(const std::byte* base, const uint64_t* distance) {
  const auto load = [&](uint32_t lane) {
    Words words{};
    std::memcpy(&words, base + distance[lane], 4 * elements);
    return words;
  };
  const Words a = load(0), b = load(1), c = load(2), d = load(3);
  const Words ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  LaneWords<elements> rows;
  rows[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  if constexpr (elements == 4) {
    const Words ef = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    rows[2] = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  }
  return rows;
}

template <uint32_t elements>
void store_four(std::byte* base, const uint64_t* distance, const LaneWords<elements>& rows) {
  const auto store = [&](uint32_t lane, Words words) {
    std::memcpy(base + distance[lane], &words, 4 * elements);
  };
  const Words low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Words high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  if constexpr (elements == 4) {
    const Words low2 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Words high2 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    store(0, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
    store(1, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
    store(2, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
    store(3, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
  } else {
    store(0, low);
    store(1, __builtin_shufflevector(low, low, 2, 3, 0, 1));
    store(2, high);
    store(3, __builtin_shufflevector(high, high, 2, 3, 0, 1));
  }
}

template <uint32_t elements>
void load_words(Context& c, const AccessDetail& d, const std::byte* base, const uint64_t* distance) {
  for (uint32_t i = 0; i < warp_lanes; i += 4) {
    const LaneWords<elements> rows = load_four<elements>(base, distance + i);
    for (uint32_t e = 0; e < elements; ++e) std::memcpy(c.lanes<uint32_t>(d.places[e]) + i, &rows[e], 16);
  }
}
template <uint32_t elements>
void store_words(Context& c, const AccessDetail& d, std::byte* base, const uint64_t* distance) {
  for (uint32_t i = 0; i < warp_lanes; i += 4) {
    LaneWords<elements> rows;
    for (uint32_t e = 0; e < elements; ++e)
      std::memcpy(&rows[e], c.lanes<const uint32_t>(d.places[e]) + i, 16);
    store_four<elements>(base, distance + i, rows);
  }
}

/// T: type of an element in memory. Single elements and vectors.
template <AccessSpace space, class T>
void load_at(Context& c, const Op& op, const uint64_t* address) {
  const auto& d = op.details<AccessDetail>();
  const uint64_t bytes = sizeof(T) * d.elements;
  const bool full = c.full();
  /// Loads one element of all lanes; at(lane) is the host address of the lane's first element.
  const auto load_element = [&](uint32_t e, auto at) {
    const auto copy = [&](auto* to) {
      using L = std::remove_pointer_t<decltype(to)>;
      const auto one = [&](uint32_t i) {
        T v;
        std::memcpy(&v, at(i) + e * sizeof(T), sizeof(T));
        to[i] = widened<T, L>(v, d.widen);
      };
      if (full)
        for (uint32_t i = 0; i < warp_lanes; ++i) one(i);
      else
        each_lane(c, [&](int i) { one(static_cast<uint32_t>(i)); });
    };
    if (d.place_bytes[e] == 8)
      copy(c.lanes<uint64_t>(d.places[e]));
    else
      copy(c.lanes<uint32_t>(d.places[e]));
  };
  if (d.elements == 1 && full) {
    if (const std::byte* block = block_address<space>(c, address, bytes)) {
      if (d.place_bytes[0] == sizeof(T))
        std::memcpy(c.lanes<T>(d.places[0]), block, sizeof(T) * warp_lanes);
      else
        load_element(0, [&](uint32_t i) { return block + i * sizeof(T); });
      return;
    }
    if (space != AccessSpace::Local && consecutive(address, 0) && !window::is_local(address[0])) {
      const std::byte* all = host_address<space>(c, address[0], bytes, 0);
      load_element(0, [&](uint32_t) { return all; });
      return;
    }
  }
  uint64_t distance[warp_lanes];
  if (const std::byte* base = base_address<space>(c, address, bytes, distance)) {
    if constexpr (sizeof(T) == 4) {
      if (full && d.words && d.elements == 4) return load_words<4>(c, d, base, distance);
      if (full && d.words && d.elements == 2) return load_words<2>(c, d, base, distance);
    }
    for (uint32_t e = 0; e < d.elements; ++e) load_element(e, [&](uint32_t i) { return base + distance[i]; });
    return;
  }
  const std::byte* host[warp_lanes];
  each_lane(c, [&](int i) { host[i] = host_address<space>(c, address[i], bytes, i); });
  for (uint32_t e = 0; e < d.elements; ++e) load_element(e, [&](uint32_t i) { return host[i]; });
}

template <AccessSpace space, class T>
void store_at(Context& c, const Op& op, const uint64_t* address) {
  const auto& d = op.details<AccessDetail>();
  const uint64_t bytes = sizeof(T) * d.elements;
  const bool full = c.full();
  if (d.elements == 1 && full) {
    if (std::byte* block = block_address<space>(c, address, bytes)) {
      const auto copy = [&](const auto* from) {
        T values[warp_lanes];
        for (uint32_t i = 0; i < warp_lanes; ++i) values[i] = static_cast<T>(from[i]);
        std::memcpy(block, values, sizeof values);
      };
      if (d.place_bytes[0] == 8)
        copy(c.lanes<const uint64_t>(d.places[0]));
      else
        copy(c.lanes<const uint32_t>(d.places[0]));
      return;
    }
  }
  // Lanes in ascending order: where several write to one address, the last one wins.
  const auto store_lane = [&](uint32_t i, std::byte* at) {
    for (uint32_t e = 0; e < d.elements; ++e) {
      const T v = d.place_bytes[e] == 8 ? static_cast<T>(c.lanes<const uint64_t>(d.places[e])[i])
                                        : static_cast<T>(c.lanes<const uint32_t>(d.places[e])[i]);
      std::memcpy(at + e * sizeof(T), &v, sizeof(T));
    }
  };
  uint64_t distance[warp_lanes];
  if (std::byte* base = base_address<space>(c, address, bytes, distance)) {
    if constexpr (sizeof(T) == 4) {
      if (full && d.words && d.elements == 4) return store_words<4>(c, d, base, distance);
      if (full && d.words && d.elements == 2) return store_words<2>(c, d, base, distance);
    }
    each_lane(c, [&](int i) { store_lane(static_cast<uint32_t>(i), base + distance[i]); });
    return;
  }
  std::byte* host[warp_lanes];
  each_lane(c, [&](int i) { host[i] = host_address<space>(c, address[i], bytes, i); });
  each_lane(c, [&](int i) { store_lane(static_cast<uint32_t>(i), host[i]); });
}

/// 128-bit elements (ld.b128): two 64-bit arrays in registers.
void load128_at(Context& c, const Op& op, const uint64_t* address) {
  const auto& d = op.details<AccessDetail>();
  each_lane(c, [&](int i) {
    const std::byte* at = host_address(c, d.space, address[i], 16 * d.elements, i);
    for (uint32_t e = 0; e < d.elements; ++e) {
      std::memcpy(c.lanes<uint64_t>(d.places[e]) + i, at + 16 * e, 8);
      std::memcpy(c.lanes<uint64_t>(d.places[e] + 2 * place::register_bytes) + i, at + 16 * e + 8, 8);
    }
  });
}
void store128_at(Context& c, const Op& op, const uint64_t* address) {
  const auto& d = op.details<AccessDetail>();
  each_lane(c, [&](int i) {
    std::byte* at = host_address(c, d.space, address[i], 16 * d.elements, i);
    for (uint32_t e = 0; e < d.elements; ++e) {
      std::memcpy(at + 16 * e, c.lanes<uint64_t>(d.places[e]) + i, 8);
      std::memcpy(at + 16 * e + 8, c.lanes<uint64_t>(d.places[e] + 2 * place::register_bytes) + i, 8);
    }
  });
}

using ActAt = void (*)(Context&, const Op&, const uint64_t* address);

template <ActAt act>
void perform_load(Context& c, DeferredAccess& access) {
  act(c, *access.op, access.address.data());
}
void perform_store(Context& c, DeferredAccess& access) {
  const auto& d = access.op->details<AccessDetail>();
  const uint32_t bytes = d.element_bytes * d.elements;
  each_lane(c, [&](int i) {
    std::byte* at = host_address(c, d.space, access.address[i], bytes, i);
    for (uint32_t k = 0; 8 * k < bytes; ++k)
      std::memcpy(at + 8 * k, &access.value[k][i], std::min(8u, bytes - 8 * k));
  });
}

/// Saves the values that the lanes of a store write, as they lie in memory.
void keep_stored(Context& c, const AccessDetail& d, DeferredAccess& access) {
  const uint32_t words = std::max(1u, d.element_bytes / 8), bytes = std::min(8u, d.element_bytes);
  for (uint32_t e = 0; e < d.elements; ++e) {
    for (uint32_t w = 0; w < words; ++w) {
      const Place place = d.places[e] + w * 2 * place::register_bytes;
      const uint32_t at = e * d.element_bytes + 8 * w;
      for (uint32_t i = 0; i < warp_lanes; ++i) {
        const uint64_t v =
            d.place_bytes[e] == 4 ? c.lanes<const uint32_t>(place)[i] : c.lanes<const uint64_t>(place)[i];
        std::memcpy(reinterpret_cast<std::byte*>(&access.value[at / 8][i]) + at % 8, &v, bytes);
      }
    }
  }
}

template <AccessSpace space, bool load, ActAt act>
void run_access(Context& c, const Op& op) {
  const auto& d = op.details<AccessDetail>();
  alignas(64) uint64_t address[warp_lanes];
  lane_addresses(c, op, d.base, address);
  if (space == AccessSpace::Global && d.in_parameters)
    for (uint64_t& a : address) a += c.grid->parameter_address();
  record_access(c, d.space, address);
  check_alignment(c, address, uint64_t{d.element_bytes} * d.elements);
  if constexpr (space == AccessSpace::Global || space == AccessSpace::Generic) {
    if (c.deferred && op.control == Control::Deferred) [[unlikely]] {
      const uint32_t all = c.mask;
      if (const uint32_t far = global_lanes(c, d.space, address)) {
        DeferredAccess& access = defer(c, op, far, address, load ? perform_load<act> : perform_store);
        if (!load) keep_stored(c, d, access);
        c.mask &= ~far;
      }
      if (c.mask) act(c, op, address);
      c.mask = all;
      return;
    }
  }
  act(c, op, address);
}

/// Host address of the words of 32 lanes that lie one after the other, from registers of machine code;
/// nullptr if they do not, or not in one piece of aligned global memory.
std::byte* words_from_pairs(Context& c, const Op& op) {
  constexpr uint32_t stride = 4, all = stride * warp_lanes;
  const uint32_t* a = c.lanes<const uint32_t>(op.a);
  const uint32_t low = a[0], high = a[warp_lanes];
  uint32_t differs = low > UINT32_MAX - all ? 1 : 0;
  for (uint32_t i = 0; i < warp_lanes; ++i)
    differs |= (a[i] ^ (low + i * stride)) | (a[i + warp_lanes] ^ high);
  const uint64_t address = (low | uint64_t{high} << 32) + static_cast<uint64_t>(op.immediate);
  return differs || address % stride ? nullptr : c.one_piece(address, all);
}

/// Words in machine code, of which most accesses are to one block.
template <AccessSpace space, bool load>
void run_word(Context& c, const Op& op) {
  if (c.full() && !c.record && op.control == Control::None) {
    if (std::byte* block = words_from_pairs(c, op)) {
      std::byte* row = c.lanes<std::byte>(op.details<AccessDetail>().places[0]);
      std::memcpy(load ? row : block, load ? block : row, place::register_bytes);
      return;
    }
  }
  run_access<space, load, load ? load_at<space, uint32_t> : store_at<space, uint32_t>>(c, op);
}

template <AccessSpace space, bool load, class T>
constexpr Handler handler_for_type = run_access < space,
                  load, load ? load_at<space, T> : store_at < space, T >>
    ;

template <AccessSpace space, bool load>
Handler handler_for_bytes(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return handler_for_type<space, load, uint8_t>;
    case 2:
      return handler_for_type<space, load, uint16_t>;
    case 4:
      return handler_for_type<space, load, uint32_t>;
    case 8:
      return handler_for_type<space, load, uint64_t>;
    default:
      return run_access < space, load, load ? load128_at : store128_at > ;
  }
}

template <bool load>
Handler handler_for(const AccessDetail& d) {
  const bool word = d.base == Address::Base::Pair && d.element_bytes == 4 && d.elements == 1;
  switch (d.space) {
    case AccessSpace::Global:
      if (word) return run_word<AccessSpace::Global, load>;
      return handler_for_bytes<AccessSpace::Global, load>(d.element_bytes);
    case AccessSpace::Shared:
      return handler_for_bytes<AccessSpace::Shared, load>(d.element_bytes);
    case AccessSpace::Local:
      return handler_for_bytes<AccessSpace::Local, load>(d.element_bytes);
    case AccessSpace::Generic:
      break;
  }
  if (word) return run_word<AccessSpace::Generic, load>;
  return handler_for_bytes<AccessSpace::Generic, load>(d.element_bytes);
}

}  // namespace

Handler load_handler(const AccessDetail& d) {
  return handler_for<true>(d);
}
Handler store_handler(const AccessDetail& d) {
  return handler_for<false>(d);
}

}  // namespace simt::functional
