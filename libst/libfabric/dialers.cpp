// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/dialers.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "libst/libfabric/op.h"

namespace stp::fi {
namespace {

// Of more silent hosts none is remembered: then they hold up others as hosts do that are new.
constexpr std::size_t kMostRemembered = 4096;

std::string dialed_host(const Dial& dial) {
  return dial.peer.substr(0, dial.peer.rfind(':'));
}

}  // namespace

Dialers::Dialers(LinkMutex& mutex, std::function<int(const Dial&)> connect)
    : mutex_(mutex), connect_(std::move(connect)) {}

Dialers::~Dialers() {
  {
    const LinkLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Dialers::dial(Dial&& dial) {
  const auto all_busy = now_.size() + waiting_.size() >= threads_.size();
  if (all_busy && threads_.size() < kMost) add_thread();
  waiting_.push_back(std::move(dial));
  changed_.notify_all();
}

bool Dialers::add_thread() {
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;  // else those that there are will do
    return false;
  }
  return true;
}

bool Dialers::hurry(std::chrono::steady_clock::time_point now) {
  if (waiting_.empty()) return false;
  const auto all_busy = now_.size() == threads_.size() && next() != waiting_.end();
  if (!all_busy || now - begun_at_ < kSlow) return true;
  begun_at_ = now;
  const auto most = std::min({2 * threads_.size(), threads_.size() + waiting_.size(), kMostSlow});
  while (threads_.size() < most && add_thread())
    ;
  return true;
}

void Dialers::stop(LinkLock& lock, const Owner& owner) {
  std::erase_if(waiting_, [&owner](const Dial& dial) { return dial.owner == &owner; });
  const auto find = [&] {
    mutex_.is_held();
    return std::ranges::find(now_, &owner, &Dialing::owner);
  };
  if (const auto found = find(); found != now_.end())
    stm_connection_close(found->connection);  // so the thread does not wait for the peer any longer
  while (find() != now_.end()) lock.wait(changed_);
}

bool Dialers::is_silent(const Dial& dial) const {
  return !silent_.empty() && silent_.contains(dialed_host(dial));
}

std::deque<Dial>::iterator Dialers::next() {
  const auto found = std::ranges::find_if(waiting_, [this](const Dial& dial) {
    mutex_.is_held();
    return !is_silent(dial);
  });
  if (found != waiting_.end()) return found;
  const auto to_silent = std::ranges::count_if(now_, &Dialing::to_silent);
  return static_cast<std::size_t>(to_silent) < kMostToSilent ? waiting_.begin() : waiting_.end();
}

void Dialers::note(const Dial& dial, int status) {
  if (status == 0 && !silent_.empty()) silent_.erase(dialed_host(dial));
  if (status != -EHOSTUNREACH) return;
  if (silent_.size() >= kMostRemembered) silent_.clear();
  silent_.insert(dialed_host(dial));
}

void Dialers::run() {
  LinkLock lock(mutex_);
  for (;;) {
    auto first = next();
    while (!closing_ && first == waiting_.end()) {
      lock.wait(changed_);
      first = next();
    }
    if (closing_) return;
    const auto dial = std::move(*first);
    waiting_.erase(first);
    begun_at_ = std::chrono::steady_clock::now();
    const auto now = now_.insert(now_.end(), {dial.owner, dial.connection, is_silent(dial)});
    const auto status = lock.without([&] { return connect_(dial); });
    note(dial, status);
    if (status != 0) dial.owner->not_dialed(status);
    now_.erase(now);
    changed_.notify_all();
  }
}

}  // namespace stp::fi
