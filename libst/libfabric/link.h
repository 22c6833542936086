// SPDX-License-Identifier: BSD-3-Clause
// An open link: its mutex, the threads that connect, what programs sleep on, and who hands out its
// events.
#pragma once

#include <rdma/fi_eq.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/address.h"
#include "libst/libfabric/memory.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"
#include "libst/os/futex.h"
#include "libst/os/shared_core.h"
#include "stp/base/mutex.h"

namespace stp::fi {

using Clock = std::chrono::steady_clock;

// In milliseconds; negative: never.
[[nodiscard]] Clock::time_point deadline_in(int timeout);

// ---- its mutex ----

// The mutex of a link. A thread that polls lets those go first that wait for it. Otherwise it would
// have the mutex again before they are awake, again and again. If it sleeps in its poll, those wake
// it that do not poll themselves.
class STP_THREAD_SAFETY(capability("mutex")) LinkMutex {
 public:
  // `rouse` makes the sleep in rest_unless_awaited() end.
  explicit LinkMutex(std::function<void()> rouse = {}) : rouse_(std::move(rouse)) {}

  void lock() STP_THREAD_SAFETY(acquire_capability()) STP_THREAD_SAFETY(no_thread_safety_analysis) {
    order_.take();
    if (!lock_idle()) lock_slowly();
  }
  // Of a thread that polls: if others wait, after one of them has had the mutex.
  void lock_to_poll() STP_THREAD_SAFETY(acquire_capability())
      STP_THREAD_SAFETY(no_thread_safety_analysis) {
    order_.take();
    if (!lock_idle()) lock_slowly_to_poll();
  }
  // Sleeps with the mutex, until what the sleep waits for has come or somebody else has to go on.
  template <class Sleep>
  void rest_unless_awaited(Sleep sleep) {
    rests_.store(true);  // before the line below: who waits sees this, or is seen there
    if (!is_awaited()) sleep();
    rests_.store(false);
  }
  void unlock() STP_THREAD_SAFETY(release_capability())
      STP_THREAD_SAFETY(no_thread_safety_analysis) {
    order_.leave();
    if (state_.fetch_sub(kHeld) != kHeld) wake_one();
  }
  // For clang, where it cannot see it: the caller holds this.
  void is_held() const STP_THREAD_SAFETY(assert_capability(this)) {}
  void check_order() const {
    order_.leave();
    order_.take();
  }
  [[nodiscard]] bool is_awaited() const { return state_.load() >= kOneWaits; }

 private:
  // Beside whether it is held, the state counts those who wait. So one operation tells that nobody
  // holds it and nobody waits.
  static constexpr std::uint32_t kHeld = 1, kOneWaits = 2;

  bool lock_idle() {
    std::uint32_t idle = 0;
    return state_.compare_exchange_strong(idle, kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  // Whoever waits.
  bool lock_free() {
    auto seen = state_.load(std::memory_order_relaxed);
    while ((seen & kHeld) == 0)
      if (state_.compare_exchange_weak(seen, seen | kHeld, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return true;
    return false;
  }
  [[gnu::noinline]] void lock_slowly() {
    if (!lock_free() && !lock_soon()) wait_and_lock(true);
  }
  [[gnu::noinline]] void lock_slowly_to_poll() {
    if (is_awaited()) let_go_first();
    if (!lock_free() && !lock_soon()) wait_and_lock(false);
  }
  // Most holders keep it for less than a microsecond, and a sleep costs several. True: it is
  // locked.
  bool lock_soon() {
    constexpr int kLooks = 32, kBetweenLooks = 4;
    for (int i = 0; i < kLooks && !rests_.load(std::memory_order_relaxed); ++i) {
      for (int k = 0; k < kBetweenLooks; ++k) relax();
      if (lock_free()) return true;
    }
    return false;
  }
  static void relax() {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  // Sleeps without a yield before: that may give the whole slice away, where the cores have other
  // work.
  void wait_and_lock(bool rouses) {
    state_.fetch_add(kOneWaits);
    if (rouses && rests_.load() && rests_.exchange(false) && rouse_) rouse_();
    for (;;) {
      const auto seen = frees_.load();
      waking_.store(false);  // after the line above: who does not wake this has not freed it since
      if (lock_free()) break;
      os::futex_wait(frees_, seen);
    }
    state_.fetch_sub(kOneWaits);
    turns_.fetch_add(1);  // after the line above: who sees this turn does not wait for it
    if (polls_waiting_.load() != 0) os::futex_wake(turns_, INT_MAX);
  }
  // Unless one is awake that has not tried yet.
  [[gnu::noinline]] void wake_one() {
    if (waking_.exchange(true)) return;
    frees_.fetch_add(1);
    os::futex_wake(frees_, 1);
  }
  [[gnu::noinline]] void let_go_first() {
    polls_waiting_.fetch_add(1);
    const auto turn = turns_.load();
    while (is_awaited() && turns_.load() == turn) os::futex_wait(turns_, turn);
    polls_waiting_.fetch_sub(1);
  }

  std::atomic<std::uint32_t> state_{0};
  [[no_unique_address]] LockOrder order_{LockRank::kIa};
  std::atomic<std::uint32_t> frees_{0};  // calls of those who wait
  std::atomic<std::uint32_t> polls_waiting_{0}, turns_{0};
  std::atomic<bool> waking_{false}, rests_{false};
  const std::function<void()> rouse_;
};

using LinkLock = LockOf<LinkMutex>;

// As LinkLock, for a call that holds it to its end.
class STP_THREAD_SAFETY(scoped_lockable) HoldLink {
 public:
  explicit HoldLink(LinkMutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : mutex_(of) {
    of.lock();
  }
  ~HoldLink() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  HoldLink(const HoldLink&) = delete;
  HoldLink& operator=(const HoldLink&) = delete;

 private:
  LinkMutex& mutex_;
};

// For a call that a program repeats until something has happened.
class STP_THREAD_SAFETY(scoped_lockable) PollLock {
 public:
  explicit PollLock(LinkMutex& of) STP_THREAD_SAFETY(acquire_capability(of)) : mutex_(of) {
    of.lock_to_poll();
  }
  ~PollLock() STP_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  PollLock(const PollLock&) = delete;
  PollLock& operator=(const PollLock&) = delete;

 private:
  LinkMutex& mutex_;
};

// When a thread that polls a link in vain gives its core to others. Under the link's mutex.
class IdlePolls {
 public:
  // So many in a row may find nothing. Where the core has others to run, fewer; then twice as many
  // each time, up to the last number: a program that does not wait, but works and polls between
  // (MPI_Test), would else sleep nearly all the time.
  static constexpr unsigned kMany = 16, kFew = 4, kRare = 256;
  // Where no stpd drives the link, but the thread that polls: so none waits for its core as a rule.
  static constexpr unsigned kManyAlone = 128;
  // Who has polled so often and was told nothing waits, and works no more.
  static constexpr unsigned kWaits = 4096;
  // Sleeps that another link has instead.
  static constexpr unsigned kOfOthers = 8;

  void no_stpd_drives_it() {
    many_ = first_ = kManyAlone;
    told();
  }
  // A poll has found something, or has been told what was found before: Open MPI polls until it is
  // told nothing more, so that one is not in vain.
  void told() { due_ = left_ = first_; }
  // After one that has found nothing: whether to look if the core is crowded.
  [[nodiscard]] bool is_time() {
    if (--left_ != 0) return false;
    wait_after(due_);
    return true;
  }
  // `favored`: the scheduler prefers this thread to those of others (a negative nice value). It
  // would lose little if it polled on, and a yield gives them more than they would take. So the
  // first sleep comes late, when no answer comes soon.
  void looked(bool crowded, bool favored = false) {
    crowded_ = crowded;
    first_ = crowded && !favored ? kFew : many_;
    wait_after(due_ - left_);
  }
  // Whether to sleep here where the core is crowded. Open MPI polls two links in turn, and an event
  // of one does not end a sleep at the other: so it mostly sleeps where it hears of events.
  [[nodiscard]] bool may_sleep(bool hears_elsewhere) {
    return !hears_elsewhere || ++let_pass_ % kOfOthers == 0;
  }

 private:
  // The next look, after so many in vain.
  void wait_after(unsigned in_vain) {
    left_ = std::max(kFew, std::min(in_vain, kRare));
    if (in_vain >= kWaits) left_ = kFew;
    if (!crowded_) left_ = many_ - in_vain % many_;
    due_ = in_vain + left_;
  }

  unsigned many_ = kMany, let_pass_ = 0;
  unsigned first_ = kMany;               // so many in vain, and it is time
  unsigned due_ = kMany, left_ = kMany;  // how many in vain will be next time, and until then
  bool crowded_ = false;                 // when it looked last
};

// Of a thread: the link at which it has heard of an event last.
class Hearing {
 public:
  void heard(const void* link) {
    link_ = link;
    looks_ = 0;
  }
  // Of a look at `link`: whether the thread hears at another one. If it looks at others again and
  // again and no more there, it does not.
  [[nodiscard]] bool is_elsewhere(const void* link) {
    if (link_ == link) looks_ = 0;
    return link_ != nullptr && link_ != link && ++looks_ <= IdlePolls::kOfOthers;
  }
  // There is no such link any more.
  void ends(const void* link) {
    if (link_ == link) link_ = nullptr;
  }

 private:
  const void* link_ = nullptr;
  unsigned looks_ = 0;  // at others
};

// ---- threads that connect ----

// A connect that is to begin.
struct Dial {
  Owner* owner;
  stm_connection_t connection;
  std::string peer;  // host:port
  std::vector<std::byte> data;
};

// Threads that connect, because resolving a host may take a second. A few of them run at once, and
// hosts that have not answered before are left behind: so those that are not there do not hold up
// the others for long.
class Dialers {
 public:
  static constexpr std::size_t kMost = 16;
  // So many at last, if those that there are connect for long (hurry()).
  static constexpr std::size_t kMostSlow = 128;
  // Who is there answers sooner.
  static constexpr std::chrono::milliseconds kSlow{50};
  // So many of them connect to hosts that have not answered before.
  static constexpr std::size_t kMostToSilent = kMost / 2;

  // `connect` begins the connect, without the mutex. 0 or a status, of which the owner hears.
  Dialers(LinkMutex& mutex, std::function<int(const Dial&)> connect);
  ~Dialers();
  Dialers(const Dialers&) = delete;
  Dialers& operator=(const Dialers&) = delete;

  // These are called with the mutex, which callers know as the link's.

  // Throws if there is no thread for it: then nothing has changed.
  void dial(Dial&& dial);
  // Call now and then. If some wait although none has begun for a while, there are twice as many
  // threads: hosts that are new and not there hold up the others no longer.
  // True: call again before kSlow has passed.
  bool hurry(std::chrono::steady_clock::time_point now);
  // Afterwards none connects for `owner`. If one does now, the connection is closed.
  void stop(LinkLock& lock, const Owner& owner);
  // It ends, after an event of its connection: it is not told that the connect has begun.
  void forget(const Owner& owner);

 private:
  struct Dialing {
    const Owner* owner;
    stm_connection_t connection;
    bool to_silent;
  };

  void run();
  // False: there is no thread for it.
  bool add_thread();
  [[nodiscard]] bool is_silent(const Dial& dial) const STP_REQUIRES(mutex_);
  // The one to begin now; the end: there is none.
  std::deque<Dial>::iterator next() STP_REQUIRES(mutex_);
  void note(const Dial& dial, int status) STP_REQUIRES(mutex_);

  LinkMutex& mutex_;
  const std::function<int(const Dial&)> connect_;
  std::vector<std::thread> threads_;
  std::condition_variable_any changed_;
  std::deque<Dial> waiting_ STP_GUARDED_BY(mutex_);
  std::list<Dialing> now_ STP_GUARDED_BY(mutex_);        // each in a thread
  std::set<std::string> silent_ STP_GUARDED_BY(mutex_);  // hosts that have not answered before
  // When the last one of them began, or threads were added.
  std::chrono::steady_clock::time_point begun_at_ STP_GUARDED_BY(mutex_);
  bool closing_ STP_GUARDED_BY(mutex_) = false;
};

// A thread for what cannot wait for the program, which may make no more calls.
class Clerk {
 public:
  // Later, so that more comes together.
  static constexpr std::chrono::milliseconds kRest{1};

  // `work` is done with the mutex.
  Clerk(LinkMutex& mutex, std::function<void()> work);
  ~Clerk();
  Clerk(const Clerk&) = delete;
  Clerk& operator=(const Clerk&) = delete;

  // With the mutex, which callers know as the link's: there is work.
  void call();

 private:
  void run();

  LinkMutex& mutex_;
  const std::function<void()> work_;
  std::thread thread_;  // since the first call
  std::condition_variable_any changed_;
  bool called_ STP_GUARDED_BY(mutex_) = false, closing_ STP_GUARDED_BY(mutex_) = false;
};

// ---- sleeping on it ----

class FabricLink;

// What a program sleeps on until a queue or a counter has something: readable when the link has
// events for any object, or when another thread's call has put an event into this object. Created
// on demand, because a descriptor on a link's queue costs a system call per event.
class Wait {
 public:
  // Whether an object may be opened with that wait object.
  static bool offers(fi_wait_obj wanted);
  // `wanted`: one that is offered.
  Wait(FabricLink& link, fi_wait_obj wanted);
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();
  // Whether a program may sleep on the object.
  [[nodiscard]] bool possible() const { return kind_ != FI_WAIT_NONE; }

  // ---- under the link's mutex ----
  // Call before sleep(). Returns 0 or a negative errno.
  int open();
  void wake() {
    if (rings_) ring();
  }
  // The object has no events any more.
  void clear();
  // fi_control() of the object: FI_GETWAITOBJ and FI_GETWAIT. `has_events`: it is readable at once.
  int control(int command, void* argument, bool has_events);

  // Sleeps without the mutex, which `lock` holds. Returns 0, also when the deadline has passed, or
  // -FI_EINTR: a signal has arrived before.
  int sleep(LinkLock& lock, Clock::time_point deadline) const;

 private:
  [[nodiscard]] bool is_open() const { return epoll_ >= 0; }
  void ring();

  FabricLink& link_;
  const fi_wait_obj kind_;
  int epoll_ = -1, event_ = -1;
  bool rings_ = false;  // when it is woken: it is open, and not awake
};

// ---- where short messages land ----

struct RxBlock;
struct RxBuffer {
  Owner* owner = nullptr;
  std::byte* data = nullptr;
  RxBlock* block = nullptr;
};

// Buffers that are registered together.
struct RxBlock {
  std::unique_ptr<std::byte, FreeBlock> bytes;
  stm_memory_t memory = nullptr;
  std::size_t size = 0;  // of each buffer
  std::vector<RxBuffer> buffers;
  std::vector<RxBuffer*> free;  // where they are handed out one by one

  RxBlock() = default;
  RxBlock(const RxBlock&) = delete;
  RxBlock& operator=(const RxBlock&) = delete;
  ~RxBlock();
  // Makes so many of that size. 0 or a status.
  int make(stm_domain_t domain, std::size_t count, std::size_t of_size);
};

// ---- the link ----

// An open link: one domain of the managed API, with one queue for all events. A thread that reads
// any libfabric queue takes the events there and dispatches them, under one mutex, which all
// objects of a fabric share.
class FabricLink {
 public:
  FabricLink();
  ~FabricLink();
  FabricLink(const FabricLink&) = delete;
  FabricLink& operator=(const FabricLink&) = delete;
  // 0 or a status of the managed API.
  int open(const std::string& text);

  [[nodiscard]] LinkMutex& mutex() STP_RETURNS_LOCK(mutex_) { return mutex_; }
  [[nodiscard]] stm_domain_t domain() const { return domain_; }
  [[nodiscard]] bool is_driven_by_stpd() const { return driven_by_stpd_; }
  [[nodiscard]] stm_queue_t queue() const { return queue_; }
  // Its present address; of one without an address 127.0.0.1.
  [[nodiscard]] std::uint32_t ipv4() const;
  // `name`, of an endpoint with addresses of that format, with the link's present address. An IPv6
  // address that the program has chosen stays.
  [[nodiscard]] Address at_present(const Address& name, std::uint32_t format) const;
  // An address of a peer as programs give it, so that equal ones are of one peer: on a link whose
  // peers have the UDP port 8181 if they are named without one, that port does not stand in it; on
  // others each one does.
  [[nodiscard]] Address canonical(Address address) const;
  // The same of an address that a peer has told of itself: without a UDP port it is at 8181.
  [[nodiscard]] Address canonical_from_peer(Address address) const;
  // Whether such an endpoint may be called that.
  [[nodiscard]] bool has_address(const Address& name, std::uint32_t format) const;

  // Takes a bounded number of events and dispatches them.
  void progress();
  // The same, for a thread that calls it until something has happened. Where stpd drives the link,
  // and more threads spin than there are CPUs, it sleeps for a moment, until an event comes.
  void poll();
  // The same, for a thread that cannot go on before an operation under way has ended, and calls
  // again and again until then. It sleeps without the mutex, and no event wakes it: many operations
  // are under way.
  void poll_for_place(LinkLock& lock);
  // The program has been told what was found.
  void has_told() { idle_.told(); }
  // 0, or the reason why the link is lost: its stpd has ended. No events come then.
  [[nodiscard]] int lost() const { return lost_; }
  // A connection has failed: the next turn checks whether the link is lost.
  void suspect() {
    look_at_ = {};
    turns_until_look_ = 1;
  }
  // Before an endpoint is closed: makes progress as long as it sends what was injected, but for 2 s
  // at most. Then the log tells of it.
  void linger(LinkLock& lock, const std::function<bool()>& sends);
  // Takes all events: afterwards none refers to a closed object.
  void drain();
  Op& take_op();
  // Releases what the operation holds.
  void free_op(Op& op);
  // Whether one of that owner has not been freed. Looks at all that there are.
  [[nodiscard]] bool has_under_way(const Owner& owner) const;
  // Finds or makes registered memory for the segments. `gather`: copies their bytes into it.
  int span_of(const Segments& segments, bool gather, Span& out);
  // Whether a call with that status found memory, places or registrations used up that operations
  // under way give back: then who waits gets them.
  [[nodiscard]] bool comes_back(int status) const;
  // When a call found it used up.
  struct Lack {
    std::uint64_t released = 0;  // registrations, until then
    Clock::time_point again{};
  };
  // Call after await(), which tells how long it has been used up.
  [[nodiscard]] Lack lack() const;
  // Whether to try again, which costs milliseconds through a stpd: something has been given back,
  // or whoever else has memory may have done so.
  [[nodiscard]] bool may_have_memory(const Lack& lack) const {
    return lack.released != registrations_.released() || Clock::now() >= lack.again;
  }
  Slots& slots() { return slots_; }
  // The shortest that has so many bytes.
  Slots& slots_for(std::size_t length) {
    return length <= short_slots_.size() ? short_slots_ : slots_;
  }
  // For headers alone.
  Slots& notes() { return notes_; }
  // For a message that is put into a lane, and 64 bytes behind it.
  Slots& lane_slots(std::size_t length) {
    return length + notes_.size() <= short_laned_.size() ? short_laned_ : laned_;
  }
  // Calls look_again() in the next turn. What it waits for makes no event, so nobody sleeps for
  // long: the longer it has not come, the longer.
  void await(Owner& owner) {
    if (std::exchange(owner.awaits_, true)) return;
    if (awaiting_since_ == Clock::time_point{}) awaiting_since_ = Clock::now();
    awaiting_.push_back(&owner);
    owes_calls_ = true;
  }
  void stop_awaiting(Owner& owner) {
    if (std::exchange(owner.awaits_, false)) std::erase(awaiting_, &owner);
    if (awaiting_.empty()) awaiting_since_ = {};
  }
  // The peer has announced messages, or begun one. Unless stop_watching() comes within a second,
  // the log tells of it, with the number of such peers so far.
  void watch(const Owner& owner) {
    if (std::ranges::find(watched_, &owner, &Watched::owner) == watched_.end())
      watched_.push_back({.owner = &owner});
  }
  // A connection to that peer ends with that status before it is up. The log tells if nobody has
  // answered.
  void not_connected(const Address& peer, int status) {
    if (status == -ETIMEDOUT) tell_unreachable(++unreachable_, peer_name(peer));
  }
  void stop_watching(const Owner& owner) {
    std::erase_if(watched_, [&owner](const Watched& each) { return each.owner == &owner; });
  }
  // Calls tell() before the next events are taken: what the program sends until then, perhaps as an
  // answer, leaves first.
  void tell_later(Owner& owner) {
    telling_.push_back(&owner);
    owes_calls_ = true;
  }
  void stop_telling(const Owner& owner) { std::erase(telling_, &owner); }
  // Calls clean_up() after events of this turn and others, once a turn finds none.
  void clean_up_later(Acceptor& acceptor) {
    if (std::ranges::find(cleaning_, &acceptor) != cleaning_.end()) return;
    cleaning_.push_back(&acceptor);
    owes_calls_ = true;
  }
  void stop_cleaning(const Acceptor& acceptor) { std::erase(cleaning_, &acceptor); }
  // Calls leave() in a millisecond or two, in another thread.
  void leave_soon(Owner& owner) {
    if (std::exchange(owner.leaves_soon_, true)) return;
    leaving_.push_back(&owner);
    clerk_->call();
  }
  void stop_leaving(Owner& owner) {
    if (std::exchange(owner.leaves_soon_, false)) std::erase(leaving_, &owner);
  }
  // How long to sleep at most. nullopt: for ever.
  [[nodiscard]] std::optional<std::chrono::milliseconds> look_again_in() const;
  // Before a program may sleep. True: it should look again instead.
  bool rest_to_look_again();
  // The parameter sets how many, the same each time.
  int take_block(std::size_t count, std::unique_ptr<RxBlock>& out);
  void give_back(std::unique_ptr<RxBlock> block) { blocks_.push_back(std::move(block)); }
  [[nodiscard]] Dialers& dialers() { return *dialers_; }

  // Passive endpoints and connection requests that are there: a handle may name one that is not.
  void add_handle(fid_t handle) { handles_.insert(handle); }
  void remove_handle(fid_t handle) { handles_.erase(handle); }
  [[nodiscard]] bool has_handle(fid_t handle) const { return handles_.contains(handle); }

 private:
  struct Watched {
    const Owner* owner;
    Clock::time_point since{};
    bool told = false;
  };

  static void dispatch(const stm_event_t& event);
  int take();
  void tell();
  void call_owners(bool idle);
  void let_look_again();
  void let_leave();
  void look_for_loss();
  void look_around();
  void look_for_late_peers();
  // After a poll that has found nothing.
  void may_rest();
  // An event has come here.
  void heard() const;
  // Its length tells whether others spin on this core.
  void yield();
  void wait(std::int64_t microseconds);

  LinkMutex mutex_{[this] { stm_queue_post(queue_, 0); }};  // an event that nobody looks at
  UdpTarget target_{""};
  std::uint16_t own_udp_port_ = 0, peer_udp_port_ = 0;
  stm_domain_t domain_ = nullptr;
  stm_queue_t queue_ = nullptr;
  int lost_ = 0;
  unsigned turns_until_look_ = 1;  // that find nothing
  IdlePolls idle_;
  bool driven_by_stpd_ = false;
  os::SharedCore core_{{.late_in_a_row = 2, .longest = 800'000'000}};
  Clock::time_point look_at_{};  // when to check next for the loss of the link
  Slots slots_, short_slots_, notes_, short_laned_, laned_;
  Registrations registrations_;  // before the operations that have them
  std::vector<Owner*> awaiting_, telling_, leaving_;
  std::vector<Acceptor*> cleaning_;
  bool owes_calls_ = false;             // to some of these
  Clock::time_point awaiting_since_{};  // none of them had what it waits for since
  std::vector<Watched> watched_;
  std::set<fid_t> handles_;
  std::uint64_t late_ = 0, unreachable_ = 0;  // peers
  std::vector<std::unique_ptr<RxBlock>> blocks_;
  std::deque<Op> ops_;  // never moved
  std::vector<Op*> free_ops_;

  std::unique_ptr<Dialers> dialers_;
  std::unique_ptr<Clerk> clerk_;
};

// Whether the program has registered the memory that they are, so that they need no copy.
[[nodiscard]] bool is_registered(const Segments& segments);

// Whether messages that make no event where they arrive are under way on the connection.
[[nodiscard]] bool sends_quietly(stm_connection_t connection);

// Listens at the port of `name`. If that is 0, at a free one, which `name` gets. Returns 0 or a
// libfabric error, which the log explains.
int listen_at(const FabricLink& link, Address& name, Acceptor& acceptor, stm_listener_t& listener);

}  // namespace stp::fi
