/// Moves, conversions, divisions, roots.
#include <algorithm>

#include "ptx/lowering/rules.hpp"
#include "ptx/own_instructions.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Type;

void lower_move(Lowerer& l) {
  const ptx::Operand &destination = *l.operand(0), &source = *l.operand(1);
  if (source.kind == OperandKind::Special) {
    l.one(source.text.starts_with("clock") ? "CS2R" : "S2R");
  } else if (source.kind == OperandKind::Vector || destination.kind == OperandKind::Vector) {
    // Halves of a register pair need no instruction; parts of a single register do.
    const auto is_single = [](const Lowerer::Place32& p) { return p.count == 1; };
    const bool packs = l.writes().size() > 1 && std::any_of(l.reads().begin(), l.reads().end(), is_single);
    const bool unpacks = l.reads().size() > 1 && std::any_of(l.writes().begin(), l.writes().end(), is_single);
    if (packs || unpacks) l.one("PRMT");
  } else if (l.reads().empty()) {
    if (l.writes().size() == 1 && l.writes()[0].count == 2)
      l.halves("IMAD.MOV.U32", "IMAD.MOV.U32");
    else
      l.one("IMAD.MOV.U32");
  } else if (l.reads().size() != 1 || l.writes().size() != 1 || l.reads()[0].first != l.writes()[0].first) {
    l.copy();
  }
}

/// Minimum and maximum. Those of three operands are two, as ptxas makes of them for sm_120; sm_100 has
/// FMNMX3.
void lower_extreme(Lowerer& l) {
  const Type type = l.type();
  if (l.operand_count() == 4) return l.chain({"FMNMX", "FMNMX"});
  if (type == Type::F64) return l.chain({"DSETP", "FSEL", "FSEL"});
  if (ptx::is_float(type))
    l.one(type == Type::F32 ? "FMNMX" : "HMNMX2");
  else if (ptx::bytes(type) == 8)
    l.chain({"ISETP", "ISETP.EX", "SEL", "SEL"});
  else
    l.one("IMNMX");
}

void lower_reciprocal(Lowerer& l) {
  if (l.has("approx")) return lower_special_function(l);
  if (l.type() == Type::F64) return l.chain({"MUFU.RCP64H", "DFMA", "DFMA", "DFMA", "DFMA"});
  l.chain({"MUFU.RCP", "FFMA", "FADD", "FFMA"});
}

void lower_own(Lowerer& l) {
  l.one(ptx::own_instruction(l.mnemonic().text)->opcode);
}

void lower_square_root(Lowerer& l) {
  if (l.type() == Type::F64)
    return l.chain({"MUFU.RSQ64H", "DMUL", "DFMA", "DFMA", "DFMA", "DMUL", "DFMA", "DFMA"});
  if (l.has("approx")) return lower_special_function(l);
  l.chain({"MUFU.RSQ", "ISETP", "FMUL", "FMUL", "FFMA", "FFMA"});
}

void lower_special_function(Lowerer& l) {
  if (l.type() == Type::F64) return l.chain({"MUFU.RSQ64H", "DMUL", "DFMA", "DFMA", "DFMA", "DFMA"});
  if (l.has("ftz") || ptx::bytes(l.type()) < 4)
    l.one(l.argument());
  else  // subnormal inputs are scaled up, and the result is scaled back
    l.chain({"FSETP", "FMUL", l.argument(), "FMUL"});
}

namespace {

void divide_integers(Lowerer& l, bool remainder) {
  if (ptx::bytes(l.type()) == 8) {
    l.chain({"I2F.U64.RP", "MUFU.RCP", "IADD3", "F2I.U64.TRUNC"});
    l.repeat(14, "IMAD.WIDE.U32");
    l.repeat(remainder ? 28 : 26, "IADD3");
    return;
  }
  // A floating-point reciprocal, then two corrections.
  l.chain({"I2F.RP", "MUFU.RCP", "IADD3", "F2I.FTZ.U32.TRUNC", "IMAD", "IMAD.HI.U32", "IMAD.HI.U32", "IMAD",
           "ISETP", "IADD3", "ISETP", "IADD3"});
  if (remainder) l.one("IMAD");
  if (ptx::is_signed(l.type())) l.repeat(3, "IABS");
}

void convert_floats(Lowerer& l, uint32_t to, uint32_t from) {
  if (l.has("rni") || l.has("rzi") || l.has("rmi") || l.has("rpi"))
    l.one(to == 8 ? "FRND.F64" : "FRND");
  else if (to == 8 || from == 8)
    l.one(to == 8 ? "F2F.F64.F32" : "F2F.F32.F64");
  else if (from <= 2)
    l.one("HADD2.F32");
  else if (to <= 2)
    l.one(l.sm() >= 80 ? "F2FP.PACK_AB" : "F2F.F16.F32");
  else
    l.one("FADD");
}

}  // namespace

void lower_division(Lowerer& l) {
  if (l.type() == Type::F64)
    return l.chain({"MUFU.RCP64H", "DFMA", "DFMA", "DFMA", "DFMA", "DMUL", "DFMA", "DFMA", "FFMA"});
  if (l.type() != Type::F32) return divide_integers(l, false);
  if (l.has("approx")) return l.chain({"MUFU.RCP", "FMUL"});
  if (l.has("full")) return l.chain({"MUFU.RCP", "FMUL", "FFMA", "FMUL"});
  l.chain({"MUFU.RCP", "FFMA", "FFMA", "FFMA", "FFMA", "FFMA", "FCHK", "FFMA"});
}

void lower_remainder(Lowerer& l) {
  divide_integers(l, true);
}

void lower_conversion(Lowerer& l) {
  // With stochastic rounding, an instruction makes two numbers.
  if (l.has("rs")) return l.repeat(l.has("f16x2") || l.has("bf16x2") ? 1 : 2, "F2FP.PACK_AB");
  const uint32_t to = ptx::bytes(l.type(0)), from = ptx::bytes(l.type(1));
  const bool to_float = ptx::is_float(l.type(0)), from_float = ptx::is_float(l.type(1));
  if (to_float && from_float) return convert_floats(l, to, from);
  if (to_float) {
    l.one(to == 8 ? "I2F.F64" : from == 8 ? "I2F.S64" : l.sm() >= 80 && from == 4 ? "I2FP.F32.S32" : "I2F");
  } else if (from_float) {
    l.one(from == 8 ? "F2I.F64.TRUNC" : to == 8 ? "F2I.S64.TRUNC" : "F2I.TRUNC.NTZ");
  } else if (to == 8 && from == 4) {
    // The low half is a copy; the high half is the sign or zero.
    l.one(ptx::is_signed(l.type(1)) ? "SHF.R.S32.HI" : "IMAD.MOV.U32");
  } else if (to == 4 && from >= 4) {
    l.copy();
  } else {
    l.one(from == 1 || to == 1 ? "LOP3.LUT" : "PRMT");
  }
}

}  // namespace simt::functional
