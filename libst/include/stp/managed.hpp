// SPDX-License-Identifier: BSD-3-Clause
// The managed API for C++17: owners of its handles, events as types, operations as objects. All
// else is as <stp/managed.h> says. Nothing of it is compiled into the library.
//
// Errors: a function throws stp::Error, or, given a std::error_code, sets that (to no error where
// it succeeds) and returns what is empty. Its category is the generic one: compare it with
// std::errc.
//
//   auto domain = stp::open_domain("iface:eth0");             // throws
//   std::error_code error;
//   auto other = stp::open_domain("iface:eth1", error);       // does not
//
// Lifetime: whoever owns a thing is destroyed before what it was made from: a Connection before its
// Queue, a Region before its Memory, all before their Domain. <stp/coroutine.hpp> adds co_await.
#ifndef STP_MANAGED_HPP
#define STP_MANAGED_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "<stp/managed.hpp> needs C++17 or later: compile with -std=c++17"
#endif

#include <stp/managed.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stp {

class Error : public std::system_error {
 public:
  Error(int error, const std::string& what)
      : std::system_error(-error, std::generic_category()),
        text_(what + ": " + st_strerror(error)) {}
  // Without the text of the error code, which std::system_error appends: it would repeat the
  // reason.
  const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // copying it throws nothing
};

// The result of a call that is not negative.
inline int checked(int result, const char* what) {
  if (result < 0) throw Error(result, what);
  return result;
}

inline std::error_code code_of(int status) {
  return {-status, std::generic_category()};
}

// What becomes of a failure: an exception, or a value. The last parameter of most functions, which
// is made from a std::error_code or left out.
class OnError {
 public:
  OnError() = default;
  OnError(std::error_code& code) : code_(&code) { code.clear(); }
  // Whether `result` is a success.
  bool operator()(int result, const char* what) const {
    if (result >= 0) return true;
    if (code_ == nullptr) throw Error(result, what);
    *code_ = code_of(result);
    return false;
  }

 private:
  std::error_code* code_ = nullptr;
};

// ---- bytes ----

// Bytes that belong to somebody else, as std::span<std::byte> of C++20. Made of a pointer
// and a length, or of anything contiguous that has data() and size(): std::vector, std::array,
// std::string, std::span.
template <typename Pointer>
class ByteView {
 public:
  constexpr ByteView() = default;
  constexpr ByteView(Pointer data, std::size_t size) : data_(data), size_(size) {}
  template <typename Range, typename Data = decltype(std::data(std::declval<Range&>())),
            typename = std::enable_if_t<
                std::is_convertible_v<Data, Pointer> &&
                std::is_trivially_copyable_v<std::remove_pointer_t<Data>> &&
                !std::is_base_of_v<ByteView, std::remove_const_t<std::remove_reference_t<Range>>>>>
  constexpr ByteView(Range&& range)
      : data_(std::data(range)), size_(std::size(range) * sizeof *std::data(range)) {}
  [[nodiscard]] constexpr Pointer data() const { return data_; }
  [[nodiscard]] constexpr std::size_t size() const { return size_; }

 private:
  Pointer data_ = nullptr;
  std::size_t size_ = 0;
};
using Writable = ByteView<void*>;
using Readable = ByteView<const void*>;

// ---- owners ----

// Closes what it owns; as cheap to move as a pointer.
template <typename Handle, int (*Close)(Handle)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() { reset(); }

  operator Handle() const { return handle_; }
  Handle release() { return std::exchange(handle_, nullptr); }
  // What the C call that closes it returns.
  int reset() { return handle_ != nullptr ? Close(release()) : 0; }

 private:
  Handle handle_ = nullptr;
};

using Domain = Owner<stm_domain_t, stm_domain_close>;
using Queue = Owner<stm_queue_t, stm_queue_destroy>;
using Memory = Owner<stm_memory_t, stm_memory_release>;
using Region = Owner<stm_region_t, stm_region_close>;
// Its receives that are left are given back to nobody.
inline int destroy_pool(stm_pool_t pool) {
  return stm_pool_destroy(pool, nullptr, nullptr);
}
using Pool = Owner<stm_pool_t, destroy_pool>;
using Listener = Owner<stm_listener_t, stm_listener_close>;
using Connection = Owner<stm_connection_t, stm_connection_close>;

inline Domain open_domain(const stm_domain_attr_t& attr, OnError failed = {}) {
  stm_domain_t domain = nullptr;
  failed(stm_domain_open(&attr, &domain), "opening the link");
  return Domain(domain);
}
// nullptr: the link that STP_LINK names.
inline Domain open_domain(const char* link = nullptr, OnError failed = {}) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = link;
  return open_domain(attr, failed);
}

inline Queue make_queue(stm_domain_t domain, std::size_t capacity, OnError failed = {}) {
  stm_queue_t queue = nullptr;
  failed(stm_queue_create(domain, capacity, &queue), "making a queue");
  return Queue(queue);
}

inline Memory register_memory(stm_domain_t domain, void* ptr, std::size_t length, unsigned access,
                              OnError failed = {}) {
  stm_memory_t memory = nullptr;
  failed(stm_memory_register(domain, ptr, length, access, &memory), "registering memory");
  return Memory(memory);
}
inline Memory register_memory(stm_domain_t domain, Writable bytes, unsigned access,
                              OnError failed = {}) {
  return register_memory(domain, bytes.data(), bytes.size(), access, failed);
}

struct OpenRegion {
  Region region;
  stm_remote_t remote;
};
inline OpenRegion open_region(stm_memory_t memory, void* ptr, std::size_t length, unsigned access,
                              std::uint64_t address = 0, stm_connection_t only = nullptr,
                              OnError failed = {}) {
  OpenRegion opened{};
  stm_region_t region = nullptr;
  failed(stm_region_open(memory, ptr, length, access, only, address, &region, &opened.remote),
         "opening a region");
  opened.region = Region(region);
  return opened;
}
inline OpenRegion open_region(stm_memory_t memory, Writable bytes, unsigned access,
                              std::uint64_t address = 0, stm_connection_t only = nullptr,
                              OnError failed = {}) {
  return open_region(memory, bytes.data(), bytes.size(), access, address, only, failed);
}

inline Pool make_pool(stm_domain_t domain, std::size_t capacity, OnError failed = {}) {
  stm_pool_t pool = nullptr;
  failed(stm_pool_create(domain, capacity, &pool), "making a pool");
  return Pool(pool);
}
// A message that takes this receive is told as Received with that context.
inline void post(const Pool& pool, std::uint64_t context, stm_memory_t memory, Writable bytes,
                 OnError failed = {}) {
  failed(stm_pool_post(pool, context, memory, bytes.data(), bytes.size()), "posting a receive");
}

inline Listener listen(stm_domain_t domain, const char* port, stm_queue_t queue,
                       std::uint64_t context = 0, unsigned backlog = 0, OnError failed = {}) {
  stm_listener_t listener = nullptr;
  failed(stm_listen(domain, port, queue, context, backlog, &listener), "listening");
  return Listener(listener);
}

inline stm_connection_attr_t connection_attr(stm_queue_t queue, std::uint64_t context = 0) {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = queue;
  attr.context = context;
  return attr;
}

inline Connection make_connection(stm_domain_t domain, const stm_connection_attr_t& attr,
                                  OnError failed = {}) {
  stm_connection_t connection = nullptr;
  failed(stm_connection_create(domain, &attr, &connection), "making a connection");
  return Connection(connection);
}

// Connected, Refused or Failed follows. A negative time: as stm_connect says.
inline void connect(const Connection& connection, const char* peer,
                    std::chrono::microseconds timeout = std::chrono::microseconds(-1),
                    Readable private_data = {}, OnError failed = {}) {
  failed(stm_connect(connection, peer, timeout.count(), private_data.data(), private_data.size()),
         "connecting");
}
// Connected or Failed follows.
inline void accept(const Connection& request, const stm_connection_attr_t& attr,
                   Readable private_data = {}, OnError failed = {}) {
  failed(stm_accept(request, &attr, private_data.data(), private_data.size()), "accepting");
}
inline void reject(Connection request, Readable private_data = {}, OnError failed = {}) {
  failed(stm_reject(request.release(), private_data.data(), private_data.size()), "rejecting");
}
// `how`: STM_GRACEFUL, STM_ABRUPT or STM_BROKEN. Disconnected follows.
inline void disconnect(const Connection& connection, int how = STM_GRACEFUL, OnError failed = {}) {
  failed(stm_disconnect(connection, how), "disconnecting");
}
// What the peer sent along when it asked, or with its answer.
inline std::vector<std::byte> private_data(stm_connection_t connection, OnError failed = {}) {
  std::vector<std::byte> data(STM_PRIVATE_DATA);
  const int size = stm_private_data(connection, data.data(), data.size());
  data.resize(failed(size, "private data") ? static_cast<std::size_t>(size) : 0);
  return data;
}

template <typename Info, typename Handle>
Info query(int (*call)(Handle, Info*), Handle handle, OnError failed) {
  Info info{};
  info.size = sizeof info;
  failed(call(handle, &info), "querying");
  return info;
}
inline stm_domain_info_t info_of(const Domain& domain, OnError failed = {}) {
  return query(stm_domain_query, stm_domain_t(domain), failed);
}
inline stm_connection_info_t info_of(const Connection& connection, OnError failed = {}) {
  return query(stm_connection_query, stm_connection_t(connection), failed);
}
inline stm_link_info_t link_of(const Domain& domain, OnError failed = {}) {
  return query(stm_link_query, stm_domain_t(domain), failed);
}
inline stm_peer_info_t peer_of(const Connection& connection, OnError failed = {}) {
  return query(stm_peer_query, stm_connection_t(connection), failed);
}

// ---- events as the C API has them ----

// The next event; waits for it at most `patience` (Error of -EWOULDBLOCK then).
inline stm_event_t next_event(stm_queue_t queue,
                              std::chrono::microseconds patience = std::chrono::microseconds(-1)) {
  stm_event_t event{};
  int result;
  do {
    result = stm_queue_wait(queue, 1, &event, 1, patience.count());
  } while (result == -EINTR);
  checked(result, "waiting for an event");
  return event;
}

// What a program waits for with an event of this kind.
inline const char* name_of_operation(unsigned kind) {
  switch (kind) {
    case STM_CONNECTED:
      return "connecting";
    case STM_SEND:
      return "sending";
    case STM_RECEIVE:
      return "receiving";
    case STM_READ:
      return "reading";
    case STM_SERVED:
      return "serving a read";
    case STM_PUT:
      return "putting";
    case STM_GET:
      return "getting";
    case STM_FETCH:
      return "fetching";
    default:
      return "an operation";
  }
}

// As next_event, and it has to be one of success: the text of the Error names the operation.
inline stm_event_t expect_event(stm_queue_t queue, unsigned kind,
                                std::chrono::microseconds patience) {
  const auto event = next_event(queue, patience);
  if (event.status != 0) throw Error(event.status, name_of_operation(kind));
  if (event.kind != kind) throw Error(-EPROTO, "another event than expected");
  return event;
}

// ---- events, each kind a type ----

// News of connections and listeners. `context` is theirs.
struct Request {
  Request(std::uint64_t listener, stm_connection_t request)
      : context(listener), connection(request) {}
  Request(Request&&) noexcept = default;
  Request& operator=(Request&&) noexcept = default;
  // Whoever has not taken the connection out, to accept it, rejects it.
  ~Request() {
    if (connection) stm_reject(connection.release(), nullptr, 0);
  }
  std::uint64_t context;
  Connection connection;
};
struct Connected {
  std::uint64_t context;
  stm_connection_t connection;
};
struct Refused : Connected {};
struct Failed : Connected {
  std::error_code reason;
};
struct Disconnected : Connected {
  std::error_code reason;  // none: in good order
};
struct ReadRequest : Connected {
  std::uint64_t length;
  std::uint32_t number;  // for stm_serve_read and stm_refuse_read
};
struct PoolHigh : Connected {
  std::uint64_t taken;
};
// Completions. `context` is the operation's.
struct Completed {
  std::uint64_t context;
  stm_connection_t connection;
  std::error_code error;
};
struct Sent : Completed {
  std::uint32_t message;
};
struct Received : Completed {
  std::uint64_t length;
  std::uint32_t message, tag;
};
struct ReadDone : Completed {};
struct Served : Completed {};
struct PutDone : Completed {};
struct GetDone : Completed {};
struct FetchDone : Completed {};
// Others.
struct UserEvent {
  std::uint64_t context;
};
struct LinkChange {
  std::uint64_t context;
  std::uint32_t state, changes;  // stm_link_state
  std::error_code error;
};
struct UnknownEvent {  // of a newer library
  stm_event_t event;
};

using AnyEvent = std::variant<UnknownEvent, Request, Connected, Refused, Failed, Disconnected,
                              ReadRequest, PoolHigh, Sent, Received, ReadDone, Served, PutDone,
                              GetDone, FetchDone, UserEvent, LinkChange>;

// For std::visit: stp::Overloaded{[](stp::Sent& sent) { ... }, [](auto&) {}}.
template <typename... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <typename... Calls>
Overloaded(Calls...) -> Overloaded<Calls...>;

// That event as its type. A request belongs to what is returned.
inline AnyEvent event_of(const stm_event_t& event) {
  const Connected news{event.context, event.connection};
  const Completed completed{event.context, event.connection, code_of(event.status)};
  switch (event.kind) {
    case STM_REQUEST:
      return Request(event.context, event.connection);
    case STM_CONNECTED:
      return news;
    case STM_REFUSED:
      return Refused{news};
    case STM_FAILED:
      return Failed{news, completed.error};
    case STM_DISCONNECTED:
      return Disconnected{news, completed.error};
    case STM_READ_REQUEST:
      return ReadRequest{news, event.length, event.request};
    case STM_HIGH:
      return PoolHigh{news, event.length};
    case STM_SEND:
      return Sent{completed, event.message};
    case STM_RECEIVE:
      return Received{completed, event.length, event.message, event.tag};
    case STM_READ:
      return ReadDone{completed};
    case STM_SERVED:
      return Served{completed};
    case STM_PUT:
      return PutDone{completed};
    case STM_GET:
      return GetDone{completed};
    case STM_FETCH:
      return FetchDone{completed};
    case STM_USER:
      return UserEvent{event.context};
    case STM_LINK:
      return LinkChange{event.context, event.tag, event.message, completed.error};
    default:
      return UnknownEvent{event};
  }
}

// ---- operations as objects ----

// Bytes in registered memory.
struct Part {
  stm_memory_t memory = nullptr;
  void* data = nullptr;
  std::size_t size = 0;
  Part() = default;
  Part(stm_memory_t in, Writable bytes) : memory(in), data(bytes.data()), size(bytes.size()) {}
};

template <typename Done>
class Posted;

// A queue that knows which operation each completion is for. For one thread; it outlives its
// operations. Connections that are made with it as their queue may also be used by the calls of C:
// what those post comes out of next().
class PostQueue {
 public:
  PostQueue(stm_domain_t domain, std::size_t capacity, OnError failed = {})
      : queue_(make_queue(domain, capacity, failed)) {}
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;

  operator stm_queue_t() const { return queue_; }

  // These post. `flags`: STM_FENCE, STM_URGENT; not STM_QUIET, of which nothing is told. An
  // operation that could not be posted is empty.
  Posted<Received> receive(const Connection& from, Part to, OnError failed = {});
  Posted<Sent> send(const Connection& to, Part from, std::uint32_t tag = 0, unsigned flags = 0,
                    OnError failed = {});
  Posted<ReadDone> read(const Connection& from, Part to, unsigned flags = 0, OnError failed = {});
  Posted<Served> serve(const Connection& to, const ReadRequest& request, Part from,
                       unsigned flags = 0, OnError failed = {});
  Posted<PutDone> put(const Connection& to, Part from, std::uint32_t key, std::uint64_t address,
                      unsigned flags = 0, OnError failed = {});
  Posted<GetDone> get(const Connection& from, Part to, std::uint32_t key, std::uint64_t address,
                      unsigned flags = 0, OnError failed = {});
  // `old`: 8 aligned bytes, where the former value lands.
  Posted<FetchDone> fetch(const Connection& at, stm_fetch_op what, std::uint64_t operand,
                          std::uint64_t compare, Part old, std::uint32_t key, std::uint64_t address,
                          unsigned flags = 0, OnError failed = {});

  // The next event that is no completion of an operation above; those take note of theirs
  // meanwhile. Waits at most `patience` (negative: for ever); none: that time has passed, or
  // operations have completed.
  std::optional<AnyEvent> next(std::chrono::microseconds patience, OnError failed = {}) {
    if (passed_over_.empty() && to_tell_.empty()) take(patience, failed);
    tell();
    if (passed_over_.empty()) return std::nullopt;
    const auto event = passed_over_.front();
    passed_over_.pop_front();
    return event_of(event);
  }

  // What an operation and this have in common. Its address is the operation's context.
  struct State {
    PostQueue& at;
    stm_connection_t connection;
    bool done = false;
    stm_event_t event{};
    void (*call)(void*) = nullptr;  // by next(), once it is done
    void* argument = nullptr;
  };
  // For Posted. Waits for events, and sorts them; calls nobody. False: none will come any more.
  bool take(std::chrono::microseconds patience, OnError failed) {
    stm_event_t events[kAtOnce];
    int count;
    do {
      count = stm_queue_wait(queue_, 1, events, kAtOnce, patience.count());
    } while (count == -EINTR);
    if (count != -EWOULDBLOCK && !failed(count, "waiting for events")) return false;
    for (int i = 0; i < count; ++i) sort(events[i]);
    return true;
  }
  void call_when_done(State& state) {
    if (state.done) to_tell_.push_back(&state);
  }
  void forget(State& state) {
    remove(under_way_, &state);
    remove(to_tell_, &state);
  }

 protected:
  // Calls that when_done() asked for.
  [[nodiscard]] std::uint64_t told() const { return told_; }

 private:
  static constexpr int kAtOnce = 16;
  template <typename Done, typename Post>
  Posted<Done> begin(stm_connection_t connection, unsigned flags, const char* what, OnError failed,
                     Post post);
  static void remove(std::vector<State*>& from, State* state) {
    from.erase(std::remove(from.begin(), from.end(), state), from.end());
  }
  static bool is_completion(unsigned kind) {
    return kind == STM_SEND || kind == STM_RECEIVE || kind == STM_READ || kind == STM_SERVED ||
           kind == STM_PUT || kind == STM_GET || kind == STM_FETCH;
  }
  void sort(const stm_event_t& event) {
    const auto found =
        is_completion(event.kind)
            ? std::find_if(under_way_.begin(), under_way_.end(),
                           [&](State* each) {
                             return reinterpret_cast<std::uintptr_t>(each) == event.context;
                           })
            : under_way_.end();
    if (found == under_way_.end()) return passed_over_.push_back(event);
    State& state = **found;
    *found = under_way_.back();
    under_way_.pop_back();
    state.event = event;
    state.done = true;
    if (state.call != nullptr) to_tell_.push_back(&state);
  }
  void tell() {
    while (!to_tell_.empty()) {
      State* const state = to_tell_.front();
      to_tell_.erase(to_tell_.begin());
      ++told_;
      state->call(state->argument);  // the state may be gone when that returns
    }
  }

  Queue queue_;
  std::vector<State*> under_way_, to_tell_;
  std::deque<stm_event_t> passed_over_;
  std::uint64_t told_ = 0;
};

// An operation that was posted. Its memory belongs to it until it is done: whoever destroys it
// before that takes it back, and waits until that has been done. Can be moved.
template <typename Done>
class Posted {
 public:
  Posted() = default;
  explicit Posted(std::unique_ptr<PostQueue::State> state) : state_(std::move(state)) {}
  Posted(Posted&&) noexcept = default;
  Posted& operator=(Posted&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Posted() {
    if (!state_) return;
    if (!state_->done) cancel();
    std::error_code lost;  // with the domain nothing is under way any more
    while (!state_->done && state_->at.take(std::chrono::microseconds(-1), lost)) {
    }
    state_->at.forget(*state_);
  }

  explicit operator bool() const { return state_ != nullptr; }
  [[nodiscard]] bool done() const { return state_->done; }
  // It completes soon, with std::errc::operation_canceled, or as done where that was too late.
  void cancel() { stm_cancel(state_->connection, context()); }
  // Waits for it. Without an error_code, an operation that failed throws: so does one that is not
  // done in time (std::errc::operation_would_block), which goes on.
  Done wait(std::chrono::microseconds patience = std::chrono::microseconds(-1),
            OnError failed = {}) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (auto left = patience; !state_->done;) {
      if (!state_->at.take(left, failed)) return {};
      if (state_->done) break;
      if (patience.count() < 0) continue;
      left = std::chrono::duration_cast<std::chrono::microseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0 && !failed(-EWOULDBLOCK, "waiting for an operation")) return {};
    }
    failed(state_->event.status, "an operation");
    return std::get<Done>(event_of(state_->event));
  }
  // Has next() call that when the operation is done.
  void when_done(void (*call)(void*), void* argument) {
    state_->call = call;
    state_->argument = argument;
    state_->at.call_when_done(*state_);
  }

 private:
  [[nodiscard]] std::uint64_t context() const {
    return reinterpret_cast<std::uintptr_t>(state_.get());
  }
  std::unique_ptr<PostQueue::State> state_;
};

template <typename Done, typename Post>
Posted<Done> PostQueue::begin(stm_connection_t connection, unsigned flags, const char* what,
                              OnError failed, Post post) {
  auto state = std::unique_ptr<State>(new State{*this, connection});
  under_way_.push_back(state.get());
  const int result =
      (flags & STM_QUIET) != 0 ? -EINVAL : post(reinterpret_cast<std::uintptr_t>(state.get()));
  if (result < 0) under_way_.pop_back();
  if (!failed(result, what)) return {};
  return Posted<Done>(std::move(state));
}

inline Posted<Received> PostQueue::receive(const Connection& from, Part to, OnError failed) {
  return begin<Received>(from, 0, "a receive", failed, [&](std::uint64_t context) {
    return stm_receive(from, context, to.memory, to.data, to.size);
  });
}
inline Posted<Sent> PostQueue::send(const Connection& to, Part from, std::uint32_t tag,
                                    unsigned flags, OnError failed) {
  return begin<Sent>(to, flags, "a send", failed, [&](std::uint64_t context) {
    return stm_send(to, context, flags, tag, from.memory, from.data, from.size);
  });
}
inline Posted<ReadDone> PostQueue::read(const Connection& from, Part to, unsigned flags,
                                        OnError failed) {
  return begin<ReadDone>(from, flags, "a read", failed, [&](std::uint64_t context) {
    return stm_read(from, context, flags, to.memory, to.data, to.size);
  });
}
inline Posted<Served> PostQueue::serve(const Connection& to, const ReadRequest& request, Part from,
                                       unsigned flags, OnError failed) {
  return begin<Served>(to, flags, "serving a read", failed, [&](std::uint64_t context) {
    return stm_serve_read(to, request.number, context, flags, from.memory, from.data, from.size);
  });
}
inline Posted<PutDone> PostQueue::put(const Connection& to, Part from, std::uint32_t key,
                                      std::uint64_t address, unsigned flags, OnError failed) {
  return begin<PutDone>(to, flags, "a put", failed, [&](std::uint64_t context) {
    return stm_put(to, context, flags, from.memory, from.data, from.size, key, address);
  });
}
inline Posted<GetDone> PostQueue::get(const Connection& from, Part to, std::uint32_t key,
                                      std::uint64_t address, unsigned flags, OnError failed) {
  return begin<GetDone>(from, flags, "a get", failed, [&](std::uint64_t context) {
    return stm_get(from, context, flags, to.memory, to.data, to.size, key, address);
  });
}
inline Posted<FetchDone> PostQueue::fetch(const Connection& at, stm_fetch_op what,
                                          std::uint64_t operand, std::uint64_t compare, Part old,
                                          std::uint32_t key, std::uint64_t address, unsigned flags,
                                          OnError failed) {
  return begin<FetchDone>(at, flags, "a fetch", failed, [&](std::uint64_t context) {
    return stm_fetch(at, context, flags, what, operand, compare, old.memory, old.data, key,
                     address);
  });
}

}  // namespace stp

#endif  // STP_MANAGED_HPP
