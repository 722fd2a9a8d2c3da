/// Sources: Xie, Wang, Yang and Yang, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix
/// Cores" (arXiv 2511.10909), which was compared with GPUs of each generation. `unpacked`: what ptxas makes
/// of mma.sync with f8 for sm_90 and sm_100, which have no such instruction for a warp.
#include "machine/tensor_core.hpp"

namespace simt::functional {

using ptx::Type;

namespace {

enum class Inputs : uint8_t { Half, Tf32, F8 };  ///< Half: f16 and, from Ampere on, bf16

struct Row {
  TensorCore core;
  ProductUnit unit;
  Inputs inputs;
  Addition addition;
};

constexpr Row rows[] = {
    {TensorCore::Volta, ProductUnit::Warp, Inputs::Half, {4, 23}},
    {TensorCore::Turing, ProductUnit::Warp, Inputs::Half, {8, 24}},
    {TensorCore::Ampere, ProductUnit::Warp, Inputs::Half, {8, 24}},
    {TensorCore::Ampere, ProductUnit::Warp, Inputs::Tf32, {4, 24}},
    {TensorCore::Ada, ProductUnit::Warp, Inputs::Half, {8, 24}},
    {TensorCore::Ada, ProductUnit::Warp, Inputs::Tf32, {4, 24}},
    {TensorCore::Ada, ProductUnit::Warp, Inputs::F8, {16, 13, 13}},
    {TensorCore::Hopper, ProductUnit::Warp, Inputs::Half, {16, 25}},
    {TensorCore::Hopper, ProductUnit::Warp, Inputs::Tf32, {8, 25}},
    {TensorCore::Hopper, ProductUnit::Warp, Inputs::F8, {16, 25, 23, true}},
    {TensorCore::Hopper, ProductUnit::Warpgroup, Inputs::Half, {16, 25}},
    {TensorCore::Hopper, ProductUnit::Warpgroup, Inputs::Tf32, {8, 25}},
    {TensorCore::Hopper, ProductUnit::Warpgroup, Inputs::F8, {32, 13, 13}},
    {TensorCore::Blackwell, ProductUnit::Warp, Inputs::Half, {16, 25}},
    {TensorCore::Blackwell, ProductUnit::Warp, Inputs::Tf32, {8, 25}},
    {TensorCore::Blackwell, ProductUnit::Warp, Inputs::F8, {16, 25, 23, true}},
    {TensorCore::RtxBlackwell, ProductUnit::Warp, Inputs::Half, {16, 25}},
    {TensorCore::RtxBlackwell, ProductUnit::Warp, Inputs::Tf32, {8, 25}},
    {TensorCore::RtxBlackwell, ProductUnit::Warp, Inputs::F8, {32, 25}},
};

}  // namespace

TensorCore tensor_core(uint32_t sm_version) {
  switch (sm_version) {
    case 70:
    case 72:
      return TensorCore::Volta;
    case 75:
      return TensorCore::Turing;
    case 80:
    case 86:
    case 87:
      return TensorCore::Ampere;
    case 89:
      return TensorCore::Ada;
    case 90:
      return TensorCore::Hopper;
    case 100:
    case 103:
      return TensorCore::Blackwell;
    case 120:
    case 121:
      return TensorCore::RtxBlackwell;
    default:
      return TensorCore::Exact;
  }
}

Additions find_additions(Type a, ProductUnit unit) {
  Inputs inputs{};
  switch (a) {
    case Type::F16:
    case Type::BF16:
      inputs = Inputs::Half;
      break;
    case Type::TF32:
      inputs = Inputs::Tf32;
      break;
    case Type::E4M3:
    case Type::E5M2:
    case Type::E3M2:
    case Type::E2M3:
    case Type::E2M1:
      inputs = Inputs::F8;
      break;
    default:
      return {};
  }
  Additions additions{};
  for (const Row& row : rows)
    if (row.unit == unit && row.inputs == inputs && (a != Type::BF16 || row.core >= TensorCore::Ampere))
      additions[static_cast<size_t>(row.core)] = &row.addition;
  return additions;
}

}  // namespace simt::functional
