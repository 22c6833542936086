// SPDX-License-Identifier: BSD-3-Clause
// Posted receives: a connection's own, or shared in a pool. All under the domain's mutex.
#pragma once

#include <cerrno>
#include <memory>

#include "libst/client/handle_table.h"
#include "libst/managed/memory.h"
#include "stp/base/ring_queue.h"

namespace stp::managed {

struct PostedReceive {
  std::uint64_t id = 0;  // unique on its connection
  std::uint64_t context = 0;
  MemoryUse memory;
  void* ptr = nullptr;
  std::size_t length = 0;

  // Why a message of that length cannot be received here: a negative errno; 0: it can.
  [[nodiscard]] int refusal(std::uint64_t message_length) const {
    if (memory && memory->withdrawn) return -EACCES;
    return message_length <= length ? 0 : -EMSGSIZE;
  }
};

class Pool {
 public:
  static constexpr client::Kind kKind = client::Kind::kPool;

  Pool(std::shared_ptr<Domain> domain, std::size_t most)
      : capacity(most), domain_(std::move(domain)) {}

  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }

  std::size_t capacity;
  RingQueue<PostedReceive> receives;
  unsigned users = 0;  // connections that use it

 private:
  const std::shared_ptr<Domain> domain_;
};

}  // namespace stp::managed
