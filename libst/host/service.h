// SPDX-License-Identifier: BSD-3-Clause
// Connects user programs to a Node through rings: the lock of whoever drives it, and the memory
// that accompanies requests and replies.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpdk_port/port.h"
#include "libst/host/budgets.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "libst/ipc/socket.h"
#include "stp/base/assert.h"
#include "stp/base/mutex.h"
#include "stp/base/work_meter.h"
#include "stp/types.h"

namespace stp::host {

// Names a client to its Service.
using ClientId = std::uint32_t;

// What accompanies a request or a reply in addition to its fixed part (requests.h).
struct Attachments {
  // kMap: the pieces of memory in this process, and an object that keeps them mapped (may be null
  // if they are the user's own memory). The Service releases it when the Node no longer uses them.
  std::vector<MutableBytes> pieces;
  std::shared_ptr<void> keep;
  // What claim_region() reserved for the region, and the bytes that stpd maps: all of the segments.
  Reservation of_region;
  std::uint64_t mapped_bytes = 0;
  // Goes along with the reply: a channel, or the client page.
  std::shared_ptr<ipc::SharedMemory> memory;
};

// What a region takes from its user's budgets. Reserved before the region is made.
struct RegionClaim {
  Reservation of_region, of_memory;  // until the region has gone; while its memory is mapped
  Reservation of_request;            // until the request is answered
  Account payer;                     // of the files that keep its pages from being moved
  std::shared_ptr<ipc::Torn> torn;   // set when the owner takes away memory in use
};

// What is reserved, in the form in which it goes with memory (SharedMemory::charge).
inline std::shared_ptr<void> kept(Reservation reserved) {
  return std::make_shared<Reservation>(std::move(reserved));
}

// Memory that a service makes for clients in other processes: their pages, and channels. A client
// maps what it was offered and then says so (kMapped). Until then the service works with memory of
// its own, which no client can reach; it never touches memory of which a client can take pages.
// Clients in this process get the service's own memory.
class Offers {
 public:
  // Wraps `thing`: when the last copy of the result is destroyed, somebody who may wait for `user`
  // releases it.
  using ReleaseElsewhere =
      std::function<std::shared_ptr<void>(uid_t user, std::shared_ptr<void> thing)>;

  // From now on clients are other processes.
  void begin(ReleaseElsewhere release) { release_ = std::move(release); }
  [[nodiscard]] bool wanted() const { return release_ != nullptr; }
  // Memory of the service's own. If clients are other processes, that is unmapped elsewhere, too:
  // thousands of them may go at once, and each munmap() may wait for other threads that map.
  // nullptr: see errno. `charge`: returns to its budget with the memory.
  [[nodiscard]] std::shared_ptr<ipc::SharedMemory> make_own(uid_t user, std::size_t size,
                                                            Reservation charge) const {
    auto made = ipc::SharedMemory::create_own(size);
    if (made == nullptr) return nullptr;
    made->charge({}, kept(std::move(charge)));
    if (!wanted()) return made;
    return std::static_pointer_cast<ipc::SharedMemory>(release_(user, std::move(made)));
  }
  // It is unmapped elsewhere in the end. nullptr: see errno.
  [[nodiscard]] std::shared_ptr<ipc::SharedMemory> make(uid_t user, const char* name,
                                                        std::size_t size) const {
    auto made = ipc::SharedMemory::offer(name, size);
    if (made == nullptr) return nullptr;
    return std::static_pointer_cast<ipc::SharedMemory>(release_(user, std::move(made)));
  }

 private:
  ReleaseElsewhere release_;
};

// The lock for driving a Service. The polling thread holds it until somebody else wants it, and
// checks wanted() each turn: no request waits longer than one turn.
// A ticket lock: serves waiters in the order of arrival. Without contention, the usual case, each
// call is one atomic operation: a link is driven some million times a second. The work under one
// hold is bounded; builds with a work meter check this.
class DriveLock {
 public:
  void lock() {
    order_.take();
    const auto ticket = drawn_.fetch_add(1);
    if (serving_.load() != ticket) wait(ticket);
    work::begin(kHold);
  }
  bool try_lock() {
    auto ticket = serving_.load();
    if (!drawn_.compare_exchange_strong(ticket, ticket + 1)) return false;
    order_.taken();
    work::begin(kHold);
    return true;
  }
  void unlock() {
    STP_ASSERT(drawn_.load() != serving_.load(), "who lets go of the drive lock holds it");
    work::end();
    order_.leave();
    const auto next = serving_.load(std::memory_order_relaxed) + 1;
    // Sequentially consistent, as is drawing a ticket: either a waiter sees that its turn has come,
    // or this thread sees that there is a waiter.
    serving_.store(next);
    if (drawn_.load() != next) call();
  }
  // Somebody waits in lock(): the poller should unlock and lock again.
  [[nodiscard]] bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr const char* kHold = "one hold of the drive lock";
  void wait(std::uint32_t ticket);
  void call();

  std::atomic<std::uint32_t> drawn_{0}, serving_{0};  // equal: the lock is free
  std::atomic<unsigned> waiting_{0};
  Mutex mutex_;
  std::condition_variable_any called_;
  [[no_unique_address]] LockOrder order_{LockRank::kDrive};
};

// The least default of `granted`, in STUs. That is what 10 Gbit/s deliver in 300 us at an MTU of
// 1500, and 100 Gbit/s in 250 us at an MTU of 9000: many round trips in a machine room, but little
// for a switch with some MB of buffers.
inline constexpr std::uint64_t kGrantedStus = 384;
// The most that it grows to, in bytes: the same at an MTU of 9000.
inline constexpr std::uint64_t kGrantedBytes = 3 << 20;

// The bytes that may be granted by default, in STUs of 2^`max_stu` bytes, each in a frame of its
// own: a receive queue that holds `frames` (0: any number) keeps a quarter for other frames, even
// if nobody polls meanwhile. What the limit grows to leaves room for as much that is written off
// (docs/protocol.md, 10.12).
struct GrantedBytes {
  std::uint64_t least, most;
};
constexpr GrantedBytes default_granted(std::uint64_t frames, unsigned max_stu) {
  constexpr auto kAny = ~std::uint64_t{0};
  const auto least = std::min(kGrantedStus, frames == 0 ? kAny : frames - frames / 4);
  const auto most = std::min(kGrantedBytes >> max_stu, frames == 0 ? kAny : frames * 3 / 8);
  return {least << max_stu, most << max_stu};
}

// A change of the link's state.
struct LinkChange {
  port::LinkState state = port::LinkState::kUnknown;
  std::string trouble;            // with the remedy; "": none
  std::uint64_t passed_over = 0;  // earlier changes, dropped because nobody fetched them
};

// A Service, for whoever drives it: polls the link, handles requests. Only a Turn leads to it.
class DrivenService {
 public:
  ~DrivenService();

  // Returns 0 if there is no memory for the client's page (see errno). `privileged`: may choose
  // Keys. The client belongs to no user: only the totals limit it.
  ClientId add_client(bool privileged);
  // Adds the program of a user. Returns 0 if the user has as many as it may (errno EDQUOT, `why`
  // has the text), or if there is no memory. `operating`: in a place reserved for operators.
  ClientId add_client(const ipc::ClientIdentity& identity, bool operating, std::string& why);
  // The same for a program that is a client of another shard of the link already; `use`: use_of()
  // there. The program's budgets pay only for a page and a bell.
  ClientId add_client_of_link(const ipc::ClientIdentity& identity, std::shared_ptr<ProgramUse> use,
                              std::string& why);
  // Returns what the client uses on all shards. nullptr: no such client.
  [[nodiscard]] std::shared_ptr<ProgramUse> use_of(ClientId client) const;
  // Disconnects the client's connections on the wire, unmaps its regions and closes its endpoints:
  // a bounded part in each turn. Releases its memory when the last frames have left.
  void remove_client(ClientId client);
  // Counts clients, including removed ones with something left, such as frames not sent yet.
  [[nodiscard]] std::size_t client_count() const;
  // Returns a client that was removed because it took away memory in use. The caller closes its
  // socket.
  std::optional<ClientId> next_expelled();
  // These apply to later requests: clients keep what they have.
  void set_quotas(const Quotas& quotas);
  // Sets how many of this process's mappings and files all clients together may use.
  void set_process_totals(std::uint64_t mappings, std::uint64_t files);
  void set_port_rules(PortRules rules);
  // Call before mapping the memory of a kMap request, `bytes` of `files` in all. Checks whether the
  // request would succeed, and reserves a part of what it takes from its user's budgets. Returns 0
  // or an error as in handle()'s reply.
  int claim_region(ClientId client, const ask::Map& request, std::uint64_t bytes, std::size_t files,
                   RegionClaim& out, ipc::ReplyMessage& reply);
  // From now on clients are other processes: they map memory that they are offered (Offers).
  void offer_memory(Offers::ReleaseElsewhere release);
  // The memory that a kMapped of `vc` (kNoneId: the page) is about; nullptr: none. Make the Service
  // use it by handle() once its pages are kept. `payer` pays for that.
  [[nodiscard]] std::shared_ptr<ipc::SharedMemory> offered(ClientId client, VcId vc,
                                                           Account& payer) const;
  // Channels are offered only with file descriptors below `first`; -EMFILE if there is none.
  void reserve_files_from(int first);
  void handle(ClientId client, const ipc::RequestMessage& request, Attachments& attachments,
              ipc::ReplyMessage& reply);
  // Answers a request that only watches, of somebody who need not be a client.
  void watch(const ipc::ClientIdentity& viewer, const ipc::RequestMessage& request,
             ipc::ReplyMessage& reply);
  // Does what a ring of `bell` in the client's page would do: that channel's queue has new entries.
  void kick(ClientId client, std::uint32_t bell);
  // Returns the time that the Node is given.
  Time now();
  // That of the last turn.
  [[nodiscard]] Time last_turn() const;
  // One turn: bells, link, timers, events. `now`: the time, if the caller has just read it; 0: it
  // has not. Returns the number of frames and requests moved; 0: idle.
  unsigned poll(std::uint32_t gatherer = 0, Time now = 0);
  // Call before sleeping: from now on clients that post also write their bells. Returns false if
  // there is work already: do not sleep then.
  bool prepare_to_sleep();
  void woke_up();
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] port::Port& port();
  [[nodiscard]] Node& node();
  // Returns the changes of the link's state one by one, in order; nullopt: no more. A link that was
  // not up when it was opened counts as changed.
  std::optional<LinkChange> next_link_change();
  // Appends the result of `counters` to the counters in kStats.
  void add_counters(std::function<std::vector<port::PortCounter>()> counters);
  [[nodiscard]] std::vector<port::PortCounter> all_counters() const;
  // Appends what `trouble` returns, "" for none, to the link's trouble in kAdminLink.
  void add_trouble(std::function<std::string()> trouble);

  // The eventfd that `client` writes while the service sleeps, to hand to the client. Created on
  // the first call. Returns 0 or a negative errno.
  int bell_of(ClientId client, int& out);
  // From now on `close` closes the bells of clients that are removed. It must not block, as close()
  // of a bell may do for ever (bells.h).
  void close_bells_by(std::function<void(uid_t, os::UniqueFd)> close);

 private:
  friend class Service;
  struct Impl;
  DrivenService(std::unique_ptr<port::Port> port, std::optional<std::uint64_t> granted,
                std::shared_ptr<Budgets> budgets);
  const std::unique_ptr<Impl> impl_;
};

// Who has a Turn drives the Service, and nobody else does meanwhile: it holds the lock. Ends with
// its scope.
class Turn {
 public:
  ~Turn() {
    if (driven_ != nullptr) lock_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // False: try_drive() found the lock taken.
  explicit operator bool() const { return driven_ != nullptr; }
  DrivenService* operator->() const { return driven_; }
  // Others may drive while `work` runs. It must not use the Turn.
  template <typename Work>
  void pause(Work&& work) {
    const Pause paused(lock_);
    work();
  }
  // Lets those have the lock who wait for it.
  void give_way() {
    if (lock_.wanted()) pause([] {});
  }

 private:
  friend class Service;
  struct Pause {
    explicit Pause(DriveLock& of) : lock(of) { lock.unlock(); }
    ~Pause() { lock.lock(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    DriveLock& lock;
  };
  Turn(DriveLock& lock, DrivenService* driven) : lock_(lock), driven_(driven) {}

  DriveLock& lock_;
  DrivenService* const driven_;  // nullptr: the lock is not held
};

// Connects user programs to a Node through rings. It works the same inside a process and inside
// stpd; only the thread that drives it differs. Except for driving, nothing here needs the lock.
class Service {
 public:
  // `granted`: the most bytes that all clients of the link together may have granted by CTS and not
  // received yet (NodeConfig::granted_limit). nullopt: default_granted() of the link. The
  // shards of a link have equal parts of it. `budgets`: shared by the shards of one link; nullptr:
  // the Service makes its own.
  explicit Service(std::unique_ptr<port::Port> port,
                   std::optional<std::uint64_t> granted = std::nullopt,
                   std::shared_ptr<Budgets> budgets = nullptr);

  // Waits until nobody else drives.
  [[nodiscard]] Turn drive() {
    lock_.lock();
    return {lock_, &driven_};
  }
  // The Turn is false if somebody else drives.
  [[nodiscard]] Turn try_drive() { return {lock_, lock_.try_lock() ? &driven_ : nullptr}; }
  // Somebody waits in drive().
  [[nodiscard]] bool is_wanted() const { return lock_.wanted(); }

  // What never changes.
  [[nodiscard]] const port::PortInfo& info() const;
  // An eventfd that is readable while next_expelled() may have a client. Needs no lock.
  [[nodiscard]] int expelled_fd() const;
  // How often a client was silenced for ringing without need.
  [[nodiscard]] std::uint64_t silenced_bells() const;
  // Sleeps until a client has rung, a thread of this process has written bell(), `wake_fd` is
  // readable (-1: none), or `length` has passed. Call between prepare_to_sleep() and woke_up(),
  // without the lock, from one thread. False: a signal handler ran.
  bool sleep(int wake_fd, Time length);
  // The service's own eventfd, which is never handed out. Needs no lock.
  [[nodiscard]] int bell() const;

 private:
  DriveLock lock_;
  DrivenService driven_;
};

}  // namespace stp::host
