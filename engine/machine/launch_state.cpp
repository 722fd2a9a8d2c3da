#include "machine/launch_state.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "machine/grid.hpp"

namespace simt::functional {
namespace {

[[noreturn]] void malformed(const char* what) {
  throw std::invalid_argument(std::string("the state of its CTAs is malformed: ") + what);
}

/// Appends values to bytes.
struct Saver {
  static constexpr bool saves = true;
  std::vector<std::byte> bytes;

  void raw(const void* from, size_t size) {
    const auto* begin = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

/// Takes values from bytes.
struct Loader {
  static constexpr bool saves = false;
  const std::vector<std::byte>& bytes;
  size_t at = 0;

  void raw(void* to, size_t size) {
    if (size > bytes.size() - at) malformed("it ends too early");
    std::memcpy(to, bytes.data() + at, size);
    at += size;
  }
};

template <class Archive, class T>
void value(Archive& archive, T& v) {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  archive.raw(&v, sizeof v);
}

template <class Archive, class... T>
void values(Archive& archive, T&... v) {
  (value(archive, v), ...);
}

/// The elements of a vector, each by `each`.
template <class Archive, class T, class F>
void sequence(Archive& archive, std::vector<T>& v, size_t most, F each) {
  uint64_t size = v.size();
  value(archive, size);
  if constexpr (!Archive::saves) {
    if (size > most) malformed("a list is too long");
    v.resize(size);
  }
  for (T& one : v) each(one);
}

constexpr uint32_t none = UINT32_MAX;
constexpr uint32_t deepest_frames = 16u << 20;

}  // namespace

/// Exchanges the state of a CTA with an archive.
struct StateAccess {
  template <class Archive>
  struct Exchange {
    Archive& archive;
    Grid& grid;
    Cta& cta;

    void require(bool holds, const char* what) const {
      if (!Archive::saves && !holds) malformed(what);
    }
    void op(const Op*& op) {
      const std::vector<Op>& code = grid.program().code;
      uint32_t index = op ? static_cast<uint32_t>(op - code.data()) : none;
      value(archive, index);
      require(index == none || index < code.size(), "an instruction");
      op = index == none ? nullptr : code.data() + index;
    }
    void warp_of(Warp*& warp) {
      uint32_t number = warp ? warp->number() : 0;
      value(archive, number);
      require(number < cta.warps_.size(), "a warp");
      warp = &cta.warps_[number];
    }
    void pc(uint32_t pc) const { require(pc < grid.program().code.size(), "an instruction"); }

    void warp(Warp& w) {
      value(archive, w.alive_);
      require((w.alive_ & ~w.lanes_) == 0, "the lanes of a warp");
      uint64_t current = w.current_;
      values(archive, current, w.run_length_, w.waiting_);
      w.current_ = static_cast<size_t>(current);
      sequence(archive, w.registers_, deepest_frames / sizeof(Line),
               [&](Line& line) { archive.raw(&line, sizeof line); });
      const size_t bytes = w.registers_.size() * sizeof(Line);
      require(bytes >= grid.kernel().frame_bytes, "registers");
      const auto place = [&](uint32_t at, uint32_t frame, uint32_t stack) {
        pc(at);
        const Program& program = grid.program();
        const uint32_t needs = program.functions[program.origins[at].function].frame_bytes;
        require(frame % sizeof(Line) == 0 && frame <= bytes && needs <= bytes - frame, "registers");
        require(stack <= grid.local_bytes(), "a stack");
      };
      sequence(archive, w.splits_, 32, [&](Warp::Split& s) {
        values(archive, s.pc, s.mask, s.meeting, s.meeting_pc, s.frame, s.stack, s.call, s.state, s.waiting);
        if constexpr (!Archive::saves) place(s.pc, s.frame, s.stack);
        require(s.state <= Warp::State::Convergence, "a warp's state");
      });
      sequence(archive, w.meetings_, 1 << 20, [&](Warp::Meeting& m) {
        values(archive, m.pc, m.expected, m.arrived, m.outer, m.outer_pc, m.frame, m.stack, m.call);
        op(m.call_op);
        value(archive, m.used);
        if constexpr (!Archive::saves)
          if (m.used) place(m.pc, m.frame, m.stack);
      });
      const auto meeting = [&](uint32_t index) {
        require(index == none || index < w.meetings_.size(), "a meeting");
      };
      for (const Warp::Split& s : w.splits_) {
        meeting(s.meeting);
        meeting(s.call);
      }
      for (const Warp::Meeting& m : w.meetings_) {
        meeting(m.outer);
        meeting(m.call);
      }
      for (uint32_t& bytes_taken : w.dynamic_stacks) {
        value(archive, bytes_taken);
        require(bytes_taken <= grid.local_bytes(), "a stack");
      }
    }

    void counter(BarrierCounter& b) {
      values(archive, b.popcount, b.all, b.any, b.threads_, b.expected_, b.taking_part_, b.true_);
      const size_t most = std::max<size_t>(cta.warps_.size(), std::min(b.expected_, 4096u));
      sequence(archive, b.arrived_, most, [&](BarrierCounter::Arrival& a) {
        auto* warp = const_cast<Warp*>(a.warp);
        warp_of(warp);
        a.warp = warp;
        a.cta = &cta;
        values(archive, a.lanes, a.counted);
      });
    }

    void tensor_memory() {
      bool used = cta.tensor_memory_ != nullptr;
      value(archive, used);
      if (!used) return;
      TensorMemory& memory = cta.tensor_memory();
      archive.raw(memory.words_.data(), sizeof memory.words_);
      archive.raw(memory.allocation_.data(), sizeof memory.allocation_);
      values(archive, memory.relinquished_, memory.group_);
    }

    void all() {
      for (Warp& w : cta.warps_) warp(w);
      uint64_t shared = cta.shared_.size() * sizeof(Line);
      value(archive, shared);
      require(shared == cta.shared_.size() * sizeof(Line), "shared memory");
      archive.raw(cta.shared_.data(), shared);
      tensor_memory();
      const size_t local = size_t{grid.local_bytes()} * warp_lanes;
      for (std::vector<std::byte>& of_warp : cta.local_) {
        bool used = !of_warp.empty();
        value(archive, used);
        if constexpr (!Archive::saves) of_warp.resize(used ? local : 0);
        archive.raw(of_warp.data(), of_warp.size());
      }
      for (BarrierCounter& b : cta.barriers_) counter(b);
      sequence(archive, cta.waiting_, size_t{32} * cta.warps_.size(), [&](Cta::Waiting& w) {
        w.cta = &cta;
        warp_of(w.warp);
        values(archive, w.lanes, w.barrier, w.reduce);
        op(w.op);
        require(w.op != nullptr && w.barrier < cta.barriers_.size(), "a barrier");
      });
      value(archive, cta.barriers_completed);
      cta.running_ = 0;
      for (const Warp& w : cta.warps_) cta.running_ += !w.finished();
    }
  };

  template <class Archive>
  static void exchange(Archive& archive, Grid& grid, Cta& cta) {
    Exchange<Archive>{archive, grid, cta}.all();
  }
};

namespace launch_state {
namespace {

struct Header {
  uint64_t parameters, ctas, grid[3], block[3], shared, local, code;
};

Header header_of(const Grid& grid, uint64_t ctas) {
  const LaunchConfig& c = grid.config();
  return {grid.parameter_address(),
          ctas,
          {c.grid[0], c.grid[1], c.grid[2]},
          {c.block[0], c.block[1], c.block[2]},
          grid.shared_bytes(),
          grid.local_bytes(),
          grid.program().code.size()};
}

}  // namespace

std::vector<std::byte> save(const Grid& grid, std::vector<std::vector<std::unique_ptr<Cta>>>& clusters) {
  Saver saver;
  const Header header = header_of(grid, clusters.size());
  saver.raw(&header, sizeof header);
  for (const auto& cluster : clusters) {
    Cta& cta = *cluster[0];
    uint64_t number = cta.linear_index();
    value(saver, number);
    StateAccess::exchange(saver, cta.grid(), cta);
  }
  return std::move(saver.bytes);
}

std::vector<std::vector<std::unique_ptr<Cta>>> load(Grid& grid, const std::vector<std::byte>& state) {
  Loader loader{state};
  Header header{};
  loader.raw(&header, sizeof header);
  Header expected = header_of(grid, header.ctas);
  expected.parameters = header.parameters;
  if (std::memcmp(&header, &expected, sizeof header) != 0 || grid.cluster_size() != 1)
    throw std::invalid_argument("the state of its CTAs is that of another program or launch");
  std::vector<std::vector<std::unique_ptr<Cta>>> clusters;
  for (uint64_t i = 0; i < header.ctas; ++i) {
    uint64_t number = 0;
    value(loader, number);
    if (number < grid.config().first_cta || number >= grid.cta_count()) malformed("a CTA's number");
    clusters.push_back(grid.make_cluster(number));
    StateAccess::exchange(loader, grid, *clusters.back()[0]);
  }
  if (loader.at != state.size()) malformed("it is too long");
  return clusters;
}

uint64_t parameters(const std::vector<std::byte>& state) {
  Loader loader{state};
  Header header{};
  loader.raw(&header, sizeof header);
  return header.parameters;
}

}  // namespace launch_state
}  // namespace simt::functional
