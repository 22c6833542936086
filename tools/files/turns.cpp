// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/turns.h"

#include <algorithm>
#include <thread>

#include "tools/files/channel.h"

namespace stp::files {

unsigned Turns::usual() {
  return std::max(1U, std::thread::hardware_concurrency() / 2);
}

Turns::Turns(unsigned at_once, Clock::duration slice) : slice_(slice), free_(at_once) {}

// Of the host whose last slice is the longest ago, the one that waits longest.
const Turns::Work* Turns::next() const {
  const auto first = std::min_element(
      waiting_.begin(), waiting_.end(),
      [](const Work* one, const Work* other) { return one->host_->had < other->host_->had; });
  return first == waiting_.end() ? nullptr : *first;
}

// A host that comes anew is behind those that wait, or one that comes again and again would be
// served before them.
Turns::Work::Work(const WorkFor& whom) : whom_(whom), turns_(whom.turns) {
  std::lock_guard const lock(turns_.mutex_);
  const auto [found, is_new] = turns_.hosts_.try_emplace(whom.host);
  host_ = &found->second;
  if (is_new) host_->had = turns_.slices_;
  ++host_->works;
}

Turns::Work::~Work() {
  std::lock_guard const lock(turns_.mutex_);
  stop();
  if (--host_->works == 0) turns_.hosts_.erase(whom_.host);
}

// Under the lock.
void Turns::Work::stop() {
  if (has_slice_) ++turns_.free_;
  has_slice_ = false;
  turns_.waiting_.remove(this);
  turns_.changed_.notify_all();
}

bool Turns::Work::go_on() {
  if (has_slice_ && Clock::now() - began_ < turns_.slice_) return true;
  return whom_.attend() && await_slice();
}

bool Turns::Work::await_slice() {
  std::unique_lock lock(turns_.mutex_);
  stop();
  turns_.waiting_.push_back(this);
  const auto has_turn = [this] { return turns_.free_ != 0 && turns_.next() == this; };
  while (!turns_.changed_.wait_for(lock, kAttention, has_turn)) {
    lock.unlock();
    if (!whom_.attend()) return false;
    lock.lock();
  }
  turns_.waiting_.remove(this);
  --turns_.free_;
  host_->had = ++turns_.slices_;
  has_slice_ = true;
  began_ = Clock::now();
  turns_.changed_.notify_all();  // more may be free
  return true;
}

}  // namespace stp::files
