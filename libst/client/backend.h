// SPDX-License-Identifier: BSD-3-Clause
// What libst needs of a link, the same for one that runs inside this process and for one that
// stpd runs. Functions return 0 or a negative errno.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "libst/service/client_page.h"
#include "libst/service/messages.h"
#include "libst/service/shared_memory.h"

namespace stp::client {

using service::ClientPage;
using service::Reply;
using service::Request;
using service::RequestKind;
using service::SharedMemory;

// What goes along with a request beside its fixed part.
struct Payload {
  std::vector<MutableBytes> mapped;      // kMap: the user's memory, in pieces
  std::vector<MutableBytes> own;         // kMap: what of it is lent; empty: all
  std::shared_ptr<void> keep;            // out, kMap: to be held as long as the region lives
  std::shared_ptr<SharedMemory> memory;  // out, kConnect, kAccept: the channel
};

// A condition, by reference.
class Condition {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_const_t<F>, Condition>) explicit Condition(F& holds)
      : context_(&holds), holds_([](void* f) { return (*static_cast<F*>(f))(); }) {}
  bool operator()() const { return holds_(context_); }

 private:
  void* context_;
  bool (*holds_)(void*);
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Asks the service and waits for its answer, which is returned.
  virtual int exchange(Request& request, Payload& payload, Reply& reply) = 0;
  // Something stands in the transmit queue of the channel with this bell. What is posted in a row
  // may leave together.
  virtual void kick(std::uint32_t bell) {
    ring(bell);
    rung();
  }
  // The same at once, in two steps, for several channels: whoever drives the link next sees to
  // those rung.
  void ring(std::uint32_t bell) const { page().bells.ring(bell); }
  virtual void rung() = 0;
  // A short while of looking for `condition`, moving frames meanwhile if that is ours to do.
  // False: it is time to sleep, or `deadline` has passed.
  virtual bool attend(Condition condition, Time deadline) = 0;
  // 0, or why the service is gone.
  [[nodiscard]] virtual int error() const = 0;
  // Memory has to be shared with another process before it can be mapped.
  [[nodiscard]] virtual bool lends_memory() const { return false; }
  // The process ends: tells the peers, as far as nobody else will.
  virtual void leave() {}

  // As the service gave them in its answer to kHello.
  [[nodiscard]] ClientPage& page() const { return *reinterpret_cast<ClientPage*>(page_->data()); }
  [[nodiscard]] MacAddr mac() const { return mac_; }
  [[nodiscard]] std::uint32_t ipv4() const { return ipv4_; }
  [[nodiscard]] std::uint32_t max_stu() const { return max_stu_; }
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }

  int exchange(Request& request, Reply& reply) {
    Payload none;
    return exchange(request, none, reply);
  }

 protected:
  Backend() = default;
  void welcome(const Reply& hello, std::shared_ptr<SharedMemory> page) {
    page_ = std::move(page);
    mac_ = MacAddr::from_u64(hello.mac);
    ipv4_ = hello.ipv4;
    max_stu_ = hello.max_stu;
    mtu_ = hello.mtu;
  }

 private:
  std::shared_ptr<SharedMemory> page_;
  MacAddr mac_;
  std::uint32_t ipv4_ = 0;     // host order; 0: the link has none
  std::uint32_t max_stu_ = 0;  // exponent: the longest STU that the link carries
  std::uint32_t mtu_ = 0;      // bytes behind an Ethernet header
};

inline Request request_for(RequestKind kind) {
  Request request{};
  request.version = service::kProtocolVersion;
  request.kind = kind;
  return request;
}

}  // namespace stp::client
