// SPDX-License-Identifier: BSD-3-Clause
// Memory that accompanies requests and replies: what a client brings, and what the Service offers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/ipc/shared_memory.h"
#include "stp/types.h"

namespace stp::host {

// What accompanies a request or a reply in addition to its fixed part (requests.h).
struct Attachments {
  // kMap: the pieces of memory in this process, and an object that keeps them mapped (may be null
  // if they are the user's own memory). The Service releases it when the Node no longer uses them.
  std::vector<MutableBytes> pieces;
  std::shared_ptr<void> keep;
  // What claim_region() reserved for the region, and the bytes that stpd maps: all of the segments.
  Reservation of_region;
  std::uint64_t mapped_bytes = 0;
  // Goes along with the reply: a channel, or the client page.
  std::shared_ptr<ipc::SharedMemory> memory;
};

// What a region takes from its user's budgets. Reserved before the region is made.
struct RegionClaim {
  Reservation of_region, of_memory;  // until the region has gone; while its memory is mapped
  Reservation of_request;            // until the request is answered
  Account payer;                     // of the files that keep its pages from being moved
  std::shared_ptr<ipc::Torn> torn;   // set when the owner takes away memory in use
};

// What is reserved, in the form in which it goes with memory (SharedMemory::charge).
inline std::shared_ptr<void> kept(Reservation reserved) {
  return std::make_shared<Reservation>(std::move(reserved));
}

// Memory that a service makes for clients in other processes: their pages, and channels. A client
// maps what it was offered and then says so (kMapped). Until then the service works with memory of
// its own, which no client can reach; it never touches memory of which a client can take pages.
// Clients in this process get the service's own memory.
class Offers {
 public:
  // Wraps `thing`: when the last copy of the result is destroyed, somebody who may wait for `user`
  // releases it.
  using ReleaseElsewhere =
      std::function<std::shared_ptr<void>(uid_t user, std::shared_ptr<void> thing)>;

  // From now on clients are other processes.
  void begin(ReleaseElsewhere release) { release_ = std::move(release); }
  [[nodiscard]] bool wanted() const { return release_ != nullptr; }
  // Memory of the service's own. If clients are other processes, that is unmapped elsewhere, too:
  // thousands of them may go at once, and each munmap() may wait for other threads that map.
  // nullptr: see errno. `charge`: returns to its budget with the memory.
  [[nodiscard]] std::shared_ptr<ipc::SharedMemory> make_own(uid_t user, std::size_t size,
                                                            Reservation charge) const {
    auto made = ipc::SharedMemory::create_own(size);
    if (made == nullptr) return nullptr;
    made->charge({}, kept(std::move(charge)));
    if (!wanted()) return made;
    return std::static_pointer_cast<ipc::SharedMemory>(release_(user, std::move(made)));
  }
  // It is unmapped elsewhere in the end. nullptr: see errno.
  [[nodiscard]] std::shared_ptr<ipc::SharedMemory> make(uid_t user, const char* name,
                                                        std::size_t size) const {
    auto made = ipc::SharedMemory::offer(name, size);
    if (made == nullptr) return nullptr;
    return std::static_pointer_cast<ipc::SharedMemory>(release_(user, std::move(made)));
  }

 private:
  ReleaseElsewhere release_;
};

}  // namespace stp::host
