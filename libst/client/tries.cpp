// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/tries.h"

#include <algorithm>

namespace stp::client {

Tries::Tries(Places places) : host_(std::move(places.host)) {
  count_ = std::min(places.all.size(), kMost);
  for (std::size_t i = 0; i < count_; ++i) queue_.push_back({std::move(places.all[i]), false});
}

void Tries::begin(Time now, Time until) {
  begun_ = now;
  limit_ = until;
  ask_by_ = has_news() ? until : kNever;
  look_at_ = kNever;
  if (queue_.size() < 2) return;
  if (!queue_.front().again) look_at_ = now + kFirstLook;
  const auto rest = until - std::min(until, now);
  const Time share = rest / queue_.size();
  ask_by_ = now + std::min(share, kLongestAsked);
  limit_ = now + std::clamp(share, std::min(kShortest, rest / 2), kLongest);
}

void Tries::looked(Time now) {
  look_at_ = now + std::clamp(now - begun_, kFirstLook, kLastLook);
}

void Tries::give_up(const std::string& why) {
  note(why);
  queue_.pop_front();
}

void Tries::give_up_for_now(const std::string& why) {
  note(why);
  queue_.push_back({std::move(queue_.front().place), true});
  queue_.pop_front();
}

void Tries::note(const std::string& why) {
  const auto name = name_of(present());
  const auto known = std::ranges::find(ends_, name, &std::pair<std::string, std::string>::first);
  const auto end = why.empty() ? "no answer" : why;
  if (known == ends_.end())
    ends_.emplace_back(name, end);
  else if (!why.empty())
    known->second = end;
}

std::string Tries::text() const {
  std::string all;
  for (const auto& [name, end] : ends_) all += (all.empty() ? "" : ", ") + name + " (" + end + ")";
  return "tried of '" + host_ + "': " + all;
}

}  // namespace stp::client
