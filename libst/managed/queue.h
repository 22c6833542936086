// SPDX-License-Identifier: BSD-3-Clause
// Where the program's events go: queues, and the places of a connection and of the link in them.
// And pools of receives.
#pragma once

#include <cerrno>
#include <memory>
#include <span>

#include "libst/client/backend.h"
#include "libst/client/handle_table.h"
#include "libst/include/stp/managed.h"
#include "libst/managed/memory.h"
#include "libst/os/unique_fd.h"
#include "stp/base/assert.h"
#include "stp/base/ring_queue.h"
#include "stp/types.h"

namespace stp::managed {

class Domain;

// A bounded queue of events. A producer reserves a place before it needs it, so no event is ever
// lost for lack of one. Everything except the constants is used under the domain's mutex.
class Queue {
 public:
  static constexpr client::Kind kKind = client::Kind::kQueue;
  static constexpr std::size_t kMaxCapacity = std::size_t{1} << 20;

  Queue(std::shared_ptr<Domain> domain, std::size_t capacity)
      : domain_(std::move(domain)), capacity_(capacity) {}

  [[nodiscard]] Domain& domain() const { return *domain_; }

  // Returns false if there are not that many free places.
  bool reserve(std::size_t places) {
    if (events_.size() + reserved_ + places > capacity_) return false;
    reserved_ += places;
    return true;
  }
  void release(std::size_t places) {
    STP_ASSERT(places <= reserved_, "a place that is released was reserved");
    reserved_ -= places;
  }
  // Pushes into a reserved place.
  void push(const stm_event_t& event) { push() = event; }
  // The same of one to be filled in, at once. It has the old content of its place.
  stm_event_t& push() {
    STP_ASSERT(reserved_ > 0, "an event has a place that was reserved");
    --reserved_;
    auto& event = events_.place();
    has_pushed(1);
    return event;
  }
  // The same of up to `most`, which is not 0, as many as stand in a row.
  std::span<stm_event_t> push(std::size_t most) {
    STP_ASSERT(reserved_ >= most, "each event has a place that was reserved");
    const auto row = events_.places(most);
    reserved_ -= row.size();
    has_pushed(row.size());
    return row;
  }
  // Takes at most `max` events.
  int take(stm_event_t* events, int max);

  int resize(std::size_t capacity);
  // An eventfd that is readable while there are events. Created on the first call.
  int descriptor();
  [[nodiscard]] bool has_descriptor() const { return static_cast<bool>(fd_); }

  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // At least half of the places are free: neither used nor reserved.
  [[nodiscard]] bool has_plenty() const { return (events_.size() + reserved_) * 2 <= capacity_; }

  // Counts the objects that report to this queue.
  void use() { ++users_; }
  void unuse() {
    STP_ASSERT(users_ > 0, "who stops using a queue has used it");
    --users_;
  }
  [[nodiscard]] bool used() const { return users_ != 0; }
  [[nodiscard]] bool destroyed() const { return destroyed_; }
  void destroy() { destroyed_ = true; }

  unsigned waiters = 0;  // threads in stm_queue_wait

 private:
  // The last ones are new.
  void has_pushed(std::size_t count) {
    STP_ASSERT(events_.size() + reserved_ <= capacity_, "a queue holds no more than it may");
    if (fd_ || waiters != 0) [[unlikely]]
      tell(events_.size() == count);
  }
  void tell(bool was_empty);
  void copy_first(stm_event_t* events, std::size_t count) const;

  const std::shared_ptr<Domain> domain_;
  std::size_t capacity_, reserved_ = 0;
  RingQueue<stm_event_t> events_;
  os::UniqueFd fd_;
  unsigned users_ = 0;
  bool destroyed_ = false;
};

// A reference to a queue, with the places reserved in it.
class QueueUse {
 public:
  QueueUse() = default;
  explicit QueueUse(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {
    if (queue_) queue_->use();
  }
  QueueUse(QueueUse&& other) noexcept
      : queue_(std::move(other.queue_)), held_(std::exchange(other.held_, 0)) {}
  QueueUse& operator=(QueueUse&& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~QueueUse() { reset(); }
  void reset() {
    if (!queue_) return;
    queue_->release(held_);
    queue_->unuse();
    held_ = 0;
    queue_.reset();
  }

  [[nodiscard]] explicit operator bool() const { return queue_ != nullptr; }
  [[nodiscard]] Queue* operator->() const { return queue_.get(); }

  bool reserve(std::size_t places = 1) {
    if (!queue_->reserve(places)) return false;
    held_ += places;
    return true;
  }
  void release() {
    STP_ASSERT(held_ > 0, "who releases a place holds one");
    queue_->release(1);
    --held_;
  }
  void push(const stm_event_t& event) { push() = event; }
  stm_event_t& push() {
    STP_ASSERT(held_ > 0, "who pushes an event holds a place for it");
    --held_;
    return queue_->push();
  }
  std::span<stm_event_t> push(std::size_t most) {
    STP_ASSERT(held_ >= most, "who pushes events holds places for them");
    const auto row = queue_->push(most);
    held_ -= row.size();
    return row;
  }
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] bool has_plenty() const { return queue_->has_plenty(); }

 private:
  std::shared_ptr<Queue> queue_;
  std::size_t held_ = 0;
};

// Posted receives: a connection's own, or shared in a pool. All under the domain's mutex.
struct PostedReceive {
  std::uint64_t id = 0;  // unique on its connection
  std::uint64_t context = 0;
  MemoryUse memory;
  void* ptr = nullptr;
  std::size_t length = 0;

  // Why a message of that length cannot be received here: a negative errno; 0: it can.
  [[nodiscard]] int refusal(std::uint64_t message_length) const {
    if (memory && memory->withdrawn) return -EACCES;
    return message_length <= length ? 0 : -EMSGSIZE;
  }
};

class Pool {
 public:
  static constexpr client::Kind kKind = client::Kind::kPool;
  static constexpr std::size_t kMaxCapacity = std::size_t{1} << 20;

  Pool(std::shared_ptr<Domain> domain, std::size_t most)
      : capacity(most), domain_(std::move(domain)) {}

  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }

  std::size_t capacity;
  RingQueue<PostedReceive> receives;
  unsigned users = 0;  // connections that use it

 private:
  const std::shared_ptr<Domain> domain_;
};

// What the program says about a connection when it creates or accepts it.
struct Outlets {
  QueueUse events, receives;
  std::shared_ptr<Pool> pool;  // receives are taken from it; nullptr: the connection has its own
  std::uint64_t context = 0;
  std::uint64_t group = 0;     // of regions that the peer may access
  bool on_arrival = false;     // a message takes a receive from the pool before its turn
  bool frugal = false;         // pages of the rings go back
  bool patient = false;        // the peer's program is waited for while its host answers
  Time receive_wait = kNever;  // timeout of a message that finds no receive
  QueueUse sends;              // each operation needs this and `receive_wait`
};

// Owns a connection's places in the queues of the program, and builds its events. It promises that
// an event always finds a place: two are reserved with the queues, for the connection's beginning
// and its end, and each post reserves one for its completion.
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

  [[nodiscard]] stm_event_t event(std::uint32_t kind, int status, std::uint64_t context) const {
    stm_event_t event;
    fill_in(event, kind, status, context);
    return event;
  }
  // The same where it stays.
  void fill_in(stm_event_t& event, std::uint32_t kind, int status, std::uint64_t context) const {
    event = {};
    event.kind = kind;
    event.status = status;
    event.context = context;
    event.connection = reinterpret_cast<stm_connection_t>(handle_);
  }
  // An event of the connection itself.
  [[nodiscard]] stm_event_t event(std::uint32_t kind, int status = 0) const {
    return event(kind, status, outlets_.context);
  }
  // Reports the connection's beginning or its end. Does nothing if there is no reserved place.
  void tell(std::uint32_t kind, int status);
  // Reports that an operation is complete. What is returned may be filled in further.
  stm_event_t& complete(std::uint32_t kind, int status, std::uint64_t context) {
    auto& told = outlets_.sends.push();
    fill_in(told, kind, status, context);
    return told;
  }
  // The same of up to `most`, which is not 0, to be filled in.
  std::span<stm_event_t> complete(std::size_t most) { return outlets_.sends.push(most); }
  // Frees the place of an operation that completes without an event.
  void release_send();

  [[nodiscard]] QueueUse& events() { return outlets_.events; }
  [[nodiscard]] QueueUse& sends() { return outlets_.sends; }
  [[nodiscard]] QueueUse& receives() { return outlets_.receives; }
  [[nodiscard]] Pool* pool() const { return outlets_.pool.get(); }
  [[nodiscard]] std::uint64_t context() const { return outlets_.context; }
  [[nodiscard]] std::uint64_t group() const { return outlets_.group; }
  [[nodiscard]] Time receive_wait() const { return outlets_.receive_wait; }
  [[nodiscard]] bool on_arrival() const { return outlets_.on_arrival; }
  [[nodiscard]] bool frugal() const { return outlets_.frugal; }
  [[nodiscard]] bool patient() const { return outlets_.patient; }

 private:
  Outlets outlets_;
  client::Handle handle_ = 0;
};

// Reports changes of the link's state to the queue that a program has chosen for them. Everything
// is used under the domain's mutex.
class LinkWatch {
 public:
  // Reports to `queue` from now on, beginning with the present state. False: the queue has no
  // place for that report, and what was watched before still is.
  bool begin(client::Backend& backend, std::shared_ptr<Queue> queue, std::uint64_t context);
  void end();
  // Reports the present state if it has changed since the last report and the queue has a place.
  // `error`: the backend's.
  void look(client::Backend& backend, int error) {
    if (queue_ && (error != reported_.error || has_changed(backend))) look_again(backend);
  }
  // A change waits for a place in the queue.
  [[nodiscard]] bool is_behind() const { return behind_; }

 private:
  // What the page of the link shows, or why there is no link any more.
  struct View {
    std::uint32_t state = 0, changes = 0;
    int error = 0;
  };
  [[nodiscard]] bool has_changed(client::Backend& backend) const {
    return backend.page().link_changes.load(std::memory_order_relaxed) != reported_.changes;
  }
  void look_again(client::Backend& backend);
  static View view_of(client::Backend& backend);
  void report(const View& view);

  QueueUse queue_;  // none: nobody has asked
  std::uint64_t context_ = 0;
  View reported_;
  bool behind_ = false;
};

}  // namespace stp::managed
