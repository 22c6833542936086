// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/tries.h"

#include <algorithm>

#include "libst/client/answers.h"

namespace stp::client {

Tries::Tries(Places places) : host_(std::move(places.host)) {
  count_ = std::min(places.all.size(), kMost);
  for (std::size_t i = 0; i < count_; ++i) queue_.push_back({std::move(places.all[i]), false});
}

void Tries::begin(Time now, Time until) {
  if (first_begun_ == kNever) first_begun_ = now;
  is_begun_ = true;
  begun_ = now;
  limit_ = until;
  ask_by_ = has_news() ? until : kNever;
  look_at_ = kNever;
  if (queue_.size() < 2) return;
  if (!queue_.front().again) look_at_ = now + kFirstLook;
  const auto end = std::min(until, first_begun_ + kTogether);
  const Time rest = end - std::min(end, now);
  const Time share = rest / queue_.size();
  const Time of_others = std::min(share, kLeast) * (queue_.size() - 1);
  ask_by_ = now + std::min(share, kLongestAsked);
  limit_ = now + std::clamp(share, std::min(kShortest, rest - of_others), kLongest);
}

void Tries::looked(Time now) {
  look_at_ = now + std::clamp(now - begun_, kFirstLook, kLastLook);
}

void Tries::give_up(const std::string& why) {
  note(why);
  forget_answer(present());
  queue_.pop_front();
  is_begun_ = false;
}

void Tries::give_up_for_now(const std::string& why) {
  note(why);
  queue_.push_back({std::move(queue_.front().place), true});
  queue_.pop_front();
  is_begun_ = false;
}

void Tries::answered(const std::string& how) {
  if (!has_news()) return;
  note(how);
  is_answered_ = true;
  how.empty() ? remember_answer(present()) : forget_answer(present());
}

namespace {

constexpr const char* kNoAnswer = "no answer";

// Without the address, which stands before it: others may have ended alike.
std::string without_name(const Place& place, std::string why) {
  const auto name = name_of(place);
  const auto with_port = name + "/" + std::to_string(place.address.port);
  for (const auto& before : {with_port + " ", name + " "})
    if (why.starts_with(before)) return why.substr(before.size());
  const auto address = port::host_of(place.address);
  for (const auto& within :
       {" to " + with_port, " to " + name, " for " + name, " for " + address}) {
    const auto at = why.find(within), behind = at + within.size();
    if (at == std::string::npos || behind == why.size()) continue;
    if (why[behind] == ' ' || why[behind] == ':') return why.erase(at, within.size());
  }
  return why;
}

}  // namespace

void Tries::note(const std::string& why) {
  const auto name = name_of(present());
  const auto known = std::ranges::find(ends_, name, &std::pair<std::string, std::string>::first);
  const auto end = why.empty() ? kNoAnswer : without_name(present(), why);
  if (known == ends_.end())
    ends_.emplace_back(name, end);
  else if (!why.empty())
    known->second = end;
}

// With those that have not ended.
Tries::Ends Tries::ends() const {
  auto all = ends_;
  for (const auto& [place, again] : queue_) {
    const auto name = name_of(place);
    if (std::ranges::find(all, name, &std::pair<std::string, std::string>::first) == all.end())
      all.emplace_back(name, is_begun_ && place == present() ? "no answer yet" : "not asked");
  }
  return all;
}

std::string Tries::text() const {
  Ends alike;
  for (const auto& [name, end] : ends()) {
    const auto known = std::ranges::find(alike, end, &std::pair<std::string, std::string>::second);
    if (known == alike.end())
      alike.emplace_back(name, end);
    else
      known->first += " and " + name;
  }
  std::string all;
  for (const auto& [names, end] : alike)
    all += (all.empty() ? "" : ", ") + names + " (" + end + ")";
  return "tried of '" + host_ + "': " + all;
}

bool Tries::any_silent() const {
  const auto silent =
      std::ranges::find(ends_, kNoAnswer, &std::pair<std::string, std::string>::second);
  return !is_answered_ && silent != ends_.end();
}

}  // namespace stp::client
