#pragma once
#include "machine/address.hpp"

/// clusterlaunchcontrol, for PTX and machine code. No cluster is ever taken from the launch: every request is
/// answered that there was none left to cancel, as on a GPU that has begun all of them. So each cluster of
/// the grid begins by itself.
namespace simt::functional {

struct CancelDetail : Detail {
  Address answer, mbarrier;
  bool everywhere = false;  ///< the answer goes to all CTAs of the cluster
};
Handler try_cancel_handler();

}  // namespace simt::functional
