// SPDX-License-Identifier: BSD-3-Clause
// The operations of a connection: when they begin and complete.
#pragma once

#include <cstdint>

#include "libst/managed/operation_list.h"
#include "libst/managed/queue.h"
#include "libst/managed/regions.h"
#include "libst/managed/session.h"
#include "stp/base/assert.h"

namespace stp::managed {

// The Writes under way on a connection. The peer's Node remembers the newest ones. While the oldest
// unconfirmed Write is among them, a lost confirmation can always be repeated.
// protocol: 9.32
class WriteWindow {
 public:
  static constexpr std::uint64_t kMost = 64;

  // The oldest one under way is among the newest 63.
  [[nodiscard]] bool may_begin() const { return open_ >> (kMost - 1) == 0; }
  // Whether a Write is under way.
  [[nodiscard]] bool any() const { return open_ != 0; }
  // Returns the number of the new Write, counted from 1.
  std::uint64_t begin() {
    STP_ASSERT(may_begin(), "a Write begins within the window");
    open_ = open_ << 1 | 1;
    return ++last_;
  }
  // The Write was confirmed or given up.
  void complete(std::uint64_t write) {
    STP_ASSERT(last_ - write < kMost, "a Write under way is among the newest");
    const auto bit = std::uint64_t{1} << (last_ - write);
    STP_ASSERT((open_ & bit) != 0, "a Write completes once");
    open_ &= ~bit;
  }

 private:
  std::uint64_t open_ = 0;  // bit n: Write number last_ - n is under way
  std::uint64_t last_ = 0;
};

// Owns the outstanding operations of a connection: everything posted except receives. It promises
// that they begin in the order of posting, that each completes exactly once, and that at most
// WriteWindow::kMost Writes are open.
class Operations {
 public:
  Operations(Reports& reports, PeerRegions& regions) : reports_(reports), regions_(regions) {}

  // Adds an operation. `posted`: its place in the order of operations and receives. Returns false
  // if there are too many, or if its completion would have no place in the queue.
  [[nodiscard]] bool post(const Operation& operation, std::uint64_t posted) {
    if (list_.size() >= OperationList::kMost || !reports_.sends().reserve()) return false;
    list_.add(operation).posted = posted;
    return true;
  }
  // Begins as many operations as may begin now.
  void begin(Session& session);
  void on_completion(Session& session, const Completion& c);
  // Asks for confirmation of quiet operations, because somebody waits for their end.
  void confirm_quiet(Session& session) const {
    if (!list_.empty()) session.sequencer.confirm_puts();
  }

  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] bool uses(const Memory& memory) const;
  // Counts the quiet and lazy operations that use the memory.
  [[nodiscard]] unsigned quiet_uses(const Memory& memory) const;
  // The oldest operation with that context that is not cancelled yet, or nullptr.
  [[nodiscard]] Operation* find(std::uint64_t context) const;
  // `session`: nullptr before the connection is open. Returns 0, or why the operation goes on.
  int cancel(Session* session, Operation& operation);

  // The connection has ended: completes all of them with `status`.
  void flush(int status);
  // The domain has ended: drops them, and they never complete.
  void forget() { list_.forget(); }

 private:
  int try_begin(Session& session, Operation& operation);
  int begin_send(Session& session, Operation& operation);
  int begin_write(Session& session, Operation& operation);
  int begin_remote(Session& session, Operation& operation);
  int access(Session& session, const Operation& operation, const RemoteRegion& region);
  [[nodiscard]] bool goes_by_ring(const Session& session, std::uint64_t length) const;
  [[nodiscard]] bool may_be_quiet(const Operation& operation) const;
  // Completes the operation. Its place may be reused at once.
  void complete(Operation& operation, int status, std::uint64_t length = 0,
                std::uint32_t message = 0);

  Reports& reports_;
  PeerRegions& regions_;
  OperationList list_;
  WriteWindow writes_;
};

}  // namespace stp::managed
