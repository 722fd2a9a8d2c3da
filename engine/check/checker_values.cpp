/// Which memory and registers hold values that somebody has written. A register's bits without a value are
/// kept in a copy of the warp's frames; what is copied stays without a value, and only its use is reported.
#include <algorithm>
#include <bit>
#include <cstring>

#include "check/checker.hpp"
#include "machine/lanes.hpp"
#include "operations/atomics.hpp"
#include "operations/copies.hpp"
#include "operations/memory_access.hpp"
#include "operations/tiles.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::check {

using functional::AccessDetail;
using functional::AccessSpace;
using functional::full_mask;
using functional::TilesDetail;
namespace place = functional::place;
namespace window = functional::window;

namespace {

template <class F>
void each_lane_of(uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
}

bool is_register(Place p) {
  return p != place::none && p >> place::bank_shift == 0;
}

}  // namespace

/// The registers of an instruction of PTX, and how its result depends on them.
const Checker::Flow& Checker::flow_of(uint32_t pc) {
  auto& found = running_->flows[pc];
  if (found) return *found;
  found = std::make_unique<Flow>();
  Flow& flow = *found;
  const Program& program = grid_->program();
  if (program.is_machine_code()) return flow;
  const functional::Origin origin = program.origins[pc];
  const functional::FunctionCode& code = program.functions[origin.function];
  const ptx::Function& function = program.module.functions[code.ptx];
  if (origin.instruction >= function.instructions.size() || pc < code.body) return flow;
  const auto same = [&](uint32_t at) {
    return at < program.origins.size() && program.origins[at].function == origin.function &&
           program.origins[at].instruction == origin.instruction;
  };
  flow.first = pc == 0 || !same(pc - 1);
  flow.last = !same(pc + 1);
  const auto operand = [&](uint32_t r) {
    const ptx::RegisterDeclaration& declared = function.registers[r];
    const uint32_t at = code.places[r];
    if (declared.type == ptx::Type::Pred) return Operand{code.registers * place::register_bytes + 4 * at, 0};
    return Operand{at * place::register_bytes, std::max(4u, ptx::bytes(declared.type))};
  };
  const ptx::Access access = ptx::access(function, program.module, origin.instruction);
  const ptx::Instruction& instruction = function.instructions[origin.instruction];
  for (const uint32_t r : access.reads)
    if (static_cast<int32_t>(r) != instruction.guard && code.places[r] != UINT32_MAX)
      flow.reads.push_back(operand(r));
  for (const uint32_t r : access.writes)
    if (code.places[r] != UINT32_MAX) flow.writes.push_back(operand(r));
  const ptx::Mnemonic& mnemonic = program.module.mnemonics[instruction.mnemonic];
  const std::string_view name = mnemonic.opcode;
  const auto register_of = [&](uint32_t k) -> int64_t {
    if (k >= instruction.operand_count) return -1;
    const ptx::Operand& o = function.operands[instruction.first_operand + k];
    return o.kind == ptx::OperandKind::Register ? int64_t{o.index} : -1;
  };
  const auto real = [&](uint32_t k) {
    if (const int64_t r = register_of(k); r >= 0) flow.real.push_back(operand(static_cast<uint32_t>(r)));
  };
  const bool simple = flow.first && flow.last;
  const bool whole_numbers = !mnemonic.has("f32") && !mnemonic.has("f64") && !mnemonic.has("f16") &&
                             !mnemonic.has("bf16") && !mnemonic.has("f16x2");
  if (name == "mov" || (name == "cvt" && simple && whole_numbers && !mnemonic.has("sat")) || name == "cvta") {
    flow.transfer = Transfer::Copy;
  } else if (name == "selp" && simple) {
    flow.transfer = Transfer::Copy;
    real(3);
  } else if ((name == "shl" || name == "shr" || name == "bfe") && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    for (uint32_t k = 2; k < instruction.operand_count; ++k) real(k);
  } else if ((name == "prmt" || name == "shf") && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    real(3);
  } else if (name == "shfl" && simple) {
    flow.transfer = Transfer::Copy;
    flow.keeps_constants = true;
    for (uint32_t k = 2; k < instruction.operand_count; ++k) real(k);
  } else if (name == "and" && simple) {
    flow.transfer = Transfer::And;
    flow.keeps_constants = true;
  } else if (name == "or" && simple) {
    flow.transfer = Transfer::Copy;
  } else if (name == "mma" && mnemonic.has("m16n8k16") + mnemonic.has("m16n8k8") + mnemonic.has("m16n8k32")) {
    flow.transfer = Transfer::Product;
    const auto part = [&](uint32_t k, std::vector<Operand>& to) {
      const ptx::Operand& o = function.operands[instruction.first_operand + k];
      for (uint32_t p = 0; p < std::max(1u, o.part_count); ++p) {
        const ptx::Operand& each = o.part_count ? function.operands[o.first_part + p] : o;
        if (each.kind == ptx::OperandKind::Register) to.push_back(operand(each.index));
      }
    };
    for (uint32_t k = 0; k < 4; ++k) part(k, flow.parts[k]);
  }
  return flow;
}

std::byte* Checker::poison_frame(Context& c) {
  const auto offset = static_cast<size_t>(c.banks[0] - c.warp->frame_at(0));
  const Program& program = grid_->program();
  const size_t wanted = offset + program.functions[program.origins[at_].function].frame_bytes + 64;
  if (warp_->poison.size() < wanted) {
    warp_->poison.resize(wanted);
    warp_->sources.resize(wanted / place::register_bytes + 1);
  }
  return warp_->poison.data() + offset;
}

uint32_t& Checker::source_of(Context& c, Place p) {
  poison_frame(c);
  const auto offset = static_cast<size_t>(c.banks[0] - c.warp->frame_at(0));
  return warp_->sources[(offset + p) / place::register_bytes];
}

/// Lanes of which any bit of a register holds no value.
uint32_t Checker::poisoned(Context& c, const Operand& operand) {
  const std::byte* at = poison_frame(c) + operand.place;
  uint32_t lanes = 0;
  if (operand.bytes == 0) {
    std::memcpy(&lanes, at, sizeof lanes);
    return lanes;
  }
  const uint32_t rows = operand.bytes > 8 ? 2 : 1, bytes = operand.bytes / rows;
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, at + r * 2 * place::register_bytes + i * bytes, bytes);
      lanes |= uint32_t{bits != 0} << i;
    }
  return lanes;
}

void Checker::poison(Context& c, const Operand& operand, uint32_t lanes, uint32_t bad) {
  std::byte* at = poison_frame(c) + operand.place;
  if (operand.bytes == 0) {
    uint32_t bits;
    std::memcpy(&bits, at, sizeof bits);
    bits = (bits & ~lanes) | (bad & lanes);
    std::memcpy(at, &bits, sizeof bits);
    return;
  }
  const uint32_t rows = operand.bytes > 8 ? 2 : 1, bytes = operand.bytes / rows;
  for (uint32_t r = 0; r < rows; ++r)
    each_lane_of(lanes, [&](uint32_t i) {
      std::memset(at + r * 2 * place::register_bytes + i * bytes, bad >> i & 1 ? 0xff : 0, bytes);
    });
}

bool Checker::same_instruction(uint32_t at) const {
  const functional::Origin &a = grid_->program().origins[at], &b = grid_->program().origins[at_];
  return a.function == b.function && a.instruction == b.instruction;
}

/// What the instruction's results will be without a value, kept until it has been executed.
void Checker::foresee(Context& c, const Flow& flow) {
  foreseen_.valid = false;
  if (!flow.first || flow.writes.empty()) return;
  uint32_t bad = 0, source = 0;
  uint32_t count = 0;
  for (const Operand& read : flow.reads)
    if (const uint32_t lanes = poisoned(c, read) & c.mask) {
      bad |= lanes;
      if (count++ == 0) source = source_of(c, read.place);
    }
  foreseen_ = {true, false, bad, source, {}, {}};
  if (bad == 0 || flow.transfer == Transfer::Any) return;
  const std::byte* frame = poison_frame(c);
  const Program& program = grid_->program();
  const size_t bytes = program.functions[program.origins[at_].function].frame_bytes;
  if (flow.transfer == Transfer::Product) {
    product(c, flow);
    return;
  }
  if (flow.transfer == Transfer::And && count > 1) return;
  // The same handler moves the bits that say what has no value, where only operands that say how are real.
  foreseen_.frame.assign(bytes + sizeof(functional::Line), std::byte{});
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(foreseen_.frame.data()) + 63) & ~uintptr_t{63});
  std::memcpy(aligned, frame, bytes);
  const auto keep = [&](const Operand& operand) {
    const size_t size = operand.bytes == 0 ? 4 : warp_lanes * operand.bytes;
    std::memcpy(aligned + operand.place, c.banks[0] + operand.place, size);
  };
  uint32_t unknown = 0;
  for (const Operand& operand : flow.real) {
    unknown |= poisoned(c, operand);
    keep(operand);
  }
  if (flow.transfer == Transfer::And)
    for (const Operand& read : flow.reads)
      if (!(poisoned(c, read) & c.mask)) keep(read);
  if (unknown & c.mask) return;
  Context shadow = c;
  shadow.banks[0] = aligned;
  if (!flow.keeps_constants) {
    zeros_.assign((program.constants.size() + 64) * sizeof(functional::Line), std::byte{});
    shadow.banks[1] =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(zeros_.data()) + 63) & ~uintptr_t{63});
    shadow.banks[2] = shadow.banks[3] = shadow.banks[1];
  }
  shadow.record = nullptr;
  shadow.observer = nullptr;
  for (uint32_t at = at_; at < program.code.size() && same_instruction(at); ++at)
    if (program.code[at].run) program.code[at].run(shadow, program.code[at]);
  foreseen_.exact = true;
}

/// Rows of A spoil rows of D, columns of B columns of D; m16n8.
void Checker::product(Context& c, const Flow& flow) {
  uint32_t rows = 0, columns = 0;  // of D
  for (size_t k = 0; k < flow.parts[1].size(); ++k)
    each_lane_of(poisoned(c, flow.parts[1][k]), [&](uint32_t i) { rows |= 1u << (i / 4 + (k % 2) * 8); });
  for (const Operand& part : flow.parts[2])
    each_lane_of(poisoned(c, part), [&](uint32_t i) { columns |= 1u << i / 4; });
  foreseen_.parts.clear();
  for (size_t k = 0; k < flow.parts[1].size(); k += 2)
    if (poisoned(c, flow.parts[1][k])) foreseen_.source = source_of(c, flow.parts[1][k].place);
  const bool pairs = flow.parts[0].size() == 2;
  for (size_t k = 0; k < flow.parts[0].size(); ++k) {
    uint32_t bad = k < flow.parts[3].size() ? poisoned(c, flow.parts[3][k]) : 0;
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      const uint32_t row = i / 4 + (pairs ? k : k / 2) * 8, column = i % 4 * 2 + (pairs ? 0 : k % 2);
      const uint32_t own = pairs ? 3u << column : 1u << column;
      bad |= uint32_t{(rows >> row & 1) || (columns & own)} << i;
    }
    foreseen_.parts.push_back(bad);
  }
}

void Checker::settle(Context& c, const Op& op, const Flow& flow) {
  const auto came_from = [&](const Operand& operand) { source_of(c, operand.place) = foreseen_.source; };
  if (foreseen_.exact) {
    const auto* const aligned = reinterpret_cast<const std::byte*>(
        (reinterpret_cast<uintptr_t>(foreseen_.frame.data()) + 63) & ~uintptr_t{63});
    std::byte* to = poison_frame(c);
    for (const Operand& write : flow.writes) {
      came_from(write);
      if (write.bytes == 0) {
        uint32_t old, now;
        std::memcpy(&old, to + write.place, 4);
        std::memcpy(&now, aligned + write.place, 4);
        now = (old & ~c.mask) | (op.control == functional::Control::None ? now & c.mask : 0);
        std::memcpy(to + write.place, &now, 4);
        continue;
      }
      const uint32_t rows = write.bytes > 8 ? 2 : 1, bytes = write.bytes / rows;
      for (uint32_t r = 0; r < rows; ++r)
        each_lane_of(c.mask, [&](uint32_t i) {
          const size_t at = write.place + r * 2 * place::register_bytes + i * bytes;
          std::memcpy(to + at, aligned + at, bytes);
        });
    }
  } else if (!foreseen_.parts.empty()) {
    for (size_t k = 0; k < flow.parts[0].size(); ++k) {
      came_from(flow.parts[0][k]);
      poison(c, flow.parts[0][k], c.mask, foreseen_.parts[k]);
    }
  } else {
    for (const Operand& write : flow.writes) {
      if (foreseen_.bad) came_from(write);
      poison(c, write, c.mask, foreseen_.bad);
    }
  }
}

uint64_t Checker::missing(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane) {
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (!owner || offset + bytes > c.cta->shared_bytes()) return 0;
    return owner->valid.missing(offset, bytes);
  }
  if (window::is_local(generic)) {
    const uint64_t each = grid_->local_bytes(), at = generic - window::local;
    if (warp_->local.empty() || at + bytes > each) return 0;
    return warp_->local.missing(lane * each + at, bytes);
  }
  return device_.missing(generic, bytes);
}

void Checker::holds(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane, uint64_t what) {
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (owner && offset + bytes <= c.cta->shared_bytes()) owner->valid.set(offset, bytes, what);
  } else if (window::is_local(generic)) {
    const uint64_t each = grid_->local_bytes(), at = generic - window::local;
    if (!warp_->local.empty() && at + bytes <= each) warp_->local.set(lane * each + at, bytes, what);
  } else {
    device_.set(generic, bytes, what);
  }
}

/// As `holds`, for any number of bytes.
void Checker::fills(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane) {
  if (!checks_.init) return;
  for (uint64_t done = 0; done < bytes; done += 64)
    holds(c, generic + done, std::min<uint64_t>(64, bytes - done), lane, ~uint64_t{0});
}

/// A copy in memory: what has no value has none there either.
void Checker::copies(Context& c, uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane) {
  if (!checks_.init) return;
  for (uint64_t done = 0; done < bytes; done += 64) {
    const uint64_t size = std::min<uint64_t>(64, bytes - done);
    holds(c, to + done, size, lane, ~missing(c, from + done, size, lane));
  }
}

uint32_t Checker::new_source(uint64_t generic, uint32_t lane) {
  sources_.push_back(
      {at_, static_cast<uint16_t>(warp_->number), static_cast<uint8_t>(lane), cta_->index, generic});
  return static_cast<uint32_t>(sources_.size() - 1);
}

/// A value that nobody has written is used.
void Checker::used(Context& c, uint32_t source, uint32_t lane, const char* how) {
  if (source >= sources_.size()) return;
  const Source& s = sources_[source];
  Finding found;
  found.check = "init";
  const bool shared = window::is_shared(s.address);
  uint64_t offset = s.address - window::shared;
  const bool own = !shared || c.is_own(offset);
  found.kind = shared                        ? own ? "uninitialised-shared" : "uninitialised-cluster"
               : window::is_local(s.address) ? "uninitialised-local"
                                             : "uninitialised-global";
  found.detail = std::string("a value that nobody has written is ") + how;
  Moment then;
  then.cta = s.cta;
  then.op = s.op;
  then.warp = s.warp;
  found.first = describe(then, s.lane, 0, s.address);
  Moment now;
  now.cta = cta_->index;
  now.op = at_;
  now.warp = static_cast<uint16_t>(warp_->number);
  found.second = describe(now, lane, 0, s.address);
  found.second.what = "use";
  add(std::move(found));
}

void Checker::values_before(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  uint32_t lanes = c.mask;
  if (warp_->poisoned) {
    if (is_register(op.guard)) {
      const uint32_t all = of_warp_split_mask(c);
      if (const uint32_t bad = poisoned(c, {op.guard, 0}) & all)
        used(c, source_of(c, op.guard), static_cast<uint32_t>(std::countr_zero(bad)), "decided by");
    }
    if (c.mask == 0) return;
    const bool has_address = f.kind == Kind::Load || f.kind == Kind::Store || f.kind == Kind::Atomic;
    if (has_address && is_register(op.a) && f.base != Address::Base::Stack) {
      const uint32_t bytes = f.base == Address::Base::Wide ? 8 : 4;
      if (const uint32_t bad = poisoned(c, {op.a, bytes}) & lanes)
        used(c, source_of(c, op.a), static_cast<uint32_t>(std::countr_zero(bad)), "used as an address");
    }
    if (!(f.kind == Kind::Load && f.described)) foresee(c, flow_of(pc));
  }
  if (c.mask == 0) return;
  if (f.kind == Kind::Call && !warp_->local.empty())
    each_lane_of(lanes,
                 [&](uint32_t i) { fills(c, window::local + c.stack, grid_->local_bytes() - c.stack, i); });
  if (f.kind == Kind::Load && f.described) {
    load_values(c, op, f);
  } else if (f.kind == Kind::Store && f.described) {
    store_values(c, op, f);
  } else if (f.kind == Kind::Atomic) {
    alignas(64) uint64_t address[warp_lanes];
    functional::lane_addresses(c, op, f.base, address);
    each_lane_of(lanes, [&](uint32_t i) {
      const uint64_t at = functional::generic_address(f.space, address[i]);
      if (!f.replaces && missing(c, at, f.bytes, i)) used(c, new_source(at, i), i, "combined by an atomic");
      holds(c, at, f.bytes, i, ~uint64_t{0});
    });
  }
}

void Checker::values_after(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  if (f.kind == Kind::Recorded && f.tiles) {
    load_tiles(c, op);
    return;
  }
  if (!warp_->poisoned || !foreseen_.valid) return;
  const Flow& flow = flow_of(pc);
  if (flow.last) {
    settle(c, op, flow);
    foreseen_.valid = false;
  }
}

void Checker::load_values(Context& c, const Op& op, const OpFacts& f) {
  const auto& d = op.details<AccessDetail>();
  if (f.space == AccessSpace::Local) begin_local();
  alignas(64) uint64_t address[warp_lanes];
  functional::lane_addresses(c, op, f.base, address);
  uint64_t gone[warp_lanes];
  uint32_t bad = 0;
  each_lane_of(c.mask, [&](uint32_t i) {
    gone[i] = missing(c, functional::generic_address(f.space, address[i]), std::min(64u, f.bytes), i);
    bad |= uint32_t{gone[i] != 0} << i;
  });
  if (!bad && !warp_->poisoned) return;
  foreseen_.valid = false;
  uint32_t source = 0;
  if (bad) {
    warp_->poisoned = everything = true;
    const auto lane = static_cast<uint32_t>(std::countr_zero(bad));
    source = new_source(functional::generic_address(f.space, address[lane]), lane);
  }
  std::byte* frame = poison_frame(c);
  for (uint32_t e = 0; e < d.elements; ++e) {
    if (!is_register(d.places[e])) continue;
    if (bad) source_of(c, d.places[e]) = source;
    const uint32_t rows = d.element_bytes > 8 ? 2 : 1, bytes = d.place_bytes[e] >= 8 ? 8 : 4;
    for (uint32_t r = 0; r < rows; ++r)
      each_lane_of(c.mask, [&](uint32_t i) {
        std::byte* to = frame + d.places[e] + r * 2 * place::register_bytes + i * bytes;
        std::memset(to, 0, bytes);
        if (!(bad >> i & 1)) return;
        const uint32_t size = d.element_bytes / rows;
        bool top = false;
        for (uint32_t b = 0; b < size; ++b) {
          top = gone[i] >> (e * d.element_bytes + r * 8 + b) & 1;
          if (top) to[b] = std::byte{0xff};
        }
        if (d.widen == functional::Widen::Sign && top)
          for (uint32_t b = size; b < bytes; ++b) to[b] = std::byte{0xff};
      });
  }
}

void Checker::store_values(Context& c, const Op& op, const OpFacts& f) {
  const auto& d = op.details<AccessDetail>();
  if (f.space == AccessSpace::Local) begin_local();
  alignas(64) uint64_t address[warp_lanes];
  functional::lane_addresses(c, op, f.base, address);
  const std::byte* frame = warp_->poisoned ? poison_frame(c) : nullptr;
  each_lane_of(c.mask, [&](uint32_t i) {
    uint64_t gone = 0;
    Place from = 0;
    if (frame)
      for (uint32_t e = 0; e < d.elements; ++e) {
        if (!is_register(d.places[e])) continue;
        const uint32_t rows = d.element_bytes > 8 ? 2 : 1, bytes = d.place_bytes[e] >= 8 ? 8 : 4;
        for (uint32_t b = 0; b < d.element_bytes; ++b) {
          const uint32_t r = rows == 2 ? b / 8 : 0, in = rows == 2 ? b % 8 : b;
          if (frame[d.places[e] + r * 2 * place::register_bytes + i * bytes + in] == std::byte{}) continue;
          gone |= uint64_t{1} << (e * d.element_bytes + b);
          from = d.places[e];
        }
      }
    const uint64_t at = functional::generic_address(f.space, address[i]);
    holds(c, at, std::min(64u, f.bytes), i, ~gone);
    const uint64_t all = f.bytes < 64 ? (uint64_t{1} << f.bytes) - 1 : ~uint64_t{0};
    if (gone == all && !window::is_shared(at) && !window::is_local(at) && !is_of_heap(at))
      used(c, source_of(c, from), i, "stored as a result");
  });
}

/// Whether a kernel has allocated it: what is stored there is no result yet.
bool Checker::is_of_heap(uint64_t address) const {
  const auto after = heap_.upper_bound(address);
  if (after == heap_.begin()) return false;
  return address - std::prev(after)->first < heap_sizes_.at(std::prev(after)->first);
}

/// Rows of 16 bytes, by the lanes that give their addresses, become elements of all lanes.
void Checker::load_tiles(Context& c, const Op& op) {
  const auto& d = op.details<TilesDetail>();
  if (!c.record) return;
  uint64_t gone[warp_lanes] = {};
  uint32_t bad = 0;
  each_lane_of(c.record->mask, [&](uint32_t i) {
    gone[i] = missing(c, c.record->address[i], TilesDetail::row_bytes, i);
    bad |= uint32_t{gone[i] != 0} << i;
  });
  if (!bad && !warp_->poisoned) return;
  uint32_t source = 0;
  if (bad) {
    warp_->poisoned = everything = true;
    const auto lane = static_cast<uint32_t>(std::countr_zero(bad));
    source = new_source(c.record->address[lane], lane);
  }
  std::byte* frame = poison_frame(c);
  for (uint32_t t = 0; t < d.count; ++t) {
    if (!is_register(d.places[t])) continue;
    if (bad) source_of(c, d.places[t]) = source;
    for (uint32_t i = 0; i < warp_lanes; ++i)
      for (uint32_t b = 0; b < 4; ++b) {
        const uint32_t row = d.transposed ? i % 4 * 2 + b / 2 : i / 4;
        const uint32_t byte = d.transposed ? i / 4 * 2 + b % 2 : i % 4 * 4 + b;
        frame[d.places[t] + 4 * i + b] =
            std::byte{gone[t * 8 + row] >> byte & 1 ? uint8_t{0xff} : uint8_t{0}};
      }
  }
}

void Checker::begin_local() {
  if (warp_->local.empty()) warp_->local.reset(uint64_t{grid_->local_bytes()} * warp_lanes);
}

uint32_t Checker::of_warp_split_mask(Context& c) {
  const Warp::Split* split = c.warp->current();
  return split ? split->mask : c.mask;
}

void Checker::allocated(const functional::Allocation& made) {
  if (made.owner == functional::Owner::Kernel) device_.begin(made.address, made.size);
  global_.forget(made.address, made.size);
  concurrency_.forget_memory(made.address, made.address + made.size);
  last_ = {};
  if (made.owner == functional::Owner::Kernel && grid_ && cta_) {
    Moment now;
    now.cta = cta_->index;
    now.op = at_;
    now.warp = static_cast<uint16_t>(warp_->number);
    Access& place_made = heap_[made.address] = describe(now, 0, 0, 0);  // memory is locked
    place_made.what = "malloc";
    heap_sizes_[made.address] = made.size;
  }
}

void Checker::freed(const functional::Allocation& gone) {
  device_.end(gone.address);
  heap_.erase(gone.address);
  concurrency_.forget_memory(gone.address, gone.address + gone.size);
}

void Checker::written(uint64_t address, uint64_t size) {
  device_.fill(address, size);
}

}  // namespace simt::check
