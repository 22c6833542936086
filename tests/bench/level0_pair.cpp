// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/level0_pair.h"

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace stp::bench {
namespace {

constexpr const char* kPort = ":3000";
constexpr std::size_t kLength = 4096;
constexpr std::uint32_t kRegion = 1, kWindow = 256, kAsks = 32;

void must(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + st_strerror(result));
}

}  // namespace

Level0Pair::Side::Side(const char* name) {
  must(st_create(name, &endpoint), "st_create");
}

void Level0Pair::Side::map(int direction, int* mx) {
  void* memory = nullptr;
  must(st_malloc(endpoint, kLength, -1, &memory), "st_malloc");
  st_meminfo_t facts{};
  must(st_meminfo(memory, &facts), "st_meminfo");
  st_mhandle_t mapped = nullptr;
  must(st_map(endpoint, direction, memory, static_cast<int>(facts.size), 0, -1, &mapped, mx),
       "st_map");
}

Level0Pair::Level0Pair() : a_((::setenv("STP_LINK", "loop", 1), nullptr)), b_(kPort) {
  int mx = 0;
  a_.map(ST_MAP_TX, nullptr);
  b_.map(ST_MAP_RX, &mx);
  must(st_listen(b_.endpoint), "st_listen");
  must(st_connect(a_.endpoint, kPort, &a_.connection), "st_connect");
  must(st_accept(b_.endpoint, &b_.connection), "st_accept");
  st_header_t mra{};
  mra.op_flags = ST_OP_FLAGS(ST_OP_MRA, 0);
  mra.b_win = kWindow;
  mra.r_mx = static_cast<std::uint16_t>(mx);
  st_set_t_len(&mra, kLength);
  mra.s_id = kRegion;
  must(st_tx(b_.connection, &mra, nullptr, 0, 0, 0), "st_tx");
  must(st_rx(a_.connection, &mra, nullptr, nullptr), "st_rx");
  data_.r_mx = mra.r_mx;
  data_.r_bufx = mra.r_bufx;
  data_.r_offset = mra.r_offset;
  data_.d_id = mra.s_id;
}

Level0Pair::~Level0Pair() {
  st_delete(a_.endpoint);
  st_delete(b_.endpoint);
}

void Level0Pair::puts(std::uint32_t count, int length) {
  const auto end = data_.b_num + count;
  timeval at_once{};
  for (std::uint32_t confirmed = data_.b_num; confirmed != end;) {
    for (; data_.b_num != end && data_.b_num - confirmed < kWindow; ++data_.b_num) {
      const bool asks = (data_.b_num + 1) % kAsks == 0 || data_.b_num + 1 == end;
      data_.op_flags = ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_SILENT | (asks ? ST_FLAG_SEND_STATE : 0));
      must(st_tx(a_.connection, &data_, nullptr, length, 0, 0), "st_tx");
    }
    st_header_t state;
    const auto result = st_rx(a_.connection, &state, nullptr, &at_once);
    if (result == -EWOULDBLOCK) continue;
    must(result, "st_rx");
    confirmed = state.b_seq;
  }
}

}  // namespace stp::bench
