// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/reaper.h"

#include <utility>

namespace stp::service {

Reaper::Reaper() : thread_([this] { run(); }) {}

Reaper::~Reaper() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  given_.notify_one();
  thread_.join();
}

std::shared_ptr<void> Reaper::guard(std::shared_ptr<Reaper> reaper, std::shared_ptr<void> thing) {
  auto* const name = thing.get();
  return {name, [reaper = std::move(reaper), thing = std::move(thing)](void*) mutable {
            reaper->give(std::move(thing));
          }};
}

void Reaper::give(std::shared_ptr<void> thing) {
  {
    std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
  }
  given_.notify_one();
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || !things_.empty()) {
    given_.wait(lock, [this] { return stopping_ || !things_.empty(); });
    auto things = std::exchange(things_, {});
    lock.unlock();
    things.clear();
    lock.lock();
  }
}

}  // namespace stp::service
