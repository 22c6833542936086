// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace stp::stpd {
namespace {

service::UniqueFd connect_to_manager() {
  const auto* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  const auto length = path == nullptr ? 0 : std::strlen(path);
  if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
    return {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // a name in the abstract namespace
  service::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
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
