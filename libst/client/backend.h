// SPDX-License-Identifier: BSD-3-Clause
// The interface of libst to a link, or to one shard of it, whether it runs inside this process or
// in stpd. Functions return 0 or a negative errno. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/ipc/client_page.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"

namespace stp::port {
struct LinkConfig;
}

namespace stp::client {

using ipc::ClientPage;
using ipc::GivenChannel;
using ipc::SharedMemory;
using ipc::VcFacts;

// What a region needs in this process for as long as it lives.
class Hold {
 public:
  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  virtual ~Hold() = default;
  // The region stays, but nobody uses it. The program may do with the memory what it likes.
  virtual void rest() = 0;
  // The region is used again. `areas`: what is mapped there now. False: the region is of other
  // memory than that, and has to be unmapped.
  virtual bool resume(std::span<const AreaAt> areas) = 0;
};

// What accompanies a request in addition to its fixed part.
struct Payload {
  std::vector<MutableBytes> mapped;      // Map: the user's memory, in pieces
  std::vector<MutableBytes> own;         // Map: the part of it that is lent; empty: all
  std::shared_ptr<Hold> keep;            // out, Map: hold it as long as the region lives
  std::shared_ptr<SharedMemory> memory;  // out, where the reply has a channel: its memory
};

// A reference to a callable that returns whether a condition holds. The callable must outlive it.
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

  // Sends a request to the service, waits for the reply and returns its result. If that is not 0,
  // `reply` stays as it is.
  template <ipc::Asked R>
  int call(const R& request, typename R::Reply& reply, Payload& payload) {
    ipc::RequestMessage message(request);
    ipc::ReplyMessage answer;
    const auto result = exchange(message, payload, answer);
    if (result == 0) reply = answer.as<R>();
    return result;
  }
  template <ipc::Asked R>
  int call(const R& request, typename R::Reply& reply) {
    Payload none;
    return call(request, reply, none);
  }
  // The same, of a request to which the result is all there is to say.
  template <ipc::Asked R>
  int call(const R& request) {
    typename R::Reply reply{};
    return call(request, reply);
  }
  // The transmit queue of the channel with this bell has new entries. Consecutive posts may leave
  // together.
  virtual void kick(std::uint32_t bell) {
    ring(bell);
    rung(0);
  }
  // The same without delay, in two steps, for several channels: ring each bell, then call rung().
  // Whoever drives the link next handles all rung bells. `now`: the time, if the caller has just
  // read it, by which a turn of the link does without another look at the clock; 0: it has not.
  void ring(std::uint32_t bell) const { page().bells.ring(bell); }
  virtual void rung(Time now) = 0;
  // Checks `condition` for a short while, and drives the link meanwhile if it runs in this process.
  // Returns 0 if the condition holds; -EAGAIN: time to sleep, or `deadline` has passed; -EINTR: a
  // signal handler ran while it slept on the link.
  virtual int attend(Condition condition, Time deadline) = 0;
  // One turn of the link, if it runs in this process, for a caller who takes the news of all
  // channels that `gatherer` gathers right after (UserChannel::gather): so nobody is woken for
  // them. Returns the time of that turn, a microsecond old at most; 0: not known.
  virtual Time look(std::uint32_t gatherer) {
    static_cast<void>(gatherer);
    auto once = [] { return true; };
    attend(Condition(once), 0);
    return 0;
  }
  // Call after a change of the page's word by this program: a thread in attend() may sleep
  // elsewhere.
  virtual void rouse() {}
  // 0, or the reason why the service is gone.
  [[nodiscard]] virtual int error() const = 0;
  // The same, with a text for st_strerror().
  [[nodiscard]] virtual int gone() const { return error(); }
  // Whether memory must be shared with another process before it can be mapped.
  [[nodiscard]] virtual bool lends_memory() const { return false; }
  // Call when the process exits: disconnects from the peers, unless stpd will do it.
  virtual void leave() {}

  // From the service's reply to Hello.
  [[nodiscard]] ClientPage& page() const { return *reinterpret_cast<ClientPage*>(page_->data()); }
  [[nodiscard]] MacAddr mac() const { return mac_; }
  // The link's present address, in host order; 0: it has none.
  [[nodiscard]] std::uint32_t ipv4() const {
    return page().link_ipv4.load(std::memory_order_relaxed);
  }
  // As in port::PortInfo.
  [[nodiscard]] std::uint16_t udp_port() const { return udp_port_; }
  [[nodiscard]] std::uint16_t peer_udp_port() const { return peer_udp_port_; }
  [[nodiscard]] bool internet() const { return internet_; }
  [[nodiscard]] bool ipv6() const { return ipv6_; }
  [[nodiscard]] bool one_address() const { return one_address_; }
  [[nodiscard]] std::uint32_t max_stu() const { return max_stu_; }
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }

 protected:
  Backend() = default;
  // A request of any kind; `reply` is to it. Returns the reply's result.
  virtual int exchange(ipc::RequestMessage& request, Payload& payload,
                       ipc::ReplyMessage& reply) = 0;
  void welcome(const ask::Hello::Reply& hello, std::shared_ptr<SharedMemory> page) {
    page_ = std::move(page);
    mac_ = MacAddr::from_u64(hello.mac);
    udp_port_ = static_cast<std::uint16_t>(hello.udp_port);
    peer_udp_port_ = static_cast<std::uint16_t>(hello.peer_udp_port);
    internet_ = hello.internet != 0;
    ipv6_ = hello.ipv6 != 0;
    one_address_ = hello.one_address != 0;
    max_stu_ = hello.max_stu;
    mtu_ = hello.mtu;
  }

 private:
  std::shared_ptr<SharedMemory> page_;
  MacAddr mac_;
  std::uint16_t udp_port_ = 0, peer_udp_port_ = 0;
  bool internet_ = false, ipv6_ = false, one_address_ = false;
  std::uint32_t max_stu_ = 0;  // exponent of the longest STU on this link
  std::uint32_t mtu_ = 0;      // bytes after the Ethernet header
};

// local_backend.cpp: opens all shards of a link in this process. The first one has the device and
// is destroyed last.
int open_here(const port::LinkConfig& link, std::vector<std::shared_ptr<Backend>>& out);

}  // namespace stp::client
