// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/connectionless.h"

namespace stp::sim {

ConnectionlessSession::ConnectionlessSession(Run& run, const SessionConfig& config)
    : run_(run), config_(config), one_(run, config), other_(run, config) {
  one_.write_to(other_);
  other_.write_to(one_);
}

std::string ConnectionlessSession::overdue(Time now) {
  if (now < config_.workload.patience) return {};
  const auto since = now - config_.workload.patience;
  return one_.waits_since(since) || other_.waits_since(since) ? "a Block is repeated forever" : "";
}

void ConnectionlessSession::check(bool reliable) {
  if (reliable)
    run_.verdict.require(one_.all_confirmed() && other_.all_confirmed(),
                         "Blocks to an endpoint never arrived");
}

}  // namespace stp::sim
