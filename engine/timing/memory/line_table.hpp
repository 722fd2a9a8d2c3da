#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace simt {

/// An item for each line of a cache, 0 at first. Memory is allocated for some neighbouring lines when one of
/// them is first written: most programs use few of the lines of an L2.
template <typename T>
class LineTable {
 public:
  /// Forgets all items.
  void resize(uint32_t lines) {
    blocks_.clear();
    blocks_.resize((lines + block_lines - 1) / block_lines);
  }
  T& operator[](uint32_t line) {
    std::unique_ptr<Block>& block = blocks_[line / block_lines];
    if (!block) [[unlikely]]
      block = std::make_unique<Block>();
    return (*block)[line % block_lines];
  }
  /// Of a line that has been written.
  const T& operator[](uint32_t line) const { return (*blocks_[line / block_lines])[line % block_lines]; }

 private:
  static constexpr uint32_t block_lines = 64;
  using Block = std::array<T, block_lines>;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace simt
