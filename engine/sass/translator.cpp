/// All code of a cubin: its sections one after the other, then the functions of the system that it calls.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include "machine/calls.hpp"
#include "machine/clock_wait.hpp"
#include "machine/machine_operands.hpp"
#include "machine/round_up.hpp"
#include "operations/builtins.hpp"
#include "operations/mbarrier.hpp"
#include "sass/instructions.hpp"
#include "sass/translation.hpp"

namespace simt::sass {

class Translator {
 public:
  explicit Translator(const Module& module, std::vector<Refusal>* refused = nullptr)
      : module_(module), refused_(refused), t_(module, result_) {}

  Translated run() {
    sections();
    program().system_code = static_cast<uint32_t>(program().code.size());
    for (const std::string& name : module_.system_functions) system_function(name);
    for (const auto& [op, address] : t_.branches_) {
      const uint32_t target = functional::op_at(program(), address);
      if (target == UINT32_MAX)
        throw CodeError(module_.name + ": " + program().text(static_cast<uint32_t>(op)) +
                        ": its target holds no code");
      program().code[op].target = target;
    }
    spread_order();
    find_stored_parameters();
    functional::find_clock_waits(program(), operands_.get());
    program().details.push_back(std::move(operands_));
    return std::move(result_);
  }

  void sections() {
    list();
    shares_rows_ = std::any_of(module_.sections.begin(), module_.sections.end(),
                               [](const Section& section) { return !section.is_kernel; });
    if (shares_rows_)
      for (const Section& section : module_.sections) widest_ = widest_.joined(frame_of(section));
    for (uint32_t s = 0; s < module_.sections.size(); ++s) section(s);
    if (!shares_rows_) return;
    uint32_t frame_bytes = 0;
    for (const functional::FunctionCode& code : program().functions)
      frame_bytes = std::max(frame_bytes, code.frame_bytes);
    for (functional::FunctionCode& code : program().functions) {
      code.constant_words = t_.constant_words_;
      code.frame_bytes = frame_bytes;
    }
  }

 private:
  functional::Program& program() { return result_.program; }

  /// The text of all instructions, and where each section begins.
  void list() {
    functional::MachineListing& listing = program().listing;
    listing.name = module_.name;
    listing.files = module_.files;
    if (listing.files.empty()) listing.files.emplace_back();
    for (uint32_t s = 0; s < module_.sections.size(); ++s) {
      const Section& section = module_.sections[s];
      t_.section_begin_.push_back(listing.lines.size());
      const uint64_t begin =
          functional::machine_code_window + functional::instruction_bytes * listing.lines.size();
      t_.functions_.emplace(section.name, begin);
      for (const auto& [name, at] : section.functions) {
        t_.functions_.emplace(name, begin + at);
        const std::string within = "$" + section.name + "$";
        const auto first = static_cast<uint32_t>(listing.lines.size() + at / functional::instruction_bytes);
        listing.called[first] = name.starts_with(within) ? name.substr(within.size()) : name;
      }
      for (size_t i = 0; i < section.lines.size(); ++i) {
        const Line& line = section.lines[i];
        functional::MachineListing::Line row;
        row.text = line.predicate + (line.predicate.empty() ? "" : " ") + line.opcode;
        for (size_t k = 0; k < line.operands.size(); ++k) row.text += (k ? ", " : " ") + line.operands[k];
        row.function = s;
        row.address = static_cast<uint32_t>(functional::instruction_bytes * i);
        row.file = line.file;
        row.source_line = line.source_line;
        listing.lines.push_back(std::move(row));
      }
    }
    for (const std::string& name : module_.system_functions) listing.lines.push_back({name, 0, 0, 0, 0});
  }

  void section(uint32_t s) {
    const Section& section = module_.sections[s];
    functional::FunctionCode& code = program().functions.emplace_back();
    code.name = section.name;
    code.entry = section.is_kernel;
    code.first = code.body = static_cast<uint32_t>(program().code.size());
    code.shared_bytes = section.shared_bytes;
    code.registers = code.max_live = section.registers;
    code.max_threads = section.max_threads;
    code.required_threads = section.required_threads;
    code.cluster = section.cluster;
    code.constants = section.constants;
    code.reserved_shared = section.reserved_shared;
    code.pair_allocation = {section.allocation_mbarrier, section.allocation_parity,
                            functional::Mbarrier::initial(1)};
    code.stack_bytes = functional::round_up(section.stack_bytes, 16);
    code.deepest_stack = section.calls ? UINT32_MAX : code.stack_bytes;
    for (const auto& [offset, size, type] : section.parameters) {
      code.parameter_offsets.push_back(offset);
      code.parameter_sizes.push_back(size);
      code.parameter_types.push_back(type);
      code.parameter_bytes = std::max(code.parameter_bytes, offset + size);
    }
    t_.frame_ = shares_rows_ ? widest_ : frame_of(section);
    operands_->predicates.push_back(t_.frame_.predicate(0));
    t_.scratch_rows_ = 0;
    // Functions run with the rows and in the frame of the kernel that calls them, so all have the same.
    if (!shares_rows_) {
      t_.launch_rows_.clear();
      t_.constant_words_.clear();
    }
    for (uint32_t i = 0; i < section.lines.size(); ++i) {
      try {
        instruction(s, i);
        end_instruction(section, i);
      } catch (const CodeError& error) {
        if (!refused_) throw;
        refused_->push_back({s, i, error.what()});
      }
    }
    functional::FunctionCode& done = program().functions[s];
    done.constant_words = t_.constant_words_;
    done.frame_bytes = t_.frame_.bytes(t_.scratch_rows_);
    done.end = static_cast<uint32_t>(program().code.size());
  }

  void instruction(uint32_t s, uint32_t i) {
    program().first_op.push_back(static_cast<uint32_t>(program().code.size()));
    t_.begin(s, i);
    if (!t_.row().is_executed()) t_.unsupported("this opcode is not supported");
    (*t_.row().translate.value)(t_);
    t_.check_all_used();
  }

  void add_step(const Line& line) {
    const auto no_predicates = [](std::vector<uint32_t> registers) {
      std::erase_if(registers, [](uint32_t r) { return (r & predicate_flag) != 0; });
      return registers;
    };
    Step& step = t_.steps_.emplace_back();
    step.reads = no_predicates(t_.reads_);
    step.writes = no_predicates(t_.writes_);
    step.parameter_words = t_.parameter_words_;
    step.guarded = line.predicate.starts_with("@");
    const OpcodeClass what =
        module_.opcodes->find(opcode_name(line.opcode), !line.operands.empty(), step.writes.size() > 0)
            .opcode_class;
    const bool atomic = what.operation == Operation::Atomic;
    step.loads = atomic || (what.operation == Operation::Load && what.space != MemorySpace::Constant);
    step.falls_through = step.guarded || !t_.leaves_;
    const bool stores =
        atomic || what.operation == Operation::Store || what.operation == Operation::Reduction;
    if (!stores || (what.space != MemorySpace::Global && what.space != MemorySpace::Generic)) return;
    constexpr uint32_t address_slot = 0;
    for (uint32_t k = 0; k < t_.raw_.source_count; ++k) {
      const Register& r = t_.raw_.sources[k];
      if (t_.raw_.source_slots[k] != address_slot) continue;
      if (r.file != RegisterFile::General && r.file != RegisterFile::Uniform) continue;
      const uint32_t flag = r.file == RegisterFile::Uniform ? uniform_flag : 0;
      for (uint32_t word = 0; word < r.width; ++word) step.address.push_back(flag + r.index + word);
    }
  }

  void find_stored_parameters() {
    for (const auto& [op, address] : t_.branches_) {
      const functional::Origin from = program().origins[op],
                               to = program().origins[program().code[op].target];
      if (from.function == to.function)
        t_.steps_[from.instruction].target =
            to.instruction - static_cast<uint32_t>(t_.section_begin_[from.function]);
    }
    for (uint32_t s = 0; s < module_.sections.size(); ++s) {
      const auto begin = t_.steps_.begin() + static_cast<std::ptrdiff_t>(t_.section_begin_[s]);
      program().functions[s].stored_parameters =
          stored_parameters({begin, begin + static_cast<std::ptrdiff_t>(module_.sections[s].lines.size())});
    }
    t_.steps_.clear();
  }

  static Frame frame_of(const Section& section) {
    constexpr uint32_t widest = 8;  // uniform registers of an operand
    Frame frame;
    frame.registers = section.registers;
    for (const Line& line : section.lines)
      for (const std::string& text : line.operands)
        for (size_t at = 0; at < text.size(); ++at) {
          uint32_t number = 0;
          const char* const digits = text.data() + at + 1;
          const auto [end, error] = std::from_chars(digits, text.data() + text.size(), number);
          if (error != std::errc() || number >= Operand::zero) continue;
          const bool after_word = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]));
          if (text[at] == 'R' && at > 0 && text[at - 1] == 'U')
            frame.uniforms = std::max(frame.uniforms, number + widest);
          else if (text[at] == 'R' && !after_word)
            frame.registers =
                std::max(frame.registers, number + 1);  // `registers` counts those of wide operands
          else if (text[at] == 'B' && at == 0)
            frame.barriers = std::max(frame.barriers, number + 1);
        }
    return frame;
  }

  Place place_of(uint32_t touched) const {
    const uint32_t index = touched % predicate_flag;
    switch (touched - index) {
      case uniform_flag:
        return t_.frame_.uniform(index);
      case predicate_flag:
        return t_.frame_.predicate(index);
      case uniform_predicate_flag:
        return t_.frame_.uniform_predicate(index);
      default:
        return t_.frame_.general(index);
    }
  }

  /// Where the operands are of the instruction that has been translated.
  void keep_operands(bool may_compute) {
    functional::MachineOperands::Instruction& kept = operands_->instructions.emplace_back();
    std::vector<Place>& places = operands_->places;
    kept.first = static_cast<uint32_t>(places.size());
    for (const uint32_t r : t_.reads_) places.push_back(place_of(r));
    for (const Operand& o : t_.operands_) {
      if (o.kind == OperandKind::Integer || o.kind == OperandKind::Number) {
        const uint32_t bits =
            o.kind == OperandKind::Number ? t_.immediate_bits() : static_cast<uint32_t>(o.value);
        if (const auto at = t_.constants_.find({bits}); at != t_.constants_.end())
          places.push_back(at->second);
      } else if (o.kind == OperandKind::Constant) {
        const auto at = t_.launch_rows_.find({o.bank, static_cast<uint32_t>(o.value), 1});
        if (at != t_.launch_rows_.end()) places.push_back(at->second);
      }
    }
    kept.reads = static_cast<uint16_t>(places.size() - kept.first);
    for (const uint32_t r : t_.writes_) places.push_back(place_of(r));
    kept.writes = static_cast<uint16_t>(places.size() - kept.first - kept.reads);
    kept.computes =
        may_compute && std::all_of(program().code.begin() + program().first_op.back(), program().code.end(),
                                   [](const Op& op) { return op.control == Control::None; });
  }

  void end_instruction(const Section& section, uint32_t i) {
    keep_operands(t_.what().operation == Operation::Arithmetic);
    functional::Lowering& lowering = result_.lowering;
    const uint32_t first = program().first_op.back(), last = static_cast<uint32_t>(program().code.size());
    const uint32_t number = add_instruction(t_.timed_opcode_);
    const auto list = [&](const std::vector<uint32_t>& registers) {
      const auto at = static_cast<uint32_t>(lowering.touched.size());
      lowering.touched.insert(lowering.touched.end(), registers.begin(), registers.end());
      return functional::Lowering::Registers{at, static_cast<uint32_t>(registers.size())};
    };
    add_step(section.lines[i]);
    const auto written = list(t_.writes_);
    // Registers that the instruction overwrites must also have received their values.
    t_.reads_.insert(t_.reads_.end(), t_.writes_.begin(), t_.writes_.end());
    const auto touched = list(t_.reads_);
    const uint32_t bearer = t_.bearer_ == UINT32_MAX ? last - 1 : t_.bearer_;
    const bool carries = t_.bearer_ != UINT32_MAX || program().code[bearer].control == Control::Barrier;
    for (uint32_t op = first; op < last; ++op) {
      lowering.of_op.push_back(
          {number + (op > bearer), op == bearer ? 1u : 0u, op == bearer && carries ? 0u : UINT32_MAX});
      lowering.reads_of_op.push_back(touched);
      lowering.writes_of_op.push_back(written);
    }
  }

  /// The number of a static instruction: `raw_` with this opcode, after all others.
  uint32_t add_instruction(const std::string& opcode) {
    functional::Lowering& lowering = result_.lowering;
    const auto number = static_cast<uint32_t>(lowering.instructions.size());
    const auto [known, is_new] =
        t_.opcode_index_.emplace(opcode, static_cast<uint32_t>(lowering.opcodes.size()));
    if (is_new) lowering.opcodes.push_back(opcode);
    t_.raw_.opcode = known->second;
    t_.raw_.pc = functional::instruction_bytes * number;
    lowering.instructions.push_back(t_.raw_);
    return number;
  }

  /// Code that calls a function of the system and returns to the address in R20 and R21.
  void system_function(const std::string& name);

  /// Sections are sensitive to order if one is that they may call. An address in a register may be that of
  /// any function.
  void spread_order() {
    std::vector<functional::FunctionCode>& functions = program().functions;
    std::vector<std::pair<uint32_t, uint32_t>> calls;
    for (const auto& [op, address] : t_.branches_)
      calls.emplace_back(program().origins[op].function,
                         program().origins[program().code[op].target].function);
    for (const uint32_t caller : t_.by_register_) {
      functions[caller].order_sensitive |= system_order_matters_;
      for (uint32_t f = 0; f < functions.size(); ++f)
        if (!functions[f].entry) calls.emplace_back(caller, f);
    }
    for (bool spreads = true; spreads;) {
      spreads = false;
      for (const auto& [caller, callee] : calls) {
        if (functions[caller].order_sensitive || !functions[callee].order_sensitive) continue;
        functions[caller].order_sensitive = spreads = true;
      }
    }
  }

  const Module& module_;
  std::vector<Refusal>* refused_;  ///< collects what is not supported, which is thrown otherwise
  Translated result_;
  Translation t_;
  std::unique_ptr<functional::MachineOperands> operands_ = std::make_unique<functional::MachineOperands>();
  bool shares_rows_ = false;  ///< there are functions that several kernels call
  Frame widest_;              ///< of all sections
  bool system_order_matters_ =
      false;  ///< one of the system's functions that are called is sensitive to order
};

void Translator::system_function(const std::string& name) {
  program().first_op.push_back(static_cast<uint32_t>(program().code.size()));
  t_.begin_system_function(program().first_op.size() - 1);
  t_.reads_.clear();
  t_.writes_.clear();
  if (!emit_system_call(t_, name))
    throw CodeError(module_.name + ": it calls " + name + ", which is not supported");
  emit_system_return(t_);
  keep_operands(false);
  system_order_matters_ |= functional::find_builtin(name)->ordered;
  // All that is timed of it is the return, which is also when others see what it does.
  t_.raw_ = {};
  t_.raw_.control = ControlBits::after(5);
  const uint32_t number = add_instruction("RET.ABS.NODEC");
  result_.lowering.of_op.push_back({number, 1, UINT32_MAX});
  result_.lowering.reads_of_op.emplace_back();
  result_.lowering.writes_of_op.emplace_back();
  while (result_.lowering.of_op.size() < program().code.size()) {
    result_.lowering.of_op.push_back({number + 1, 0, UINT32_MAX});
    result_.lowering.reads_of_op.emplace_back();
    result_.lowering.writes_of_op.emplace_back();
  }
}

Translated translate(const Module& module) {
  return Translator(module).run();
}

std::vector<Refusal> refusals(const Module& module) {
  std::vector<Refusal> found;
  Translator(module, &found).sections();
  return found;
}

}  // namespace simt::sass
