#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.hpp"
#include "bindings.hpp"
#include "blocks.hpp"
#include "isa/launch_profiler.hpp"
#include "isa/opcode_table.hpp"
#include "isa/paired_warps.hpp"
#include "isa/part_footprint.hpp"
#include "isa/some_ctas.hpp"
#include "python_types.hpp"
#include "trace/byte_coding.hpp"
#include "trace/regrouper.hpp"
#include "trace/store_encoder.hpp"
#include "trace/text_parser.hpp"
#include "trace/text_writer.hpp"
#include "trace/trace_source.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace simt;

using Sizes = std::tuple<uint32_t, uint32_t, uint32_t>;

/// Converts text to blocks.
class TraceConverter {
 public:
  void feed(std::string_view text) { parser_.feed(text); }
  void finish() {
    parser_.finish();
    encoder_.finish();
  }
  std::vector<StoreEncoder::Block> take_blocks() { return encoder_.take_blocks(); }
  const TextParser& parser() const { return parser_; }
  std::string encoded_instructions() const { return encoder_.encoded_instructions(); }

 private:
  StoreEncoder encoder_;
  TextParser parser_{encoder_};
};

class NullSink : public TraceSink {
  void begin_kernel(const LaunchInfo&, const std::vector<RawInstruction>&,
                    const std::vector<std::string>&) override {}
  void begin_cta(const CtaPosition&) override {}
  void begin_warp(uint32_t, uint64_t) override {}
  void record(const TraceRecord&) override {}
  void end_cta() override {}
};

/// Uncompressed bytes of a block.
using Fetch = nb::typed<nb::callable, nb::bytes(uint64_t)>;

/// A Python callable that may be called and released on any thread.
class PythonFetch {
 public:
  explicit PythonFetch(Fetch function) : function_(std::move(function)) {}
  PythonFetch(const PythonFetch&) = delete;
  PythonFetch& operator=(const PythonFetch&) = delete;
  ~PythonFetch() {
    const nb::gil_scoped_acquire gil;
    function_.reset();
  }
  std::vector<uint8_t> operator()(size_t block) const {
    const nb::gil_scoped_acquire gil;
    const auto bytes = nb::cast<nb::bytes>(function_(block));
    const auto* data = static_cast<const uint8_t*>(bytes.data());
    return {data, data + bytes.size()};
  }

 private:
  Fetch function_;
};

std::shared_ptr<TraceSource> make_source(const LaunchInfo& launch, std::vector<std::string> opcodes,
                                         const nb::bytes& instructions,
                                         const std::vector<BlockNumbers>& blocks, uint64_t cta_count,
                                         const OpcodeTable& table, Fetch fetch) {
  StoredKernel kernel;
  kernel.launch = launch;
  kernel.instructions = store::decode_instructions(static_cast<const uint8_t*>(instructions.data()),
                                                   instructions.size(), opcodes.size());
  kernel.opcodes = std::move(opcodes);
  for (const auto& [first_cta, ctas, first_warp, last_warp, count] : blocks)
    kernel.blocks.push_back({first_cta, ctas, first_warp, last_warp, count});
  kernel.cta_count = cta_count;
  const auto shared_fetch = std::make_shared<PythonFetch>(std::move(fetch));
  return std::make_shared<TraceSource>(std::move(kernel), table,
                                       [shared_fetch](size_t block) { return (*shared_fetch)(block); });
}

template <class Value>
Numbers<uint32_t> column(const BasicBlocks& blocks, Value value) {
  std::vector<uint32_t> values(blocks.count());
  for (uint32_t i = 0; i < blocks.count(); ++i) values[i] = value(blocks[i]);
  return numbers(std::move(values), {blocks.count()});
}

/// FNV-1a over a block's opcodes.
uint64_t key_of(const InstructionSource& source, const BasicBlocks::Block& block) {
  uint64_t key = 0xcbf29ce484222325ull;
  const auto add = [&](char c) { key = (key ^ static_cast<uint8_t>(c)) * 0x100000001b3ull; };
  for (uint32_t i = block.first; i < block.first + block.length; ++i) {
    for (const char c : source.opcodes()[source.instructions()[i].opcode]) add(c);
    add(' ');
  }
  return key;
}

Numbers<uint64_t> block_keys(const InstructionSource& source, const BasicBlocks& blocks) {
  std::vector<uint64_t> keys(blocks.count());
  for (uint32_t i = 0; i < blocks.count(); ++i) keys[i] = key_of(source, blocks[i]);
  return numbers(std::move(keys), {blocks.count()});
}

Numbers<uint32_t> by_warp(BlockCounts& counts) {
  const size_t warps = counts.blocks ? counts.counts.size() / counts.blocks : 0;
  return numbers(std::move(counts.counts), {warps, counts.blocks});
}

std::pair<Numbers<uint32_t>, bool> preview(InstructionSource& source, const std::vector<uint64_t>& ctas,
                                           const BasicBlocks& blocks, uint32_t threads) {
  BlockCounts counts;
  {
    const nb::gil_scoped_release no_gil;
    counts = source.preview(ctas, blocks, threads);
  }
  return {by_warp(counts), counts.complete};
}

Numbers<uint32_t> execute(InstructionSource& source, uint64_t first, uint64_t end, const BasicBlocks& blocks,
                          uint32_t threads) {
  BlockCounts counts;
  {
    const nb::gil_scoped_release no_gil;
    counts = source.execute(first, end, &blocks, threads, nullptr);
  }
  return by_warp(counts);
}

using RecordTuple = std::tuple<uint32_t, uint64_t, std::vector<uint64_t>>;

std::vector<std::vector<RecordTuple>> read_cta(InstructionSource& source, uint64_t ordinal) {
  const nb::gil_scoped_release no_gil;
  const auto stream = source.open_cta(ordinal);
  std::vector<std::vector<RecordTuple>> warps(stream->warps());
  std::vector<uint64_t> addresses(store::max_bulk_addresses);
  DynamicRecord record;
  for (uint32_t w = 0; w < stream->warps(); ++w)
    while (stream->next(w, record, 0) == CtaStream::Next::Record) {
      const uint32_t count = source.lane_addresses(record, addresses.data());
      warps[w].emplace_back(record.static_index, record.mask,
                            std::vector<uint64_t>(addresses.begin(), addresses.begin() + count));
    }
  return warps;
}

std::tuple<uint64_t, uint64_t, std::map<uint32_t, uint64_t>> walk(InstructionSource& source,
                                                                  bool expand_addresses) {
  const nb::gil_scoped_release no_gil;
  uint64_t count = 0;
  uint64_t sum = 0;
  std::map<uint32_t, uint64_t> nulls;
  std::vector<uint64_t> addresses(store::max_bulk_addresses);
  DynamicRecord record;
  for (uint64_t ordinal = 0; ordinal < source.cta_count(); ++ordinal) {
    const auto stream = source.open_cta(ordinal);
    // One record per warp and round, as on an SM, rather than warp by warp.
    for (bool any = true; any;) {
      any = false;
      for (uint32_t w = 0; w < stream->warps(); ++w)
        if (stream->next(w, record, 0) == CtaStream::Next::Record) {
          any = true;
          ++count;
          sum += record.static_index + record.base;
          if (expand_addresses) {
            const uint32_t lanes = source.lane_addresses(record, addresses.data());
            if (lanes) sum += addresses[lanes - 1];
            if (lanes && addresses[0] < first_data_address) ++nulls[record.static_index];
          }
        }
    }
  }
  return {count, sum, std::move(nulls)};
}

python::DecodedInstruction dict_of(const StaticInstruction& s, const std::vector<std::string>& opcodes) {
  const auto registers = [](const auto& list, uint8_t count) {
    nb::list out;
    for (int i = 0; i < count; ++i)
      out.append(nb::make_tuple(list[i].index, static_cast<int>(list[i].file), list[i].width));
    return out;
  };
  python::DecodedInstruction d;
  d["pc"] = s.pc;
  d["opcode"] = opcodes[s.opcode];
  d["source_line"] = s.source_line;
  d["immediate"] = s.immediate;
  d["immediate2"] = s.immediate2;
  d["unit"] = s.unit;
  d["operation"] = s.operation;
  d["space"] = s.space;
  d["access_bytes"] = s.access_bytes;
  d["half_precision"] = s.half_precision;
  d["bypass_l1"] = s.bypass_l1;
  d["constant_operand"] =
      s.constant_operand == StaticInstruction::no_constant ? nb::none() : nb::cast(s.constant_operand);
  d["destinations"] = registers(s.destinations, s.destination_count);
  d["sources"] = registers(s.sources, s.source_count);
  return d;
}

Sizes sizes_of(const Dim3& d) {
  return {d.x, d.y, d.z};
}
Dim3 dim3_of(const Sizes& s) {
  return {std::get<0>(s), std::get<1>(s), std::get<2>(s)};
}

void bind_source(nb::module_& m) {
  nb::class_<LaunchInfo>(m, "LaunchInfo")
      .def(nb::init<>())
      .def_rw("id", &LaunchInfo::id)
      .def_rw("name", &LaunchInfo::name)
      .def_prop_rw(
          "grid", [](const LaunchInfo& l) { return sizes_of(l.grid); },
          [](LaunchInfo& l, const Sizes& s) { l.grid = dim3_of(s); })
      .def_prop_rw(
          "block", [](const LaunchInfo& l) { return sizes_of(l.block); },
          [](LaunchInfo& l, const Sizes& s) { l.block = dim3_of(s); })
      .def_rw("shared_bytes", &LaunchInfo::shared_bytes)
      .def_rw("registers_per_thread", &LaunchInfo::registers_per_thread)
      .def_rw("sm_version", &LaunchInfo::sm_version)
      .def_rw("stream", &LaunchInfo::stream)
      .def_rw("warp_size", &LaunchInfo::warp_size)
      .def_rw("shared_base", &LaunchInfo::shared_base)
      .def_rw("local_base", &LaunchInfo::local_base);

  nb::class_<BasicBlocks>(m, "BasicBlocks", "The basic blocks of a kernel's static instructions.")
      .def("__len__", &BasicBlocks::count)
      .def_prop_ro(
          "first", [](const BasicBlocks& b) { return column(b, [](auto& block) { return block.first; }); },
          nb::rv_policy::automatic, "Static index of each block's first instruction.")
      .def_prop_ro(
          "length", [](const BasicBlocks& b) { return column(b, [](auto& block) { return block.length; }); },
          nb::rv_policy::automatic, "Static instructions of each block.");

  nb::class_<InstructionSource>(m, "InstructionSource")
      .def_prop_ro("launch", &InstructionSource::launch, nb::rv_policy::reference_internal)
      .def_prop_ro("opcodes", &InstructionSource::opcodes)
      .def_prop_ro("cta_count", &InstructionSource::cta_count)
      .def_prop_ro("cluster_size", &InstructionSource::cluster_size)
      .def_prop_ro("order_matters", &InstructionSource::order_matters)
      .def(
          "instructions",
          [](const InstructionSource& s) {
            nb::typed<nb::list, python::DecodedInstruction> out;
            for (const auto& i : s.instructions()) out.append(dict_of(i, s.opcodes()));
            return out;
          },
          "The static instructions.")
      .def(
          "basic_blocks", [](InstructionSource& s) { return BasicBlocks(s.instructions(), s.leaders()); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("block_keys", &block_keys, "blocks"_a,
           "For each block a hash of its opcodes: the same in whichever kernel it is.")
      .def("preview", &preview, "ctas"_a, "blocks"_a, "threads"_a = 1,
           "Follows these CTAs without any effect: how often each of their warps executes each basic block, "
           "(warps, blocks), and whether all were followed to their end.")
      .def("execute", &execute, "first"_a, "end"_a, "blocks"_a, "threads"_a = 1,
           "CTAs [first, end), which are not going to be simulated, have their effects on memory; counts as "
           "of preview.")
      .def(
          "some_ctas",
          [](const std::shared_ptr<InstructionSource>& s, std::vector<uint64_t> ordinals) {
            return std::make_shared<SomeCtas>(s, std::move(ordinals));
          },
          "ordinals"_a, "These CTAs, in ascending order, as a launch without effect on memory.")
      .def_prop_ro("signature", &InstructionSource::signature,
                   "The same for launches that take the same time from the same contents of the L2; empty if "
                   "that is not known.")
      .def_prop_ro("leaves_no_values", &InstructionSource::leaves_no_values,
                   "Whether nothing that can be read changes when its CTAs are executed.")
      .def("read_cta", &read_cta, "ordinal"_a,
           "All records of a CTA: for each warp a list of (static index, mask, addresses).")
      .def("walk", &walk, "expand_addresses"_a = false,
           "Decodes everything; returns the number of warp instructions, a sum over them and, with "
           "addresses, by "
           "static instruction the executions whose first address lies in the first page.");

  nb::class_<SomeCtas, InstructionSource>(m, "SomeCtas");

  nb::class_<PartFootprint>(m, "PartFootprint")
      .def(
          "__init__",
          [](PartFootprint* self, InstructionSource& part,
             const std::vector<std::pair<InstructionSource*, double>>& others, uint32_t threads) {
            std::vector<PartFootprint::Others> some;
            for (const auto& [source, each] : others) some.push_back({source, each});
            const nb::gil_scoped_release release;
            new (self) PartFootprint(part, some, threads);
          },
          "part"_a, "others"_a, "threads"_a = 1,
          "What some CTAs of a launch access, and how much of it others do: some of these, each of which "
          "stands for so many.")
      .def_prop_ro("lines", [](const PartFootprint& p) { return p.lines().size(); })
      .def_prop_ro("shared_lines", &PartFootprint::shared, "Lines that others access, too.")
      .def_prop_ro(
          "lines_of_others", &PartFootprint::of_others,
          "Lines, of which those that others access count in the measure in which these are the first.")
      .def_prop_ro("leaves_values", &PartFootprint::leaves_values,
                   "Whether CTAs of the part stored to memory that holds values.")
      .def_prop_ro("warp_instructions", &PartFootprint::warp_instructions)
      .def_prop_ro("other_warp_instructions", &PartFootprint::other_warp_instructions);

  nb::class_<LaunchProfiler>(m, "LaunchProfiler")
      .def(nb::init<InstructionSource&, const BasicBlocks&>(), "source"_a, "blocks"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), "Executes a launch without timing, and sums up what it does.")
      .def("execute", &LaunchProfiler::execute, "first"_a, "end"_a, "threads"_a = 1,
           nb::call_guard<nb::gil_scoped_release>(), "Executes CTAs [first, end).")
      .def_prop_ro(
          "executions",
          [](const LaunchProfiler& p) {
            return numbers(std::vector<uint64_t>(p.executions()), {p.executions().size()});
          },
          nb::rv_policy::automatic, "By basic block: how often warps have executed it.")
      .def_prop_ro("warp_instructions",
                   [](const LaunchProfiler& p) { return p.executed().warp_instructions; })
      .def_prop_ro("thread_instructions",
                   [](const LaunchProfiler& p) { return p.executed().thread_instructions; })
      .def_prop_ro(
          "load_sectors", [](const LaunchProfiler& p) { return p.accesses().load_sectors; },
          "Sectors that loads of global memory ask the L1 for.")
      .def_prop_ro("store_sectors", [](const LaunchProfiler& p) { return p.accesses().store_sectors; })
      .def_prop_ro("l2_sectors", &LaunchProfiler::l2_sectors,
                   "Sectors that CTAs ask the L2 for, without what they asked for shortly before.")
      .def_prop_ro("sectors_read", &LaunchProfiler::sectors_read, "Different sectors that are read.")
      .def_prop_ro("sectors_written", &LaunchProfiler::sectors_written);

  nb::class_<TraceSource, InstructionSource>(m, "TraceSource")
      .def(nb::new_(&make_source), "launch"_a, "opcodes"_a, "instructions"_a, "blocks"_a, "cta_count"_a,
           "table"_a, "fetch"_a,
           "blocks: (first CTA, CTAs, first warp, last warp, instructions) each. fetch(i) gives block i's "
           "uncompressed bytes; it may be called from any thread.")
      .def_prop_ro("unknown_opcodes", &TraceSource::unknown_opcodes)
      .def(
          "cta_position", [](TraceSource& s, uint64_t ordinal) { return s.position(ordinal).cta; },
          "ordinal"_a);

  nb::class_<PairedWarps, InstructionSource>(m, "PairedWarps")
      .def(nb::init<std::shared_ptr<InstructionSource>>(), "source"_a,
           "Presents the 32-lane warps of a source as warps of 64 lanes, as a GPU with such warps does.");
}

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const TraceError& e) {
      const nb::object type = nb::module_::import_("simt.errors").attr("TraceError");
      PyErr_SetString(type.ptr(), e.what());
    }
  });
}

void bind_converter(nb::module_& m) {
  nb::class_<TextParser::Counts>(m, "TraceCounts")
      .def_ro("lines", &TextParser::Counts::lines)
      .def_ro("ctas", &TextParser::Counts::ctas)
      .def_ro("empty_ctas", &TextParser::Counts::empty_ctas)
      .def_ro("warps", &TextParser::Counts::warps)
      .def_ro("empty_warps", &TextParser::Counts::empty_warps)
      .def_ro("instructions", &TextParser::Counts::instructions);

  nb::class_<TraceConverter>(m, "TraceConverter")
      .def(nb::init<>())
      .def(
          "feed",
          [](TraceConverter& c, const nb::bytes& text) {
            const std::string_view view(static_cast<const char*>(text.data()), text.size());
            const nb::gil_scoped_release no_gil;
            c.feed(view);
          },
          "text"_a, "Takes the next piece of the kernel's grouped text.")
      .def("finish", &TraceConverter::finish, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "take_blocks", [](TraceConverter& c) { return blocks_of(c.take_blocks()); },
          "The blocks finished since the last call: (summary, bytes) each.")
      .def_prop_ro("launch", [](const TraceConverter& c) { return c.parser().launch(); })
      .def_prop_ro("counts", [](const TraceConverter& c) { return c.parser().counts(); })
      .def_prop_ro("tracer_version", [](const TraceConverter& c) { return c.parser().tracer_version(); })
      .def_prop_ro("opcodes", [](const TraceConverter& c) { return c.parser().opcodes(); })
      .def_prop_ro(
          "null_accesses", [](const TraceConverter& c) { return c.parser().null_accesses(); },
          "By static instruction, executions whose first address lies in the first page.")
      .def_prop_ro("instructions", [](const TraceConverter& c) {
        const std::string bytes = c.encoded_instructions();
        return nb::bytes(bytes.data(), bytes.size());
      });
}

void bind_text(nb::module_& m) {
  nb::class_<TextWriter>(m, "TextWriter")
      .def(nb::init<std::shared_ptr<TraceSource>>(), "source"_a)
      .def(
          "next_piece",
          [](TextWriter& w) {
            std::string text;
            {
              const nb::gil_scoped_release no_gil;
              text = w.next_piece();
            }
            return nb::bytes(text.data(), text.size());
          },
          "The next few megabytes of version 5 text; empty at the end.");

  nb::enum_<TraceLayout>(m, "TraceLayout")
      .value("Unknown", TraceLayout::Unknown)
      .value("Grouped", TraceLayout::Grouped)
      .value("Ungrouped", TraceLayout::Ungrouped);
  m.def(
      "trace_layout",
      [](const nb::bytes& text) {
        return trace_layout({static_cast<const char*>(text.data()), text.size()});
      },
      "beginning"_a);
  nb::class_<Regrouper>(m, "Regrouper")
      .def(nb::init<>())
      .def(
          "feed",
          [](Regrouper& r, const nb::bytes& text) {
            const std::string_view view(static_cast<const char*>(text.data()), text.size());
            const nb::gil_scoped_release no_gil;
            r.feed(view);
          },
          "text"_a)
      .def("finish", &Regrouper::finish)
      .def_prop_ro("buffered_bytes", &Regrouper::buffered_bytes)
      .def_prop_ro("header",
                   [](const Regrouper& r) { return nb::bytes(r.header().data(), r.header().size()); })
      .def(
          "take_pieces",
          [](Regrouper& r) {
            nb::typed<nb::list, nb::typed<nb::tuple, nb::typed<nb::tuple, int, nb::ellipsis>, nb::bytes>> out;
            for (const auto& p : r.take_pieces()) {
              const auto& c = p.cluster;
              out.append(nb::make_tuple(nb::make_tuple(p.cta[2], p.cta[1], p.cta[0], p.warp, c[0], c[1], c[2],
                                                       c[3], c[4], c[5], c[6], p.instructions),
                                        nb::bytes(p.lines.data(), p.lines.size())));
            }
            return out;
          },
          "((z, y, x, warp, cluster (7), instructions), lines) each, sorted.");

  m.def(
      "parse_trace_header",
      [](const nb::bytes& text) {
        NullSink sink;
        TextParser parser(sink);
        parser.feed({static_cast<const char*>(text.data()), text.size()});
        parser.finish();
        return parser.launch();
      },
      "text"_a, "The launch that a kernel trace's header lines describe.");
}

}  // namespace

void bind_trace(nb::module_& m) {
  bind_errors();
  bind_source(m);
  bind_converter(m);
  bind_text(m);
}
