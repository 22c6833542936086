// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/closer.h"

#include <sys/mman.h>

#include <chrono>
#include <condition_variable>
#include <deque>

#include "stp/base/mutex.h"

namespace stp::port::memif {

struct Closer::Work {
  FileDescriptor file;
  std::span<std::byte> memory;
};

struct Closer::State {
  Mutex mutex;
  std::condition_variable_any given, done;
  std::deque<Work> queue STP_GUARDED_BY(mutex);  // the first one is being done
  bool has_thread STP_GUARDED_BY(mutex) = false;
  bool stopping STP_GUARDED_BY(mutex) = false;

  static void start_thread(const std::shared_ptr<State>& state) STP_REQUIRES(state->mutex) {
    state->has_thread = in_background([state] { state->work(); });
  }

  void work() {
    Lock lock(mutex);
    for (;;) {
      while (!stopping && queue.empty()) lock.wait(given);
      if (queue.empty()) return;
      Work work = std::move(queue.front());
      lock.unlock();
      if (!work.memory.empty()) ::munmap(work.memory.data(), work.memory.size());
      work.file = {};
      lock.lock();
      queue.pop_front();
      done.notify_all();
    }
  }
};

Closer::Closer() : state_(std::make_shared<State>()) {}

Closer::~Closer() {
  constexpr std::chrono::milliseconds kFarewell{100};
  Lock lock(state_->mutex);
  state_->stopping = true;
  state_->given.notify_one();
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  while (!state_->queue.empty() && lock.wait_until(state_->done, end)) {
  }
}

void Closer::add(Work work) {
  const Lock guard(state_->mutex);
  state_->queue.push_back(std::move(work));
  if (!state_->has_thread) State::start_thread(state_);
  state_->given.notify_one();
}

void Closer::close(FileDescriptor file) {
  add({std::move(file), {}});
}

void Closer::unmap(std::span<std::byte> memory) {
  add({{}, memory});
}

std::size_t Closer::waiting() const {
  const Lock guard(state_->mutex);
  return state_->queue.size();
}

bool Closer::is_full() {
  const Lock guard(state_->mutex);
  if (!state_->queue.empty() && !state_->has_thread) State::start_thread(state_);
  return state_->queue.size() >= kMost;
}

}  // namespace stp::port::memif
