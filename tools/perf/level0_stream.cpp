// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/level0_stream.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <stdexcept>
#include <stp/managed.hpp>
#include <utility>

namespace stp::perf {
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
