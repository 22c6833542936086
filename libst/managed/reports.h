// SPDX-License-Identifier: BSD-3-Clause
// Owns a connection's places in the queues of the program, and builds its events. It promises that
// an event always finds a place: two are reserved with the queues, for the connection's beginning
// and its end, and each post reserves one for its completion.
#pragma once

#include <memory>

#include "libst/client/handle_table.h"
#include "libst/managed/pool.h"
#include "libst/managed/queue.h"
#include "stp/types.h"

namespace stp::managed {

// What the program says about a connection when it creates or accepts it.
struct Outlets {
  QueueUse events, sends, receives;
  std::shared_ptr<Pool> pool;  // receives are taken from it; nullptr: the connection has its own
  std::uint64_t context = 0;
  std::uint64_t group = 0;     // of regions that the peer may access
  Time receive_wait = kNever;  // timeout of a message that finds no receive
  bool on_arrival = false;     // a message takes a receive from the pool before its turn
};

class Reports {
 public:
  Reports() = default;
  ~Reports() { close(); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

  // Returns -EAGAIN if the queue of events lacks two free places.
  int open(Outlets outlets);
  // Lets go of the queues and the pool. Only the context stays.
  void close();
  [[nodiscard]] bool is_open() const { return static_cast<bool>(outlets_.events); }

  void set_handle(client::Handle handle) { handle_ = handle; }
  [[nodiscard]] client::Handle handle() const { return handle_; }

  [[nodiscard]] stm_event_t event(std::uint32_t kind, int status, std::uint64_t context) const;
  // An event of the connection itself.
  [[nodiscard]] stm_event_t event(std::uint32_t kind, int status = 0) const {
    return event(kind, status, outlets_.context);
  }
  // Reports the connection's beginning or its end. Does nothing if there is no reserved place.
  void tell(std::uint32_t kind, int status);
  // Frees the place of an operation that completes without an event.
  void release_send();

  [[nodiscard]] QueueUse& events() { return outlets_.events; }
  [[nodiscard]] QueueUse& sends() { return outlets_.sends; }
  [[nodiscard]] const QueueUse& sends() const { return outlets_.sends; }
  [[nodiscard]] QueueUse& receives() { return outlets_.receives; }
  [[nodiscard]] Pool* pool() const { return outlets_.pool.get(); }
  [[nodiscard]] std::uint64_t context() const { return outlets_.context; }
  [[nodiscard]] std::uint64_t group() const { return outlets_.group; }
  [[nodiscard]] Time receive_wait() const { return outlets_.receive_wait; }
  [[nodiscard]] bool on_arrival() const { return outlets_.on_arrival; }

 private:
  Outlets outlets_;
  client::Handle handle_ = 0;
};

}  // namespace stp::managed
