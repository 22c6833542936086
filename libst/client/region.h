// SPDX-License-Identifier: BSD-3-Clause
// The object behind st_map: user memory bound to Bufx entries. Functions return 0 or a negative
// errno. Thread-safe.
#pragma once

#include "libst/client/endpoint.h"

namespace stp::client {

class Region {
 public:
  static constexpr Kind kKind = Kind::kRegion;

  Region(std::shared_ptr<Endpoint> endpoint, RegionId id, Direction direction,
         std::shared_ptr<void> keep)
      : endpoint_(std::move(endpoint)), id_(id), direction_(direction), keep_(std::move(keep)) {}

  // Allocates an Mx on the region, for `vc` or (kNoneId) for every connection of the endpoint.
  int allocate_mx(VcId vc, std::uint16_t& out);
  // Call after the handle has been retired. Waits, without a timeout, until the link no longer uses
  // the memory.
  int unmap();

  [[nodiscard]] const Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] Direction direction() const { return direction_; }
  void set_handle(Handle handle) { handle_ = handle; }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
  const RegionId id_;
  const Direction direction_;
  const std::shared_ptr<void> keep_;
  Handle handle_ = 0;
};

}  // namespace stp::client
