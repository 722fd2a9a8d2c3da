#include "trace/trace_source.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "isa/classify.hpp"
#include "isa/prefetch.hpp"
#include "trace/address_list.hpp"

namespace simt {

using store::Shape;
using store::SlotState;

/// Reads the pieces of one CTA's warps.
class TraceSource::Stream : public CtaStream {
 public:
  Stream(TraceSource& source, uint64_t ordinal) : source_(source), ordinal_(ordinal) {
    const auto& blocks = source.kernel_.blocks;
    first_block_ = source.first_block(ordinal);
    last_block_ = first_block_;
    while (last_block_ + 1 < blocks.size() && blocks[last_block_ + 1].first_cta == ordinal) ++last_block_;
    const auto first = source.block(first_block_);
    position_ = first->ctas()[ordinal - blocks[first_block_].first_cta].position;
    const auto& launch = source.kernel_.launch;
    const uint64_t threads = launch.block.count();
    const uint32_t lanes = launch.warp_size;
    uint32_t last_warp = blocks[last_block_].last_warp;
    if (last_block_ == first_block_) {
      const auto& cta = first->ctas()[ordinal - blocks[first_block_].first_cta];
      last_warp = first->pieces()[cta.first_piece + cta.piece_count - 1].warp;
    } else if (blocks[last_block_].cta_count > 1) {
      const auto last = source.block(last_block_);
      last_warp = last->pieces()[last->ctas()[0].piece_count - 1].warp;
    }
    cursors_.resize(std::max<uint64_t>((threads + lanes - 1) / lanes, last_warp + 1));
    for (size_t w = 0; w < cursors_.size(); ++w) cursors_[w].warp = static_cast<uint32_t>(w);
    if (first_block_ == last_block_) {
      const auto& cta = first->ctas()[ordinal - blocks[first_block_].first_cta];
      for (uint32_t p = 0; p < cta.piece_count; ++p) {
        const StoreBlock::Piece& piece = first->pieces()[cta.first_piece + p];
        enter(cursors_[piece.warp], first, piece);
      }
      for (Cursor& c : cursors_) c.next_block = last_block_ + 1;
    } else {
      for (Cursor& c : cursors_) c.next_block = first_block_;
    }
  }

  uint32_t take_plain(uint32_t warp) override {
    Cursor& c = cursors_[warp];
    const uint32_t plain = std::min(c.run_left, source_.plain_[c.next_static]);
    c.next_static += plain;
    c.run_left -= plain;
    if (plain == 0) prefetch_record(c);
    return plain;
  }

  void prefetch(uint32_t warp, uint32_t plain) const override {
    if (plain == 0) return prefetch_record(cursors_[warp]);
    const auto* cursor = reinterpret_cast<const char*>(&cursors_[warp]);
    simt::prefetch(cursor);
    simt::prefetch(cursor + 64);
  }
  uint32_t warps() const override { return static_cast<uint32_t>(cursors_.size()); }
  const CtaPosition& position() const { return position_; }

  Next next(uint32_t warp, DynamicRecord& record, uint64_t) override {
    Cursor& c = cursors_[warp];
    if (c.run_left == 0 && !next_run(c)) return Next::End;
    const uint32_t index = c.next_static++;
    --c.run_left;
    record.static_index = index;
    record.mask = c.mask;
    record.base = 0;
    record.stride = 0;
    record.deltas = nullptr;
    record.bulk_count = 0;
    record.ticket = 0;
    const uint16_t slot = source_.slots_[index];
    if (slot == store::SlotMap::none) return Next::Record;
    if (slot == store::SlotMap::bulk)
      bulk_access(c, record);
    else if (c.mask != 0)
      lane_addresses(c, slot, record);
    return Next::Record;
  }

 private:
  // Every record needs the host's first cache line of it.
  struct alignas(64) Cursor {
    uint32_t next_static = 0;
    uint32_t run_left = 0;
    uint64_t mask = 0;
    uint64_t left = 0;  ///< instructions of the piece beyond the run
    ByteReader runs;
    ByteReader data;
    uint32_t piece = 0;  ///< number of the piece, to recognise slot states of earlier ones
    uint32_t warp = 0;
    const uint64_t* first_base = nullptr;
    uint32_t first_left = 0;
    size_t next_block = 0;
    std::vector<SlotState> slots;
    std::shared_ptr<const StoreBlock> block;
    std::shared_ptr<const StoreBlock> previous_block;  ///< differences of its last records are still in use
  };

  void enter(Cursor& c, const std::shared_ptr<const StoreBlock>& block, const StoreBlock::Piece& piece) {
    const StoreBlock::Path& path = block->paths()[piece.path];
    c.previous_block = std::move(c.block);
    c.block = block;
    ++c.piece;
    c.next_static = 0;
    c.mask = block->masks().empty() ? 0 : block->masks()[0];
    c.left = path.instructions;
    c.runs = {path.runs, path.runs + path.run_bytes};
    const uint8_t* data = block->data() + piece.data;
    c.data = {data, data + piece.data_bytes};
    c.first_base = block->first_bases().data() + piece.first_bases;
    c.first_left = path.first_count;
    if (c.slots.empty()) c.slots.resize(source_.slots_.slot_count());
  }

  void prefetch_record(const Cursor& c) const {
    if (c.run_left == 0) return simt::prefetch(c.runs.position());
    const uint16_t slot = source_.slots_[c.next_static];
    if (slot < c.slots.size()) simt::prefetch(&c.slots[slot]);
    simt::prefetch(c.data.position());
  }

  // Seldom, compared with next(): kept out of it.
  [[gnu::noinline]] bool next_run(Cursor& c) {
    while (c.left == 0) {
      if (c.runs.left() != 0 || c.data.left() != 0) ByteReader::corrupted();
      if (!next_piece(c)) return false;
    }
    const uint64_t head = c.runs.varint();
    const uint64_t length = (head >> store::run_length_shift) + 1;
    uint64_t start = c.next_static;
    if (head & store::run_jumps) start += static_cast<uint64_t>(c.runs.signed_varint());
    if (head & store::run_changes_mask) {
      const uint64_t mask = c.runs.varint();
      if (mask >= c.block->masks().size()) ByteReader::corrupted();
      c.mask = c.block->masks()[mask];
    }
    const uint64_t known = source_.instructions_.size();
    if (length > c.left || start >= known || length > known - start) ByteReader::corrupted();
    c.next_static = static_cast<uint32_t>(start);
    c.run_left = static_cast<uint32_t>(length);
    c.left -= length;
    return true;
  }

  // A CTA that does not fit into one block has the pieces of its warps in ascending order across several.
  bool next_piece(Cursor& c) {
    const auto& blocks = source_.kernel_.blocks;
    for (; c.next_block <= last_block_; ++c.next_block) {
      const BlockSummary& summary = blocks[c.next_block];
      if (c.next_block != last_block_ && summary.last_warp < c.warp) continue;
      if (c.next_block != first_block_ && summary.first_warp > c.warp) break;
      const auto block = source_.block(c.next_block);
      const StoreBlock::Piece* piece = block->find(ordinal_ - summary.first_cta, c.warp);
      if (piece) {
        enter(c, block, *piece);
        ++c.next_block;
        return true;
      }
    }
    c.next_block = last_block_ + 1;
    return false;
  }

  [[gnu::noinline]] void lane_addresses(Cursor& c, uint16_t slot, DynamicRecord& record) {
    SlotState& state = c.slots[slot];
    const uint8_t* token = c.data.position();
    const uint8_t head = c.data.byte();
    uint64_t residual = head >> 2 & ((1u << store::residual_bits) - 1);
    if (head & store::residual_more) residual |= c.data.varint() << store::residual_bits;
    if (state.piece != c.piece) {
      if (c.first_left == 0) ByteReader::corrupted();
      --c.first_left;
      state.piece = c.piece;
      state.strided = true;
      state.stride = source_.kernel_.instructions[record.static_index].memory_bytes;
      state.step = 0;
      state.base = *c.first_base++;
    } else {
      const uint64_t base =
          state.base + static_cast<uint64_t>(state.step) + static_cast<uint64_t>(unfold_sign(residual));
      state.step = static_cast<int64_t>(base - state.base);
      state.base = base;
    }
    record.base = state.base;
    const auto lanes = static_cast<uint32_t>(std::popcount(record.mask));
    const StoreBlock& block = *c.block;
    switch (static_cast<Shape>(head & 3)) {
      case Shape::Same:
        break;
      case Shape::Stride:
        state.strided = true;
        state.stride = c.data.signed_varint();
        break;
      case Shape::Inline:
        set_differences(state, block, static_cast<uint64_t>(c.data.position() - block.data()), lanes);
        c.data.take(differences::size(block.data()[state.differences], lanes - 1));
        break;
      case Shape::Reference: {
        const auto at = static_cast<uint64_t>(token - block.data());
        const uint64_t distance = c.data.varint();
        if (distance > at) ByteReader::corrupted();
        set_differences(state, block, at - distance, lanes);
        break;
      }
    }
    if (lanes < 2) return;
    if (state.strided) {
      record.stride = state.stride;
    } else {
      if (state.count != lanes) ByteReader::corrupted();
      record.deltas = block.data() + state.differences;
    }
  }

  static void set_differences(SlotState& state, const StoreBlock& block, uint64_t position, uint32_t lanes) {
    if (lanes < 2 || position >= block.data_size() ||
        differences::size(block.data()[position], lanes - 1) > block.data_size() - position)
      ByteReader::corrupted();
    state.strided = false;
    state.count = static_cast<uint8_t>(lanes);
    state.differences = position;
  }

  [[gnu::noinline]] void bulk_access(Cursor& c, DynamicRecord& record) {
    const uint64_t head = c.data.varint();
    if (head >> 1 > store::max_bulk_addresses) ByteReader::corrupted();
    record.bulk_count = static_cast<uint32_t>(head >> 1);
    record.base = c.data.varint();
    if (head & 1) {
      record.stride = c.data.signed_varint();
    } else {
      if (record.bulk_count < 2) ByteReader::corrupted();
      record.deltas = c.data.position();
      const uint8_t header = c.data.byte();
      c.data.take(differences::size(header, record.bulk_count - 1) - 1);
    }
    record.mbarrier = c.data.varint();
    record.bulk_bytes = c.data.varint();
    c.data.varint();  // bytes out of bounds and the multicast mask: kept in the store, used by no model
    c.data.varint();
  }

  TraceSource& source_;
  std::vector<Cursor> cursors_;
  uint64_t ordinal_;
  size_t first_block_ = 0, last_block_ = 0;
  CtaPosition position_;
};

TraceSource::TraceSource(StoredKernel kernel, const OpcodeTable& table, Fetch fetch)
    : kernel_(std::move(kernel)), fetch_(std::move(fetch)) {
  for (const RawInstruction& r : kernel_.instructions)
    if (r.opcode >= kernel_.opcodes.size()) ByteReader::corrupted();
  // Each dimension as well: their product may overflow.
  const auto& block = kernel_.launch.block;
  const uint64_t most = uint64_t{store::max_warps} * kernel_.launch.warp_size;
  if (block.x > most || block.y > most || block.z > most || block.count() > most) ByteReader::corrupted();
  const auto& grid = kernel_.launch.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) ByteReader::corrupted();
  uint64_t end = 0;  // ordinal behind the last CTA so far
  for (const BlockSummary& b : kernel_.blocks) {
    const bool continues = end > 0 && b.first_cta == end - 1;
    if (b.cta_count == 0 || (b.first_cta != end && !continues) ||
        b.cta_count > kernel_.cta_count - b.first_cta || b.last_warp >= store::max_warps)
      ByteReader::corrupted();
    end = b.first_cta + b.cta_count;
  }
  if (end != kernel_.cta_count) ByteReader::corrupted();
  slots_.extend(kernel_.instructions);
  plain_.resize(slots_.size() + 1);
  for (auto i = static_cast<uint32_t>(slots_.size()); i-- > 0;)
    if (slots_[i] == store::SlotMap::none) plain_[i] = plain_[i + 1] + 1;
  instructions_ = classify(kernel_.instructions, kernel_.opcodes, table, unknown_);
}

size_t TraceSource::first_block(uint64_t ordinal) const {
  // The first block that extends beyond the CTA's beginning; a CTA's continuation has a later one.
  const auto it =
      std::partition_point(kernel_.blocks.begin(), kernel_.blocks.end(),
                           [&](const BlockSummary& b) { return b.first_cta + b.cta_count <= ordinal; });
  return static_cast<size_t>(it - kernel_.blocks.begin());
}

std::shared_ptr<const StoreBlock> TraceSource::block(size_t index) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = open_blocks_.find(index);
    if (it != open_blocks_.end())
      if (auto open = it->second.lock()) return last_block_ = open;
  }
  const std::vector<uint8_t> bytes = fetch_(index);
  auto loaded = std::make_shared<const StoreBlock>(bytes.data(), bytes.size(), kernel_.launch.grid);
  if (loaded->ctas().size() != kernel_.blocks[index].cta_count) ByteReader::corrupted();
  const std::lock_guard lock(mutex_);
  std::erase_if(open_blocks_, [](const auto& entry) { return entry.second.expired(); });
  open_blocks_[index] = loaded;
  return last_block_ = loaded;
}

std::unique_ptr<CtaStream> TraceSource::open_cta(uint64_t ordinal) {
  if (ordinal >= kernel_.cta_count)
    throw std::out_of_range("CTA " + std::to_string(ordinal) + " of " + std::to_string(kernel_.cta_count));
  return std::make_unique<Stream>(*this, ordinal);
}

CtaPosition TraceSource::position(uint64_t ordinal) {
  if (ordinal >= kernel_.cta_count) throw std::out_of_range("no such CTA");
  const size_t index = first_block(ordinal);
  return block(index)->ctas()[ordinal - kernel_.blocks[index].first_cta].position;
}

uint32_t TraceSource::lane_addresses(const DynamicRecord& record, uint64_t* out) const {
  const uint32_t count = slots_[record.static_index] == store::SlotMap::bulk
                             ? record.bulk_count
                             : static_cast<uint32_t>(std::popcount(record.mask));
  if (count == 0 || slots_[record.static_index] == store::SlotMap::none) return 0;
  out[0] = record.base;
  if (record.deltas) {
    differences::expand(record.deltas, record.base, count - 1, out + 1);
  } else {
    for (uint32_t k = 1; k < count; ++k) out[k] = out[k - 1] + static_cast<uint64_t>(record.stride);
  }
  return count;
}

}  // namespace simt
