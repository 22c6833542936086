// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/level0.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <stp/managed.hpp>
#include <utility>

#include "tools/perf/room.h"

namespace stp::perf {
namespace {

constexpr std::uint32_t kRegion = 1, kAsked = 2;  // what this side calls its own, and the peer's
constexpr unsigned kBufsize = 14;
constexpr std::chrono::seconds kAcceptPatience(10);
constexpr timeval kSlice{.tv_sec = 0, .tv_usec = 100'000};

}  // namespace

std::string level0_address(const std::string& address) {
  const auto colon = address.rfind(':') + 1;
  const auto text = address.substr(colon);
  std::uint32_t port = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  if (read.ec != std::errc() || read.ptr != end || port + 1 == 0)
    throw WrongUsage("level0 also uses the port behind '" + text +
                     "': let the server listen on a number, 1 to 4294967294");
  return address.substr(0, colon) + std::to_string(port + 1);
}

Level0::Level0(const std::string& listen_at, const Plan& plan, unsigned buffer_log2,
               std::function<void()> look)
    : size_(plan.size), look_(std::move(look)) {
  const auto name = listen_at.empty() ? "" : level0_address(listen_at);
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
  checked(st_connect(endpoint_.get(), level0_address(peer).c_str(), &handle),
          "connecting at level 0");
  return open(handle);
}

// Waits up to kAcceptPatience for a step of the peer's program.
template <typename Call>
void Level0::await(Call&& call, const char* what) const {
  const auto until = Clock::now() + kAcceptPatience;
  auto result = -EWOULDBLOCK;
  while (result == -EWOULDBLOCK && Clock::now() < until) {
    if (look_) look_();
    auto timeout = kSlice;
    result = call(&timeout);
  }
  checked(result == -EWOULDBLOCK ? -ETIMEDOUT : result, what);
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

// Each side asks for the other's memory, and opens its own when it is asked.
Level0Connection Level0::open(st_chandle_t handle) const {
  Level0Connection made;
  made.handle.reset(handle);
  st_header_t rmr{};
  rmr.op_flags = ST_OP_FLAGS(ST_OP_RMR, 0);
  rmr.b_win = kMostLevel0Blocks;
  st_set_t_len(&rmr, size_);
  rmr.s_id = kAsked;
  checked(st_tx(handle, &rmr, nullptr, 0, 0, 0), "asking for the peer's memory");
  await([&](timeval* timeout) { return st_rx(handle, &rmr, nullptr, timeout); },
        "waiting for the peer to ask for memory");
  st_header_t mra{};
  mra.op_flags = ST_OP_FLAGS(ST_OP_MRA, 0);
  mra.b_win = kMostLevel0Blocks;
  mra.r_mx = static_cast<std::uint16_t>(mx_);
  st_set_t_len(&mra, size_);
  mra.d_id = rmr.s_id;
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

namespace {

// Confirmation is requested at least four times per window, and at least every 32 Blocks.
constexpr std::uint32_t kParts = 4, kMostUnasked = 32;
// If no confirmation arrives for this long, requests one and sends the missing Blocks again.
constexpr std::chrono::milliseconds kBetweenQuestions(10);
constexpr std::chrono::seconds kLanePatience(10);
// This bit marks the Sync of a separate RSR. Blocks that request their state have Sync values
// without it.
constexpr std::uint32_t kQuestion = 0x8000'0000;

bool is_before(std::uint32_t earlier, std::uint32_t later) {
  return static_cast<std::int32_t>(earlier - later) < 0;
}

}  // namespace

Level0Stream::Level0Stream(const Plan& plan, std::vector<Level0Connection> connections)
    : plan_(plan), asks_(std::bit_floor(std::clamp(plan.window / kParts, 1U, kMostUnasked))) {
  for (auto& connection : connections) lanes_.emplace_back().connection = std::move(connection);
}

void Level0Stream::start() {
  running_ = true;
  for (auto& lane : lanes_) be_patient(lane);
}

void Level0Stream::be_patient(Lane& lane) {
  const auto now = Clock::now();
  lane.ask_at = now + kBetweenQuestions;
  lane.give_up_at = now + kLanePatience;
}

bool Level0Stream::turn() {
  bool any = false;
  for (auto& lane : lanes_) {
    fill(lane);
    any |= take(lane);
  }
  if (!any && plan_.crowded && !plan_.sleeps) ::sched_yield();
  return any;
}

void Level0Stream::fill(Lane& lane) {
  const auto end = running_ ? lane.confirmed + plan_.window : lane.end;
  while (is_before(lane.next, end)) send(lane);
}

void Level0Stream::send(Lane& lane) {
  auto& data = lane.connection.data;
  const bool asks = ((lane.next + 1) & (asks_ - 1)) == 0;
  data.op_flags = ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_SILENT | (asks ? ST_FLAG_SEND_STATE : 0));
  data.b_num = lane.next++;
  data.sync = data.b_num & ~kQuestion;
  checked(st_tx(lane.connection.handle.get(), &data, nullptr, static_cast<int>(plan_.size), 0, 0),
          "st_tx");
}

bool Level0Stream::take(Lane& lane) {
  using Microseconds = std::chrono::duration<suseconds_t, std::micro>;
  timeval timeout{.tv_sec = 0,
                  .tv_usec = plan_.sleeps ? Microseconds(kBetweenQuestions).count() : 0};
  st_header_t header;
  const auto result = st_rx(lane.connection.handle.get(), &header, nullptr, &timeout);
  if (result == -EWOULDBLOCK || result == -EINTR) {
    if (is_before(lane.confirmed, lane.next)) wait(lane);
    return false;
  }
  checked(result, "st_rx");
  if (ST_OP(header.op_flags) != ST_OP_RSR) return false;
  if ((ST_FLAGS(header.op_flags) & ST_FLAG_REJECT) != 0)
    throw std::runtime_error("the peer has closed its memory");
  confirm(lane, header);
  return true;
}

void Level0Stream::confirm(Lane& lane, const st_header_t& state) {
  if (is_before(lane.confirmed, state.b_seq)) {
    done_ += state.b_seq - lane.confirmed;
    lane.confirmed = state.b_seq;
    be_patient(lane);
  }
  if (lane.asked && state.sync == (kQuestion | lane.question)) {
    // Blocks that were sent before the RS and have not arrived are lost: sends them again. The peer
    // recognizes repeated Blocks by their numbers.
    lane.asked = false;
    lane.next = lane.confirmed;
  }
  if (is_before(lane.next, lane.confirmed)) lane.next = lane.confirmed;
}

void Level0Stream::ask(Lane& lane) {
  lane.question = (lane.question + 1) & ~kQuestion;
  lane.asked = true;
  lane.ask_at = Clock::now() + kBetweenQuestions;
  st_header_t rs{};
  rs.op_flags = ST_OP_FLAGS(ST_OP_RS, 0);
  rs.sync = kQuestion | lane.question;
  rs.b_num = lane.confirmed;
  rs.d_id = lane.connection.data.d_id;
  rs.s_id = ST_NO_ID;
  checked(st_tx(lane.connection.handle.get(), &rs, nullptr, 0, 0, 0), "asking for the state");
}

// Called while nothing arrives for outstanding Blocks.
void Level0Stream::wait(Lane& lane) {
  const auto now = Clock::now();
  if (now >= lane.give_up_at)
    throw std::runtime_error("no Block was confirmed for 10 s: is the link or the peer down?");
  if (now >= lane.ask_at) ask(lane);
}

// Asks for confirmation, because the last Blocks may not have asked for it.
void Level0Stream::stop() {
  running_ = false;
  for (auto& lane : lanes_) {
    lane.end = lane.next;
    if (is_before(lane.confirmed, lane.end)) ask(lane);
  }
}

bool Level0Stream::drained() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [](const Lane& lane) { return is_before(lane.confirmed, lane.end); });
}

}  // namespace stp::perf
