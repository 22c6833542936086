// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/control.h"

#include <array>
#include <cstring>
#include <utility>

namespace stp::perf {
namespace {

// A report: operations, microseconds of CPU time in the program and in the kernel, instructions,
// nanoseconds of the measured turns and of the idle ones among them, bytes a second of memcpy, and
// the link's rate. Sent big-endian, because client and server may differ in their byte order.
constexpr std::uint64_t kNoInstructions = ~std::uint64_t{0};
using Words = std::array<std::uint64_t, 8>;

std::uint64_t microseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e6);
}

std::uint64_t number(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::chrono::nanoseconds nanoseconds(std::uint64_t number) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(number));
}

void store(const Words& words, unsigned char* to) {
  for (const auto word : words)
    for (int shift = 56; shift >= 0; shift -= 8) *to++ = static_cast<unsigned char>(word >> shift);
}

Words load(const unsigned char* from) {
  Words words{};
  for (auto& word : words)
    for (int i = 0; i < 8; ++i) word = word << 8 | *from++;
  return words;
}

}  // namespace

Control::Control(const Room& room, stm_connection_t connection)
    : room_(room), connection_(connection) {
  expect();
}

void Control::expect() {
  checked(stm_receive(connection_, kContext, room_.memory(), room_.incoming_note(), Room::kNote),
          "posting a receive");
}

void Control::send(Note note, std::size_t length) {
  checked(stm_send(connection_, kContext, STM_QUIET | STM_URGENT, static_cast<std::uint32_t>(note),
                   room_.memory(), room_.outgoing_note(), length),
          "sending to the other side");
}

void Control::send(Note note) {
  send(note, 0);
}

void Control::send(const ServerReport& report) {
  const auto& [usage, turns, memcpy_rate, megabits] = report.side;
  store({report.operations, microseconds(usage.user_seconds), microseconds(usage.system_seconds),
         usage.instructions.value_or(kNoInstructions), number(turns.all), number(turns.idle),
         memcpy_rate, megabits},
        room_.outgoing_note());
  send(Note::kReport, sizeof(Words));
}

bool Control::handle(const stm_event_t& event) {
  if (event.connection != connection_) return false;
  if (event.kind == STM_DISCONNECTED || event.kind == STM_FAILED) ended_ = true;
  if (event.kind != STM_RECEIVE || event.status != 0) return true;
  note_ = static_cast<Note>(event.tag);
  if (*note_ == Note::kReport && event.length == sizeof(Words)) {
    const auto [operations, user, system, instructions, turns, idle, memcpy_rate, megabits] =
        load(room_.incoming_note());
    report_.operations = operations;
    report_.side = {
        .usage = {static_cast<double>(user) / 1e6, static_cast<double>(system) / 1e6, std::nullopt},
        .turns = {nanoseconds(turns), nanoseconds(idle)},
        .memcpy_rate = memcpy_rate,
        .megabits = static_cast<std::uint32_t>(megabits)};
    if (instructions != kNoInstructions) report_.side.usage.instructions = instructions;
  }
  expect();
  return true;
}

std::optional<Note> Control::take() {
  return std::exchange(note_, std::nullopt);
}

}  // namespace stp::perf
