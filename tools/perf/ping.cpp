// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/ping.h"

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
      throw std::runtime_error("the other side has ended the connection");
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
  checked(result, "posting an operation");
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

}  // namespace stp::perf
