// SPDX-License-Identifier: BSD-3-Clause
// The managed API for C++: owners of its handles. A call that fails throws stp::Error; everything
// else is as <stp/managed.h> says. Needs C++17.
#ifndef STP_MANAGED_HPP
#define STP_MANAGED_HPP

#include <stp/managed.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace stp {

class Error : public std::system_error {
 public:
  Error(int error, const std::string& what)
      : std::system_error(-error, std::generic_category()),
        text_(what + ": " + st_strerror(error)) {}
  // Without the text of the error code, which std::system_error appends: it would repeat the
  // reason.
  const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // copying it throws nothing
};

// The result of a call that is not negative.
inline int checked(int result, const char* what) {
  if (result < 0) throw Error(result, what);
  return result;
}

// Closes what it owns; as cheap to move as a pointer.
template <typename Handle, int (*Close)(Handle)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() { reset(); }

  operator Handle() const { return handle_; }
  Handle release() { return std::exchange(handle_, nullptr); }
  // What the C call that closes it returns.
  int reset() { return handle_ != nullptr ? Close(release()) : 0; }

 private:
  Handle handle_ = nullptr;
};

using Domain = Owner<stm_domain_t, stm_domain_close>;
using Queue = Owner<stm_queue_t, stm_queue_destroy>;
using Memory = Owner<stm_memory_t, stm_memory_release>;
using Region = Owner<stm_region_t, stm_region_close>;
using Listener = Owner<stm_listener_t, stm_listener_close>;
using Connection = Owner<stm_connection_t, stm_connection_close>;

inline Domain open_domain(const char* link = nullptr) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = link;
  stm_domain_t domain = nullptr;
  checked(stm_domain_open(&attr, &domain), "opening the link");
  return Domain(domain);
}

inline Queue make_queue(stm_domain_t domain, std::size_t capacity) {
  stm_queue_t queue = nullptr;
  checked(stm_queue_create(domain, capacity, &queue), "making a queue");
  return Queue(queue);
}

inline Memory register_memory(stm_domain_t domain, void* ptr, std::size_t length, unsigned access) {
  stm_memory_t memory = nullptr;
  checked(stm_memory_register(domain, ptr, length, access, &memory), "registering memory");
  return Memory(memory);
}

struct OpenRegion {
  Region region;
  stm_remote_t remote;
};
inline OpenRegion open_region(stm_memory_t memory, void* ptr, std::size_t length, unsigned access,
                              std::uint64_t address = 0, stm_connection_t only = nullptr) {
  OpenRegion opened{};
  stm_region_t region = nullptr;
  checked(stm_region_open(memory, ptr, length, access, only, address, &region, &opened.remote),
          "opening a region");
  opened.region = Region(region);
  return opened;
}

inline Listener listen(stm_domain_t domain, const char* port, stm_queue_t queue,
                       std::uint64_t context = 0) {
  stm_listener_t listener = nullptr;
  checked(stm_listen(domain, port, queue, context, 0, &listener), "listening");
  return Listener(listener);
}

inline stm_connection_attr_t connection_attr(stm_queue_t queue, std::uint64_t context = 0) {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = queue;
  attr.context = context;
  return attr;
}

inline Connection make_connection(stm_domain_t domain, const stm_connection_attr_t& attr) {
  stm_connection_t connection = nullptr;
  checked(stm_connection_create(domain, &attr, &connection), "making a connection");
  return Connection(connection);
}

// The next event; waits for it at most `patience` (Error of -EWOULDBLOCK then).
inline stm_event_t next_event(stm_queue_t queue,
                              std::chrono::microseconds patience = std::chrono::microseconds(-1)) {
  stm_event_t event{};
  int result;
  do {
    result = stm_queue_wait(queue, 1, &event, 1, patience.count());
  } while (result == -EINTR);
  checked(result, "waiting for an event");
  return event;
}

// As next_event, and it has to be one of success.
inline stm_event_t expect_event(stm_queue_t queue, unsigned kind,
                                std::chrono::microseconds patience) {
  const auto event = next_event(queue, patience);
  if (event.status != 0) throw Error(event.status, "an operation");
  if (event.kind != kind) throw Error(-EPROTO, "another event than expected");
  return event;
}

}  // namespace stp

#endif  // STP_MANAGED_HPP
