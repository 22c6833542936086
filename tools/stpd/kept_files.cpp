// SPDX-License-Identifier: BSD-3-Clause
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libst/ipc/socket.h"
#include "tools/stpd/server.h"

namespace stp::stpd {

KeptFiles::KeptFiles(std::size_t most)
    : most_(most), news_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

// The watch ends with the file.
void KeptFiles::handed_out(uid_t user, int file, const std::weak_ptr<const void>& memory) {
  if (!news_ || ipc::is_trusted(user)) return;
  const auto watch = ::inotify_add_watch(
      news_.get(), ("/proc/self/fd/" + std::to_string(file)).c_str(), IN_DELETE_SELF);
  if (watch < 0 || !users_of_.try_emplace(watch, user).second) return;
  try {
    users_[user].files[watch] = memory;
  } catch (...) {  // no memory
    forget(watch);
    throw;
  }
}

void KeptFiles::look() {
  alignas(inotify_event) std::array<char, 4'096> news;
  const auto size = ::read(news_.get(), news.data(), news.size());
  for (ssize_t at = 0; at < size;) {
    inotify_event each{};
    std::memcpy(&each, news.data() + at, sizeof each);
    at += static_cast<ssize_t>(sizeof each + each.len);
    if ((each.mask & IN_Q_OVERFLOW) != 0) has_lost_news_ = true;
    if ((each.mask & IN_IGNORED) != 0) forget(each.wd);
  }
  if (!has_lost_news_) return;
  look_at_all();
  has_lost_news_ = false;
}

// The kernel lists the watches that there still are, a line each.
void KeptFiles::look_at_all() {
  constexpr std::string_view kBegin = "inotify wd:";
  std::ifstream list("/proc/self/fdinfo/" + std::to_string(news_.get()));
  std::unordered_set<int> there;
  for (std::string line; std::getline(list, line);) {
    int watch = 0;
    if (!line.starts_with(kBegin)) continue;
    std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), watch, 16);
    there.insert(watch);
  }
  std::vector<int> gone;
  for (const auto& [watch, user] : users_of_)
    if (!there.contains(watch)) gone.push_back(watch);
  for (const auto watch : gone) forget(watch);
}

void KeptFiles::forget(int watch) {
  const auto of = users_of_.find(watch);
  if (of == users_of_.end()) return;
  const auto user = users_.find(of->second);
  users_of_.erase(of);
  if (user == users_.end()) return;
  auto& [files, given_up, counted] = user->second;
  const auto file = files.find(watch);
  if (file != files.end()) {
    if (file->second.expired() && given_up != 0) --given_up;
    files.erase(file);
  }
  if (files.empty()) users_.erase(user);
}

std::size_t KeptFiles::too_many(uid_t user, Clock::time_point now) {
  const auto at = users_.find(user);
  if (at == users_.end() || at->second.files.size() < most_) return 0;
  auto& [files, given_up, counted] = at->second;
  if (now - counted >= kInterval) {
    counted = now;
    given_up = static_cast<std::size_t>(
        std::ranges::count_if(files, [](const auto& file) { return file.second.expired(); }));
  }
  return given_up < most_ ? 0 : given_up;
}

}  // namespace stp::stpd
