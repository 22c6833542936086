// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/level0_ping.h"

#include <sched.h>

#include <cerrno>
#include <stp/managed.hpp>
#include <utility>

namespace stp::perf {

Level0Ping::Level0Ping(const Plan& plan, Level0Connection connection)
    : plan_(plan), connection_(std::move(connection)) {
  connection_.data.op_flags = ST_OP_FLAGS(ST_OP_DATA, plan_.sleeps ? ST_FLAG_INTERRUPT : 0);
}

void Level0Ping::send() {
  auto& data = connection_.data;
  checked(st_tx(connection_.handle.get(), &data, nullptr, static_cast<int>(plan_.size), 0, 0),
          "st_tx");
  ++data.b_num;
}

bool Level0Ping::receive() {
  timeval timeout{.tv_sec = 0, .tv_usec = plan_.sleeps ? 100'000 : 0};
  st_header_t header;
  const auto result = st_rx(connection_.handle.get(), &header, nullptr, &timeout);
  if (result == -EWOULDBLOCK || result == -EINTR) {
    if (plan_.crowded && !plan_.sleeps) ::sched_yield();
    return false;
  }
  checked(result, "st_rx");
  return ST_OP(header.op_flags) == ST_OP_DATA;
}

void Level0Ping::round_trip() {
  send();
  while (!receive()) {
  }
}

bool Level0Ping::answer() {
  if (!receive()) return false;
  send();
  return true;
}

}  // namespace stp::perf
