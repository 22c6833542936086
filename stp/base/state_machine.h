// SPDX-License-Identifier: BSD-3-Clause
// A state that changes by the rows of a table, and in no other way.
//
// How to use it:
// - The table is a constant, under a drawing. Its first row starts in the first state.
//     inline constexpr Transition<Door, DoorEvent> kDoorTransitions[] = {
//         {Door::kShut, DoorEvent::kPush, Door::kOpen},
//         {Door::kOpen, DoorEvent::kPull, Door::kShut},
//     };
//   The compiler refuses a table with two rows for one event in one state, and one with a state
//   that the first state does not lead to.
// - The machine begins in the first state. It is neither copied nor assigned.
//     Machine<kDoorTransitions> door;
//     if (door == Door::kShut) ...
// - What a peer or a user causes may be illegal. The caller handles that:
//     if (!door.advance(DoorEvent::kPull)) return counters.add(...);
// - What this program decides must be legal. An illegal event is a mistake in the program: it ends
//   the process where assertions are on (assert.h), and changes nothing elsewhere.
//     door.must(DoorEvent::kPush);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <type_traits>

#include "stp/base/assert.h"

namespace stp {

template <typename State, typename Event>
struct Transition {
  State from;
  Event event;
  State to;
};

// nullopt: the event is illegal in this state.
template <typename State, typename Event, std::size_t N>
[[nodiscard]] constexpr std::optional<State> next_state(const Transition<State, Event> (&table)[N],
                                                        State from, Event event) {
  for (const auto& row : table)
    if (row.from == from && row.event == event) return row.to;
  return std::nullopt;
}

// Whether zero or more events lead from `from` to `to`.
template <typename State, typename Event, std::size_t N>
[[nodiscard]] constexpr bool leads(const Transition<State, Event> (&table)[N], State from,
                                   State to) {
  State reached[N + 1] = {from};  // each row adds at most one
  std::size_t count = 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (reached[i] == to) return true;
    for (const auto& row : table) {
      if (row.from != reached[i]) continue;
      bool known = false;
      for (std::size_t k = 0; k < count; ++k) known = known || reached[k] == row.to;
      if (!known) reached[count++] = row.to;
    }
  }
  return false;
}

// No two rows have the same state and event.
template <typename State, typename Event, std::size_t N>
[[nodiscard]] constexpr bool is_unambiguous(const Transition<State, Event> (&table)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (table[i].from == table[k].from && table[i].event == table[k].event) return false;
  return true;
}

// The first state leads to the starting state of each row.
template <typename State, typename Event, std::size_t N>
[[nodiscard]] constexpr bool is_connected(const Transition<State, Event> (&table)[N]) {
  for (const auto& row : table)
    if (!leads(table, table[0].from, row.from)) return false;
  return true;
}

// One more than the highest state of the table.
template <typename State, typename Event, std::size_t N>
[[nodiscard]] constexpr std::size_t state_count(const Transition<State, Event> (&table)[N]) {
  std::size_t count = 0;
  for (const auto& row : table)
    for (const auto state : {row.from, row.to})
      count = std::max(count, static_cast<std::size_t>(state) + 1);
  return count;
}

template <const auto& table>
class Machine {
  using Row = std::remove_cvref_t<decltype(table[0])>;
  static_assert(is_unambiguous(table), "two rows for one event in one state");
  static_assert(is_connected(table), "a row begins in a state that is never reached");

 public:
  using State = decltype(Row::from);
  using Event = decltype(Row::event);

  constexpr Machine() = default;
  ~Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] constexpr State state() const { return state_; }
  friend constexpr bool operator==(const Machine& machine, State state) {
    return machine.state_ == state;
  }

  // The state that the event leads to. nullopt: illegal now.
  [[nodiscard]] constexpr std::optional<State> next(Event event) const {
    return next_state(table, state_, event);
  }
  // Whether the event is legal now.
  [[nodiscard]] constexpr bool allows(Event event) const {
    return (kLegal[static_cast<std::size_t>(state_)] >> static_cast<unsigned>(event) & 1) != 0;
  }
  // False: the event is illegal now; nothing has changed.
  [[nodiscard]] constexpr bool advance(Event event) {
    const auto to = next(event);
    if (to) state_ = *to;
    return to.has_value();
  }
  // The event must be legal now; otherwise this program is wrong. `file` and the line default to
  // the caller's, for the message.
  constexpr void must(Event event, [[maybe_unused]] const char* file = __builtin_FILE(),
                      [[maybe_unused]] int line = __builtin_LINE()) {
    if (advance(event)) return;
    if constexpr (kAsserts) {
      char words[64];
      std::snprintf(words, sizeof words, "event %d in state %d", static_cast<int>(event),
                    static_cast<int>(state_));
      assertion_failed(file, line, "the event is legal", words);
    }
  }

 private:
  static constexpr std::size_t kStates = state_count(table);
  // For each state a bit for each event that is legal in it.
  static constexpr auto kLegal = [] {
    std::array<std::uint32_t, kStates> legal{};
    for (const auto& row : table)
      legal[static_cast<std::size_t>(row.from)] |= std::uint32_t{1}
                                                   << static_cast<unsigned>(row.event);
    return legal;
  }();

  State state_ = table[0].from;
};

}  // namespace stp
