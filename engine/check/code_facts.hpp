#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "check/history.hpp"
#include "machine/access.hpp"

/// What the checker must know of each Op of a program.
namespace simt::check {

using functional::Address;
using functional::Op;
using functional::Place;
using functional::Program;

enum class Kind : uint8_t {
  None,
  Load,
  Store,
  Atomic,
  Copy,      ///< cp.async
  Bulk,      ///< cp.async.bulk without a tensor map
  Tensor,    ///< with one
  Remote,    ///< st.async, red.async
  Recorded,  ///< a load whose addresses its handler records: ldmatrix, wmma.load
  RecordedStore,
  Touching,  ///< whose handler tells what it accesses: wmma.load, wmma.store
  Product,   ///< wgmma
  Fence,
  ProxyFence,
  Commit,  ///< ends a group of asynchronous work
  Wait,    ///< for groups of it
  Arrive,  ///< cp.async.mbarrier.arrive
  Mbarrier,
  Shuffle,
  Barrier,
  Call,
  Refused  ///< what is not followed
};

/// Asynchronous work whose groups are counted apart.
enum class Queue : uint8_t { Copies, Bulk, Products };

/// How far an order or an atomic reaches.
enum class Scope : uint8_t { Cta, Cluster, Gpu };

struct OpFacts {
  Kind kind = Kind::None;
  uint8_t watch = 0;  ///< see Observer::Watch
  uint8_t manner = 0;
  Scope scope = Scope::Gpu;
  bool acquires = false, releases = false, is_volatile = false;
  Queue queue = Queue::Copies;
  uint32_t pending = 0;  ///< of a Wait: how many groups may remain
  bool all = false;      ///< of a Wait: also for work in no group
  functional::AccessSpace space = functional::AccessSpace::Generic;
  Address::Base base = Address::Base::Wide;
  uint32_t bytes = 0;
  uint32_t element = 0;    ///< bytes of what an atomic changes as a whole
  bool described = false;  ///< by an AccessDetail
  bool tiles = false;      ///< ldmatrix
  bool grouped = false;    ///< completes in a group, not at an mbarrier
  bool holds_up = false;   ///< of an Arrive: adds to the pending arrivals until the copies are complete
  bool replaces = false;   ///< an exchange
  bool relaxed = false;    ///< a barrier that orders nothing
  bool closes = false;     ///< a Product that ends a group
};

/// By Op.
std::vector<OpFacts> facts_of(const Program& program);

}  // namespace simt::check
