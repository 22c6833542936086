// SPDX-License-Identifier: BSD-3-Clause
// Removes what has ended, a slice in each turn: a client that leaves may have thousands of objects,
// and no other client should wait until all of them are removed. Also ends the clients that took
// away memory in use.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "libst/host/bells.h"
#include "libst/host/client.h"
#include "libst/host/endpoints.h"
#include "libst/host/regions.h"
#include "libst/os/unique_fd.h"

namespace stp::service {

class Removal {
 public:
  // Throws std::system_error if the process may not have one more file.
  Removal(ClientTable& clients, Bells& bells, Connections& connections, Regions& regions,
          Endpoints& endpoints, Leftovers& leftovers);

  // Begins to remove the client, once: its requests and bells are no longer heard.
  void begin(Client& client);
  // Begins to remove the clients that took away pages which they had lent: the data in those pages
  // is lost, so such a client cannot go on.
  void expel_torn();
  // One slice, for all clients together. Returns true if there was work; there may be more.
  bool go_on();

  // Returns the clients that expel_torn() has removed, one by one.
  std::optional<ClientId> next_expelled();
  // Readable when there is one.
  [[nodiscard]] int expelled_fd() const { return expelled_fd_.get(); }

 private:
  bool remove_one_of(Client& client);
  bool remove_one_of(const Leftover& leftover, Client& client);

  ClientTable& clients_;
  Bells& bells_;
  Connections& connections_;
  Regions& regions_;
  Endpoints& endpoints_;
  Leftovers& leftovers_;
  std::deque<ClientId> leaving_;  // clients with something left to remove
  std::deque<ClientId> expelled_;
  UniqueFd expelled_fd_;
  std::uint64_t seen_tears_ = 0;
};

}  // namespace stp::service
