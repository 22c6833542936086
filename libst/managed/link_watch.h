// SPDX-License-Identifier: BSD-3-Clause
// Reports changes of the link's state to the queue that a program has chosen for them. Everything
// is used under the domain's mutex.
#pragma once

#include "libst/client/backend.h"
#include "libst/managed/queue.h"

namespace stp::managed {

class LinkWatch {
 public:
  // Reports to `queue` from now on, beginning with the present state. False: the queue has no
  // place for that report, and what was watched before still is.
  bool begin(client::Backend& backend, std::shared_ptr<Queue> queue, std::uint64_t context);
  void end();
  // Reports the present state if it has changed since the last report and the queue has a place.
  void look(client::Backend& backend);
  // A change waits for a place in the queue.
  [[nodiscard]] bool is_behind() const { return behind_; }

 private:
  // What the page of the link shows, or why there is no link any more.
  struct View {
    std::uint32_t state = 0, changes = 0;
    int error = 0;
  };
  static View view_of(client::Backend& backend);
  void report(const View& view);

  QueueUse queue_;  // none: nobody has asked
  std::uint64_t context_ = 0;
  View reported_;
  bool behind_ = false;
};

}  // namespace stp::managed
