// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace stp::stpd {
namespace {

// Drops what cannot be written, for example to a pipe without a reader.
void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // a process that shares the file has set O_NONBLOCK
      pollfd room{.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

struct LogWriter::State {
  std::mutex mutex;
  std::condition_variable added, written;
  std::deque<std::string> lines;
  std::size_t bytes = 0;
  std::size_t dropped = 0;
  bool writing = false, stopping = false;

  [[nodiscard]] bool empty() const { return lines.empty() && dropped == 0; }

  std::string next(const Missing& missing) {
    if (lines.empty()) return missing(std::exchange(dropped, 0));
    auto line = std::move(lines.front());
    lines.pop_front();
    bytes -= line.size();
    return line;
  }

  void run(int file, const Missing& missing) {
    std::unique_lock lock(mutex);
    for (;;) {
      added.wait(lock, [this] { return stopping || !empty(); });
      if (empty()) return;
      const auto line = next(missing);
      writing = true;
      lock.unlock();
      write_all(file, line);
      lock.lock();
      writing = false;
      if (empty()) written.notify_all();
    }
  }
};

LogWriter::LogWriter(int file, Missing missing) : state_(std::make_shared<State>()) {
  std::thread([state = state_, file, say = std::move(missing)] { state->run(file, say); }).detach();
}

LogWriter::~LogWriter() {
  flush(kFarewell);
  std::lock_guard const guard(state_->mutex);
  state_->stopping = true;
  state_->added.notify_one();
}

void LogWriter::write(std::string line) {
  {
    std::lock_guard const guard(state_->mutex);
    // After a gap, all lines are dropped until the notice of the gap is written: so the lines keep
    // their order.
    if (state_->dropped != 0 || state_->bytes + line.size() > kMostBytes) {
      ++state_->dropped;
      return;
    }
    state_->bytes += line.size();
    state_->lines.push_back(std::move(line));
  }
  state_->added.notify_one();
}

bool LogWriter::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  return state_->written.wait_for(lock, patience,
                                  [this] { return state_->empty() && !state_->writing; });
}

}  // namespace stp::stpd
