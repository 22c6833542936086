// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/managed.h"

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace stp::perf {

Ping::Ping(const Plan& plan, const Room& room, const stm_remote_t& peer,
           stm_connection_t connection, Others others)
    : plan_(plan),
      room_(room),
      peer_(peer),
      connection_(connection),
      others_(std::move(others)),
      events_(room.queue(), plan.sleeps, plan.crowded) {
  if (plan_.operation == Operation::kWrite) land();
}

namespace {

constexpr char kEnded[] =
    "the other side has ended the connection: start stp-perf there again if it has ended";

void posted(int result) {
  if (result == -ENOTCONN || result == -ECONNRESET) throw std::runtime_error(kEnded);
  checked(result, "posting an operation");
}

}  // namespace

// Returns the last 8 aligned bytes of a message. A link that keeps frames in order writes them
// last.
std::atomic_ref<std::uint64_t> Ping::sequence_in(unsigned char* part) const {
  const auto at = (plan_.size - kSmallestPing) & ~std::uint64_t{7};
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(part + at));
}

void Ping::land() {
  checked(stm_receive(connection_, kContext, room_.memory(), room_.target(), plan_.size),
          "posting a receive");
}

void Ping::turn() {
  events_.turn([this](const stm_event_t& event) {
    if (event.connection != connection_ || event.context != kContext) return others_(event);
    // A put is answered by a put, which the peer no longer sends: nothing else would tell.
    if (event.kind == STM_FAILED || event.kind == STM_DISCONNECTED)
      throw std::runtime_error(kEnded);
    if (event.kind < STM_FAILED) return others_(event);
    checked(event.status, "an operation");
    ++completions_;
  });
}

void Ping::send() {
  auto* const memory = room_.memory();
  const auto context = kContext;
  const unsigned flags = STM_QUIET | (plan_.sleeps ? unsigned{STM_URGENT} : 0U);
  int result = 0;
  do {
    switch (plan_.operation) {
      case Operation::kPut:
        result = stm_put(connection_, context, STM_QUIET, memory, room_.source(), plan_.size,
                         peer_.key, 0);
        break;
      case Operation::kWrite:
        result = stm_send(connection_, context, flags, 0, memory, room_.source(), plan_.size);
        break;
      case Operation::kGet:
        result = stm_get(connection_, context, 0, memory, room_.target(), plan_.size, peer_.key, 0);
        break;
      default:
        result = stm_fetch(connection_, context, 0, STM_FETCH_INCREMENT, 0, 0, memory,
                           room_.source(), peer_.key, 0);
        break;
    }
    if (result == -EAGAIN) turn();  // places become free when earlier operations are confirmed
  } while (result == -EAGAIN);
  posted(result);
}

bool Ping::arrived() {
  if (plan_.operation != Operation::kPut) return std::exchange(completions_, 0) != 0;
  const auto there = sequence_in(room_.target()).load(std::memory_order_acquire);
  return std::exchange(seen_, there) != there;
}

void Ping::round_trip() {
  if (plan_.operation == Operation::kPut)
    sequence_in(room_.source()).store(++sequence_, std::memory_order_release);
  send();
  while (!arrived()) turn();
  if (plan_.operation == Operation::kWrite) land();
}

void Ping::answer() {
  turn();
  if (!arrived()) return;
  if (plan_.operation == Operation::kPut)
    sequence_in(room_.source()).store(seen_, std::memory_order_release);
  if (plan_.operation == Operation::kWrite) land();
  send();
}

Stream::Stream(const Plan& plan, const Room& room, const stm_remote_t& peer,
               std::vector<stm_connection_t> connections)
    : plan_(plan), room_(room), peer_(peer), connections_(std::move(connections)) {
  if (plan_.operation != Operation::kWrite) return;
  for (std::size_t index = 0; index < connections_.size(); ++index)
    for (std::uint32_t i = 0; i < plan_.window; ++i) land(index);
}

void Stream::start() {
  running_ = true;
  for (std::size_t index = 0; index < connections_.size(); ++index)
    for (std::uint32_t i = 0; i < plan_.window; ++i) begin(index);
}

void Stream::begin(std::size_t index) {
  const auto result = post(index);
  if (result == -EAGAIN) return owed_.push_back(index);
  posted(result);
  ++outstanding_;
}

int Stream::post(std::size_t index) {
  auto* const connection = connections_[index];
  const auto context = context_of(index, Role::kBegun);
  auto* const memory = room_.memory();
  switch (plan_.operation) {
    case Operation::kPut:
      return stm_put(connection, context, 0, memory, room_.source(), plan_.size, peer_.key, 0);
    case Operation::kGet:
      return stm_get(connection, context, 0, memory, room_.target(), plan_.size, peer_.key, 0);
    case Operation::kWrite:
      return stm_send(connection, context, 0, 0, memory, room_.source(), plan_.size);
    case Operation::kRead:
      return stm_read(connection, context, 0, memory, room_.target(), plan_.size);
    case Operation::kFetch:
      return stm_fetch(connection, context, 0, STM_FETCH_INCREMENT, 0, 0, memory, room_.source(),
                       peer_.key, 0);
    case Operation::kLevel0:
      break;
  }
  return -EINVAL;
}

void Stream::land(std::size_t index) {
  checked(stm_receive(connections_[index], context_of(index, Role::kLanding), room_.memory(),
                      room_.target(), plan_.size),
          "posting a receive");
}

void Stream::serve(const ReadRequest& request) {
  const auto result = stm_serve_read(request.connection, request.number, 0, STM_QUIET,
                                     room_.memory(), room_.source(), plan_.size);
  if (result == -EAGAIN) return unserved_.push_back(request);
  checked(result, "serving a read");
}

void Stream::retry() {
  for (const auto index : std::exchange(owed_, {}))
    if (running_) begin(index);
  for (const auto& request : std::exchange(unserved_, {})) serve(request);
}

void Stream::handle(const stm_event_t& event) {
  if (event.kind == STM_READ_REQUEST) return serve({event.connection, event.request});
  checked(event.status, "an operation");
  const auto index = static_cast<std::size_t>(event.context >> 2);
  switch (static_cast<Role>(event.context & 3)) {
    case Role::kBegun:
      --outstanding_;
      ++done_;
      if (running_) begin(index);
      break;
    case Role::kLanding:
      land(index);
      break;
    case Role::kConnection:
      break;
  }
}

}  // namespace stp::perf
