// SPDX-License-Identifier: BSD-3-Clause
// The Mx of one client: the region of each, and the connection that alone may use it, if any. An Mx
// ends with either of them. Its record is removed later, one at a time, because a region may have
// thousands.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "libst/service/budget.h"
#include "libst/service/program_use.h"
#include "stp/node/node.h"

namespace stp::service {

class MxRecords {
 public:
  struct Record {
    RegionId region = kNoneId;
    VcId vc = kNoneId;  // kNoneId: all connections of the region's endpoint
    Reservation place;
    Counted one;
  };

  // Takes the place of the record of an earlier Mx of this number, which has ended. An exception
  // (no memory) leaves no record of `mx`.
  void add(std::uint16_t mx, Record record);
  // Does nothing if there is no record.
  void remove(std::uint16_t mx);
  // Removes one record of the region or connection. False: there is none.
  bool remove_one_of_region(RegionId region);
  bool remove_one_of_connection(VcId vc);

  [[nodiscard]] std::size_t count_of_region(RegionId region) const;
  [[nodiscard]] std::size_t count_of_connection(VcId vc) const;
  [[nodiscard]] bool empty() const { return records_.empty(); }

 private:
  using Set = std::unordered_set<std::uint16_t>;
  std::unordered_map<std::uint16_t, Record> records_;
  std::unordered_map<RegionId, Set> of_region_;  // no set is empty
  std::unordered_map<VcId, Set> of_connection_;  // no set is empty
};

}  // namespace stp::service
