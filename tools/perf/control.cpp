// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/control.h"

#include <array>
#include <cstring>
#include <utility>

namespace stp::perf {
namespace {

// A report: operations, microseconds of CPU time, instructions. Sent big-endian, because client and
// server may differ in their byte order.
constexpr std::uint64_t kNoInstructions = ~std::uint64_t{0};
using Words = std::array<std::uint64_t, 3>;

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
  store({report.operations, static_cast<std::uint64_t>(report.usage.cpu_seconds * 1e6),
         report.usage.instructions.value_or(kNoInstructions)},
        room_.outgoing_note());
  send(Note::kReport, sizeof(Words));
}

bool Control::handle(const stm_event_t& event) {
  if (event.connection != connection_) return false;
  if (event.kind == STM_DISCONNECTED || event.kind == STM_FAILED) ended_ = true;
  if (event.kind != STM_RECEIVE || event.status != 0) return true;
  note_ = static_cast<Note>(event.tag);
  if (*note_ == Note::kReport && event.length == sizeof(Words)) {
    const auto [operations, cpu, instructions] = load(room_.incoming_note());
    report_ = {operations, {static_cast<double>(cpu) / 1e6, std::nullopt}};
    if (instructions != kNoInstructions) report_.usage.instructions = instructions;
  }
  expect();
  return true;
}

std::optional<Note> Control::take() {
  return std::exchange(note_, std::nullopt);
}

}  // namespace stp::perf
