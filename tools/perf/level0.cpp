// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/level0.h"

#include <cerrno>
#include <stp/managed.hpp>

namespace stp::perf {
namespace {

constexpr std::uint32_t kRegion = 1;
constexpr unsigned kBufsize = 14;
constexpr timeval kAcceptPatience{.tv_sec = 10, .tv_usec = 0};

// "host:3000" -> "host:3001"
std::string next_port(const std::string& address) {
  const auto colon = address.rfind(':') + 1;
  return address.substr(0, colon) + std::to_string(std::stoul(address.substr(colon)) + 1);
}

// Waits up to kAcceptPatience for a step of the peer's program.
template <typename Call>
void await(Call&& call, const char* what) {
  auto timeout = kAcceptPatience;
  const auto result = call(&timeout);
  checked(result == -EWOULDBLOCK ? -ETIMEDOUT : result, what);
}

}  // namespace

Level0::Level0(const std::string& listen_at, const Plan& plan, unsigned buffer_log2)
    : size_(plan.size) {
  const auto name = listen_at.empty() ? "" : next_port(listen_at);
  st_ehandle_t endpoint = nullptr;
  checked(st_create(name.empty() ? nullptr : name.c_str(), &endpoint), "making an endpoint");
  endpoint_.reset(endpoint);
  unsigned bufsize = buffer_log2 == 0 ? kBufsize : buffer_log2;
  checked(st_setopt(endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize), "setting an option");
  source_.reset(allocate(ST_MAP_TX, nullptr));
  target_.reset(allocate(ST_MAP_RX, &mx_));
  if (!name.empty()) checked(st_listen(endpoint), "listening at level 0");
}

void* Level0::allocate(int direction, int* mx) {
  void* memory = nullptr;
  checked(st_malloc(endpoint_.get(), size_, -1, &memory), "allocating memory");
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

Level0Connection Level0::connect(const std::string& peer) {
  st_chandle_t handle = nullptr;
  checked(st_connect(endpoint_.get(), next_port(peer).c_str(), &handle), "connecting at level 0");
  return open(handle);
}

Level0Connection Level0::accept() {
  st_event_t event{};
  while (event.kind != ST_EVENT_CONNECTION)
    await([&](timeval* timeout) { return st_next_event(endpoint_.get(), &event, timeout); },
          "waiting for a connection at level 0");
  st_chandle_t handle = nullptr;
  checked(st_accept(endpoint_.get(), &handle), "accepting at level 0");
  return open(handle);
}

// Opens this side's memory to the peer, and learns where the peer's memory is.
Level0Connection Level0::open(st_chandle_t handle) const {
  Level0Connection made;
  made.handle.reset(handle);
  st_header_t mra{};
  mra.op_flags = ST_OP_FLAGS(ST_OP_MRA, 0);
  mra.b_win = kMostLevel0Blocks;
  mra.r_mx = static_cast<std::uint16_t>(mx_);
  st_set_t_len(&mra, size_);
  mra.s_id = kRegion;
  checked(st_tx(handle, &mra, nullptr, 0, 0, 0), "opening memory to the peer");
  await([&](timeval* timeout) { return st_rx(handle, &mra, nullptr, timeout); },
        "waiting for the peer's memory");
  made.data.r_mx = mra.r_mx;
  made.data.r_bufx = mra.r_bufx;
  made.data.r_offset = mra.r_offset;
  made.data.d_id = mra.s_id;
  return made;
}

}  // namespace stp::perf
