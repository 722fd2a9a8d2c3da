/// Loads, stores, atomics, asynchronous copies, tensor maps.
#include <algorithm>
#include <string>

#include "ptx/lowering/rules.hpp"

namespace simt::functional {

const char* width_suffix(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return ".U8";
    case 2:
      return ".U16";
    case 8:
      return ".64";
    case 16:
      return ".128";
    default:
      return "";
  }
}

namespace {

/// As ptxas 13.0 for sm_80 and sm_90.
const char* eviction_suffix(const Lowerer& l) {
  if (l.has("L1::evict_first") || l.has("cs")) return ".EF";
  if (l.has("L1::evict_last")) return ".EL";
  if (l.has("L1::evict_unchanged")) return ".EU";
  if (l.has("L1::no_allocate")) return ".NA";
  if (l.has("lu")) return ".LU";
  return "";
}

const char* prefetch_suffix(const Lowerer& l) {
  return l.has("L2::64B") ? ".LTC64B" : l.has("L2::128B") ? ".LTC128B" : l.has("L2::256B") ? ".LTC256B" : "";
}

void load_or_store(Lowerer& l, bool load) {
  const bool of_bytes = l.has("e4m3x4") || l.has("e5m2x4");  // of multimem
  const uint32_t element = of_bytes ? 4 : std::max(1u, ptx::bytes(l.type()));
  const uint32_t bytes = std::min(16u, element * l.vector_length());
  const std::string width = width_suffix(bytes);
  if (l.has("param") || l.has("param::entry") || l.has("param::func")) {
    // Kernel parameters are in the constant bank, those of functions mostly in registers.
    if (!l.in_entry()) l.one("MOV");
    return;
  }
  const bool strong = l.has("volatile") || l.has("relaxed") || l.has("acquire") || l.has("release");
  const std::string hint = std::string(eviction_suffix(l)) + prefetch_suffix(l);
  const char* scope = !strong                             ? ""
                      : l.has("cta")                      ? ".STRONG.SM"
                      : l.has("sys") || l.has("volatile") ? ".STRONG.SYS"
                                                          : ".STRONG.GPU";
  if (l.names_shared_memory()) {
    l.memory((load ? "LDS" : "STS") + width, bytes);
  } else if (l.has("local")) {
    l.memory((load ? "LDL" : "STL") + width, bytes);
  } else if (l.has("const")) {
    l.memory("LDC" + width, bytes);
  } else if (l.has("global")) {
    const char* cache = l.has("nc") ? ".CONSTANT" : l.has("cg") ? ".CG" : l.has("cv") ? ".CV" : "";
    l.memory((load ? "LDG.E" : "STG.E") + hint + width + cache + scope, bytes);
  } else {
    l.memory((load ? "LD.E" : "ST.E") + hint + width + scope, bytes);
  }
}

void atomic(Lowerer& l, bool returns) {
  const uint32_t bytes = std::max(4u, ptx::bytes(l.type()) * l.vector_length());
  std::string what = ".ADD";
  for (const char* name : {"min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}) {
    if (!l.has(name)) continue;
    what = std::string(".") + name;
    std::transform(what.begin(), what.end(), what.begin(),
                   [](char c) { return static_cast<char>(std::toupper(c)); });
  }
  const std::string width = bytes > 4 ? ".64" : "";
  if (l.names_shared_memory()) {
    // Shared memory cannot add floating-point numbers: a compare-and-swap loop.
    if (ptx::is_float(l.type()) && what == ".ADD") l.chain({"LDS", "FADD"});
    l.memory("ATOMS" + what + width, bytes);
  } else if (returns) {
    l.memory((l.has("global") ? "ATOMG.E" : "ATOM.E") + what + width + ".STRONG.GPU", bytes);
  } else {
    l.memory("RED.E" + what + width + ".STRONG.GPU", bytes);
  }
}

}  // namespace

void lower_load(Lowerer& l) {
  load_or_store(l, true);
}
void lower_store(Lowerer& l) {
  load_or_store(l, false);
}
void lower_atomic(Lowerer& l) {
  atomic(l, true);
}
void lower_reduction(Lowerer& l) {
  atomic(l, false);
}

void lower_copy(Lowerer& l) {
  const ptx::Operand* count = l.operand(2);
  const auto bytes = static_cast<uint32_t>(count ? count->value : 4);
  l.memory(
      std::string("LDGSTS.E") + (l.has("cg") ? ".BYPASS" : "") + prefetch_suffix(l) + width_suffix(bytes),
      bytes);
}

void lower_copy_wait(Lowerer& l) {
  RawInstruction& raw = l.one("DEPBAR.LE");
  if (l.has("wait_group")) raw.immediate = l.operand(0)->value;
}

/// Between global and shared memory, in either direction.
void lower_bulk_copy(Lowerer& l) {
  const auto& m = l.mnemonic().modifiers;
  const auto global = std::find(m.begin(), m.end(), "global");
  const auto shared =
      std::find_if(m.begin(), m.end(), [](std::string_view x) { return x.starts_with("shared"); });
  const bool stores = global < shared, tensor = l.has("tensor");
  l.memory(stores ? (tensor ? "UTMASTG" : "UBLKCP.G.S") : (tensor ? "UTMALDG" : "UBLKCP.S.G"), 16,
           AddressKind::Bulk);
}

/// As ptxas 12.9 for sm_90a: addresses and strides are stored, sizes minus one; fields that share a word with
/// others are inserted into it.
void lower_tensor_map_replacement(Lowerer& l) {
  const bool shared = l.names_shared_memory();
  if (l.has("rank") || l.has("elemtype") || l.has("interleave_layout") || l.has("swizzle_mode") ||
      l.has("swizzle_atomicity") || l.has("fill_mode"))
    l.chain({shared ? "LDS" : "LDG.E", "LOP3.LUT", "LOP3.LUT"});
  else if (l.has("box_dim") || l.has("global_dim") || l.has("element_stride"))
    l.one("IADD3");
  const uint32_t bytes = l.has("global_address") ? 8 : 4;
  l.memory((shared ? "STS" : "STG.E") + std::string(width_suffix(bytes)), bytes);
}

void lower_tensor_map_copy(Lowerer& l) {
  l.chain({"LDS", "IADD3", "IADD3.X"});
  l.memory("ATOMG.E.EXCH.STRONG.GPU", 4);
}

}  // namespace simt::functional
