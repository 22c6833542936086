// SPDX-License-Identifier: BSD-3-Clause
// Coroutines of C++20 over <stp/managed.hpp>: co_await for operations and for events.
//
//   stp::Task<> serve(stp::Loop& loop, stp::Connection connection, stp::Part part) {
//     const auto received = co_await loop.receive(connection, part);     // throws stp::Error
//     co_await loop.send(connection, {part.memory, {part.data, received.length}});
//   }
//
// All coroutines of a Loop run in the thread that calls run(), one at a time, each until its next
// co_await. Whoever destroys a Task that is not done takes back the operation that it awaits.
#ifndef STP_COROUTINE_HPP
#define STP_COROUTINE_HPP

#if !defined(__cpp_impl_coroutine) && __cplusplus < 202002L
#error "<stp/coroutine.hpp> needs C++20 or later: compile with -std=c++20"
#endif

#include <stp/managed.hpp>

#include <coroutine>
#include <exception>
#include <unordered_map>

namespace stp {

// ---- tasks ----

template <typename T = void>
class Task;

template <typename T>
class TaskPromise;

class TaskPromiseBase {
 public:
  // It resumes whoever awaits the task.
  struct AtEnd {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      const auto next = ended.promise().continuation_;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  std::suspend_never initial_suspend() noexcept { return {}; }
  AtEnd final_suspend() noexcept { return {}; }
  void unhandled_exception() { failure_ = std::current_exception(); }
  void continue_with(std::coroutine_handle<> next) { continuation_ = next; }

 protected:
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::coroutine_handle<> continuation_;
};

template <typename T>
class TaskPromise : public TaskPromiseBase {
 public:
  Task<T> get_return_object();
  void return_value(T value) { value_ = std::move(value); }
  T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void take() { rethrow(); }
};

// A coroutine that runs from its call on. It belongs to this object. co_await gives its result, or
// throws what it has thrown.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;

  Task() = default;
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  [[nodiscard]] bool done() const { return coroutine_.done(); }
  // Once it is done.
  T result() { return coroutine_.promise().take(); }

  bool await_ready() const { return done(); }
  void await_suspend(std::coroutine_handle<> waiter) { coroutine_.promise().continue_with(waiter); }
  T await_resume() { return result(); }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

template <typename T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

// Tasks that nobody waits for, as the sessions of a server. What they return or throw is dropped.
class Tasks {
 public:
  void start(Task<> task) {
    tasks_.erase(std::remove_if(tasks_.begin(), tasks_.end(),
                                [](const Task<>& each) { return each.done(); }),
                 tasks_.end());
    if (!task.done()) tasks_.push_back(std::move(task));
  }

 private:
  std::vector<Task<>> tasks_;
};

// ---- operations ----

// For co_await: has the operation until it is done.
template <typename Done>
class PostedAwaiter {
 public:
  explicit PostedAwaiter(Posted<Done> operation) : operation_(std::move(operation)) {}
  [[nodiscard]] bool await_ready() const { return operation_.done(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    operation_.when_done([](void* at) { std::coroutine_handle<>::from_address(at).resume(); },
                         waiter.address());
  }
  // What it was, if it succeeded; else it throws Error.
  Done await_resume() { return operation_.wait(); }

 private:
  Posted<Done> operation_;
};

template <typename Done>
PostedAwaiter<Done> operator co_await(Posted<Done>&& operation) {
  return PostedAwaiter<Done>(std::move(operation));
}

// ---- events ----

class Mailbox;

// Runs coroutines.
class Loop : public PostQueue {
 public:
  using PostQueue::PostQueue;

  // Deals with events until stop(), or until `patience` has passed without any (negative: for
  // ever). Events that are for no Mailbox are dropped.
  void run(std::chrono::microseconds patience = std::chrono::microseconds(-1));
  // Until that task is done.
  template <typename T>
  T run_until(Task<T>& task) {
    while (!task.done()) step(std::chrono::microseconds(-1));
    return task.result();
  }
  // run() returns once the coroutine that calls this suspends.
  void stop() { stopped_ = true; }

 private:
  friend class Mailbox;
  // False: nothing happened.
  bool step(std::chrono::microseconds patience);
  std::unordered_map<std::uint64_t, Mailbox*> mailboxes_;
  bool stopped_ = false;
};

// Where the events of a listener or of a connection arrive: give it context() as theirs. One
// coroutine at a time awaits the next one. Stays where it is, and is destroyed before its Loop.
class Mailbox {
 public:
  explicit Mailbox(Loop& loop) : loop_(loop) { loop_.mailboxes_.emplace(context(), this); }
  ~Mailbox() { loop_.mailboxes_.erase(context()); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  [[nodiscard]] std::uint64_t context() const { return reinterpret_cast<std::uintptr_t>(this); }

  class Next {
   public:
    explicit Next(Mailbox& mailbox) : mailbox_(mailbox) {}
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;
    ~Next() { mailbox_.waiter_ = nullptr; }
    [[nodiscard]] bool await_ready() const { return !mailbox_.events_.empty(); }
    void await_suspend(std::coroutine_handle<> waiter) { mailbox_.waiter_ = waiter; }
    AnyEvent await_resume() {
      auto event = std::move(mailbox_.events_.front());
      mailbox_.events_.pop_front();
      return event;
    }

   private:
    Mailbox& mailbox_;
  };
  // The next event, in the order in which they came.
  [[nodiscard]] Next next() { return Next(*this); }

 private:
  friend class Loop;
  void put(AnyEvent&& event) {
    events_.push_back(std::move(event));
    if (const auto waiter = std::exchange(waiter_, nullptr)) waiter.resume();
  }

  Loop& loop_;
  std::deque<AnyEvent> events_;
  std::coroutine_handle<> waiter_;
};

inline bool Loop::step(std::chrono::microseconds patience) {
  const auto before = told();
  auto event = next(patience);
  if (!event) return told() != before;
  const auto context =
      std::visit(Overloaded{[](const UnknownEvent& unknown) { return unknown.event.context; },
                            [](const auto& known) { return known.context; }},
                 *event);
  if (const auto found = mailboxes_.find(context); found != mailboxes_.end())
    found->second->put(std::move(*event));
  return true;
}

inline void Loop::run(std::chrono::microseconds patience) {
  for (stopped_ = false; !stopped_;)
    if (!step(patience) && patience.count() >= 0) return;
}

// Connects: true, or false where the peer has refused (what it said: private_data()). Throws Error
// where the peer cannot be reached. The connection has `news` as its context.
inline Task<bool> connected(const Connection& connection, Mailbox& news, std::string peer,
                            std::chrono::microseconds timeout = std::chrono::microseconds(-1)) {
  connect(connection, peer.c_str(), timeout);
  for (;;) {
    const auto event = co_await news.next();
    if (std::holds_alternative<Connected>(event)) co_return true;
    if (std::holds_alternative<Refused>(event)) co_return false;
    if (const auto* failed = std::get_if<Failed>(&event))
      throw Error(-failed->reason.value(), "connecting to " + peer);
  }
}

}  // namespace stp

#endif  // STP_COROUTINE_HPP
