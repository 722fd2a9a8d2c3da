#include "trace/store_encoder.hpp"

#include <cstring>
#include <utility>

#include "trace/byte_coding.hpp"

namespace simt {

using store::Shape;
using store::SlotState;

void StoreEncoder::begin_kernel(const LaunchInfo& launch, const std::vector<RawInstruction>& instructions,
                                const std::vector<std::string>&) {
  instructions_ = &instructions;
  grid_ = launch.grid;
  slot_states_.resize(store::max_slots);
}

void StoreEncoder::begin_cta(const CtaPosition& position) {
  position_ = position;
  pieces_of_cta_ = 0;
  last_warp_ = -1;
}

void StoreEncoder::begin_warp(uint32_t warp, uint64_t) {
  close_piece();
  warp_ = warp;
}

void StoreEncoder::end_cta() {
  close_piece();
  close_cta_entry();
  ++ordinal_;
  if (coded_bytes() >= store::target_block_bytes) flush();
}

void StoreEncoder::finish() {
  if (block_.piece_count > 0) flush();
}

std::vector<StoreEncoder::Block> StoreEncoder::take_blocks() {
  return std::exchange(finished_, {});
}

uint64_t StoreEncoder::coded_bytes() const {
  constexpr uint64_t decoded_base = 8, decoded_piece = 32;  // the decoder's memory for each
  return block_.ctas.size() + block_.pieces.size() + block_.paths.size() + block_.data.size() + runs_.size() +
         block_.first_count * decoded_base + block_.piece_count * decoded_piece;
}

void StoreEncoder::open_piece() {
  piece_open_ = true;
  ++piece_number_;
  piece_data_ = block_.data.size();
  piece_instructions_ = 0;
  runs_.clear();
  first_slots_.clear();
  run_length_ = 0;
  expected_start_ = 0;
  written_mask_ = 0;
  if (block_.piece_count == 0) {
    block_.summary.first_cta = ordinal_;
    block_.summary.first_warp = warp_;
  }
  if (pieces_of_cta_ == 0) block_.predictor.begin_cta();
}

void StoreEncoder::close_run() {
  if (run_length_ == 0) return;
  const auto [it, added] = block_.mask_index.try_emplace(run_mask_, static_cast<uint32_t>(block_.mask_count));
  if (added) {
    ++block_.mask_count;
    put_varint(block_.masks, run_mask_);
  }
  const uint32_t mask = it->second;
  const bool jumps = run_start_ != expected_start_;
  const bool changes = mask != written_mask_;
  put_varint(runs_, (run_length_ - 1) << store::run_length_shift | (jumps ? store::run_jumps : 0) |
                        (changes ? store::run_changes_mask : 0));
  if (jumps) put_varint(runs_, fold_sign(static_cast<int64_t>(run_start_ - expected_start_)));
  if (changes) put_varint(runs_, mask);
  written_mask_ = mask;
  expected_start_ = run_start_ + run_length_;
  run_length_ = 0;
}

void StoreEncoder::close_piece() {
  if (!piece_open_) return;
  close_run();
  piece_open_ = false;
  scratch_.clear();
  put_varint(scratch_, piece_instructions_);
  put_string(scratch_, first_slots_);
  put_string(scratch_, runs_);
  runs_.clear();
  const auto [it, added] = block_.path_index.try_emplace(scratch_, static_cast<uint32_t>(block_.path_count));
  if (added) {
    ++block_.path_count;
    block_.paths += scratch_;
  }
  put_varint(block_.pieces, static_cast<uint64_t>(warp_ - last_warp_ - 1));
  put_varint(block_.pieces, fold_sign(it->second - block_.last_path));
  put_varint(block_.pieces, block_.data.size() - piece_data_);
  block_.last_path = it->second;
  block_.summary.last_warp = warp_;
  block_.summary.instructions += piece_instructions_;
  block_.first_count += first_slots_.size();
  ++block_.piece_count;
  ++pieces_of_cta_;
  last_warp_ = warp_;
  if (coded_bytes() >= 2 * store::target_block_bytes) flush();
}

void StoreEncoder::close_cta_entry() {
  if (pieces_of_cta_ == 0) return;
  const auto& [x, y, z] = position_.cta;
  const auto number = static_cast<int64_t>((uint64_t{z} * grid_.y + y) * grid_.x + x);
  put_varint(block_.ctas, pieces_of_cta_);
  put_varint(block_.ctas, fold_sign(number - block_.last_cta_number - 1));
  block_.last_cta_number = number;
  put_varint(block_.ctas, position_.in_cluster());
  if (position_.in_cluster()) {
    for (const uint32_t n : position_.cluster) put_varint(block_.ctas, n);
    for (const uint32_t n : position_.cta_in_cluster) put_varint(block_.ctas, n);
    put_varint(block_.ctas, position_.rank_in_cluster);
  }
  ++block_.summary.cta_count;
  pieces_of_cta_ = 0;
  last_warp_ = -1;
}

void StoreEncoder::flush() {
  close_cta_entry();
  std::string bytes;
  for (const uint64_t n : {block_.mask_count, block_.summary.cta_count, block_.piece_count, block_.path_count,
                           block_.first_count})
    put_varint(bytes, n);
  for (const std::string* column :
       {&block_.masks, &block_.ctas, &block_.pieces, &block_.paths, &block_.bases, &block_.data})
    put_varint(bytes, column->size());
  for (const std::string* column :
       {&block_.masks, &block_.ctas, &block_.pieces, &block_.paths, &block_.bases, &block_.data})
    bytes += *column;
  finished_.push_back({block_.summary, std::move(bytes)});
  block_ = {};
}

void StoreEncoder::record(const TraceRecord& record) {
  if (!piece_open_) open_piece();
  if (run_length_ == 0 || record.static_index != run_start_ + run_length_ || record.mask != run_mask_) {
    close_run();
    run_start_ = record.static_index;
    run_mask_ = record.mask;
  }
  ++run_length_;
  ++piece_instructions_;
  if (record.static_index >= slots_.size()) slots_.extend(*instructions_);
  const uint16_t slot = slots_[record.static_index];
  if (slot == store::SlotMap::bulk)
    bulk_access(record);
  else if (slot != store::SlotMap::none && record.mask != 0)
    lane_addresses(record, slot);
  if (runs_.size() + block_.data.size() >= 2 * store::target_block_bytes) close_piece();
}

void StoreEncoder::lane_addresses(const TraceRecord& record, uint16_t slot) {
  SlotState& state = slot_states_[slot];
  const AddressList& list = record.addresses;
  std::string& data = block_.data;
  uint64_t residual = 0;
  if (state.piece != piece_number_) {
    state = {};
    state.piece = piece_number_;
    state.stride = (*instructions_)[record.static_index].memory_bytes;
    const uint64_t predicted = block_.predictor.predict(warp_, slot);
    put_varint(block_.bases, fold_sign(static_cast<int64_t>(list.base - predicted)));
    block_.predictor.update(warp_, slot, list.base);
    first_slots_.push_back(static_cast<char>(slot));
  } else {
    residual = fold_sign(static_cast<int64_t>(list.base - state.base - static_cast<uint64_t>(state.step)));
    state.step = static_cast<int64_t>(list.base - state.base);
  }
  state.base = list.base;

  Shape shape = Shape::Same;
  uint64_t distance = 0;
  if (record.address_count > 1) {
    if (list.strided) {
      if (!state.strided || state.stride != list.stride) shape = Shape::Stride;
      state.strided = true;
      state.stride = list.stride;
    } else {
      scratch_.clear();
      differences::put(scratch_, list.differences);
      const bool same = !state.strided && state.count == record.address_count &&
                        data.compare(state.differences, scratch_.size(), scratch_) == 0;
      if (!same) {
        const auto found = block_.differences_index.find(scratch_);
        shape = found == block_.differences_index.end() ? Shape::Inline : Shape::Reference;
        if (shape == Shape::Reference) distance = data.size() - found->second;
      }
    }
  }
  constexpr uint64_t low = (1u << store::residual_bits) - 1;
  const uint64_t rest = residual >> store::residual_bits;
  data.push_back(static_cast<char>(static_cast<uint64_t>(shape) | (residual & low) << 2 |
                                   (rest ? store::residual_more : 0)));
  if (rest) put_varint(data, rest);
  switch (shape) {
    case Shape::Same:
      break;
    case Shape::Stride:
      put_varint(data, fold_sign(list.stride));
      break;
    case Shape::Inline:
      state.differences = data.size();
      block_.differences_index.emplace(scratch_, data.size());
      data += scratch_;
      break;
    case Shape::Reference:
      put_varint(data, distance);
      break;
  }
  if (shape == Shape::Reference) state.differences = block_.differences_index.find(scratch_)->second;
  if (shape == Shape::Inline || shape == Shape::Reference) {
    state.strided = false;
    state.count = static_cast<uint8_t>(record.address_count);
  }
}

void StoreEncoder::bulk_access(const TraceRecord& record) {
  std::string& data = block_.data;
  const AddressList& list = record.addresses;
  put_varint(data, uint64_t{record.address_count} << 1 | list.strided);
  put_varint(data, list.base);
  if (list.strided)
    put_varint(data, fold_sign(list.stride));
  else
    differences::put(data, list.differences);
  put_varint(data, record.bulk.mbarrier);
  put_varint(data, record.bulk.bytes);
  put_varint(data, record.bulk.out_of_bounds_bytes);
  put_varint(data, record.bulk.multicast_mask);
}

}  // namespace simt
