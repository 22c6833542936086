// SPDX-License-Identifier: BSD-3-Clause
// A link, what lives on it, and who waits for its events. One queue takes all events. Of the
// threads that wait, one takes events from it, for all; when its own operation is done, another one
// goes on.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libst/python/operation.h"

namespace stp::python {

class Listener;
class Region;

struct LinkState {
  std::uint32_t state, changes;
  std::uint64_t age;
  std::uint32_t mtu, megabits;
  std::string trouble;
};

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  // LINK: nullptr for what the environment says.
  static std::shared_ptr<Domain> open(const char* link, bool checksum, std::uint64_t shard);
  ~Domain();
  void close();
  [[nodiscard]] bool closed() const { return handle_ == nullptr; }
  // This process is a child of fork(), and its parent has opened a domain: what there is belongs to
  // the parent. So close() of any object does nothing here.
  [[nodiscard]] static bool inherited() { return inherited_; }
  // Closes all of them, and waits until no thread is outside of the interpreter.
  static void end_all();
  // Call in a child of fork(). Returns inherited().
  static bool forked();

  int descriptor();
  // Takes what is there, without waiting: the number of events.
  int poll();
  stm_domain_info_t info();
  LinkState link();

  std::shared_ptr<Listener> listen(const std::string& port, unsigned backlog);
  // Gives the connection at once; the operation is done when it is up.
  std::shared_ptr<Operation> connect(const std::string& peer, std::int64_t timeout,
                                     const std::string& data);
  // ACCESS: STM_REMOTE_*; 0: only for operations of this program.
  std::shared_ptr<Region> open_region(Buffer buffer, unsigned access,
                                      const std::shared_ptr<Connection>& only);

  // The rest is for the objects of the domain.
  stm_domain_t handle();  // fails when it is closed
  stm_queue_t queue() const { return queue_; }
  Staging& staging() { return *staging_; }
  std::uint64_t number() { return ++numbers_; }
  // CALL is made with the interpreter's lock let go, again until the queue has a place for its
  // event.
  template <typename Post>
  void post(const std::shared_ptr<Operation>& operation, Post&& call) {
    handle();
    operation->context = number();
    operations_[operation->context] = operation;
    int error;
    do error = outside(call);
    while (error == -EAGAIN && grow());
    if (error >= 0) return;
    operations_.erase(operation->context);
    fail(error, operation->what.c_str());
  }
  // The same while events are handled: the lock stays, and the operation ends if it fails.
  template <typename Post>
  void post_held(const std::shared_ptr<Operation>& operation, Post&& call) {
    operation->context = number();
    operations_[operation->context] = operation;
    int error;
    do error = call();
    while (error == -EAGAIN && grow());
    if (error >= 0) return;
    operations_.erase(operation->context);
    operation->end(error);
  }
  // Makes room in the queue; false: it has all that it may have.
  bool grow();
  void has_ended(std::shared_ptr<Operation> operation) { ended_.push_back(std::move(operation)); }
  // Tells those who wait for operations that have ended, and gives their memory back.
  void tell();
  bool wait(Operation& operation, std::int64_t timeout);
  // The memory of an open region in which the bytes lie, or nullptr.
  stm_memory_t registered(const char* at, std::size_t size) const;
  void forget(const Region& region);
  void forget_connection(std::uint64_t context) { connections_.erase(context); }
  void forget_listener(std::uint64_t context) { listeners_.erase(context); }
  void add(const std::shared_ptr<Connection>& connection);

 private:
  struct Dial;

  int take(std::int64_t timeout);
  void handle(const stm_event_t& event);
  void handle_completion(const stm_event_t& event);
  void lose_link(const std::string& why);
  void follow(Operation& operation, std::int64_t patience);
  void hand_over();
  void tell(Operation& operation);
  void end_all_objects();
  void join_dials(bool all);

  static inline std::unordered_set<Domain*> open_domains_;
  static inline bool opened_ = false;     // a domain, ever
  static inline bool inherited_ = false;  // by this process, from its parent

  stm_domain_t handle_ = nullptr;
  stm_queue_t queue_ = nullptr;
  std::size_t capacity_ = 1024;
  std::uint64_t numbers_ = 0;
  std::unique_ptr<Staging> staging_ = std::make_unique<Staging>();
  std::unordered_map<std::uint64_t, std::shared_ptr<Operation>> operations_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Listener>> listeners_;
  std::multimap<const char*, std::shared_ptr<Region>> regions_;  // by their first byte
  std::vector<std::shared_ptr<Operation>> ended_;                // not told yet
  std::vector<std::unique_ptr<Dial>> dials_;
  std::deque<std::counting_semaphore<4>*> followers_;
  bool led_ = false;  // a thread takes events
};

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(std::shared_ptr<Domain> domain, std::uint64_t context)
      : domain_(std::move(domain)), context_(context) {}
  void close();
  // Gives the next request, as a connection that is not decided.
  std::shared_ptr<Operation> request();
  // The number of requests that no call has taken yet, without those whose requester has gone.
  [[nodiscard]] std::size_t waiting();

  // For the domain.
  void arrive(const std::shared_ptr<Connection>& connection);
  void put_back(const std::shared_ptr<Connection>& connection);  // before all others that wait
  void over();                                                   // the domain is closed
  void lose(const std::string& why);  // the link is gone: nobody will come
  void withdraw(const std::shared_ptr<Operation>& operation);
  stm_listener_t handle = nullptr;

 private:
  void drop_gone();

  static constexpr std::size_t kFew = 128;
  std::shared_ptr<Domain> domain_;
  std::uint64_t context_;
  std::deque<std::shared_ptr<Connection>> requests_;
  std::size_t look_at_ = kFew;  // so many of them
  std::deque<std::shared_ptr<Operation>> waiting_;
  std::string lost_;
};

// Registered memory, with what peers may do in it. It stays while it is not closed, and its buffer
// exported, also if the program forgets it: peers may still write there.
class Region : public std::enable_shared_from_this<Region> {
 public:
  Region(std::shared_ptr<Domain> domain, Buffer buffer)
      : domain_(std::move(domain)), buffer_(std::move(buffer)) {}
  void close();
  void over();  // the domain is closed
  [[nodiscard]] const Buffer& buffer() const { return buffer_; }
  [[nodiscard]] bool is_writable() const { return buffer_.is_writable(); }

  stm_memory_t memory = nullptr;
  stm_region_t handle = nullptr;
  stm_remote_t remote{};

 private:
  std::shared_ptr<Domain> domain_;
  Buffer buffer_;
};

}  // namespace stp::python
