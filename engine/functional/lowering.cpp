#include "functional/lowering.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "ptx/register_allocation.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using std::string_view;

constexpr uint32_t predicate_flag = 0x10000;
constexpr uint32_t general_registers = 254;  // 255 is RZ; what lies beyond shares numbers, timing only
constexpr uint64_t instruction_bytes = 16;
// Where kernels' parameters begin in constant bank 0, as disassembly shows (c[0x0][0x160]).
constexpr uint64_t constant_bank_bytes = 64 * 1024;
constexpr uint32_t hopper_parameters = 0x210, volta_parameters = 0x160, kepler_parameters = 0x140;

/// Virtual registers of an instruction as places: (first 32-bit register, how many), or predicates.
struct Place32 {
  uint32_t first = 0, count = 1;
  bool predicate = false;
};

class Lowerer {
 public:
  Lowerer(const Program& program, uint32_t sm) : program_(program), sm_(sm) {}

  Lowering run() {
    result_.of_op.resize(program_.code.size());
    result_.reads_of_op.resize(program_.code.size());
    result_.writes_of_op.resize(program_.code.size());
    for (const FunctionCode& function : program_.functions)
      if (function.end > function.first) lower_function(function);
    return std::move(result_);
  }

 private:
  void lower_function(const FunctionCode& function) {
    code_ = &function;
    function_ = &program_.module.functions[function.ptx];
    flow_ = ptx::control_flow(*function_, program_.module);
    count_uses();
    find_parameters();
    uint32_t op = function.first;
    const auto appended = [&](uint32_t until) {
      for (; op < until; ++op) {
        begin();
        const bool returns = program_.code[op].control == Control::Return;
        add(!returns ? "MOV" : function.entry ? "EXIT" : "RET.REL.NODEC");
        end(op, op + 1, UINT32_MAX);
      }
    };
    appended(function.body);  // parameters that are registers
    uint32_t block = UINT32_MAX;
    for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
      if (flow_.block_of[i] != block) {
        block = flow_.block_of[i];
        copies_.clear();
      }
      const uint32_t first = op;
      while (op < function.end && program_.origins[op].instruction == i) ++op;
      lower_instruction(i, first, op);
    }
    appended(function.end);  // falling off the end
  }

  /// Which multiplications feed only 64-bit additions: each of these becomes one IMAD.WIDE.
  void count_uses() {
    uses_.assign(function_->registers.size(), 0);
    defined_by_.assign(function_->registers.size(), UINT32_MAX);
    accesses_.clear();
    for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
      accesses_.push_back(ptx::access(*function_, program_.module, i));
      for (const uint32_t r : accesses_.back().reads) ++uses_[r];
      for (const uint32_t r : accesses_.back().writes)
        defined_by_[r] = defined_by_[r] == UINT32_MAX ? i : UINT32_MAX - 1;
    }
    fused_.assign(function_->instructions.size(), false);
    fuses_.assign(function_->instructions.size(), UINT32_MAX);
    std::vector<uint32_t> additions(function_->registers.size());
    const auto product = [&](uint32_t r) {
      const uint32_t m = defined_by_[r];
      return m < function_->instructions.size() && opcode(m) == "mul" && has(m, "wide") &&
             function_->instructions[m].guard < 0;
    };
    const auto is_addition = [&](uint32_t i) { return opcode(i) == "add" && ends_with(i, "64"); };
    for (uint32_t i = 0; i < function_->instructions.size(); ++i)
      if (is_addition(i))
        for (const uint32_t r : accesses_[i].reads) additions[r] += product(r);
    for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
      if (!is_addition(i)) continue;
      for (const uint32_t r : accesses_[i].reads) {
        if (!product(r) || additions[r] != uses_[r]) continue;
        fused_[defined_by_[r]] = true;
        fuses_[i] = defined_by_[r];
        break;
      }
    }
  }

  /// Which registers only ever hold a parameter of the kernel: machine code reads it from the constant bank
  /// where PTX reads the register.
  void find_parameters() {
    constant_of_.assign(function_->registers.size(), StaticInstruction::no_constant);
    if (!function_->entry) return;
    const uint32_t begin = sm_ >= 90 ? hopper_parameters : sm_ >= 70 ? volta_parameters : kepler_parameters;
    const std::vector<uint64_t> offsets = ptx::parameter_offsets(function_->parameters);
    for (uint32_t i = 0; i < function_->instructions.size(); ++i) {
      const ptx::Instruction& instruction = function_->instructions[i];
      const ptx::Access& access = accesses_[i];
      const bool is_copy = opcode(i) == "cvta" || opcode(i) == "mov";
      if (is_copy && access.reads.size() == 1 && access.writes.size() == 1) {
        if (defined_by_[access.writes[0]] == i)
          constant_of_[access.writes[0]] = constant_of_[access.reads[0]];
        continue;
      }
      if (opcode(i) != "ld" || !(has(i, "param") || has(i, "param::entry"))) continue;
      const ptx::Operand& value = function_->operands[instruction.first_operand];
      const ptx::Operand& address = function_->operands[instruction.first_operand + 1];
      if (address.kind != OperandKind::Address) continue;
      const ptx::Operand& base = function_->operands[address.first_part];
      if (base.kind != OperandKind::Variable || !base.local || base.index >= offsets.size()) continue;
      const uint64_t offset = begin + offsets[base.index] + static_cast<uint64_t>(base.value + address.value);
      const bool vector = value.kind == OperandKind::Vector;
      for (uint32_t k = 0; k < (vector ? value.part_count : 1); ++k) {
        const ptx::Operand& part = vector ? function_->operands[value.first_part + k] : value;
        if (part.kind == OperandKind::Register && defined_by_[part.index] == i &&
            offset < constant_bank_bytes)
          constant_of_[part.index] = static_cast<uint32_t>(offset + k * ptx::bytes(type(i)));
      }
    }
  }

  const ptx::Mnemonic& mnemonic(uint32_t i) const {
    return program_.module.mnemonics[function_->instructions[i].mnemonic];
  }
  string_view opcode(uint32_t i) const { return mnemonic(i).opcode; }
  bool has(uint32_t i, string_view modifier) const { return mnemonic(i).has(modifier); }
  bool ends_with(uint32_t i, string_view tail) const {
    const auto& m = mnemonic(i).modifiers;
    return !m.empty() && m.back().ends_with(tail);
  }
  Type type(uint32_t i) const {
    const auto& m = mnemonic(i).modifiers;
    for (size_t k = m.size(); k-- > 0;)
      if (const Type t = ptx::type_named(m[k]); t != Type::None) return t;
    return Type::None;
  }
  /// The k-th type among the modifiers (cvt has two).
  Type type(uint32_t i, uint32_t k) const {
    for (const string_view m : mnemonic(i).modifiers)
      if (const Type t = ptx::type_named(m); t != Type::None && k-- == 0) return t;
    return Type::None;
  }

  std::vector<Place32> places(const std::vector<uint32_t>& registers) const {
    std::vector<Place32> result;
    for (const uint32_t r : registers) {
      const Type t = function_->registers[r].type;
      const uint32_t at = code_->places[r];
      if (at == ptx::RegisterAllocation::unused) continue;
      if (t == Type::Pred)
        result.push_back({at, 1, true});
      else
        result.push_back({at, std::max(1u, ptx::bytes(t) / 4), false});
    }
    return result;
  }

  /// Vectors of loads, stores and matrix instructions whose registers lie one behind the other become what
  /// machine code names: the first register, of each 128 bits.
  void join_vectors(uint32_t i) {
    const string_view o = opcode(i);
    const bool access = o == "ld" || o == "st";
    if (!access && o != "ldmatrix" && o != "stmatrix" && o != "mma") return;
    const ptx::Instruction& instruction = function_->instructions[i];
    for (uint32_t k = 0; k < instruction.operand_count; ++k) {
      const ptx::Operand& vector = function_->operands[instruction.first_operand + k];
      if (vector.kind != OperandKind::Vector) continue;
      std::vector<uint32_t> registers;
      for (uint32_t part = 0; part < vector.part_count; ++part)
        if (const auto& o2 = function_->operands[vector.first_part + part]; o2.kind == OperandKind::Register)
          registers.push_back(o2.index);
      const std::vector<Place32> parts = places(registers);
      if (parts.size() != vector.part_count) continue;
      bool row = true;
      for (size_t p = 1; p < parts.size(); ++p)
        row &= !parts[p].predicate && parts[p].first == parts[p - 1].first + parts[p - 1].count;
      if (!row) continue;
      const uint32_t begin = parts.front().first, end = parts.back().first + parts.back().count;
      const uint32_t bytes = std::min(16u, ptx::bytes(type(i)) * vector.part_count);
      const uint32_t width = access ? (bytes + 3) / 4 : end - begin;
      for (std::vector<Place32>* list : {&reads_, &writes_}) {
        const auto inside = [&](const Place32& p) {
          return !p.predicate && p.first >= begin && p.first < end;
        };
        const auto at = std::find_if(list->begin(), list->end(), inside) - list->begin();
        if (std::erase_if(*list, inside) == 0) continue;
        std::vector<Place32> pieces;
        for (uint32_t first = begin; first < end; first += width)
          pieces.push_back({first, std::min(width, end - first), false});
        list->insert(list->begin() + at, pieces.begin(), pieces.end());
      }
    }
  }

  // --- emitting ---------------------------------------------------------------------------------------

  void begin() {
    first_ = static_cast<uint32_t>(result_.instructions.size());
    access_ = UINT32_MAX;
    reads_.clear();
    writes_.clear();
  }

  RawInstruction& add(const std::string& sass) {
    RawInstruction raw;
    raw.pc = result_.instructions.size() * instruction_bytes;
    const auto [it, is_new] = opcode_index_.emplace(sass, static_cast<uint32_t>(result_.opcodes.size()));
    if (is_new) result_.opcodes.push_back(sass);
    raw.opcode = it->second;
    raw.source_line = line_;
    result_.instructions.push_back(raw);
    return result_.instructions.back();
  }

  static Register as_register(const Place32& p, uint32_t offset, uint32_t width) {
    Register r;
    if (p.predicate) {
      r.file = RegisterFile::Predicate;
      r.index = static_cast<uint16_t>(p.first % 7);
      return r;
    }
    r.index = static_cast<uint16_t>((p.first + offset) % general_registers);
    r.width = static_cast<uint8_t>(width);
    return r;
  }
  static void read(RawInstruction& raw, const Place32& p) {
    if (raw.source_count < StaticInstruction::max_registers)
      raw.sources[raw.source_count++] = as_register(p, 0, p.count);
  }
  static void write(RawInstruction& raw, const Place32& p) {
    if (raw.destination_count < StaticInstruction::max_registers)
      raw.destinations[raw.destination_count++] = as_register(p, 0, p.count);
  }
  static void read_part(RawInstruction& raw, const Place32& p, uint32_t part) {
    if (raw.source_count < StaticInstruction::max_registers)
      raw.sources[raw.source_count++] = as_register(p, p.count > 1 ? part : 0, 1);
  }
  static void write_part(RawInstruction& raw, const Place32& p, uint32_t part) {
    if (raw.destination_count < StaticInstruction::max_registers)
      raw.destinations[raw.destination_count++] = as_register(p, p.count > 1 ? part : 0, 1);
  }

  /// One instruction that reads and writes what the PTX instruction does.
  RawInstruction& one(const std::string& sass) {
    RawInstruction& raw = add(sass);
    for (const Place32& p : reads_) read(raw, p);
    for (const Place32& p : writes_) write(raw, p);
    return raw;
  }
  /// A pair over the low and high halves of 64-bit registers.
  void halves(const std::string& low, const std::string& high) {
    for (uint32_t part = 0; part < 2; ++part) {
      RawInstruction& raw = add(part ? high : low);
      for (const Place32& p : reads_) read_part(raw, p, part);
      for (const Place32& p : writes_) write_part(raw, p, part);
    }
  }
  /// A sequence in which each instruction needs the one before it.
  void chain(std::initializer_list<const char*> sass) {
    bool is_first = true;
    for (const char* text : sass) {
      RawInstruction& raw = add(text);
      for (const Place32& p : is_first ? reads_ : writes_) read(raw, p);
      for (const Place32& p : writes_) write(raw, p);
      is_first = false;
    }
  }
  void repeat(uint32_t times, const char* sass) {
    for (uint32_t k = 0; k < times; ++k) {
      RawInstruction& raw = add(sass);
      for (const Place32& p : k == 0 ? reads_ : writes_) read(raw, p);
      for (const Place32& p : writes_) write(raw, p);
    }
  }
  RawInstruction& memory(const std::string& sass, uint32_t bytes, AddressKind kind = AddressKind::Lanes) {
    access_ = static_cast<uint32_t>(result_.instructions.size()) - first_;
    RawInstruction& raw = one(sass);
    raw.addresses = kind;
    raw.memory_bytes = bytes;
    return raw;
  }

  void end(uint32_t op, uint32_t op_end, uint32_t instruction) {
    if (op >= op_end) return;
    const auto last = static_cast<uint32_t>(result_.instructions.size());
    for (uint32_t k = op; k < op_end; ++k) result_.of_op[k] = {last, 0, UINT32_MAX};
    // Calls may copy arguments first; what is deferred must have its access.
    uint32_t bearer = op;
    for (uint32_t k = op; k < op_end; ++k)
      if (program_.code[k].control == Control::Deferred) bearer = k;
    result_.of_op[bearer] = {first_, last - first_, access_};
    if (instruction == UINT32_MAX) return;
    const auto list = [&](const std::vector<Place32>& places_of) {
      const auto at = static_cast<uint32_t>(result_.touched.size());
      for (const Place32& p : places_of)
        for (uint32_t k = 0; k < p.count; ++k)
          result_.touched.push_back(p.predicate ? predicate_flag + p.first : p.first + k);
      return Lowering::Registers{at, static_cast<uint32_t>(result_.touched.size()) - at};
    };
    // What an instruction overwrites must have returned, too.
    auto touched = places(accesses_[instruction].reads);
    const auto written = places(accesses_[instruction].writes);
    touched.insert(touched.end(), written.begin(), written.end());
    const auto reads = list(touched), writes = list(written);
    for (uint32_t k = op; k < op_end; ++k) {
      result_.reads_of_op[k] = reads;
      result_.writes_of_op[k] = writes;
    }
  }

  // --- rules -------------------------------------------------------------------------------------------

  /// A value that costs nothing: later readers in the block wait for what it was copied from.
  void copy() {
    if (reads_.size() == 1 && writes_.size() == 1 && !reads_[0].predicate)
      copies_[writes_[0].first] = reads_[0];
  }

  void lower_instruction(uint32_t i, uint32_t op, uint32_t op_end) {
    begin();
    const ptx::Instruction& instruction = function_->instructions[i];
    line_ = program_.module.locations[instruction.location].line;
    reads_ = places(accesses_[i].reads);
    writes_ = places(accesses_[i].writes);
    // Machine code names addresses and values first; the guard is read before them.
    if (instruction.guard >= 0) std::rotate(reads_.begin(), reads_.begin() + 1, reads_.end());
    join_vectors(i);
    for (size_t k = 0, count = reads_.size(); k < count; ++k) {
      const Place32 p = reads_[k];
      if (p.predicate) continue;
      for (auto it = copies_.lower_bound(p.first); it != copies_.end() && it->first < p.first + p.count; ++it)
        if (it->first == p.first && it->second.count == p.count)
          reads_[k] = it->second;
        else  // a part of a vector
          reads_.push_back(it->second);
    }
    for (const Place32& w : writes_) {
      const auto written = [&](uint32_t place) { return place >= w.first && place < w.first + w.count; };
      std::erase_if(copies_, [&](const auto& c) { return written(c.first) || written(c.second.first); });
    }
    deferred_ = false;
    for (uint32_t k = op; k < op_end; ++k) deferred_ |= program_.code[k].control == Control::Deferred;
    rule(i);
    name_constant(i);
    end(op, op_end, i);
  }

  /// The first machine instruction of those that a PTX instruction becomes reads the parameter that it reads.
  void name_constant(uint32_t i) {
    if (first_ == result_.instructions.size()) return;
    uint32_t& operand = result_.instructions[first_].constant_operand;
    const auto look_for = [&](uint32_t instruction) {
      for (const uint32_t r : accesses_[instruction].reads)
        if (operand == StaticInstruction::no_constant) operand = constant_of_[r];
    };
    look_for(i);
    if (fuses_[i] != UINT32_MAX) look_for(fuses_[i]);
  }

  static std::string width_suffix(uint32_t bytes) {
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

  void load_or_store(uint32_t i, bool load) {
    const uint32_t vector = has(i, "v8") ? 8 : has(i, "v4") ? 4 : has(i, "v2") ? 2 : 1;
    const uint32_t bytes = std::min(16u, std::max(1u, ptx::bytes(type(i))) * vector);
    const std::string width = width_suffix(bytes);
    const bool param = has(i, "param") || has(i, "param::entry") || has(i, "param::func");
    if (param) {
      // Parameters of kernels lie in the constant bank, those of functions mostly in registers.
      if (!function_->entry) one(load ? "MOV" : "MOV");
      return;
    }
    const bool strong = has(i, "volatile") || has(i, "relaxed") || has(i, "acquire") || has(i, "release");
    const std::string scope = !strong                               ? ""
                              : has(i, "cta")                       ? ".STRONG.SM"
                              : has(i, "sys") || has(i, "volatile") ? ".STRONG.SYS"
                                                                    : ".STRONG.GPU";
    if (has(i, "shared") || has(i, "shared::cta") || has(i, "shared::cluster")) {
      memory((load ? "LDS" : "STS") + width, bytes);
    } else if (has(i, "local")) {
      memory((load ? "LDL" : "STL") + width, bytes);
    } else if (has(i, "const")) {
      memory("LDC" + width, bytes);
    } else if (has(i, "global")) {
      std::string cache = has(i, "nc") ? ".CONSTANT" : has(i, "cg") ? ".CG" : has(i, "cv") ? ".CV" : "";
      memory((load ? "LDG.E" : "STG.E") + width + cache + scope, bytes);
    } else {
      memory((load ? "LD.E" : "ST.E") + width + scope, bytes);
    }
  }

  void atomic(uint32_t i, bool returns) {
    const uint32_t vector = has(i, "v8") ? 8 : has(i, "v4") ? 4 : has(i, "v2") ? 2 : 1;
    const uint32_t bytes = std::max(4u, ptx::bytes(type(i)) * vector);
    std::string what = ".ADD";
    for (const char* name : {"min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"})
      if (has(i, name)) {
        what = name;
        std::transform(what.begin(), what.end(), what.begin(),
                       [](char c) { return static_cast<char>(std::toupper(c)); });
        what = "." + what;
      }
    const std::string width = bytes > 4 ? ".64" : "";
    if (has(i, "shared") || has(i, "shared::cta") || has(i, "shared::cluster")) {
      if (ptx::is_float(type(i)) && what == ".ADD")
        // Shared memory adds no floating-point numbers: a loop of compare-and-swap.
        chain({"LDS", "FADD"});
      memory("ATOMS" + what + width, bytes);
    } else if (returns) {
      memory((has(i, "global") ? "ATOMG.E" : "ATOM.E") + what + width + ".STRONG.GPU", bytes);
    } else {
      memory("RED.E" + what + width + ".STRONG.GPU", bytes);
    }
  }

  void surface(uint32_t i) {
    const string_view o = opcode(i);
    const uint32_t vector = has(i, "v4") ? 4 : has(i, "v2") ? 2 : 1;
    const uint32_t bytes = std::max(1u, ptx::bytes(type(i))) * vector;
    std::string name = o == "suld" ? "SULD" : o == "sust" ? "SUST" : "SURED";
    name += has(i, "p") ? ".P" : ".D.BA";
    for (const char* geometry : {"1d", "2d", "3d", "a1d", "a2d"}) {
      const string_view g = geometry;
      if (has(i, g))
        name += g[0] == 'a' ? "." + std::string(1, g[1]) + "D_ARRAY" : "." + std::string(1, g[0]) + "D";
    }
    if (o == "sured") {
      const char* what = has(i, "min")   ? ".MIN"
                         : has(i, "max") ? ".MAX"
                         : has(i, "and") ? ".AND"
                         : has(i, "or")  ? ".OR"
                                         : ".ADD";
      memory(name + what + (bytes == 8 ? ".64" : "") + ".STRONG.SYS", bytes);
      return;
    }
    memory(name + width_suffix(bytes) + ".STRONG.SM", bytes);
  }

  void matrix(uint32_t i) {
    const auto& modifiers = mnemonic(i).modifiers;
    std::vector<Type> types;
    string_view shape;
    for (const string_view m : modifiers) {
      if (m.size() > 3 && m[0] == 'm' && m.find('n') != string_view::npos && m.find('k') != string_view::npos)
        shape = m;
      if (const Type t = ptx::type_named(m); t != Type::None) types.push_back(t);
    }
    uint32_t size_m = 0, size_n = 0, size_k = 0;
    std::sscanf(std::string(shape).c_str(), "m%un%uk%u", &size_m, &size_n, &size_k);
    const Type a = types.size() > 1 ? types[1] : types.empty() ? Type::F16 : types[0];
    const bool wide = !types.empty() && types[0] == Type::F32;
    const std::string tail = wide ? ".F32" : ".F16";
    if (a == Type::F64) {
      one("DMMA.884");
    } else if (a == Type::U8 || a == Type::S8) {
      if (sm_ < 80 || size_m == 8)
        repeat(std::max(1u, size_m * size_n * size_k / 1024), "IMMA.8816.S8.S8");
      else if (size_m == 16 && size_n == 16)
        repeat(2, "IMMA.16816.S8.S8");
      else
        one(size_k == 16 ? "IMMA.16816.S8.S8" : "IMMA.16832.S8.S8");
    } else if (a == Type::U4 || a == Type::S4) {
      one(size_k == 32 ? "IMMA.8832.S4.S4" : "IMMA.16864.S4.S4");
    } else if (a == Type::B1) {
      one("BMMA.168256.XOR.POPC");
    } else if (a == Type::TF32) {
      one(size_k == 4 ? "HMMA.1684.F32.TF32" : "HMMA.1688.F32.TF32");
    } else if (sm_ < 75) {
      // Volta: four steps for 8x8x4, sixteen HMMA for a 16x16x16 tile.
      repeat(std::max(1u, size_m * size_n * size_k / 256), wide ? "HMMA.884.F32.F32" : "HMMA.884.F16.F16");
    } else {
      const std::string bf = a == Type::BF16 ? ".BF16" : "";
      const uint32_t work = size_m * size_n * size_k;
      if (sm_ < 80 || work <= 1024)
        for (uint32_t k = 0; k < std::max(1u, work / 1024); ++k) one("HMMA.1688" + tail + bf);
      else
        for (uint32_t k = 0; k < std::max(1u, work / 2048); ++k) one("HMMA.16816" + tail + bf);
    }
  }

  void division(uint32_t i, bool remainder) {
    const Type t = type(i);
    if (t == Type::F32) {
      if (has(i, "approx")) return chain({"MUFU.RCP", "FMUL"});
      if (has(i, "full")) return chain({"MUFU.RCP", "FMUL", "FFMA", "FMUL"});
      return chain({"MUFU.RCP", "FFMA", "FFMA", "FFMA", "FFMA", "FFMA", "FCHK", "FFMA"});
    }
    if (t == Type::F64)
      return chain({"MUFU.RCP64H", "DFMA", "DFMA", "DFMA", "DFMA", "DMUL", "DFMA", "DFMA", "FFMA"});
    if (ptx::bytes(t) == 8) {
      chain({"I2F.U64.RP", "MUFU.RCP", "IADD3", "F2I.U64.TRUNC"});
      repeat(14, "IMAD.WIDE.U32");
      repeat(remainder ? 28 : 26, "IADD3");
      return;
    }
    // Reciprocal in floating point, then two corrections.
    chain({"I2F.RP", "MUFU.RCP", "IADD3", "F2I.FTZ.U32.TRUNC", "IMAD", "IMAD.HI.U32", "IMAD.HI.U32", "IMAD",
           "ISETP", "IADD3", "ISETP", "IADD3"});
    if (remainder) one("IMAD");
    if (ptx::is_signed(t)) repeat(3, "IABS");
  }

  void conversion(uint32_t i) {
    const Type to = type(i, 0), from = type(i, 1);
    const bool to_float = ptx::is_float(to), from_float = ptx::is_float(from);
    if (to_float && from_float) {
      const bool small = ptx::bytes(to) <= 2 || ptx::bytes(from) <= 2;
      if (has(i, "rni") || has(i, "rzi") || has(i, "rmi") || has(i, "rpi")) {
        one(ptx::bytes(to) == 8 ? "FRND.F64" : "FRND");
      } else if (ptx::bytes(to) == 8 || ptx::bytes(from) == 8) {
        one(ptx::bytes(to) == 8 ? "F2F.F64.F32" : "F2F.F32.F64");
      } else if (small) {
        one(ptx::bytes(from) <= 2 ? "HADD2.F32" : sm_ >= 80 ? "F2FP.PACK_AB" : "F2F.F16.F32");
      } else {
        one("FADD");
      }
      return;
    }
    if (to_float) {
      one(ptx::bytes(to) == 8                  ? "I2F.F64"
          : ptx::bytes(from) == 8              ? "I2F.S64"
          : sm_ >= 80 && ptx::bytes(from) == 4 ? "I2FP.F32.S32"
                                               : "I2F");
      return;
    }
    if (from_float) {
      one(ptx::bytes(from) == 8 ? "F2I.F64.TRUNC" : ptx::bytes(to) == 8 ? "F2I.S64.TRUNC" : "F2I.TRUNC.NTZ");
      return;
    }
    if (ptx::bytes(to) == 8 && ptx::bytes(from) == 4) {
      // The low half is a copy; the high half is the sign or zero.
      one(ptx::is_signed(from) ? "SHF.R.S32.HI" : "IMAD.MOV.U32");
      return;
    }
    if (ptx::bytes(to) == 4 && ptx::bytes(from) >= 4) return copy();
    one(ptx::bytes(from) == 1 || ptx::bytes(to) == 1 ? "LOP3.LUT" : "PRMT");
  }

  void special_function(uint32_t i, const char* mufu) {
    if (type(i) == Type::F64) return chain({"MUFU.RSQ64H", "DMUL", "DFMA", "DFMA", "DFMA", "DFMA"});
    const std::string_view o = opcode(i);
    if (o == "sin" || o == "cos") {
      chain({"FMUL.RZ", mufu});
    } else if (has(i, "ftz") || ptx::bytes(type(i)) < 4 || o == "tanh") {
      one(mufu);
    } else {
      // Subnormal inputs are scaled up and the result back.
      chain({"FSETP", "FMUL", mufu, "FMUL"});
    }
  }

  /// Video instructions: about as many as ptxas 12.9 makes of them (sm_75 to sm_90), mostly logic and
  /// permutes.
  void video(uint32_t i) {
    const string_view o = opcode(i);
    const bool is_signed = ptx::is_signed(type(i, 1)) || ptx::is_signed(type(i, 2));
    const char last = o.back();
    const string_view name = last == '2' || last == '4' ? o.substr(1, o.size() - 2) : o.substr(1);
    const bool extreme = name == "min" || name == "max", difference = name == "absdiff", sets = name == "set";
    if (last == '4') {
      if (difference && !is_signed) return void(one("VABSDIFF4"));
      return repeat(sets ? 27 : name == "avrg" || is_signed ? 31 : extreme ? 19 : 4, "LOP3.LUT");
    }
    if (last == '2')
      return repeat(sets ? 14 : difference ? 12 : is_signed ? 17 : extreme ? 5 : 4, "LOP3.LUT");
    repeat(sets ? 7 : has(i, "sat") ? 8 : difference ? 5 : extreme ? 4 : 2, "LOP3.LUT");
  }

  void rule(uint32_t i) {
    const string_view o = opcode(i);
    const Type t = type(i);
    const uint32_t bytes = ptx::bytes(t);
    const bool wide = bytes == 8, floating = ptx::is_float(t);
    const bool half = floating && t != Type::F32 && t != Type::F64 && t != Type::F32x2 && t != Type::TF32;
    if (o == "ld" || o == "ldu") return load_or_store(i, true);
    if (o == "st") return load_or_store(i, false);
    if (o == "atom") return atomic(i, true);
    if (o == "red") return atomic(i, false);
    if (o == "mov") {
      const ptx::Operand& s = function_->operands[function_->instructions[i].first_operand + 1];
      if (s.kind == OperandKind::Special) {
        one(s.text.starts_with("clock") ? "CS2R" : "S2R");
      } else if (s.kind == OperandKind::Vector ||
                 function_->operands[function_->instructions[i].first_operand].kind == OperandKind::Vector) {
        // Halves of a register pair need no instruction, pieces of one register do.
        bool pieces = false;
        for (const auto& p : reads_) pieces |= p.count == 1 && writes_.size() > 1;
        for (const auto& p : writes_) pieces |= p.count == 1 && reads_.size() > 1;
        if (pieces) one("PRMT");
      } else if (reads_.empty()) {
        if (writes_.size() == 1 && writes_[0].count == 2)
          halves("IMAD.MOV.U32", "IMAD.MOV.U32");
        else
          one("IMAD.MOV.U32");
      } else if (!(reads_.size() == 1 && writes_.size() == 1 && reads_[0].first == writes_[0].first)) {
        copy();
      }
      return;
    }
    if (o == "cvta") return copy();
    if (o == "cvt") return conversion(i);
    if (o == "add" || o == "sub") {
      if (floating) {
        if (half)
          one("HADD2");
        else
          one(wide ? "DADD" : "FADD");
        return;
      }
      if (!wide) {
        one("IADD3");
        return;
      }
      if (const uint32_t m = fuses_[i]; m != UINT32_MAX) {
        auto factors = places(accesses_[m].reads);
        std::erase_if(reads_,
                      [&](const Place32& p) { return p.first == places(accesses_[m].writes)[0].first; });
        reads_.insert(reads_.begin(), factors.begin(), factors.end());
        one("IMAD.WIDE");
        return;
      }
      return halves("IADD3", "IADD3.X");
    }
    if (o == "addc" || o == "subc") return void(one("IADD3.X"));
    if (o == "mul" || o == "mad" || o == "fma" || o == "mul24" || o == "mad24" || o == "madc") {
      if (floating) {
        const bool fused = o != "mul";
        if (half)
          one(fused ? "HFMA2" : "HMUL2");
        else
          one(wide ? (fused ? "DFMA" : "DMUL") : (fused ? "FFMA" : "FMUL"));
        return;
      }
      if (fused_[i]) return;
      if (has(i, "wide")) return void(one("IMAD.WIDE"));
      if (!wide) return void(one(has(i, "hi") ? "IMAD.HI" : "IMAD"));
      return chain({"IMAD.WIDE.U32", "IMAD", "IMAD"});
    }
    if (o == "div") return division(i, false);
    if (o == "rem") return division(i, true);
    if (o == "rcp") {
      if (has(i, "approx")) return special_function(i, "MUFU.RCP");
      if (t == Type::F64) return chain({"MUFU.RCP64H", "DFMA", "DFMA", "DFMA", "DFMA"});
      return chain({"MUFU.RCP", "FFMA", "FADD", "FFMA"});
    }
    if (o == "sqrt") {
      if (t == Type::F64)
        return chain({"MUFU.RSQ64H", "DMUL", "DFMA", "DFMA", "DFMA", "DMUL", "DFMA", "DFMA"});
      if (has(i, "approx")) return special_function(i, "MUFU.SQRT");
      return chain({"MUFU.RSQ", "ISETP", "FMUL", "FMUL", "FFMA", "FFMA"});
    }
    if (o == "rsqrt") return special_function(i, "MUFU.RSQ");
    if (o == "ex2") return special_function(i, "MUFU.EX2");
    if (o == "lg2") return special_function(i, "MUFU.LG2");
    if (o == "sin") return special_function(i, "MUFU.SIN");
    if (o == "cos") return special_function(i, "MUFU.COS");
    if (o == "tanh") return special_function(i, "MUFU.TANH");
    if (o == "setp" || o == "set") {
      if (half)
        one("HSETP2");
      else if (floating)
        one(wide ? "DSETP" : "FSETP");
      else if (wide)
        chain({"ISETP", "ISETP.EX"});
      else
        one("ISETP");
      return;
    }
    if (o == "selp" || o == "slct") {
      if (wide)
        halves("SEL", "SEL");
      else
        one(floating ? "FSEL" : "SEL");
      return;
    }
    if (o == "min" || o == "max") {
      if (half)
        one("HMNMX2");
      else if (floating)
        wide ? chain({"DSETP", "FSEL", "FSEL"}) : void(one("FMNMX"));
      else
        wide ? chain({"ISETP", "ISETP.EX", "SEL", "SEL"}) : void(one("IMNMX"));
      return;
    }
    if (o == "abs" || o == "neg" || o == "copysign") {
      if (floating)
        one(half ? "HADD2" : wide ? "DADD" : "FADD");
      else
        wide ? halves("IADD3", "IADD3.X") : void(one(o == "abs" ? "IABS" : "IADD3"));
      return;
    }
    if (o == "and" || o == "or" || o == "xor" || o == "not" || o == "lop3" || o == "cnot") {
      if (t == Type::Pred)
        one("PLOP3.LUT");
      else if (wide)
        halves("LOP3.LUT", "LOP3.LUT");
      else
        one("LOP3.LUT");
      return;
    }
    if (o == "shl" || o == "shr" || o == "shf") {
      if (wide)
        halves("SHF.L.U32", "SHF.L.U64.HI");
      else
        one("SHF.L.U32");
      return;
    }
    if (o == "bfe" || o == "szext") return chain({"SHF.R.U32.HI", "SGXT"});
    if (o == "bfi" || o == "bmsk") return chain({"BMSK", "LOP3.LUT"});
    if (o == "popc") return wide ? chain({"POPC", "POPC", "IADD3"}) : void(one("POPC"));
    if (o == "clz" || o == "bfind" || o == "fns") return chain({"FLO.U32", "IADD3"});
    if (o == "brev") return void(one("BREV"));
    if (o == "prmt") return void(one("PRMT"));
    if (o == "dp4a" || o == "dp2a") return void(one("IDP.4A"));
    if (o == "sad") return void(chain({"IADD3", "IABS", "IADD3"}));
    if (o == "testp") return void(one("FSETP"));
    if (o == "shfl") return void(one("SHFL.IDX"));
    if (o == "vote" || o == "activemask") return void(one("VOTE.ANY"));
    if (o == "match") return void(one("MATCH.ANY"));
    if (o == "redux") return void(one("REDUX"));
    if (o == "elect") return void(one("ELECT"));
    if (o == "bra") return void(one("BRA"));
    if (o == "brx") return void(one("BRX"));
    if (o == "call") {
      // Ordered functions of the system change what all threads share: one atomic operation stands for them.
      if (deferred_) return void(memory("ATOMG.E.EXCH.64.STRONG.GPU", 8));
      return void(one("CALL.REL.NOINC"));
    }
    if (o == "ret") return void(one(function_->entry ? "EXIT" : "RET.REL.NODEC"));
    if (o == "exit") return void(one("EXIT"));
    if (o == "trap" || o == "brkpt") return void(one("BPT.TRAP"));
    if (o == "bar" || o == "barrier") {
      if (has(i, "warp")) return void(one("WARPSYNC"));
      if (has(i, "cluster")) return void(one("UCGABAR_ARV"));
      barrier(i);
      return;
    }
    if (o == "membar" || o == "fence") {
      const bool narrow = has(i, "cta");
      if (!has(i, "proxy") && !has(i, "mbarrier_init")) one(narrow ? "MEMBAR.ALL.CTA" : "MEMBAR.SC.GPU");
      return;
    }
    if (o == "cp") {
      if (has(i, "bulk")) {
        if (has(i, "commit_group")) return void(one("UTMACMDFLUSH"));
        if (has(i, "wait_group")) return void(one("DEPBAR"));
        // From global memory into shared memory, or out of it.
        const auto& m = mnemonic(i).modifiers;
        const auto global = std::find(m.begin(), m.end(), "global");
        const auto shared =
            std::find_if(m.begin(), m.end(), [](string_view x) { return x.starts_with("shared"); });
        const bool stores = global < shared;
        const bool tensor = has(i, "tensor");
        memory(stores ? (tensor ? "UTMASTG" : "UBLKCP.G.S") : (tensor ? "UTMALDG" : "UBLKCP.S.G"), 16,
               AddressKind::Bulk);
        return;
      }
      if (has(i, "commit_group")) return void(one("LDGDEPBAR"));
      if (has(i, "wait_group") || has(i, "wait_all")) {
        RawInstruction& raw = one("DEPBAR.LE");
        if (has(i, "wait_group"))
          raw.immediate = function_->operands[function_->instructions[i].first_operand].value;
        return;
      }
      if (has(i, "mbarrier")) return void(one("ARRIVES.LDGSTSBAR"));
      const auto& operands = function_->instructions[i];
      const auto size = static_cast<uint32_t>(
          operands.operand_count > 2 ? function_->operands[operands.first_operand + 2].value : 4);
      memory("LDGSTS.E" + std::string(has(i, "cg") ? ".BYPASS" : "") + width_suffix(size), size);
      return;
    }
    if (o == "mbarrier") {
      const bool waits = has(i, "try_wait") || has(i, "test_wait");
      if (waits || has(i, "arrive") || has(i, "expect_tx"))
        memory(waits ? "SYNCS.PHASECHK.TRANS64" : "SYNCS.ARRIVE.TRANS64", 8);
      else
        one("SYNCS.EXCH.64");
      return;
    }
    if (o == "ldmatrix" || o == "stmatrix") {
      const std::string count = has(i, "x4") ? ".4" : has(i, "x2") ? ".2" : "";
      memory((o == "ldmatrix" ? "LDSM.16.M88" : "STSM.16.M88") + count, 16);
      return;
    }
    if (o == "movmatrix") return void(one("MOVM.16.MT88"));
    if (o == "mma") return matrix(i);
    if (o == "wmma") {
      if (has(i, "mma")) return matrix(i);
      const uint32_t count =
          std::max<uint32_t>(1, static_cast<uint32_t>(std::max(reads_.size(), writes_.size())) / 4);
      const bool shared = has(i, "shared");
      for (uint32_t k = 0; k + 1 < count; ++k) one(has(i, "store") ? "IADD3" : "IADD3");
      memory(shared ? (has(i, "store") ? "STS.64" : "LDS.64") : (has(i, "store") ? "STG.E.64" : "LDG.E.64"),
             8);
      return;
    }
    if (o == "wgmma") {
      if (!has(i, "mma_async")) return void(one("WARPGROUP.ARRIVE"));
      for (const string_view m : mnemonic(i).modifiers) {
        if (m.size() < 4 || m[0] != 'm' || m[1] < '0' || m[1] > '9') continue;
        std::string shape(m.substr(1));
        std::replace(shape.begin(), shape.end(), 'n', 'x');
        std::replace(shape.begin(), shape.end(), 'k', 'x');
        const Type a = type(i, 1);
        const bool whole = a == Type::S8 || a == Type::U8;
        one((whole                                ? "IGMMA."
             : a == Type::E4M3 || a == Type::E5M2 ? "QGMMA."
                                                  : "HGMMA.") +
            shape + (whole ? ".S32" : ".F32") + (a == Type::TF32 ? ".TF32" : ""));
        return;
      }
      return;
    }
    if (o == "tex" || o == "tld4") {
      const bool by_texel = ends_with(i, "s32");
      memory(o == "tld4" ? "TLD4.R" : has(i, "grad") ? "TXD" : by_texel ? "TLD.LZ" : "TEX.LL", 4);
      return;
    }
    if (o == "txq" || o == "suq") return void(one("TXQ"));
    if (o == "suld" || o == "sust" || o == "sured") return surface(i);
    if (o == "prefetch" || o == "prefetchu" || o == "discard" || o == "applypriority" ||
        o == "createpolicy" || o == "pmevent" || o == "griddepcontrol" || o == "setmaxnreg")
      return void(one("NOP"));
    if (o == "nanosleep") {
      RawInstruction& raw = one("NANOSLEEP");
      const ptx::Operand& length = function_->operands[function_->instructions[i].first_operand];
      if (length.kind == OperandKind::Integer) raw.immediate = length.value;
      return;
    }
    if (o.starts_with("v") && o != "vote") return video(i);
    if (o == "mapa" || o == "getctarank") return void(one("PRMT"));
    one("IADD3");
  }

  void barrier(uint32_t i) {
    const ptx::Instruction& instruction = function_->instructions[i];
    access_ = 0;
    const bool arrives = has(i, "arrive"), reduces = has(i, "red");
    RawInstruction& raw = one(arrives   ? "BAR.ARV"
                              : reduces ? "BAR.RED.POPC.DEFER_BLOCKING"
                                        : "BAR.SYNC.DEFER_BLOCKING");
    const uint32_t skip = reduces ? 1 : 0;
    const auto operand = [&](uint32_t k) -> const ptx::Operand* {
      return k < instruction.operand_count ? &function_->operands[instruction.first_operand + k] : nullptr;
    };
    const ptx::Operand* id = operand(skip);
    const ptx::Operand* threads = reduces && instruction.operand_count < 4 ? nullptr : operand(skip + 1);
    const bool known =
        (!id || id->kind == OperandKind::Integer) && (!threads || threads->kind == OperandKind::Integer);
    raw.immediate = !known ? -1 : id ? id->value : 0;
    raw.immediate2 = known && threads ? threads->value : 0;
    if (reduces) chain({"B2R.RESULT"});
  }

  const Program& program_;
  uint32_t sm_;
  Lowering result_;
  std::unordered_map<std::string, uint32_t> opcode_index_;
  const FunctionCode* code_ = nullptr;
  const ptx::Function* function_ = nullptr;
  ptx::ControlFlow flow_;
  std::vector<ptx::Access> accesses_;
  std::vector<uint32_t> uses_, defined_by_, fuses_;
  std::vector<uint32_t> constant_of_;  ///< by register: where in the constant bank its value lies, if there
  std::vector<bool> fused_;
  std::map<uint32_t, Place32> copies_;  // free copies of the block: place -> what it holds
  std::vector<Place32> reads_, writes_;
  bool deferred_ = false;  ///< the instruction has an Op of that kind
  uint32_t first_ = 0, access_ = UINT32_MAX, line_ = 0;
};

}  // namespace

Lowering lower(const Program& program, uint32_t sm_version) {
  return Lowerer(program, sm_version).run();
}

}  // namespace simt::functional
