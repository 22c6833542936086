// SPDX-License-Identifier: BSD-3-Clause
// An open link: one domain of the managed API, with one queue for all events. A thread that reads
// any libfabric queue takes the events there and dispatches them, under one mutex, which all
// objects of a fabric share.
#pragma once

#include <netinet/in.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/link_mutex.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/staging.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

// Where a short message lands.
struct RxBuffer {
  Owner* owner = nullptr;
  std::byte* data = nullptr;
};

// The buffers of a connection.
struct RxBlock {
  std::unique_ptr<std::byte, FreeBlock> bytes;
  stm_memory_t memory = nullptr;
  std::vector<RxBuffer> buffers;
};

// A pending connect. It runs in a thread of its own, because resolving a host may take a second.
struct Dial {
  Owner* owner;
  stm_connection_t connection;
  std::string peer;
  std::vector<std::byte> data;
};

class Link {
 public:
  Link();
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  // 0 or a status of the managed API.
  int open(const std::string& text);

  [[nodiscard]] LinkMutex& mutex() { return mutex_; }
  [[nodiscard]] stm_domain_t domain() const { return domain_; }
  [[nodiscard]] stm_queue_t queue() const { return queue_; }
  // Its present address; of one without an address 127.0.0.1.
  [[nodiscard]] std::uint32_t ipv4() const;
  // `name`, an address of this side, with the link's present address.
  [[nodiscard]] sockaddr_in at_present(sockaddr_in name) const;

  // Takes a bounded number of events and dispatches them.
  void progress();
  // 0, or the reason why the link is lost: its stpd has ended. No events come then.
  [[nodiscard]] int lost() const { return lost_; }
  // A connection has failed: the next turn checks whether the link is lost.
  void suspect() { look_at_ = {}; }
  // Takes all events: afterwards none refers to a closed object.
  void drain();
  Op& take_op();
  // Releases what the operation holds.
  void free_op(Op& op);
  // Finds or makes registered memory for the segments. `gather`: copies their bytes into it.
  int span_of(const Segments& segments, bool gather, Span& out);
  Slots& slots() { return slots_; }
  // The parameter sets how many, the same each time.
  int take_block(std::size_t count, std::unique_ptr<RxBlock>& out);
  void give_back(std::unique_ptr<RxBlock> block) { blocks_.push_back(std::move(block)); }
  void dial(Dial&& dial);
  // Afterwards no thread connects for `owner`. If one does now, the connection is closed.
  void stop_dialing(LinkLock& lock, const Owner& owner);

 private:
  static void dispatch(const stm_event_t& event);
  int take();
  void look_for_loss();
  void run_dialer();

  LinkMutex mutex_;
  stm_domain_t domain_ = nullptr;
  stm_queue_t queue_ = nullptr;
  int lost_ = 0;
  unsigned empty_turns_ = 0;
  Clock::time_point look_at_{};  // when to check next for the loss of the link
  Slots slots_;
  std::vector<std::unique_ptr<RxBlock>> blocks_;
  std::deque<Op> ops_;  // never moved
  std::vector<Op*> free_ops_;

  std::thread dialer_;
  std::condition_variable_any dial_;
  std::deque<Dial> dials_;
  const Owner* dialing_ = nullptr;
  stm_connection_t dialed_ = nullptr;
  bool closing_ = false;
};

// Listening at a port of the link, or at any that is free.

// Listens at the port of `name`. If that is 0, at a free one, which `name` gets. Returns 0 or a
// libfabric error, which the log explains.
int listen_at(const Link& link, sockaddr_in& name, Acceptor& acceptor, stm_listener_t& listener);

}  // namespace stp::fi
