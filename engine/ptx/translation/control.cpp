/// Control flow: bra, brx.idx, call, ret, exit, trap, barriers of a CTA and of a cluster.
#include "machine/calls.hpp"
#include "machine/collective.hpp"
#include "machine/cta.hpp"
#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "operations/builtins.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/register_slots.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

constexpr uint8_t target_list = 1;  ///< Operand::component of a Symbol

/// Resolves, at the function's end, the targets of the op just emitted and where diverging lanes reconverge.
void patch_branch(Translation& t, std::vector<uint32_t> labels) {
  const size_t index = t.program().code.size() - 1;
  const uint32_t meet = t.reconvergence_op();
  t.when_labels_known([&t, index, meet, labels = std::move(labels)] {
    Op& op = t.program().code[index];
    op.reconvergence = meet == UINT32_MAX ? UINT32_MAX : t.op_of_instruction(meet);
    if (op.control == Control::Branch) {
      op.target = t.label_target(labels.front());
      return;
    }
    auto& table = const_cast<BranchTable&>(op.details<BranchTable>());
    for (const uint32_t label : labels) table.targets.push_back(t.label_target(label));
  });
}

}  // namespace

namespace {

void run_nothing(Context&, const Op&) {}

/// Arguments or results of a call in the caller's stack frame, and those the caller holds in registers.
struct Passed {
  std::vector<StackSlot> slots;
  struct InRegister {
    Place place;
    StackSlot slot;
    bool negated = false;  ///< for predicates
  };
  std::vector<InRegister> registers;
};

Passed passed(Translation& t, const ptx::Operand& list, const std::vector<ptx::Variable>* formal,
              bool results) {
  Passed result;
  for (uint32_t k = 0; k < list.part_count; ++k) {
    const ptx::Operand& o = t.part(list, k);
    if (o.kind == OperandKind::Variable && o.local) {
      result.slots.push_back({t.stack_offset(o), static_cast<uint32_t>(t.variable(o).size)});
      continue;
    }
    const ptx::Variable* const of_callee = formal && k < formal->size() ? &(*formal)[k] : nullptr;
    if (o.kind == OperandKind::Discard && results) {
      const uint32_t bytes = !of_callee ? 8
                             : of_callee->space == ptx::Space::Register
                                 ? slot_bytes(*of_callee)
                                 : static_cast<uint32_t>(of_callee->size);
      result.slots.push_back({t.scratch_slot(bytes), bytes});
      continue;
    }
    // The registers of a vector follow each other in the stack.
    const bool vector = o.kind == OperandKind::Vector;
    const uint32_t count = vector ? o.part_count : 1;
    const ptx::Operand& first = vector ? t.part(o, 0) : o;
    const Type type = first.kind == OperandKind::Register ? t.register_type(first)
                      : of_callee                         ? of_callee->type
                                                          : Type::None;
    if (type == Type::None) t.unsupported("an argument or result of this form");
    const uint32_t each = slot_bytes(type);
    const StackSlot whole{t.scratch_slot(count * each), count * each};
    result.slots.push_back(whole);
    for (uint32_t p = 0; p < count; ++p) {
      const ptx::Operand& one = vector ? t.part(o, p) : o;
      if (type == Type::Pred) {
        const PredicateOperand predicate =
            results ? PredicateOperand{t.predicate_destination(one), false} : t.predicate_source(one);
        result.registers.push_back({predicate.place, whole, predicate.negated});
        continue;
      }
      each_slot(type, results ? t.destination(one, type) : t.source(one, type), whole.offset + p * each,
                [&](Place part, StackSlot slot) { result.registers.push_back({part, slot}); });
    }
  }
  return result;
}

/// The prototype of the function that an instruction calls; nullptr if unknown.
struct Signature {
  const std::vector<ptx::Variable>*parameters = nullptr, *results = nullptr;
};
Signature signature_of(Translation& t, const ptx::Operand& callee) {
  for (uint32_t k = 0; k < t.operand_count(); ++k) {
    const ptx::Operand& o = t.operand(k);
    if (o.kind != OperandKind::Symbol || !o.local || o.component == target_list) continue;
    const ptx::Prototype& p = t.function().prototypes[o.index];
    return {&p.parameters, &p.results};
  }
  if (const uint32_t f = t.function_index(callee.text); f != UINT32_MAX) {
    const ptx::Function& function = t.module().functions[f];
    return {&function.parameters, &function.results};
  }
  return {};
}

/// Further operands of a barrier.
struct BarrierDetail : Detail {
  bool waits = true, cluster = false, has_threads = false;
  BarrierRequest::Reduce reduce = BarrierRequest::Reduce::None;
  PredicateOperand predicate;
};

void run_barrier(Context& c, const Op& op) {
  const auto& d = op.details<BarrierDetail>();
  BarrierRequest& r = c.barrier;
  const auto lane = static_cast<uint32_t>(c.first_lane());
  r.id = d.cluster ? 0 : c.lanes<uint32_t>(op.a)[lane];
  r.threads = d.has_threads ? c.lanes<uint32_t>(op.b)[lane] : 0;
  r.waits = d.waits;
  r.cluster = d.cluster;
  r.warpgroup = false;
  r.reduce = d.reduce;
  r.predicate = 0;
  if (d.predicate.place != place::none) {
    const uint32_t p = c.predicate(d.predicate.place);
    r.predicate = (d.predicate.negated ? ~p : p) & c.mask;
  }
}

}  // namespace

void emit_return(Translation& t) {
  for (const Translation::RegisterSlot& result : t.register_results()) {
    Op& op = t.emit(to_stack(result.slot.bytes));
    op.a = result.place;
    op.immediate = result.slot.offset;
  }
  if (t.saves_stack()) emit_restore_stack(t);
  t.emit(nullptr, Control::Return);
}

void translate_bra(Translation& t) {
  t.take("uni");
  const ptx::Operand& target = t.operand(0);
  if (target.kind != OperandKind::Label) t.unsupported("the target is not a label");
  t.emit(nullptr, Control::Branch);
  patch_branch(t, {target.index});
}

void translate_brx(Translation& t) {
  if (!t.take("idx")) t.unsupported("only brx.idx is supported");
  t.take("uni");
  const Place index = t.source(0, Type::U32);
  const ptx::Operand& list = t.operand(1);
  if (list.kind != OperandKind::Symbol || !list.local || list.component != target_list)
    t.unsupported("the second operand is not a list of branch targets");
  t.emit(nullptr, Control::BranchIndirect).a = index;
  t.detail<BranchTable>();
  patch_branch(t, t.function().targets[list.index].labels);
}

void translate_ret(Translation& t) {
  t.take("uni");
  emit_return(t);
}

void translate_exit(Translation& t) {
  t.emit(nullptr, Control::Exit);
}

void translate_trap(Translation& t) {
  t.emit(run_trap);
}

void translate_call(Translation& t) {
  t.take("uni");
  const uint32_t first = t.operand(0).kind == OperandKind::List ? 1 : 0;
  const ptx::Operand& callee = t.operand(first);
  const Signature signature = signature_of(t, callee);
  Passed results, arguments;
  if (first) results = passed(t, t.operand(0), signature.results, true);
  if (first + 1 < t.operand_count() && t.operand(first + 1).kind == OperandKind::List)
    arguments = passed(t, t.operand(first + 1), signature.parameters, false);
  for (const auto& [from, slot, negated] : arguments.registers) {
    Op& op = t.emit(to_stack(slot.bytes));
    op.a = from;
    op.immediate = slot.offset | (negated ? negated_predicate : 0);
  }
  uint32_t function = UINT32_MAX;
  if (callee.kind == OperandKind::Register) {
    const Place address = t.source(callee, Type::B64);
    t.emit(nullptr, Control::Call).a = address;
  } else {
    const std::string name(callee.text);
    function = t.function_index(name);
    const size_t given = arguments.slots.size(), returned = results.slots.size();
    const auto check = [&](size_t parameters, size_t result_count) {
      if (given != parameters || returned != result_count)
        t.unsupported("`" + name + "` takes " + std::to_string(parameters) + " arguments and gives " +
                      std::to_string(result_count) + " results; the call has " + std::to_string(given) +
                      " and " + std::to_string(returned));
    };
    if (function != UINT32_MAX) {
      if (t.module().functions[function].entry) t.unsupported("`" + name + "` is a kernel");
      check(signature.parameters->size(), signature.results->size());
      t.emit(nullptr, Control::Call);
    } else if (const Builtin* builtin = find_builtin(name)) {
      check(builtin->arguments, builtin->results);
      if (builtin->ordered) t.order_matters();
      t.emit(builtin->run, builtin->ordered ? Control::Deferred : Control::None).orders_memory =
          builtin->ordered;
    } else if (name.starts_with("cuda")) {
      t.unsupported("`" + name +
                    "` is of CUDA's runtime for device code (kernels that launch kernels), which is not "
                    "supported");
    } else {
      t.unsupported("the function `" + name + "` is not defined in this module");
    }
  }
  CallSite& site = t.detail<CallSite>();
  site.function = function;
  site.arguments = std::move(arguments.slots);
  site.results = std::move(results.slots);
  for (const auto& [to, slot, negated] : results.registers) {
    Op& op = t.emit(from_stack(slot.bytes));
    op.destination = to;
    op.immediate = slot.offset;
  }
}

void translate_bar_warp(Translation& t) {
  t.take("warp");
  t.take("sync");
  const Place members = t.source(0, Type::B32);
  Op& op = t.emit(run_nothing, Control::Collective);
  op.member_mask = members;
  t.detail<CollectiveOperands>().lane_by_lane = true;
}

void translate_barrier_cluster(Translation& t) {
  t.take("cluster");
  const bool arrives = t.take("arrive");
  if (!arrives && !t.take("wait")) t.unsupported("barrier.cluster needs .arrive or .wait");
  t.take_one_of({"release", "relaxed", "acquire"});
  t.take("aligned");
  Op& op = t.emit(run_barrier, Control::Barrier);
  op.a = t.constant(0, 4);
  BarrierDetail& d = t.detail<BarrierDetail>();
  d.cluster = true;
  d.waits = !arrives;
}

/// bar{.cta}.sync/.arrive/.red, barrier{.cta}...
void translate_bar(Translation& t) {
  t.take("cta");
  // From sm_70 on, threads arrive individually in either case.
  t.take("aligned");
  const int kind = t.take_one_of({"sync", "arrive", "red"});
  if (kind < 0) t.unsupported("a barrier needs .sync, .arrive or .red");
  BarrierRequest::Reduce reduce = BarrierRequest::Reduce::None;
  uint32_t next = 0;
  Place destination = place::none;
  if (kind == 2) {
    const int operation = t.take_one_of({"popc", "and", "or"});
    if (operation < 0) t.unsupported("a reducing barrier needs .popc, .and or .or");
    reduce = operation == 0   ? BarrierRequest::Reduce::Popcount
             : operation == 1 ? BarrierRequest::Reduce::And
                              : BarrierRequest::Reduce::Or;
    t.take_type();
    const ptx::Operand& d = t.operand(next++);
    destination = operation == 0 ? t.destination(d, Type::U32) : t.predicate_destination(d);
  }
  const Place id = t.source(next++, Type::B32);
  PredicateOperand predicate;
  bool has_threads = false;
  Place threads = place::none;
  if (kind == 2) {
    if (next + 2 == t.operand_count()) {
      has_threads = true;
      threads = t.source(next++, Type::B32);
    }
    predicate = t.predicate_source(t.operand(next++));
  } else if (next < t.operand_count()) {
    has_threads = true;
    threads = t.source(next++, Type::B32);
  }
  Op& op = t.emit(run_barrier, Control::Barrier);
  op.destination = destination;
  op.a = id;
  op.b = threads;
  BarrierDetail& d = t.detail<BarrierDetail>();
  d.waits = kind != 1;
  d.has_threads = has_threads;
  d.reduce = reduce;
  d.predicate = predicate;
}

void translate_nothing(Translation& t) {
  t.take_all();
  t.emit(run_nothing);
}

/// Memory is always coherent here; fences only affect timing.
void translate_fence(Translation& t) {
  t.take_all();
  t.emit(run_nothing).orders_memory = true;
}

}  // namespace simt::functional
