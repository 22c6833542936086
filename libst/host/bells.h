// SPDX-License-Identifier: BSD-3-Clause
// Who wakes whom: bells wake the polling thread, and the Service wakes threads of clients.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "dpdk_port/dpdk/turn_clock.h"
#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/os/unique_fd.h"
#include "stp/base/ring_queue.h"
#include "stp/base/work_meter.h"

namespace stp::host {

// Doorbells, which wake the sleeping polling thread: the Service's own one, the link's descriptor,
// and one for each client that is another process. A client can change the flags of its bell, read
// it, and write it as often as it likes. So the Service only asks epoll whether a bell was written:
// that never blocks and depends on no flag. A client that rings without need is not heard for a
// while (client.h).
//
// It can also have its bell watched a million times: the kernel holds the bell while a write wakes
// all these, and whoever takes it out of an epoll waits for that, with the epoll. So it stays in
// its epoll, unheard, when its client goes. An epoll has bells of one user (BellGroup), and when
// all their clients have gone, it and the bells are given to another thread, which closes them
// (close_by()). And a client can close its own descriptor of the bell, so that the Service has the
// last one. Whoever closes that waits for each epoll that watches the bell, and a client can make
// this last for ever.

// Bells of some clients of a user, in one epoll.
struct BellGroup {
  static constexpr std::size_t kMost = 8;

  uid_t user = 0;
  os::UniqueFd watch;
  std::size_t bells = 0, heard = 0;   // all that it has had; those whose clients are there
  std::vector<os::UniqueFd> unheard;  // the others
  Reservation paid;                   // a file for each of these
};

class Bells {
 public:
  // Throws std::system_error if the process may not have one more file.
  Bells(ClientTable& clients, port::TurnClock& clock);

  // The Service's own bell, for threads of this process. Never handed to a client.
  [[nodiscard]] int own() const { return own_.get(); }
  // Rings it if the polling thread sleeps or is about to.
  void ring_own() const;

  // Returns the eventfd that the client writes while the polling thread sleeps, made on the first
  // call. Returns 0 or a negative errno.
  int of(Client& client, const Allowances& allow, int& out);
  // Others may still hold the bell, for example a forked child: from now on nobody hears it.
  void remove(Client& client);
  // From now on calls `close`, which does not block, for the epoll and the bells of each group
  // whose clients have all been removed.
  using Close = std::function<void(uid_t, os::UniqueFd)>;
  void close_by(Close close) { close_ = std::move(close); }

  // Sleeps until a bell rings, `link` is readable (-1: none), or `length` has passed. Call between
  // fall_asleep() and wake_up(), from one thread. False: a signal handler ran.
  bool sleep(int link, Time length);
  // From now on clients that post also write their bells. False: a bell has rung already.
  [[nodiscard]] bool fall_asleep();
  void wake_up();
  // Tells a new client whether the polling thread sleeps.
  void greet(Client& client) const { client.page().service_asleep.store(asleep_ ? 1 : 0); }

  // Calls kick(client, bell) for channels that have rung in the page of their client; it returns
  // whether the channel's queue has new entries. Visits a bounded number of them. Returns true if
  // one is a reason to stay awake. `ahead(client, first, bits)`: as Doorbells says.
  template <typename Kick, typename Ahead>
  bool collect(Kick&& kick, Ahead&& ahead) {
    if (silent_until_ != kNever && clock_.now() >= silent_until_) end_silences();
    bool any = false;
    for (auto& [id, client] : clients_) {
      work::count("clients");
      if (!client.leaving) any |= collect_of(client, kick, ahead);
    }
    return any;
  }

  // When the first of the silenced clients is heard again; kNever: none is silenced.
  [[nodiscard]] Time silent_until() const { return silent_until_; }
  // How often a client was silenced. Needs no lock.
  [[nodiscard]] std::uint64_t silences() const { return silences_.load(std::memory_order_relaxed); }

 private:
  template <typename Kick, typename Ahead>
  bool collect_of(Client& client, Kick&& kick, Ahead&& ahead) {
    bool reason = false;
    const auto rang = client.page().bells.collect(
        client.channels.numbers(), client.rung,
        [&](Bell number) {
          work::count("bells");
          reason |= kick(client, number);
        },
        [&](Bell first, std::uint64_t bits) { ahead(client, first, bits); });
    if (!rang || !client.bell_file) return rang;  // a client in this process needs no bell credit
    if (reason)
      client.bell_credit.rang_with_reason();
    else
      rang_in_vain(client);
    return reason || !client.bell_credit.silent();
  }
  [[nodiscard]] bool any_rung() const;
  static int watch(int operation, const Client& client, int bell, bool heard);
  // One of that user with room for another bell; nullptr: the reason is in errno.
  BellGroup* group_for(uid_t user);
  int add(Client& client, BellGroup& group, const Allowances& allow);
  void give_up(uid_t user, os::UniqueFd file);
  void forget(const BellGroup& group);
  void close(uid_t user, os::UniqueFd file);
  void hear();
  void rang_in_vain(Client& client);
  void end_silences();

  ClientTable& clients_;
  port::TurnClock& clock_;
  os::UniqueFd own_;
  Close close_;  // empty: bells are closed here
  std::list<BellGroup> groups_;
  // What a sleeping thread waits for: the own bell, the link, and from kWatches on the groups that
  // there were. That thread alone has it while it sleeps.
  static constexpr std::size_t kOwn = 0, kLink = 1, kWatches = 2;
  std::vector<pollfd> awaited_{kWatches};
  // Of groups given up meanwhile: a number of a file that is awaited names no other one.
  std::vector<std::pair<uid_t, os::UniqueFd>> removed_;
  bool asleep_ = false;
  Time silent_until_ = kNever;
  std::atomic<std::uint64_t> silences_{0};
};

// Wakes threads of clients that sleep on words of shared memory. That takes the longer, the more
// threads of any program sleep on words that the kernel keeps in the same place of its table, and a
// program can bring tens of thousands there. So what happens in a turn wakes a client once by the
// word of its page; and when that and its channels take longer than a moment, clients take turns,
// and what is left is done in the next turns of the link.
class Wakes {
 public:
  // All of one turn together.
  static constexpr Time kMoment = 500 * kMicrosecond;

  explicit Wakes(ClientTable& clients) : clients_(clients) {}

  // In the next go_on(): one thread that sleeps on the page, or on the channel of that number.
  void page(Client& client);
  void channel(Client& client, Bell number);
  // The same, in a turn of a thread that takes the news of what `gatherer` gathers right after:
  // until the next go_on() nobody is woken for these channels, least of all who sleeps for others
  // on the same page. 0: it takes none.
  void visit(std::uint32_t gatherer) { visitor_ = gatherer; }
  // The same, and then releases the channel, whose connection is over.
  void over(Client& client, std::unique_ptr<Channel> channel);
  // Returns true if some are left. Wakes one at least.
  bool go_on(Time moment = kMoment) {
    visitor_ = 0;
    return !waiting_.empty() && wake_some(moment);
  }

 private:
  void wait(Client& client);
  bool wake_some(Time moment);
  static void wake_one(Client& client);

  ClientTable& clients_;
  RingQueue<ClientId> waiting_;  // each client once
  std::uint32_t visitor_ = 0;
};

}  // namespace stp::host
