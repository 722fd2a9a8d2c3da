#include "machine/launch_values.hpp"

#include <bit>
#include <cmath>

#include "machine/grid.hpp"

namespace simt::functional {

namespace {

struct Row {
  uint16_t offset, words;
  LaunchValue first;
};

// Until sm_89.
constexpr Row before_hopper[] = {
    {0x00, 3, LaunchValue::BlockX},       {0x0c, 3, LaunchValue::GridX},
    {0x18, 2, LaunchValue::SharedWindow}, {0x20, 2, LaunchValue::LocalWindow},
    {0x28, 1, LaunchValue::StackTop},     {0x2c, 1, LaunchValue::DynamicSharedBytes},
    {0x30, 2, LaunchValue::GridNumber},   {0x40, 2, LaunchValue::ParameterBank},
    {0x50, 2, LaunchValue::Constants},    {0x88, 1, LaunchValue::Zero},   // %envreg0
    {0x8c, 2, LaunchValue::BarrierHigh},  {0x94, 29, LaunchValue::Zero},  // %envreg3 to %envreg31
    {0x10c, 1, LaunchValue::SmCount},
};
constexpr Row volta_and_turing[] = {
    {0x114, 1, LaunchValue::LastParameterByte},
    {0x120, 2, LaunchValue::Zero},  // %current_graph_exec
};
constexpr Row ampere_and_ada[] = {
    {0x114, 1, LaunchValue::ReservedSharedBytes},
    {0x118, 2, LaunchValue::Zero},  // descriptor of global memory
    {0x12c, 1, LaunchValue::LastParameterByte},
    {0x130, 2, LaunchValue::Zero},  // %current_graph_exec
};

constexpr Row hopper[] = {
    {0x00, 3, LaunchValue::BlockX},
    {0x0c, 3, LaunchValue::GridX},
    {0x18, 2, LaunchValue::SharedWindow},
    {0x20, 2, LaunchValue::LocalWindow},
    {0x28, 1, LaunchValue::StackTop},
    {0x2c, 1, LaunchValue::DynamicSharedBytes},
    {0x30, 2, LaunchValue::GridNumber},
    {0x40, 1, LaunchValue::Zero},  // %envreg0
    {0x44, 2, LaunchValue::BarrierHigh},
    {0x4c, 7, LaunchValue::Zero},                 // %envreg3 to %envreg9
    {0x68, 1, LaunchValue::ReservedSharedBytes},  // %reserved_smem_offset_end, %envreg10
    {0x6c, 1, LaunchValue::Zero},                 // %reserved_smem_offset_1, %envreg11
    {0x70, 20, LaunchValue::Zero},                // %envreg12 to %envreg31
    {0xd0, 2, LaunchValue::Constants},
    {0x10c, 1, LaunchValue::SmCount},
    {0x114, 1, LaunchValue::ReservedSharedBytes},
    {0x140, 1, LaunchValue::HasClusters},
    {0x144, 3, LaunchValue::ClusterX},
    {0x150, 3, LaunchValue::ClusterReciprocalX},
    {0x15c, 3, LaunchValue::ClustersX},
    {0x188, 1, LaunchValue::ClusterSize},
    {0x190, 2, LaunchValue::Zero},  // %current_graph_exec
    {0x198, 2, LaunchValue::Parameters},
    {0x1a0, 2, LaunchValue::LastParameter},
    {0x208, 2, LaunchValue::Zero},  // descriptor of global memory
};

// With SR_CgaSize 0: code subtracts 0xa0 times that from the offsets from 0x250 to 0x2cc.
constexpr Row blackwell[] = {
    {0xd0, 16, LaunchValue::Zero},  // %envreg16 to %envreg31
    {0x120, 2, LaunchValue::Constants},
    {0x140, 2, LaunchValue::GridNumber},
    {0x16c, 1, LaunchValue::ReservedSharedBytes},
    {0x250, 1, LaunchValue::Zero},  // %envreg0
    {0x254, 2, LaunchValue::BarrierHigh},
    {0x25c, 7, LaunchValue::Zero},                 // %envreg3 to %envreg9
    {0x278, 1, LaunchValue::ReservedSharedBytes},  // %reserved_smem_offset_end, %envreg10
    {0x27c, 1, LaunchValue::Zero},                 // %reserved_smem_offset_1, %envreg11
    {0x280, 4, LaunchValue::Zero},                 // %envreg12 to %envreg15
    {0x2a0, 3, LaunchValue::ClusterX},
    {0x2ac, 1, LaunchValue::DynamicSharedBytes},
    {0x2b0, 3, LaunchValue::ClusterReciprocalX},
    {0x2c0, 3, LaunchValue::ClustersX},
    {0x2cc, 1, LaunchValue::ClusterSize},
    {0x2d0, 1, LaunchValue::SmCount},
    {0x2e8, 2, LaunchValue::Zero},  // %current_graph_exec
    {0x2f8, 2, LaunchValue::LocalWindow},
    {0x348, 2, LaunchValue::Parameters},
    {0x350, 2, LaunchValue::LastParameter},
    {0x358, 2, LaunchValue::Zero},  // descriptor of global memory
    {0x360, 3, LaunchValue::BlockX},
    {0x36c, 1, LaunchValue::HasClusters},
    {0x370, 3, LaunchValue::GridX},
    {0x37c, 1, LaunchValue::StackTop},
};

template <size_t count>
std::optional<LaunchValue> find(const Row (&rows)[count], uint32_t offset) {
  constexpr uint32_t word_bytes = 4;
  for (const Row& row : rows) {
    if (offset < row.offset || offset >= row.offset + row.words * word_bytes) continue;
    if (row.first == LaunchValue::Zero) return LaunchValue::Zero;
    return static_cast<LaunchValue>(static_cast<uint32_t>(row.first) + (offset - row.offset) / word_bytes);
  }
  return std::nullopt;
}

uint32_t low(uint64_t value) {
  return static_cast<uint32_t>(value);
}
uint32_t high(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

/// Code multiplies an index with it and truncates, so it must not be rounded down.
float reciprocal(uint32_t size) {
  const float nearest = 1.0f / static_cast<float>(size);
  return double{nearest} * size < 1 ? std::nextafter(nearest, 1.0f) : nearest;
}

}  // namespace

std::optional<LaunchValue> launch_value_at(uint32_t sm, uint32_t offset) {
  constexpr uint32_t first_ampere = 80, first_hopper = 90, first_blackwell = 100;
  if (sm >= first_blackwell) return find(blackwell, offset);
  if (sm >= first_hopper) return find(hopper, offset);
  if (const auto found = find(before_hopper, offset)) return found;
  return sm < first_ampere ? find(volta_and_turing, offset) : find(ampere_and_ada, offset);
}

uint32_t value_of(const Grid& grid, LaunchValue value) {
  using enum LaunchValue;
  const LaunchConfig& launch = grid.config();
  const uint32_t parameters = grid.kernel().constants->parameters;
  // Without constants, what lies from their address on is beyond all memory.
  const uint64_t own = grid.constant_address(constants_bank);
  const uint64_t constants = own ? own : grid.memory().base() + grid.memory().capacity();
  const auto index = [&](LaunchValue first) {
    return static_cast<uint32_t>(value) - static_cast<uint32_t>(first);
  };
  const uint64_t block = grid.parameter_address(), bytes = launch.parameters.size();
  switch (value) {
    case BlockX:
    case BlockY:
    case BlockZ:
      return launch.block[index(BlockX)];
    case GridX:
    case GridY:
    case GridZ:
      return launch.grid[index(GridX)];
    case SharedWindow:
      return low(window::shared);
    case SharedWindowHigh:
      return high(window::shared);
    case LocalWindow:
      return low(window::local);
    case LocalWindowHigh:
      return high(window::local);
    case StackTop:
      return grid.local_bytes();
    case DynamicSharedBytes:
      return launch.dynamic_shared_bytes;
    case GridNumber:
      return low(launch.id);
    case GridNumberHigh:
      return high(launch.id);
    case ParameterBank:
      return low(block - parameters);
    case ParameterBankHigh:
      return high(block - parameters);
    case Constants:
      return low(constants);
    case ConstantsHigh:
      return high(constants);
    case BarrierHigh:
      return high(grid.workspace());
    case BarrierLow:
      return low(grid.workspace());
    case SmCount:
      return grid.machine().sm_count;
    case LastParameterByte:
      return low(parameters + bytes - 1);
    case Parameters:
      return low(block);
    case ParametersHigh:
      return high(block);
    case LastParameter:
      return low(block + bytes - 1);
    case LastParameterHigh:
      return high(block + bytes - 1);
    case HasClusters:
      return grid.cluster_size() > 1;
    case ClusterX:
    case ClusterY:
    case ClusterZ:
      return launch.cluster[index(ClusterX)];
    case ClusterReciprocalX:
    case ClusterReciprocalY:
    case ClusterReciprocalZ:
      return std::bit_cast<uint32_t>(reciprocal(launch.cluster[index(ClusterReciprocalX)]));
    case ClustersX:
    case ClustersY:
    case ClustersZ: {
      const uint32_t i = index(ClustersX);
      return launch.grid[i] / launch.cluster[i];
    }
    case ClusterSize:
      return grid.cluster_size();
    case ReservedSharedBytes:
      return grid.kernel().reserved_shared;
    case Zero:
      return 0;
  }
  return 0;
}

}  // namespace simt::functional
