#pragma once
#include <cstdint>
#include <optional>

#include "machine/code.hpp"

namespace simt::functional {

class Grid;

/// 32-bit words that a launch puts into constant bank 0 of machine code, before the parameters. Words of one
/// value, and the dimensions of one extent, follow each other.
enum class LaunchValue : uint32_t {
  BlockX,
  BlockY,
  BlockZ,
  GridX,
  GridY,
  GridZ,
  SharedWindow,  ///< where shared memory begins in the generic address space
  SharedWindowHigh,
  LocalWindow,
  LocalWindowHigh,
  StackTop,  ///< bytes of a thread's local memory; the stack grows down from there
  DynamicSharedBytes,
  GridNumber,
  GridNumberHigh,
  ParameterBank,  ///< address of the parameters, less their offset in the bank
  ParameterBankHigh,
  Constants,  ///< address of the program's constants
  ConstantsHigh,
  BarrierHigh,  ///< %envreg1, %envreg2: the address of a cooperative launch's grid barrier
  BarrierLow,
  SmCount,
  LastParameterByte,  ///< its offset in the bank
  Parameters,         ///< address of the parameters
  ParametersHigh,
  LastParameter,  ///< address of their last byte
  LastParameterHigh,
  HasClusters,
  ClusterX,
  ClusterY,
  ClusterZ,
  ClusterReciprocalX,  ///< as f32
  ClusterReciprocalY,
  ClusterReciprocalZ,
  ClustersX,  ///< of the grid
  ClustersY,
  ClustersZ,
  ClusterSize,
  ReservedSharedBytes,  ///< of shared memory, which are not the program's
  Zero
};

/// ConstantWord::bank of such a word; its offset is the LaunchValue.
constexpr uint32_t launch_value_bank = 8;
static_assert(launch_value_bank == ConstantBanks::count);

/// The bank that has the program's constants.
constexpr uint32_t constants_bank = 3;

/// Where parameters begin in constant bank 0 of an architecture, such as 80.
constexpr uint32_t parameters_begin(uint32_t sm) {
  constexpr uint32_t first_hopper = 90, first_blackwell = 100;
  return sm < first_hopper ? 0x160 : sm < first_blackwell ? 0x210 : 0x380;
}

/// What code of an architecture, finds in the word at this offset of constant bank 0, before its
/// parameters; nullopt if that is not known. docs/machine-code.md lists them, and how they were found.
std::optional<LaunchValue> launch_value_at(uint32_t sm, uint32_t offset);

/// Its value in a launch of machine code.
uint32_t value_of(const Grid& grid, LaunchValue value);

}  // namespace simt::functional
