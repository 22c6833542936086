// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/window_accounts.h"

#include <algorithm>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {

bool WindowAccounts::hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) {
  const auto id = static_cast<ClientId>(owner);
  const auto at = held_.find(id);
  const auto has = at == held_.end() ? 0 : at->second.amount();
  if (bytes <= before) {
    STP_ASSERT(before - bytes <= has, "what a purse gives back its owner holds");
    const auto left = has - std::min<std::uint64_t>(has, before - bytes);
    if (left != 0)
      at->second.shrink(left);
    else if (at != held_.end())
      held_.erase(at);
    return true;
  }
  const auto* const client = clients_.find(id);
  Reservation more;
  if (client == nullptr ||
      !client->payer.account.reserve(Resource::kWindowBytes, bytes - before, more))
    return false;
  held_[id].join(std::move(more));
  return true;
}

}  // namespace stp::service
