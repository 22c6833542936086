// SPDX-License-Identifier: BSD-3-Clause
// Selects a link for an endpoint, and tells of its trouble. All endpoints of this process on one
// shard of a link share one Backend. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "libst/client/backend.h"

namespace stp::client {

// Selects a shard of a link with several: the shard that owns a Port, or by number, counted from 1.
// If neither is set, the shards take turns.
struct ShardChoice {
  std::uint32_t port = 0;
  std::uint32_t number = 0;
};

// Uses the link of STP_LINK, else the default stpd if its socket exists, else `loop`. Opens the
// link for its first user. The link closes when the last copy of `out` is destroyed. Returns 0 or a
// negative errno.
int use_link(std::shared_ptr<Backend>& out, const ShardChoice& shard = {});
// Uses the link that `text` describes.
int use_link(const std::string& text, std::shared_ptr<Backend>& out, const ShardChoice& shard = {});

// Describes trouble of a link in the text of an error that it may have caused: for example, that
// frames of some length cannot be sent.

// "": no known trouble. `peer`: leaves out what concerns other stations only.
std::string trouble_of(Backend& backend, const MacAddr& peer = {});
// Whether somebody has reported that nothing gets to that station, which may be forged.
bool is_reported_gone(Backend& backend, const MacAddr& peer);
// What else to look at if nobody answers, for the end of a text; "": nothing that the link knows.
std::string hint_at_firewalls(const Backend& backend);
// Fails with -ETIMEDOUT: no answer has come in time. If the link has trouble, or the peer has
// answered shortly before, the text says so.
int fail_in_time(Backend& backend, const MacAddr& peer = {});
// Fails with `error`. If the link has trouble, the text is `what` with it.
int fail_by_link(Backend& backend, const MacAddr& peer, int error, const std::string& what);

}  // namespace stp::client
