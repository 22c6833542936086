// SPDX-License-Identifier: BSD-3-Clause
// What a request needs of memory that its user shares with the daemon: a worker of the user does it
// (user_workers.h), and the server replies when it is done. A program has one errand at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/attachments.h"
#include "libst/service/messages.h"
#include "libst/service/region_memory.h"
#include "libst/service/shared_memory.h"
#include "libst/service/user_workers.h"

namespace stp::service {

struct Errand {
  std::uint64_t key = 0;  // identifies the client
  uid_t user = 0;
  Request request{};
  int result = 0;
  std::string why;  // -EDQUOT, where the worker knows
  // Nobody waits for the result any more.
  std::atomic<bool> abandoned{false};
  // kMapped: what the client was offered, and who pays for what keeps its pages from being moved.
  std::shared_ptr<SharedMemory> offered;
  Account payer;
  // kMap. When it is done, `files` holds those that are still to be closed: that may block.
  std::vector<UniqueFd> files;
  RegionClaim claim;
  std::uint64_t most = 0;  // bytes of a request
  std::shared_ptr<RegionMemory> memory;
};

class Errands {
 public:
  explicit Errands(std::shared_ptr<UserWorkers> workers);
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // An eventfd that becomes readable when an errand is done. Call take() until it returns nullptr.
  [[nodiscard]] int done_fd() const;
  void begin(std::shared_ptr<Errand> errand);
  // Returns an errand that is done, also one that was abandoned; nullptr: there is none.
  std::shared_ptr<Errand> take();

 private:
  struct State;
  const std::shared_ptr<UserWorkers> workers_;
  const std::shared_ptr<State> state_;  // errands under way keep it alive
};

}  // namespace stp::service
