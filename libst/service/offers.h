// SPDX-License-Identifier: BSD-3-Clause
// Memory that a service makes for clients in other processes: their pages, and channels. A client
// maps what it was offered and then says so (kMapped). Until then the service works with memory of
// its own, which no client can reach; it never touches memory of which a client can take pages.
// Clients in this process (no workers) get the service's own memory.
#pragma once

#include <memory>
#include <utility>

#include "libst/service/shared_memory.h"
#include "libst/service/user_workers.h"

namespace stp::service {

class Offers {
 public:
  // From now on clients are other processes.
  void begin(std::shared_ptr<UserWorkers> workers) { workers_ = std::move(workers); }
  [[nodiscard]] bool wanted() const { return workers_ != nullptr; }
  // Memory of the service's own. If clients are other processes, a worker unmaps that, too:
  // thousands of them may go at once, and each munmap() may wait for other threads that map.
  // nullptr: see errno. `charge`: returns to its budget with the memory.
  [[nodiscard]] std::shared_ptr<SharedMemory> make_own(uid_t user, std::size_t size,
                                                       Reservation charge) const {
    auto made = SharedMemory::create_own(size);
    if (made == nullptr) return nullptr;
    made->charge({}, std::move(charge));
    if (!wanted()) return made;
    return std::static_pointer_cast<SharedMemory>(
        UserWorkers::guard(workers_, user, std::move(made)));
  }
  // A worker of the user unmaps it in the end. nullptr: see errno.
  [[nodiscard]] std::shared_ptr<SharedMemory> make(uid_t user, const char* name,
                                                   std::size_t size) const {
    auto made = SharedMemory::offer(name, size);
    if (made == nullptr) return nullptr;
    return std::static_pointer_cast<SharedMemory>(
        UserWorkers::guard(workers_, user, std::move(made)));
  }

 private:
  std::shared_ptr<UserWorkers> workers_;
};

}  // namespace stp::service
