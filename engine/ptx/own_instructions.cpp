#include "ptx/own_instructions.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "instructions/ptx.hpp"

namespace simt::ptx {
namespace {

struct OwnInstructions {
  std::mutex mutex;
  std::map<std::string, const OwnInstruction*, std::less<>> by_mnemonic;
  std::vector<std::unique_ptr<OwnInstruction>> all;  // translated programs name replaced ones
};
OwnInstructions& own_instructions() {
  static OwnInstructions result;
  return result;
}

}  // namespace

void add_own_instruction(OwnInstruction instruction) {
  const std::string_view opcode =
      std::string_view(instruction.mnemonic).substr(0, instruction.mnemonic.find('.'));
  if (!instructions::ptx_rows_of(opcode).empty())
    throw std::invalid_argument("PTX has an instruction " + std::string(opcode) + "; expected another name");
  OwnInstructions& own = own_instructions();
  const std::lock_guard lock(own.mutex);
  auto& kept = own.all.emplace_back(std::make_unique<OwnInstruction>(std::move(instruction)));
  own.by_mnemonic[kept->mnemonic] = kept.get();
}

const OwnInstruction* own_instruction(std::string_view mnemonic) {
  OwnInstructions& own = own_instructions();
  const std::lock_guard lock(own.mutex);
  const auto found = own.by_mnemonic.find(mnemonic);
  return found == own.by_mnemonic.end() ? nullptr : found->second;
}

}  // namespace simt::ptx
