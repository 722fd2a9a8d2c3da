#include "check/validity.hpp"

namespace simt::check {

void Validity::begin(uint64_t address, uint64_t bytes) {
  Fresh& made = fresh_[address];
  made.end = address + bytes;
  made.bytes.reset(bytes);
  low_ = 1, high_ = 0;
}

void Validity::end(uint64_t address) {
  fresh_.erase(address);
  low_ = 1, high_ = 0;
}

Validity::Fresh* Validity::find(uint64_t address, uint64_t& begin) {
  if (address >= low_ && address < high_) {
    begin = begin_;
    return found_;
  }
  const auto after = fresh_.upper_bound(address);
  low_ = 0;
  high_ = after == fresh_.end() ? UINT64_MAX : after->first;
  found_ = nullptr;
  if (after != fresh_.begin()) {
    auto& [first, fresh] = *std::prev(after);
    if (address < fresh.end) {
      found_ = &fresh;
      begin_ = low_ = first;
      high_ = fresh.end;
    } else {
      low_ = fresh.end;
    }
  }
  begin = begin_;
  return found_;
}

void Validity::fill(uint64_t address, uint64_t bytes) {
  uint64_t begin = 0;
  Fresh* fresh = find(address, begin);
  if (!fresh) return;
  if (address == begin && address + bytes >= fresh->end) {
    end(begin);
    return;
  }
  fresh->bytes.fill(address - begin, std::min(bytes, fresh->end - address));
}

void Validity::set(uint64_t address, uint64_t bytes, uint64_t holds) {
  uint64_t begin = 0;
  if (Fresh* fresh = find(address, begin))
    fresh->bytes.set(address - begin, std::min(bytes, fresh->end - address), holds);
}

bool Validity::holds_all(uint64_t address, uint64_t bytes) {
  uint64_t begin = 0;
  const Fresh* fresh = find(address, begin);
  return bytes <= high_ - address && (!fresh || fresh->bytes.holds_all(address - begin, bytes));
}

uint64_t Validity::missing(uint64_t address, uint64_t bytes) {
  uint64_t begin = 0;
  Fresh* fresh = find(address, begin);
  return fresh ? fresh->bytes.missing(address - begin, std::min(bytes, fresh->end - address)) : 0;
}

}  // namespace simt::check
