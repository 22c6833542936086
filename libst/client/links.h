// SPDX-License-Identifier: BSD-3-Clause
// Which link this process uses, and the one Backend that all its endpoints on that link share.
#pragma once

#include <memory>

#include "libst/client/backend.h"

namespace stp::client {

// Which shard of a link with several: the one that has a Port, or by its number, from 1 on;
// neither: the next one in turn.
struct ShardChoice {
  std::uint32_t port = 0;
  std::uint32_t number = 0;
};

// The link of STP_LINK, else the default stpd if its socket is there, else `loop`: opened when the
// first endpoint asks for it, closed when the last one has gone.
int use_link(std::shared_ptr<Backend>& out, const ShardChoice& shard = {});
// The link of that text.
int use_link(const std::string& text, std::shared_ptr<Backend>& out, const ShardChoice& shard = {});

}  // namespace stp::client
