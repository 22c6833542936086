// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/socket_probe.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace stp::port {

// The probe has another type than the servers' sockets (SOCK_SEQPACKET, SOCK_STREAM). So the kernel
// finds the process, but connects nobody: a client that comes and leaves would disturb the server,
// and DPDK's memif does not survive it.
int probe_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.find('\0') != std::string::npos) return EINVAL;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  path.copy(address.sun_path, path.size());
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  const bool connected =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = connected || errno == EPROTOTYPE ? 0 : errno;
  ::close(probe);
  return error;
}

void remove_stale_socket(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  if (probe_socket(path) == ECONNREFUSED) ::unlink(path.c_str());
}

}  // namespace stp::port
