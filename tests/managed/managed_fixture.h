// SPDX-License-Identifier: BSD-3-Clause
// The managed API as a program sees it, with a Node in the process and through a daemon: the
// connected domains of a server and a client, each with one queue.
#pragma once

#include <stp/managed.h>

#include <cstring>
#include <deque>

#include "tests/libst/libst_fixture.h"

namespace stp::test {

// A domain with a queue. Events that no call has asked for yet are kept in `seen`.
class Side {
 public:
  explicit Side(std::size_t capacity = 4096, const stm_domain_attr_t* attr = nullptr);
  ~Side() { close(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  void close();

  [[nodiscard]] stm_connection_attr_t attr(std::uint64_t context = 0) const;
  // Returns the next event of that kind (any context). Waits at most 20 s, then returns kind 0.
  stm_event_t next(unsigned kind);
  // The next event for `context`.
  stm_event_t completion(std::uint64_t context);
  // Whether no event arrives within a short while.
  bool quiet();
  // Waits until its connection can send short messages without a receive at the peer.
  void await_eager() const;
  stm_memory_t memory(void* ptr, std::size_t length, unsigned access = STM_LOCAL_WRITE);

  stm_domain_t domain = nullptr;
  stm_queue_t queue = nullptr;
  stm_connection_t connection = nullptr;
  std::deque<stm_event_t> seen;

 private:
  template <typename Wanted>
  stm_event_t find(Wanted wanted);
};

// A server's domain and a client's on the link of STP_LINK.
class TwoSides {
 public:
  explicit TwoSides(const stm_domain_attr_t* attr = nullptr) : TwoSides(attr, attr) {}
  TwoSides(const stm_domain_attr_t* of_server, const stm_domain_attr_t* of_client)
      : server(4096, of_server), client(4096, of_client) {}
  // The server listens on :3000.
  void listen();
  void connect(const void* private_data = nullptr, std::size_t length = 0);
  // Listens, connects and accepts.
  void establish();

  Side server, client;
  stm_listener_t listener = nullptr;
};

class ManagedApi : public LibstTest, protected TwoSides {
 protected:
  void SetUp() override { establish(); }
};

}  // namespace stp::test
