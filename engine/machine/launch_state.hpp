#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/cta.hpp"

/// The state of CTAs in the middle of a launch as bytes: registers, divergence, barriers, shared and local
/// memory. It belongs to one program as translated by one version of the engine.
namespace simt::functional::launch_state {

/// The CTAs of a grid, by cluster; clusters have one CTA.
std::vector<std::byte> save(const Grid& grid, std::vector<std::vector<std::unique_ptr<Cta>>>& clusters);

/// The inverse. Throws std::invalid_argument if the state is malformed, or of another grid.
std::vector<std::vector<std::unique_ptr<Cta>>> load(Grid& grid, const std::vector<std::byte>& state);

/// The address of the launch's parameters when the state was saved. Throws std::invalid_argument.
uint64_t parameters(const std::vector<std::byte>& state);

}  // namespace simt::functional::launch_state
