// SPDX-License-Identifier: BSD-3-Clause
// Who has answered this program. Thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "libst/client/names.h"

namespace stp::client {

// Of more, the latest are remembered.
inline constexpr std::size_t kMostAnswers = 64;

// At which addresses of hosts with several this program has opened connections: a further
// connection to such a host does not wait for the silent ones again.

void remember_answer(const Place& place);
// It has not answered this time, or has refused.
void forget_answer(const Place& place);
// Before a connection is made. Those that have answered come first, the latest before the others;
// the rest stays in its order.
void put_answers_first(std::vector<Place>& places);

// When a station has answered a request to connect, or has made one.
void station_answers(const MacAddr& mac, Time now);
// nullopt: it has not, or many others have since then.
std::optional<Time> last_answer_of(const MacAddr& mac);

}  // namespace stp::client
