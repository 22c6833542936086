// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

extern char** environ;

namespace stp::hostile {
namespace {

using Clock = std::chrono::steady_clock;

// stpd notifies the watchdog twice in this time, as long as its threads make progress.
constexpr char kWatchdog[] = "WATCHDOG_USEC=3000000";
constexpr auto kPatience = std::chrono::seconds(30);
// stpd closes its connections within a second.
constexpr auto kToEnd = std::chrono::seconds(5 * kSlowness);

os::UniqueFd listen_for_notices(const std::string& path) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

std::size_t entries_of(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator const all(directory, error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error))
    threads.push_back(std::stoi(entry.path().filename()));
  return threads;
}

std::size_t lines_of(const std::string& path) {
  std::ifstream in(path);
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace

std::string usual_link() {
  const auto* const wanted = std::getenv("STP_HOSTILE_LINK");
  return wanted != nullptr ? wanted : "loop";
}

Daemon::Daemon(const std::vector<std::string>& options, const std::string& link)
    : over_udp_(link.starts_with("udp:")) {
  ::chmod(directory_.path().c_str(), 0711);  // other users have to reach the socket by its name
  const auto notify = directory_.path() + "/notify", out = directory_.path() + "/log";
  notices_ = listen_for_notices(notify);
  const auto* const other = std::getenv("STPD");  // replaces the built stpd
  std::vector<std::string> arguments{other != nullptr ? other : STPD_PATH, "--link", link,
                                     "--socket", socket_};
  arguments.insert(arguments.end(), options.begin(), options.end());
  std::vector<std::string> variables{"NOTIFY_SOCKET=" + notify, kWatchdog};
  for (auto** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  // A sanitizer keeps freed memory for a while. Limits it, so that other growth is visible.
  for (auto& variable : variables)
    if (variable.starts_with("ASAN_OPTIONS=")) variable += ":quarantine_size_mb=8";
  variables.emplace_back("ASAN_OPTIONS=quarantine_size_mb=8");
  std::vector<char*> argv, envp;
  for (auto& argument : arguments) argv.push_back(argument.data());
  for (auto& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data()) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  ready_ = pid_ > 0 && await_ready();
  if (ready_) threads_ = threads_of(pid_);
  watcher_ = std::thread([this] { watch(); });
}

Daemon::~Daemon() {
  stop_ = true;
  watcher_.join();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Daemon::await_ready() const {
  const auto until = Clock::now() + kPatience;
  while (Clock::now() < until && alive()) {
    pollfd notice{.fd = notices_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&notice, 1, 100) != 1) continue;
    std::array<char, 512> text{};
    const auto got = ::recv(notices_.get(), text.data(), text.size() - 1, 0);
    if (got > 0 && std::string(text.data()).starts_with("READY=1")) return true;
  }
  return false;
}

void Daemon::watch() {
  auto heard = Clock::now();
  while (!stop_) {
    pollfd notice{.fd = notices_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&notice, 1, 20) == 1) {
      std::array<char, 512> text{};
      const auto got = ::recv(notices_.get(), text.data(), text.size() - 1, 0);
      if (got > 0 && std::string(text.data()).starts_with("WATCHDOG=1")) heard = Clock::now();
    }
    const auto silence =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - heard);
    longest_silence_ms_ = std::max<std::int64_t>(longest_silence_ms_, silence.count());
  }
}

std::chrono::milliseconds Daemon::longest_silence() const {
  return std::chrono::milliseconds(longest_silence_ms_);
}

bool Daemon::alive() const {
  siginfo_t info{};
  return pid_ > 0 &&
         ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

Usage Daemon::usage() const {
  const auto proc = "/proc/" + std::to_string(pid_);
  Usage usage;
  usage.files = entries_of(proc + "/fd");
  usage.threads = entries_of(proc + "/task");
  usage.mappings = lines_of(proc + "/maps");
  std::size_t size = 0;
  std::ifstream(proc + "/statm") >> size >> usage.resident;
  usage.resident *= static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return usage;
}

std::string Daemon::returns_to(const Usage& before) const {
  // Tables that grew once are kept; what clients hold is not. A trace of root's into a file that
  // never answers keeps its buffer of 64 MiB.
  constexpr std::size_t kResident = (kSanitized ? std::size_t{224} : std::size_t{112}) << 20;
#if defined(__SANITIZE_THREAD__)
  constexpr std::size_t kMappings = 1'000;  // ThreadSanitizer keeps data about earlier mappings
#else
  constexpr std::size_t kMappings = 200;
#endif
  // The threads that close files and sockets of clients, two for each kind and user, are created
  // when all others work, and kept: those of root, of the honest, and of three others.
  constexpr std::size_t kClosers = 20;
  // A link over UDP has a socket of their own for the station that gets most lone datagrams and,
  // for a moment, for the one before.
  const std::size_t favored = over_udp_ ? 2 : 0;
  const auto until = Clock::now() + std::chrono::seconds(10 * kSlowness);
  Usage now;
  do {
    now = usage();
    if (now.files <= before.files + favored && now.threads <= before.threads + kClosers &&
        now.mappings <= before.mappings + kMappings && now.resident <= before.resident + kResident)
      return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (Clock::now() < until);
  std::ostringstream text;
  text << "files " << before.files << " -> " << now.files << ", threads " << before.threads
       << " -> " << now.threads << ", mappings " << before.mappings << " -> " << now.mappings
       << ", resident KiB " << before.resident / 1'024 << " -> " << now.resident / 1'024;
  return text.str();
}

std::string Daemon::end() {
  if (!alive()) return "it had ended before";
  ::kill(pid_, SIGTERM);
  const auto until = Clock::now() + kToEnd;
  while (alive())
    if (Clock::now() > until)
      return "it does not end";
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  const auto text = log();
  if (text.find("Sanitizer") != std::string::npos ||
      text.find("runtime error:") != std::string::npos)
    return "a sanitizer found something:\n" + text;
  return status == 0 ? "" : "status " + std::to_string(status) + ":\n" + text;
}

std::string Daemon::log() const {
  std::ifstream in(directory_ / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace stp::hostile
