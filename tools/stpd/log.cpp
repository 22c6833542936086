// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/log.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

#include "dpdk_port/link/start_thread.h"
#include "stp/base/mutex.h"
#include "stp/base/printable.h"
#include "tools/json/json.h"

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
  Mutex mutex;
  std::condition_variable_any added, written;
  std::deque<std::string> lines STP_GUARDED_BY(mutex);
  std::size_t bytes STP_GUARDED_BY(mutex) = 0;
  std::size_t dropped STP_GUARDED_BY(mutex) = 0;
  bool writing STP_GUARDED_BY(mutex) = false;
  bool stopping STP_GUARDED_BY(mutex) = false;

  [[nodiscard]] bool empty() const STP_REQUIRES(mutex) { return lines.empty() && dropped == 0; }

  std::string next(const Missing& missing) STP_REQUIRES(mutex) {
    if (lines.empty()) return missing(std::exchange(dropped, 0));
    auto line = std::move(lines.front());
    lines.pop_front();
    bytes -= line.size();
    return line;
  }

  void run(int file, const Missing& missing) {
    Lock lock(mutex);
    for (;;) {
      while (!stopping && empty()) lock.wait(added);
      if (empty()) return;
      const auto line = next(missing);
      writing = true;
      mutex.unlock();
      write_all(file, line);
      mutex.lock();
      writing = false;
      if (empty()) written.notify_all();
    }
  }
};

LogWriter::LogWriter(int file, Missing missing) : state_(std::make_shared<State>()) {
  start_thread([state = state_, file, say = std::move(missing)] {
    state->run(file, say);
  }).detach();
}

LogWriter::~LogWriter() {
  flush(kFarewell);
  const Lock guard(state_->mutex);
  state_->stopping = true;
  state_->added.notify_one();
}

void LogWriter::write(std::string line) {
  {
    const Lock guard(state_->mutex);
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
  Lock lock(state_->mutex);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!state_->empty() || state_->writing)
    if (!lock.wait_until(state_->written, end)) return state_->empty() && !state_->writing;
  return true;
}

namespace {

std::atomic<LogLevel> least_level{LogLevel::kInfo};
std::atomic<LogFormat> log_format{LogFormat::kText};

// Never destroyed, because threads may log until the process ends.
struct Writer {
  Mutex mutex;
  // nullptr: each thread writes its own lines.
  std::shared_ptr<LogWriter> now STP_GUARDED_BY(mutex);
  bool lost STP_GUARDED_BY(mutex) = false;  // stderr blocks: log() drops all lines
};

Writer& writer() {
  static auto* const one = new Writer;
  return *one;
}

constexpr std::array<const char*, 4> kNames{"error", "warning", "info", "debug"};

const char* name_of(LogLevel level) {
  return kNames[static_cast<std::size_t>(level)];
}

std::string time_now() {
  timespec now{};
  std::tm utc{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::gmtime_r(&now.tv_sec, &utc);
  std::array<char, 40> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + length, text.size() - length, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text.data();
}

std::string as_json(LogLevel level, const std::string& text, const std::string& link) {
  Json json;
  json.object().value("time", time_now()).value("level", name_of(level));
  if (!link.empty()) json.value("link", link);
  return json.value("message", text).end().text() + '\n';
}

std::string as_text(LogLevel level, const std::string& text, const std::string& link) {
  const auto weight = level <= LogLevel::kWarning ? std::string(name_of(level)) + ": " : "";
  return "stpd: " + (link.empty() ? "" : "[" + link + "] ") + weight + text + "\n";
}

// Whatever a text quotes, the line is one line, and of JSON it is UTF-8.
std::string as_line(LogLevel level, const std::string& text, const std::string& link) {
  const LogFormat format = log_format;
  if (format == LogFormat::kJson)
    return as_json(level, printable(text, true), printable(link, true));
  return (format == LogFormat::kTimed ? time_now() + ' ' : "") +
         as_text(level, printable(text), printable(link));
}

}  // namespace

void set_log(LogLevel least, LogFormat format) {
  least_level = least;
  log_format = format;
}

void log(LogLevel level, const std::string& text, const std::string& link) {
  if (level > least_level) return;
  auto line = as_line(level, text, link);
  std::shared_ptr<LogWriter> thread;
  {
    const Lock guard(writer().mutex);
    if (writer().lost) return;
    thread = writer().now;
  }
  // One call per line, so that lines of two threads do not mix.
  if (thread)
    thread->write(std::move(line));
  else
    std::fputs(line.c_str(), stderr);
}

LogThread::LogThread()
    : writer_(std::make_shared<LogWriter>(STDERR_FILENO, [](std::size_t lines) {
        return as_line(
            LogLevel::kWarning,
            std::to_string(lines) + " lines are missing here: the log was not read fast enough",
            {});
      })) {
  const Lock guard(writer().mutex);
  writer().now = writer_;
}

LogThread::~LogThread() {
  const auto written = writer_->flush(LogWriter::kFarewell);
  const Lock guard(writer().mutex);
  writer().now.reset();
  writer().lost = !written;
}

namespace {

os::UniqueFd connect_to_manager() {
  const auto* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  const auto length = path == nullptr ? 0 : std::strlen(path);
  if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
    return {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // a name in the abstract namespace
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return fd;
}

std::optional<std::uint64_t> number_in(const char* variable) {
  const auto* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const auto value = std::strtoull(text, &end, 10);
  return end == text || *end != '\0' ? std::nullopt : std::optional<std::uint64_t>(value);
}

}  // namespace

// Connects at once: after dropping privileges, the process may not be permitted to.
Notifier::Notifier() : socket_(connect_to_manager()) {
  const auto interval = number_in("WATCHDOG_USEC");
  const auto pid = number_in("WATCHDOG_PID");
  if (interval.value_or(0) != 0 && (!pid || *pid == static_cast<std::uint64_t>(::getpid())))
    watchdog_ = std::chrono::microseconds(*interval);
}

void Notifier::tell(const std::string& lines) const {
  if (socket_) ::send(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace stp::stpd
