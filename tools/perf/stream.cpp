// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/stream.h"

#include <cerrno>
#include <utility>

namespace stp::perf {

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
  checked(result, "posting an operation");
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
