#include "check/code_facts.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "machine/observer.hpp"
#include "operations/atomics.hpp"
#include "operations/copies.hpp"
#include "operations/memory_access.hpp"
#include "operations/tensor_copies.hpp"
#include "operations/tiles.hpp"

namespace simt::check {
namespace {

using functional::AccessDetail;
using functional::AccessSpace;
using functional::AtomicDetail;
using functional::BulkDetail;
using functional::CopyDetail;
using functional::Observer;
using functional::RemoteDetail;
using functional::TensorCopy;
using functional::TilesDetail;

/// An opcode and its modifiers, of PTX or machine code.
struct Words {
  explicit Words(const Program& program, uint32_t op) {
    std::string_view rest;
    if (program.is_machine_code()) {
      text = program.text(op);
      rest = text;
      while (!rest.empty() && (rest[0] == '@' || rest[0] == ' ' || rest[0] == '{'))
        rest.remove_prefix(std::min(rest.size(), std::max<size_t>(1, rest.find(' ') + 1)));
    } else {
      rest = program.module.mnemonics[program.instruction(op).mnemonic].text;
    }
    rest = rest.substr(0, rest.find_first_of(" ;\t"));
    while (!rest.empty()) {
      const size_t dot = std::min(rest.size(), rest.find('.'));
      all.push_back(rest.substr(0, dot));
      rest.remove_prefix(std::min(rest.size(), dot + 1));
    }
    if (all.empty()) all.emplace_back();
  }
  bool has(std::string_view word) const { return std::find(all.begin(), all.end(), word) != all.end(); }
  bool has_any(std::initializer_list<std::string_view> words) const {
    return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return has(w); });
  }
  std::string_view opcode() const { return all[0]; }

  std::string text;  ///< of machine code
  std::vector<std::string_view> all;
};

/// The last number in the text: how many groups a wait lets pending.
uint32_t last_number(std::string_view text) {
  size_t end = text.find_last_of("0123456789");
  if (end == text.npos) return 0;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  if (begin > 1 && text[begin - 1] == 'x' && text[begin - 2] == '0') {
    uint32_t value = 0;
    std::from_chars(text.data() + begin, text.data() + text.size(), value, 16);
    return value;
  }
  uint32_t value = 0;
  std::from_chars(text.data() + begin, text.data() + end + 1, value);
  return value;
}

void find_order(const Words& words, OpFacts& f) {
  const bool is_strong =
      words.has_any({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "STRONG"});
  f.is_volatile = words.has("volatile");
  if (is_strong) f.manner |= Strong;
  if (f.is_volatile) f.manner |= Volatile;
  f.relaxed = words.has("relaxed");
  if (words.has_any({"cta", "CTA", "SM"}))
    f.scope = Scope::Cta;
  else if (words.has("cluster"))
    f.scope = Scope::Cluster;
  f.acquires = words.has_any({"acquire", "acq_rel"});
  f.releases = words.has_any({"release", "acq_rel"});
  if (f.scope == Scope::Cta) f.manner |= OfCta;
  if (f.scope == Scope::Cluster) f.manner |= OfCluster;
}

/// Instructions of PTX without addresses in their details.
void find_ptx(const Words& words, const Program& program, uint32_t at, OpFacts& f) {
  const std::string_view opcode = words.opcode();
  if (opcode == "fence" || opcode == "membar") {
    if (words.has("proxy")) {
      f.kind = Kind::ProxyFence;
      return;
    }
    f.kind = Kind::Fence;
    f.acquires = f.releases = true;
  } else if (opcode == "cp" && words.has("async")) {
    f.queue = words.has("bulk") ? Queue::Bulk : Queue::Copies;
    if (words.has("commit_group")) f.kind = Kind::Commit;
    if (words.has_any({"wait_group", "wait_all"})) {
      f.kind = Kind::Wait;
      f.all = words.has("wait_all");
      f.pending = f.all ? 0 : last_number(program.text(at));
    }
    if (words.has("mbarrier")) f.kind = Kind::Arrive;
  } else if (opcode == "wgmma") {
    f.queue = Queue::Products;
    if (words.has("mma_async")) f.kind = Kind::Product;
    if (words.has("commit_group")) f.kind = Kind::Commit;
    if (words.has("wait_group")) {
      f.kind = Kind::Wait;
      f.pending = last_number(program.text(at));
    }
  } else if (opcode == "bar" || opcode == "barrier") {
    f.kind = Kind::Barrier;
  } else if (opcode == "shfl") {
    f.kind = Kind::Shuffle;
  } else if (opcode == "mbarrier") {
    f.kind = Kind::Mbarrier;
    f.bytes = 8;
    f.manner = words.has("init") ? Writes : Writes | Atomic | Strong;
  } else if (opcode == "wmma" && words.has_any({"load", "store"})) {
    f.kind = Kind::Touching;
    if (words.has("store")) f.manner |= Writes;
  }
}

void find_machine(const Words& words, OpFacts& f) {
  const std::string_view opcode = words.opcode();
  if (opcode == "MEMBAR" || opcode == "CCTL") {
    if (opcode == "CCTL" && !words.has("IVALL")) return;
    f.kind = Kind::Fence;
    f.acquires = true;
    f.releases = opcode == "MEMBAR";
    f.scope = words.has("CTA") ? Scope::Cta : Scope::Gpu;
  } else if (opcode == "BAR" || opcode == "UCGABAR_ARV" || opcode == "UCGABAR_WAIT") {
    f.kind = Kind::Barrier;
  } else if (opcode == "ARRIVES") {
    f.kind = words.has("ARVCNT") ? Kind::Arrive : Kind::Refused;
  } else if (opcode == "SYNCS") {
    f.kind = Kind::Mbarrier;
    f.bytes = 8;
    f.manner = words.has("EXCH") ? Writes : Writes | Atomic | Strong;
  } else if (opcode.ends_with("GMMA")) {
    f.kind = Kind::Product;
    f.queue = Queue::Products;
    f.closes = words.text.find("gsb0") != std::string::npos;
  } else if (opcode == "WARPGROUP" && words.has("DEPBAR")) {
    f.kind = Kind::Wait;
    f.queue = Queue::Products;
    f.pending = last_number(words.text);
  } else if ((opcode == "ATOMS" && words.has("ARRIVE")) || opcode.starts_with("UTC")) {
    f.kind = Kind::Refused;
  } else if (opcode == "FENCE") {
    f.kind = Kind::ProxyFence;
  } else if (opcode == "LDGDEPBAR" || opcode == "UTMACMDFLUSH") {
    f.kind = Kind::Commit;
    f.queue = opcode == "LDGDEPBAR" ? Queue::Copies : Queue::Bulk;
  } else if (opcode == "DEPBAR" && words.has("LE")) {
    f.kind = Kind::Wait;
    f.pending = last_number(words.text);
  }
}

}  // namespace

std::vector<OpFacts> facts_of(const Program& program) {
  std::vector<OpFacts> all(program.code.size());
  for (uint32_t at = 0; at < all.size(); ++at) {
    const Op& op = program.code[at];
    OpFacts& f = all[at];
    if (program.is_machine_code() && at >= program.system_code) break;
    const Words words(program, at);
    const std::string_view opcode = words.opcode();
    if (const auto* access = dynamic_cast<const AccessDetail*>(op.detail)) {
      if (words.has_any({"param", "param::entry", "param::func", "const"}) || opcode == "LDC") continue;
      f.described = true;
      if (words.has_any({"nc", "CONSTANT"})) f.manner |= Cached;
      f.kind = opcode.starts_with("ld") || opcode.starts_with("LD") ? Kind::Load : Kind::Store;
      f.space = access->space;
      f.base = access->base;
      f.bytes = access->element_bytes * access->elements;
      find_order(words, f);
      if (f.kind == Kind::Store) f.manner |= Writes;
      // What reaches beyond the CTA is followed by CCTL.IVALL.
      if (program.is_machine_code() && (f.manner & OfCta)) f.acquires = f.kind == Kind::Load;
    } else if (const auto* atomic = dynamic_cast<const AtomicDetail*>(op.detail)) {
      f.kind = Kind::Atomic;
      f.replaces = words.has_any({"exch", "EXCH"});
      f.space = atomic->space;
      f.base = atomic->base;
      find_order(words, f);
      f.manner |= Writes | Atomic | Strong;
      f.bytes = words.has_any({"b128", "128"})                                            ? 16
                : words.has_any({"u64", "s64", "b64", "f64", "64", "64x2", "S64", "U64"}) ? 8
                : words.has_any({"b16", "f16", "bf16", "16"})                             ? 2
                                                                                          : 4;
      f.element = words.has_any({"f16x2", "bf16x2", "F16x2", "BF16x2", "F16", "BF16"}) ? 2 : f.bytes;
      f.bytes *= atomic->elements;
    } else if (const auto* copy = dynamic_cast<const CopyDetail*>(op.detail)) {
      if (words.has("mbarrier") || words.has("ARVCNT")) {
        f.kind = Kind::Arrive;
        f.holds_up = words.has("mbarrier") && !words.has("noinc");
      } else {
        f.kind = Kind::Copy;
        f.bytes = copy->bytes;
        if (f.bytes == 0) f.bytes = words.has("128") ? 16 : words.has("64") ? 8 : 4;
      }
    } else if (dynamic_cast<const BulkDetail*>(op.detail)) {
      f.kind = Kind::Bulk;
      f.queue = Queue::Bulk;
    } else if (const auto* tensor = dynamic_cast<const TensorCopy*>(op.detail)) {
      f.kind = Kind::Tensor;
      f.grouped = tensor->move == TensorCopy::Move::Store || tensor->move == TensorCopy::Move::Reduce;
      f.queue = Queue::Bulk;
    } else if (const auto* remote = dynamic_cast<const RemoteDetail*>(op.detail)) {
      f.kind = Kind::Remote;
      f.bytes = remote->elements * remote->element_bytes;
    } else if (dynamic_cast<const TilesDetail*>(op.detail)) {
      f.kind = opcode.starts_with("ST") || opcode.starts_with("st") ? Kind::RecordedStore : Kind::Recorded;
      f.bytes = TilesDetail::row_bytes;
      f.tiles = f.kind == Kind::Recorded;
    } else if (op.control == functional::Control::Call ||
               (opcode == "call" && op.control != functional::Control::None) || opcode == "CALL") {
      f.kind = Kind::Call;
    } else if (program.is_machine_code()) {
      find_machine(words, f);
    } else {
      find_order(words, f);
      f.manner = 0;
      find_ptx(words, program, at, f);
    }
    if (f.kind == Kind::Recorded || f.kind == Kind::RecordedStore) {
      f.watch = Observer::After;
      if (f.kind == Kind::RecordedStore) f.manner |= Writes;
    } else if (f.kind == Kind::Shuffle) {
      f.watch = Observer::After;
    } else if (f.closes) {
      f.watch = Observer::Before | Observer::After;
    } else if (f.kind == Kind::Mbarrier) {
      f.watch = Observer::Before | Observer::After;
    } else if (f.kind != Kind::None) {
      f.watch = Observer::Before;
    }
  }
  return all;
}

}  // namespace simt::check
