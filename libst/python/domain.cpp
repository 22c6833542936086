// SPDX-License-Identifier: BSD-3-Clause
#include "libst/python/domain.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "dpdk_port/link/start_thread.h"
#include "libst/python/connection.h"

namespace stp::python {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 20;  // of a queue
constexpr int kBatch = 64;
// How often a thread that waits looks whether a signal has come: microseconds.
constexpr std::int64_t kSlice = 50'000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Threads that begin meanwhile leave the program's signals to the interpreter's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// Finding the peer may block. So a thread does it, and reports by an event of its own if it fails.
struct Domain::Dial {
  std::uint64_t context = 0;  // of the connection
  int error = 0;
  std::string text;
  std::atomic<bool> is_over = false;
  std::thread thread;
};

namespace {

// A stpd that is stopped is waited for, for 10 s: a thread does that, so that a signal can end the
// call. Nobody waits for the thread then, and it closes what it opens.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  Opening(const char* link, bool checksum, std::uint64_t shard)
      : link_(link != nullptr ? link : ""), has_link_(link != nullptr) {
    attr_.size = sizeof attr_;
    attr_.checksum = checksum ? 1 : 0;
    attr_.shard = shard;
  }
  void begin() {
    const SignalsBlocked blocked;
    start_thread([self = shared_from_this()] { self->run(); }).detach();
  }
  bool wait(std::int64_t patience) {
    return over_.try_acquire_for(std::chrono::microseconds(patience));
  }
  // Nobody will ask for it.
  void leave() {
    left_ = true;
    if (over_.try_acquire()) stm_domain_close(std::exchange(handle_, nullptr));
  }
  // Once it is over.
  stm_domain_t result() const {
    if (const auto end = text_.find(": ");
        error_ == -EAGAIN && NoThread::has_said(text_) && end != std::string::npos)
      throw Failed{error_, "opening the link: " + text_.substr(0, end), text_.substr(end + 2)};
    if (error_ < 0) throw Failed{error_, "opening the link: " + text_};
    return handle_;
  }

 private:
  void run() {
    attr_.link = has_link_ ? link_.c_str() : nullptr;
    error_ = stm_domain_open(&attr_, &handle_);
    if (error_ < 0) text_ = st_strerror(error_);
    over_.release();
    // Whoever takes it back closes it.
    if (left_ && over_.try_acquire()) stm_domain_close(handle_);
  }

  const std::string link_;
  const bool has_link_;
  stm_domain_attr_t attr_{};
  stm_domain_t handle_ = nullptr;
  int error_ = 0;
  std::string text_;
  std::atomic<bool> left_ = false;
  std::binary_semaphore over_{0};
};

}  // namespace

std::shared_ptr<Domain> Domain::open(const char* link, bool checksum, std::uint64_t shard) {
  opened_ = true;
  auto domain = std::make_shared<Domain>();
  const auto opening = std::make_shared<Opening>(link, checksum, shard);
  opening->begin();
  while (!outside([&] { return opening->wait(kSlice); })) {
    if (PyErr_CheckSignals() == 0) continue;
    outside([&] { return opening->leave(), 0; });
    throw Raised{};
  }
  domain->handle_ = opening->result();
  open_domains_.insert(domain.get());
  checked(stm_queue_create(domain->handle_, domain->capacity_, &domain->queue_), "making a queue");
  checked(stm_link_watch(domain->handle_, domain->queue_, 0), "watching the link");
  return domain;
}

Domain::~Domain() {
  open_domains_.erase(this);
  if (handle_ != nullptr && !inherited_) stm_domain_close(handle_);
  for (auto& dial : dials_)
    if (inherited_)
      dial->thread.detach();  // it runs in the parent only
    else
      dial->thread.join();
}

void Domain::close() {
  if (closed() || inherited_) return;
  const auto self = shared_from_this();
  const auto closing = std::exchange(handle_, nullptr);
  open_domains_.erase(this);
  outside([&] { return stm_domain_close(closing); });
  join_dials(true);
  end_all_objects();
  tell();
}

// Nothing uses the memory of programs any more.
void Domain::end_all_objects() {
  for (auto& [context, operation] : std::exchange(operations_, {})) {
    // Receives may wait for one that was taken back.
    if (operation->abandoned)
      operation->connection->received(operation, -ECANCELED);
    else
      operation->end(-ECANCELED, "the domain was closed");
  }
  for (auto& [context, connection] : std::exchange(connections_, {})) connection->end(-ECANCELED);
  for (auto& [context, listener] : std::exchange(listeners_, {})) listener->over();
  for (auto& [at, region] : std::exchange(regions_, {})) region->over();
}

void Domain::end_all() {
  while (!open_domains_.empty()) (*open_domains_.begin())->close();
  Outside::interpreter_ends();
  for (int i = 0; i < 10'000 && Outside::threads() > 0; ++i) {
    auto* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }
}

stm_domain_t Domain::handle() {
  if (closed()) throw Failed{-EBADF, "the domain is closed"};
  if (inherited_) throw Failed{-EBADF, "the domain belongs to the parent of this process"};
  return handle_;
}

bool Domain::forked() {
  Outside::forked();
  inherited_ = opened_;
  open_domains_.clear();  // those of the parent: end_all() has nothing to close here
  return inherited_;
}

int Domain::descriptor() {
  handle();
  return checked(stm_queue_fd(queue_), "a descriptor");
}

int Domain::poll() {
  handle();
  if (led_) return 0;
  const auto count = take(0);
  tell();
  return closed() ? 0 : checked(count, "taking events");
}

stm_domain_info_t Domain::info() {
  stm_domain_info_t info{};
  info.size = sizeof info;
  checked(stm_domain_query(handle(), &info), "asking for the domain's addresses");
  return info;
}

LinkState Domain::link() {
  stm_link_info_t info{};
  info.size = sizeof info;
  const auto domain = handle();
  checked(outside([&] { return stm_link_query(domain, &info); }), "asking for the link's state");
  return {info.state, info.changes, info.age, info.mtu, info.megabits, info.trouble};
}

// ---- its objects ----

std::shared_ptr<Listener> Domain::listen(const std::string& port, unsigned backlog) {
  const auto domain = handle();
  const auto context = number();
  auto listener = std::make_shared<Listener>(shared_from_this(), context);
  listeners_[context] = listener;
  const auto error = outside([&] {
    return stm_listen(domain, port.c_str(), queue_, context, backlog, &listener->handle);
  });
  if (error < 0) {
    listeners_.erase(context);
    fail_at_link(error, ("listening on " + port).c_str());
  }
  return listener;
}

void Domain::add(const std::shared_ptr<Connection>& connection) {
  connections_[connection->context] = connection;
}

std::shared_ptr<Operation> Domain::connect(const std::string& peer, std::int64_t timeout,
                                           const std::string& data) {
  join_dials(false);
  auto connection = std::make_shared<Connection>(shared_from_this(), number());
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.context = connection->context;
  attr.events = queue_;
  int error;
  do error = stm_connection_create(handle(), &attr, &connection->handle);
  while (error == -EAGAIN && grow());
  checked_at_link(error, "making a connection");
  add(connection);
  auto opening = connection->begin_opening("connecting to " + peer);
  auto& dial = *dials_.emplace_back(std::make_unique<Dial>());
  dial.context = connection->context;
  const auto call = [&dial, peer, timeout, data, queue = queue_, handle = connection->handle] {
    dial.error = stm_connect(handle, peer.c_str(), timeout, data.data(), data.size());
    if (dial.error < 0) {
      dial.text = st_strerror(dial.error);
      dial.error = error_of_link(dial.error);
      while (stm_queue_post(queue, dial.context) == -EAGAIN)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    dial.is_over = true;
  };
  const SignalsBlocked blocked;
  try {
    dial.thread = start_thread(call);
  } catch (const NoThread&) {
    dials_.pop_back();
    connection->close();
    throw;
  }
  return opening;
}

void Domain::join_dials(bool all) {
  std::vector<std::unique_ptr<Dial>> over;
  const auto first = std::partition(dials_.begin(), dials_.end(),
                                    [&](const auto& dial) { return !all && !dial->is_over; });
  std::move(first, dials_.end(), std::back_inserter(over));
  dials_.erase(first, dials_.end());
  if (over.empty()) return;
  outside([&] {
    for (auto& dial : over) dial->thread.join();
    return 0;
  });
}

std::shared_ptr<Region> Domain::open_region(Buffer buffer, unsigned access,
                                            const std::shared_ptr<Connection>& only) {
  const auto domain = handle();
  if ((access & (STM_REMOTE_WRITE | STM_REMOTE_ATOMIC)) != 0 && !buffer.is_writable()) {
    PyErr_SetString(PyExc_TypeError, "buffer: it is read-only, and peers are to write there");
    throw Raised{};
  }
  auto* const at = buffer.data();
  const auto size = buffer.size();
  if (size == 0) throw Failed{-EINVAL, "buffer: it is empty"};
  auto region = std::make_shared<Region>(shared_from_this(), std::move(buffer));
  const auto local = region->is_writable() ? STM_LOCAL_WRITE : STM_LOCAL_READ;
  checked_at_link(outside([&] {
                    return stm_memory_register(domain, at, size, access | local, &region->memory);
                  }),
                  "registering the buffer");
  const auto place = regions_.emplace(at, region);
  if (access == 0) return region;
  const auto error = outside([&] {
    return stm_region_open(region->memory, at, size, access,
                           only != nullptr ? only->handle : nullptr, 0, &region->handle,
                           &region->remote);
  });
  if (error == 0) return region;
  outside([&] { return stm_memory_release(region->memory); });
  if (!closed()) regions_.erase(place);
  fail_at_link(error, "opening the region");
}

stm_memory_t Domain::registered(const char* at, std::size_t size) const {
  auto found = regions_.upper_bound(at);
  if (found == regions_.begin()) return nullptr;
  const auto& region = *(--found)->second;
  return at + size <= found->first + region.buffer().size() ? region.memory : nullptr;
}

void Domain::forget(const Region& region) {
  const auto [first, last] = regions_.equal_range(region.buffer().data());
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second.get() == &region; });
  if (found != last) regions_.erase(found);
}

// ---- events ----

bool Domain::grow() {
  if (capacity_ >= kMostEvents) return false;
  capacity_ *= 4;
  return stm_queue_resize(queue_, capacity_) == 0;
}

// Events are handled in the order of the queue, so one thread at a time takes them.
int Domain::take(std::int64_t timeout) {
  stm_event_t events[kBatch];
  struct Leading {
    bool& led;
    ~Leading() { led = false; }
  } const leading{led_};
  led_ = true;
  const auto count = outside([&] {
    return timeout == 0 ? stm_queue_poll(queue_, events, kBatch)
                        : stm_queue_wait(queue_, 1, events, kBatch, timeout);
  });
  for (int i = 0; i < count; ++i) handle(events[i]);
  return count;
}

void Domain::handle(const stm_event_t& event) {
  switch (event.kind) {
    case STM_REQUEST: {
      const auto found = listeners_.find(event.context);
      auto connection = std::make_shared<Connection>(shared_from_this(), number());
      connection->handle = event.connection;
      connection->is_request = true;
      if (found != listeners_.end())
        found->second->arrive(connection);
      else
        stm_reject(event.connection, nullptr, 0);
      return;
    }
    case STM_LINK:
      // A link that is down may come up again; one that is gone does not.
      if (event.status != 0 && event.status != -ENETDOWN) lose_link(st_strerror(event.status));
      return;
    case STM_READ_REQUEST:
      stm_refuse_read(event.connection, event.request);
      return;
    case STM_CONNECTED:
    case STM_REFUSED:
    case STM_FAILED:
    case STM_DISCONNECTED: {
      const auto found = connections_.find(event.context);
      if (found == connections_.end()) return;
      const auto connection = found->second;
      connection->hear(event);
      return;
    }
    case STM_USER: {
      const auto found = connections_.find(event.context);
      for (const auto& dial : dials_)
        if (dial->context == event.context && found != connections_.end())
          found->second->fail_opening(dial->error, dial->text);
      return;
    }
    default:
      handle_completion(event);
  }
}

// Connections have events of their own that tell their end.
void Domain::lose_link(const std::string& why) {
  for (const auto& [context, listener] : listeners_) listener->lose(why);
}

void Domain::handle_completion(const stm_event_t& event) {
  const auto found = operations_.find(event.context);
  if (found == operations_.end()) return;
  const auto operation = std::move(found->second);
  operations_.erase(found);
  operation->tag = event.tag;
  operation->length = event.kind == STM_RECEIVE ? event.length : operation->size;
  if (operation->is_receive)
    operation->connection->received(operation, event.status);
  else
    operation->end(event.status);
}

// ---- who waits ----

bool Domain::wait(Operation& operation, std::int64_t timeout) {
  const auto self = shared_from_this();
  // Whoever leaves lets another one take events.
  struct Leaving {
    Domain& domain;
    ~Leaving() { domain.hand_over(); }
  } const leaving{*this};
  const auto begun = now();
  for (std::int64_t left = timeout; !operation.done(); left = timeout - (now() - begun)) {
    if (timeout > 0 && left <= 0) return false;
    const auto patience = timeout < 0 ? kSlice : std::min(std::max<std::int64_t>(left, 0), kSlice);
    if (led_) {
      follow(operation, patience);
    } else {
      const auto count = take(patience);
      tell();
      if (count < 0 && count != -EWOULDBLOCK && count != -EINTR && !operation.done()) {
        if (!closed()) throw Failed{-ENODEV, operation.what + ": " + st_strerror(count)};
        // Another thread is closing the domain.
        outside([] { return std::this_thread::sleep_for(std::chrono::milliseconds(1)), 0; });
      }
    }
    if (PyErr_CheckSignals() != 0) throw Raised{};
    if (timeout == 0) return operation.done();
  }
  return true;
}

void Domain::follow(Operation& operation, std::int64_t patience) {
  std::counting_semaphore<4> woken(0);
  followers_.push_back(&woken);
  operation.waiters_.push_back(&woken);
  outside([&] { return woken.try_acquire_for(std::chrono::microseconds(patience)); });
  std::erase(followers_, &woken);
  std::erase(operation.waiters_, &woken);
}

void Domain::hand_over() {
  if (led_ || followers_.empty()) return;
  auto* const next = followers_.front();
  followers_.pop_front();
  next->release();
}

void Domain::tell() {
  while (!ended_.empty()) {
    const auto ended = std::exchange(ended_, {});
    std::vector<stm_memory_t> memories;
    for (const auto& operation : ended)
      if (operation->own_ != nullptr) memories.push_back(std::exchange(operation->own_, nullptr));
    if (!memories.empty() && !closed())
      outside([&] {
        for (auto* const memory : memories) stm_memory_release(memory);
        return 0;
      });
    for (const auto& operation : ended) tell(*operation);
  }
}

void Domain::tell(Operation& operation) {
  operation.let_go();
  operation.done_ = true;
  for (auto* const waiter : std::exchange(operation.waiters_, {})) {
    std::erase(followers_, waiter);
    waiter->release();
  }
  const auto call = std::exchange(operation.call_, {});
  if (call.get() == nullptr) return;
  auto* const result = PyObject_CallNoArgs(call.get());
  if (result == nullptr) PyErr_WriteUnraisable(call.get());
  Py_XDECREF(result);
}

// ---- listeners and regions ----

void Listener::close() {
  if (handle == nullptr || Domain::inherited()) return;
  domain_->forget_listener(context_);
  const auto closing = std::exchange(handle, nullptr);
  outside([&] { return stm_listener_close(closing); });
  over();
  domain_->tell();
}

void Listener::over() {
  handle = nullptr;
  for (const auto& connection : std::exchange(requests_, {})) connection->close();
  for (const auto& operation : std::exchange(waiting_, {}))
    operation->end(-ECANCELED, "the listener was closed");
}

std::shared_ptr<Operation> Listener::request() {
  if (handle == nullptr) throw Failed{-EBADF, "the listener is closed"};
  auto operation =
      std::make_shared<Operation>(domain_, Operation::By::kRequest, Operation::Gives::kConnection);
  operation->what = "waiting for a request";
  operation->listener = shared_from_this();
  waiting_.push_back(operation);
  if (!lost_.empty()) {
    lose(lost_);
    domain_->tell();
    return operation;
  }
  if (requests_.empty()) return operation;
  const auto connection = std::move(requests_.front());
  requests_.pop_front();
  arrive(connection);
  domain_->tell();
  return operation;
}

// Whoever asks and goes, again and again, while the program accepts nobody, leaves nothing.
void Listener::drop_gone() {
  std::erase_if(requests_, [](const auto& request) { return request->drop_if_gone(); });
  look_at_ = 2 * requests_.size() + kFew;
}

std::size_t Listener::waiting() {
  drop_gone();
  return requests_.size();
}

void Listener::arrive(const std::shared_ptr<Connection>& connection) {
  if (waiting_.empty()) {
    if (requests_.size() >= look_at_) drop_gone();
    requests_.push_back(connection);
    return;
  }
  const auto operation = std::move(waiting_.front());
  waiting_.pop_front();
  connection->learn_data();
  operation->connection = connection;
  operation->end(0, "");
}

void Listener::put_back(const std::shared_ptr<Connection>& connection) {
  if (handle == nullptr)
    connection->close();
  else if (waiting_.empty())
    requests_.push_front(connection);
  else
    arrive(connection);
}

void Listener::lose(const std::string& why) {
  lost_ = why;
  for (const auto& operation : std::exchange(waiting_, {})) operation->end(-ENODEV, lost_);
}

void Listener::withdraw(const std::shared_ptr<Operation>& operation) {
  if (std::erase(waiting_, operation) != 0) operation->end(-ECANCELED, "it was taken back");
}

void Region::close() {
  if (memory == nullptr || Domain::inherited()) return;
  const auto self = shared_from_this();
  const auto revoked = std::exchange(handle, nullptr);
  if (revoked != nullptr)
    checked(outside([&] { return stm_region_close(revoked); }), "closing the region");
  const auto released = std::exchange(memory, nullptr);
  const auto error = outside([&] { return stm_memory_release(released); });
  if (error < 0 && !domain_->closed()) {
    memory = released;
    fail(error, "releasing the region's memory: operations use it");
  }
  over();
  domain_->forget(*this);
}

void Region::over() {
  memory = nullptr;
  handle = nullptr;
  buffer_.release();
}

}  // namespace stp::python
