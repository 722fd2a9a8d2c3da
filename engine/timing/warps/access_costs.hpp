#pragma once
#include "timing/warps/decoded_kernel.hpp"

namespace simt {

/// Sets when an instruction with an issue rule reads its operands and writes its result, as far as this
/// depends on the kind of access, its width, and the registers that hold its address: Huerta et al., MICRO
/// 2025, Table 2. Atomics count as stores, textures as loads; of other instructions, the paper says only that
/// operands are read within a window (ReadPorts).
void set_access_costs(DecodedInstruction& instruction);

}  // namespace simt
