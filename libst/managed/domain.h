// SPDX-License-Identifier: BSD-3-Clause
// A link, everything that lives on it, and its progress.
//
// Two mutexes, locked in this order: control (registering memory, listening, ending; may wait for
// the service), then the domain's own (everything else; waits for the service only in a control
// request). The drive lock of a link in this process comes after both, so code that runs under the
// drive lock must not lock them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <set>
#include <span>
#include <vector>

#include "dpdk_port/dpdk/turn_clock.h"
#include "libst/client/backend.h"
#include "libst/client/handle_table.h"
#include "libst/include/stp/managed.h"
#include "libst/managed/life.h"
#include "libst/managed/memory.h"
#include "libst/managed/queue.h"
#include "libst/managed/staging.h"
#include "libst/managed/turns.h"

namespace stp::managed {

// Registering memory with stpd replaces pages in place; fork() also does so for a moment. If the
// system cannot hold back writers meanwhile, their writes are lost. A program keeps its own threads
// away from that memory, but it cannot know of the library's threads. So the library stays away
// itself: all progress happens under a domain's mutex, and a thread that replaces pages locks the
// mutexes of all domains. What a thread touches while it only waits is on separate pages.

// Member of a domain: registers its mutex here.
class MappingGateMember {
 public:
  explicit MappingGateMember(Mutex& domain);
  ~MappingGateMember();
  MappingGateMember(const MappingGateMember&) = delete;
  MappingGateMember& operator=(const MappingGateMember&) = delete;

 private:
  friend class MappingGateShut;
  static void shut_at_forks();
  Mutex& domain_;
  MappingGateMember* next_ = nullptr;
};

// While it exists, no domain makes progress. The caller must hold no domain's mutex.
class MappingGateShut {
 public:
  MappingGateShut() { lock(); }
  ~MappingGateShut() { unlock(); }
  MappingGateShut(const MappingGateShut&) = delete;
  MappingGateShut& operator=(const MappingGateShut&) = delete;

 private:
  friend class MappingGateMember;
  static void lock() STP_THREAD_SAFETY(no_thread_safety_analysis);
  static void unlock() STP_THREAD_SAFETY(no_thread_safety_analysis);
};

// Pages of no heap, in which tools that look for leaks find pointers all the same. nullptr: no
// memory.
void* map_pages_of_object(std::size_t size);
void unmap_pages_of_object(void* pages, std::size_t size);

// For std::allocate_shared: gives each object whole pages of its own.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  explicit PageAllocator(const PageAllocator<U>&) {}
  T* allocate(std::size_t count) {
    auto* const memory = map_pages_of_object(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    unmap_pages_of_object(memory, count * sizeof(T));
  }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

using client::Backend;
using client::Handle;

class Connection;
class Listener;

inline constexpr unsigned kPageLog2 = 12;

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  static constexpr client::Kind kKind = client::Kind::kDomain;

  static int open(const stm_domain_attr_t& attr, std::shared_ptr<Domain>& out);
  explicit Domain(std::shared_ptr<Backend> backend, const stm_domain_attr_t& attr);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  // Ends everything on it.
  void close();

  [[nodiscard]] Backend& backend() const { return *backend_; }
  // Tells it from other domains of this process.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] Mutex& mutex() STP_RETURNS_LOCK(mutex_) { return mutex_; }
  [[nodiscard]] Mutex& control_mutex() STP_RETURNS_LOCK(control_mutex_) { return control_mutex_; }
  [[nodiscard]] unsigned bufsize() const { return attr_.buffer_log2; }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

  int open_endpoint(EndpointId& out) STP_REQUIRES(control_mutex_);
  void close_endpoint(EndpointId endpoint) STP_REQUIRES(control_mutex_);
  int open_first_endpoint();
  [[nodiscard]] const std::vector<EndpointId>& endpoints() const STP_REQUIRES(control_mutex_) {
    return endpoints_;
  }
  // Takes an endpoint to listen on, and returns it after listening.
  int take_endpoint(EndpointId& out) STP_REQUIRES(control_mutex_);
  void give_back_endpoint(EndpointId endpoint) STP_REQUIRES(control_mutex_) {
    idle_endpoints_.push_back(endpoint);
  }
  // Binds the memory and gives it to future endpoints as well. Returns 0 or a negative errno.
  int add_memory(const std::shared_ptr<Memory>& memory) STP_REQUIRES(control_mutex_);
  // The opposite. Nothing uses it, and its handle is retired.
  void remove_memory(const std::shared_ptr<Memory>& memory) STP_REQUIRES(control_mutex_);
  [[nodiscard]] const MemoryCache& released() const { return released_; }

  // ---- under its mutex ----
  [[nodiscard]] BufxSpace& bufx_space() STP_REQUIRES(mutex_) { return bufx_space_; }
  [[nodiscard]] StagingArea& staging() { return staging_; }
  [[nodiscard]] LinkWatch& link_watch() STP_REQUIRES(mutex_) { return link_watch_; }
  // Handles of the objects on this domain.
  void adopt(Handle child, client::Kind kind) STP_REQUIRES(mutex_) { children_[child] = kind; }
  void forget(Handle child) STP_REQUIRES(mutex_);
  void activate(std::shared_ptr<Connection> connection) STP_REQUIRES(mutex_);
  void activate(std::shared_ptr<Listener> listener) STP_REQUIRES(mutex_) {
    listeners_.push_back(std::move(listener));
  }
  void deactivate(const Listener& listener) STP_REQUIRES(mutex_);
  [[nodiscard]] const std::vector<std::shared_ptr<Connection>>& connections() const
      STP_REQUIRES(mutex_) {
    return connections_;
  }
  // Of the connections whose peer's Node has answered, until they are over.
  [[nodiscard]] LivingPeers& living_peers() STP_REQUIRES(mutex_) { return living_peers_; }
  [[nodiscard]] SilentPeers& silent_peers() STP_REQUIRES(mutex_) { return silent_peers_; }
  void add_access(std::uint32_t key, std::shared_ptr<Access> access) STP_REQUIRES(mutex_);
  void remove_access(std::uint32_t key) STP_REQUIRES(mutex_) { accesses_.erase(key); }
  [[nodiscard]] std::shared_ptr<Access> find_access(std::uint32_t key) const STP_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t new_key() STP_REQUIRES(mutex_);
  [[nodiscard]] WrongKeys& wrong_keys() STP_REQUIRES(mutex_) { return wrong_keys_; }
  // Moves headers, requests, timers and completions, as far as possible. Visits only connections
  // with something to do.
  // `now`: the time, if the caller knows it; 0: it does not.
  void progress(Time now = 0) STP_REQUIRES(mutex_);
  // The next turn visits the connection, with or without news.
  void visit(Connection& connection) STP_REQUIRES(mutex_);
  // The connection has closed its channel and needs no more news.
  void disown(Connection& connection) STP_REQUIRES(mutex_);
  // It has another one.
  void readdress(Connection& connection) STP_REQUIRES(mutex_);
  // The connection has something to send. Consecutive posts leave together: the first one at once
  // or with a burst, the others with the next turn of any thread. `now`: what time() has returned
  // for this post; 0: it was not asked.
  void send_soon(Connection& connection, Time now = 0) STP_REQUIRES(mutex_);
  // The same in most cases, for one more post of a connection that has something to send already:
  // it leaves together with what waits. False: call send_soon().
  [[nodiscard]] bool joins_burst(const Agenda::Entry& entry) STP_REQUIRES(mutex_) {
    const bool waits = entry.unsent && has_unsent_.load(std::memory_order_relaxed);
    if (!waits || in_turn_ || in_list_ || waiters_ != 0) return false;
    if ((posts_ + 1) % kBurst == 0) return false;
    ++posts_;
    return true;
  }
  // Holds back what is posted while it exists, then sends it together. Under the domain's mutex.
  class PostingList {
   public:
    explicit PostingList(Domain& domain) : domain_(domain), posts_before_(domain.posts_) {
      domain_.in_list_ = true;
    }
    ~PostingList() { domain_.end_list(posts_before_, bytes_); }
    PostingList(const PostingList&) = delete;
    PostingList& operator=(const PostingList&) = delete;

    // One more was posted.
    void posted(std::size_t bytes) { bytes_ += bytes; }

   private:
    Domain& domain_;
    const unsigned posts_before_;
    std::size_t bytes_ = 0;
  };
  // The deadline of the connection as the agenda knows it.
  [[nodiscard]] Time due(const Agenda::Entry& entry) const STP_REQUIRES(mutex_) {
    return agenda_.due(entry);
  }
  // Something was posted on the connection: its deadline may be earlier than the thread's next
  // look.
  void look_before(Connection& connection) STP_REQUIRES(mutex_);
  void look_before(Time deadline) STP_REQUIRES(mutex_);
  // The current time, read once for a burst of posts: for the first one of it, in any case.
  Time time() STP_REQUIRES(mutex_) { return posts_ % kBurst == 0 ? now() : time_; }
  // Reads the clock. All connections get their time from here. It never goes back.
  // A link may have told a later one than clock_ still holds.
  Time now() STP_REQUIRES(mutex_) { return time_ = std::max(time_, clock_.now()); }
  void look_for_connections() STP_REQUIRES(mutex_) { look_for_connections_ = true; }
  // Looks for connections at `deadline` at the latest, in whichever thread waits.
  void look_for_connections(Time deadline) STP_REQUIRES(mutex_);
  void wake_waiters();
  // Queues have free places again: visit the connections that wait for one.
  void places_freed() STP_REQUIRES(mutex_) { places_freed_ = true; }
  // Returns the memory of `handle`; nullptr: not one of this domain.
  Memory* find_memory(Handle handle) STP_REQUIRES(mutex_) {
    return handle == known_memory_.first ? known_memory_.second : look_up_memory(handle);
  }
  // A pool has a new receive, which a message may wait for.
  void receive_posted() STP_REQUIRES(mutex_);
  int alloc_mx(RegionId region, std::uint8_t permissions, std::uint16_t& out);
  void free_mx(EndpointId endpoint, std::uint16_t mx);

  [[nodiscard]] EndpointId first_endpoint() const { return first_endpoint_; }
  // Makes sure that a connection can have a block of staging, and its ring. Returns 0, or a
  // negative errno.
  int provide_staging();
  int poll(Queue& queue, stm_event_t* events, int max);
  int wait(Queue& queue, int threshold, stm_event_t* events, int max, Time deadline);
  // More connections than whose state the caches hold anyway. Needs no lock.
  [[nodiscard]] bool has_many() const { return has_many_.load(std::memory_order_relaxed); }
  // For many: the program has taken these events, and is likely to post to their connections:
  // brings what that needs into the caches. Other connections may have displaced it since the
  // events came. Call without the mutex: the caller may be the last to hold a connection.
  void fetch_ahead_of(std::span<const stm_event_t> events);

 private:
  Memory* look_up_memory(Handle handle) STP_REQUIRES(mutex_);
  // A turn of the background thread. Returns when the next one is due; 0: at once.
  Time background_turn();
  int drain(Queue& queue, stm_event_t* events, int max) STP_REQUIRES(mutex_);
  void look_around() STP_REQUIRES(mutex_);
  void take_turn(Time now) STP_REQUIRES(mutex_);
  void visit_all(Time now) STP_REQUIRES(mutex_);
  void count_connections() STP_REQUIRES(mutex_);
  void look_at_states() STP_REQUIRES(mutex_);
  void end_turn() STP_REQUIRES(mutex_);
  void drop(Agenda::Entry& entry) STP_REQUIRES(mutex_);
  bool pump_all() STP_REQUIRES(mutex_);
  void end_list(unsigned posts_before, std::size_t bytes) STP_REQUIRES(mutex_);
  // `now`: the time, if it has just been read; 0: it has not.
  void send_all(Time now = 0) STP_REQUIRES(mutex_);
  [[nodiscard]] std::atomic<std::uint32_t>& events_word() const { return backend_->page().events; }
  void end_connections();
  void retire_children();

  const std::shared_ptr<Backend> backend_;
  const std::uint32_t number_;
  stm_domain_attr_t attr_;
  EndpointId first_endpoint_ = kNoneId;  // for connecting
  std::atomic<bool> closed_{false};

  Mutex control_mutex_{LockRank::kControl};
  std::vector<EndpointId> endpoints_ STP_GUARDED_BY(control_mutex_);
  // Used for listening before, free again.
  std::vector<EndpointId> idle_endpoints_ STP_GUARDED_BY(control_mutex_);
  std::set<std::shared_ptr<Memory>> memories_ STP_GUARDED_BY(control_mutex_);
  MemoryCache released_ STP_GUARDED_BY(control_mutex_);

  Mutex mutex_{LockRank::kDomain};  // protects the following members
  const MappingGateMember gate_{mutex_};
  BufxSpace bufx_space_ STP_GUARDED_BY(mutex_);
  StagingArea staging_;  // says which of its functions need which lock
  LinkWatch link_watch_ STP_GUARDED_BY(mutex_);
  std::map<Handle, client::Kind> children_ STP_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Connection>> connections_ STP_GUARDED_BY(mutex_);  // with a channel
  std::atomic<bool> has_many_{false};                                            // of them
  LivingPeers living_peers_ STP_GUARDED_BY(mutex_);
  SilentPeers silent_peers_ STP_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Listener>> listeners_ STP_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::shared_ptr<Access>> accesses_ STP_GUARDED_BY(mutex_);  // by key
  WrongKeys wrong_keys_ STP_GUARDED_BY(mutex_);
  std::uint32_t accepts_seen_ STP_GUARDED_BY(mutex_) = 0;
  // When to look for new connections at the latest.
  Time connections_due_ STP_GUARDED_BY(mutex_) = kNever;
  [[nodiscard]] Time next_deadline() const STP_REQUIRES(mutex_) {
    return std::min({agenda_.next_deadline(), connections_due_, wrong_keys_.next_deadline()});
  }
  bool look_for_connections_ STP_GUARDED_BY(mutex_) = false;
  bool places_freed_ STP_GUARDED_BY(mutex_) = false;
  bool link_lost_ STP_GUARDED_BY(mutex_) = false;
  Agenda agenda_ STP_GUARDED_BY(mutex_);
  std::vector<Agenda::Entry*> gone_ STP_GUARDED_BY(mutex_);
  std::vector<Connection*> unsent_ STP_GUARDED_BY(mutex_);  // with something to send
  std::atomic<bool> has_unsent_{false};                     // and nobody has been told yet
  static constexpr unsigned kBurst = 32;                    // the most posts that are sent together
  bool in_turn_ STP_GUARDED_BY(mutex_) = false;
  bool in_list_ STP_GUARDED_BY(mutex_) = false;
  // The program takes several events at a time: expect it to post as many and poll again.
  bool in_bulk_ STP_GUARDED_BY(mutex_) = false;
  unsigned posts_ STP_GUARDED_BY(mutex_) = 0;          // since the last turn
  std::size_t list_bytes_ STP_GUARDED_BY(mutex_) = 0;  // of lists that have not left
  unsigned waiters_ STP_GUARDED_BY(mutex_) = 0;        // threads asleep in wait()
  port::TurnClock clock_ STP_GUARDED_BY(mutex_);
  Time time_ STP_GUARDED_BY(mutex_) = 0;
  std::pair<Handle, Memory*> known_memory_ STP_GUARDED_BY(mutex_){};  // the one found last

  std::atomic<Time> thread_looks_{0};  // when the thread or a waiter looks next unless woken
  Background background_{*backend_};
};

}  // namespace stp::managed
