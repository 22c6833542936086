// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/level0.h"

#include <sched.h>

#include <cerrno>
#include <stp/managed.hpp>

namespace stp::perf {
namespace {

constexpr std::uint32_t kRegion = 1;
constexpr std::uint16_t kWindow = 1024;  // Blocks: never more than one is under way
constexpr unsigned kBufsize = 14;

// "host:3000" -> "host:3001"
std::string next_port(const std::string& address) {
  auto const colon = address.rfind(':') + 1;
  return address.substr(0, colon) + std::to_string(std::stoul(address.substr(colon)) + 1);
}

}  // namespace

Level0::Level0(const char* name, const Plan& plan) : plan_(plan) {
  st_ehandle_t endpoint = nullptr;
  checked(st_create(name, &endpoint), "making an endpoint");
  endpoint_.reset(endpoint);
  unsigned bufsize = kBufsize;
  checked(st_setopt(endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize), "setting an option");
  source_.reset(allocate(plan.size, ST_MAP_TX, nullptr));
  target_.reset(allocate(plan.size, ST_MAP_RX, &mx_));
}

void* Level0::allocate(std::size_t size, int direction, int* mx) {
  void* memory = nullptr;
  checked(st_malloc(endpoint_.get(), size, -1, &memory), "allocating memory");
  st_meminfo_t facts{};
  st_mhandle_t mapped = nullptr;
  auto result = st_meminfo(memory, &facts);
  if (result == 0)
    result = st_map(endpoint_.get(), direction, memory, static_cast<int>(facts.size), 0, -1,
                    &mapped, mx);
  if (result < 0) st_free(memory);
  checked(result, "mapping memory");
  return memory;
}

void Level0::exchange_regions() {
  st_header_t mra{};
  mra.op_flags = ST_OP_FLAGS(ST_OP_MRA, 0);
  mra.b_win = kWindow;
  mra.r_mx = static_cast<std::uint16_t>(mx_);
  st_set_t_len(&mra, plan_.size);
  mra.s_id = kRegion;
  auto* const connection = connection_.get();
  checked(st_tx(connection, &mra, nullptr, 0, 0, 0), "opening memory to the peer");
  checked(st_rx(connection, &mra, nullptr, nullptr), "waiting for the peer's memory");
  data_.op_flags = ST_OP_FLAGS(ST_OP_DATA, plan_.sleeps ? ST_FLAG_INTERRUPT : 0);
  data_.r_mx = mra.r_mx;
  data_.r_bufx = mra.r_bufx;
  data_.r_offset = mra.r_offset;
  data_.d_id = mra.s_id;
}

void Level0::send() {
  checked(st_tx(connection_.get(), &data_, nullptr, static_cast<int>(plan_.size), 0, 0), "st_tx");
  ++data_.b_num;
}

bool Level0::receive() {
  timeval timeout{.tv_sec = 0, .tv_usec = plan_.sleeps ? 100'000 : 0};
  st_header_t header;
  auto const result = st_rx(connection_.get(), &header, nullptr, &timeout);
  if (result == -EWOULDBLOCK || result == -EINTR) {
    if (plan_.crowded && !plan_.sleeps) ::sched_yield();
    return false;
  }
  checked(result, "st_rx");
  return ST_OP(header.op_flags) == ST_OP_DATA;
}

Level0Client::Level0Client(const std::string& peer, const Plan& plan) : Level0(nullptr, plan) {
  st_chandle_t connection = nullptr;
  checked(st_connect(endpoint(), next_port(peer).c_str(), &connection), "connecting at level 0");
  adopt(connection);
  exchange_regions();
}

void Level0Client::round_trip() {
  send();
  while (!receive()) {
  }
}

Level0Server::Level0Server(const std::string& port, const Plan& plan)
    : Level0(next_port(port).c_str(), plan) {
  checked(st_listen(endpoint()), "listening at level 0");
}

void Level0Server::accept() {
  st_chandle_t connection = nullptr;
  checked(st_accept(endpoint(), &connection), "accepting at level 0");
  adopt(connection);
  exchange_regions();
}

bool Level0Server::answer() {
  if (!receive()) return false;
  send();
  return true;
}

}  // namespace stp::perf
