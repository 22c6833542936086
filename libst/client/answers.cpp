// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/answers.h"

#include <algorithm>
#include <deque>

#include "stp/base/mutex.h"

namespace stp::client {
namespace {

struct Station {
  MacAddr mac;
  Time at = 0;
};

struct Answers {
  Mutex mutex;
  // The latest is first.
  std::deque<Place> places STP_GUARDED_BY(mutex);
  std::deque<Station> stations STP_GUARDED_BY(mutex);
};

// Never destroyed: a program may connect while it ends.
Answers& answers() {
  static auto* const all = new Answers;
  return *all;
}

}  // namespace

void remember_answer(const Place& place) {
  Answers& all = answers();
  const Lock guard(all.mutex);
  std::erase(all.places, place);
  all.places.push_front(place);
  if (all.places.size() > kMostAnswers) all.places.pop_back();
}

void station_answers(const MacAddr& mac, Time now) {
  Answers& all = answers();
  const Lock guard(all.mutex);
  std::erase_if(all.stations, [&mac](const Station& station) { return station.mac == mac; });
  all.stations.push_front({mac, now});
  if (all.stations.size() > kMostAnswers) all.stations.pop_back();
}

std::optional<Time> last_answer_of(const MacAddr& mac) {
  Answers& all = answers();
  const Lock guard(all.mutex);
  const auto at = std::ranges::find(all.stations, mac, &Station::mac);
  return at == all.stations.end() ? std::nullopt : std::optional(at->at);
}

void forget_answer(const Place& place) {
  Answers& all = answers();
  const Lock guard(all.mutex);
  std::erase(all.places, place);
}

static std::deque<Place> answers_by_now() {
  Answers& all = answers();
  const Lock guard(all.mutex);
  return all.places;
}

void put_answers_first(std::vector<Place>& places) {
  if (places.size() < 2) return;
  const auto known = answers_by_now();
  std::ranges::stable_sort(places, {}, [&known](const Place& place) {
    return std::ranges::find(known, place) - known.begin();
  });
}

}  // namespace stp::client
