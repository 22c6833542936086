// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/mx_records.h"

#include <utility>

#include "stp/base/assert.h"

namespace stp::service {
namespace {

template <typename Sets>
void take_out(Sets& sets, typename Sets::key_type of, std::uint16_t mx) {
  const auto at = sets.find(of);
  if (at == sets.end()) return;
  at->second.erase(mx);
  if (at->second.empty()) sets.erase(at);
}

template <typename Sets>
std::size_t count(const Sets& sets, typename Sets::key_type of) {
  const auto at = sets.find(of);
  return at == sets.end() ? 0 : at->second.size();
}

}  // namespace

void MxRecords::add(std::uint16_t mx, Record record) {
  remove(mx);
  const auto region = record.region;
  const auto vc = record.vc;
  STP_ASSERT(region != kNoneId, "an Mx is of a region");
  records_.emplace(mx, std::move(record));
  try {
    of_region_[region].insert(mx);
    if (vc != kNoneId) of_connection_[vc].insert(mx);
  } catch (...) {
    remove(mx);
    throw;
  }
}

void MxRecords::remove(std::uint16_t mx) {
  const auto at = records_.find(mx);
  if (at == records_.end()) return;
  take_out(of_region_, at->second.region, mx);
  take_out(of_connection_, at->second.vc, mx);
  records_.erase(at);
}

bool MxRecords::remove_one_of_region(RegionId region) {
  const auto at = of_region_.find(region);
  if (at == of_region_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a region without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

bool MxRecords::remove_one_of_connection(VcId vc) {
  const auto at = of_connection_.find(vc);
  if (at == of_connection_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a connection without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

std::size_t MxRecords::count_of_region(RegionId region) const {
  return count(of_region_, region);
}

std::size_t MxRecords::count_of_connection(VcId vc) const {
  return count(of_connection_, vc);
}

}  // namespace stp::service
