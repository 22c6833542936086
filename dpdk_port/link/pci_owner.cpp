// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/pci_owner.h"
#include "dpdk_port/link/program_name.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace stp::port {
namespace {

// The process that has locked the file; 0: none that is visible from here.
pid_t locker_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return 0;
  std::ifstream table("/proc/locks");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);  // 1: FLOCK ADVISORY WRITE 4711 00:05:99 0 EOF
    std::string skipped, kind, file;
    pid_t pid = 0;
    fields >> skipped >> kind >> skipped >> skipped >> pid >> file;
    if (fields && kind == "FLOCK" && file.ends_with(':' + std::to_string(status.st_ino)))
      return pid;
  }
  return 0;
}

}  // namespace

std::unique_ptr<PciOwner> PciOwner::claim(const std::string& address, const std::string& file,
                                          std::string& error) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::unique_ptr<PciOwner> owner(new PciOwner(fd));
  if (fd < 0) {
    error = file + " does not open: " + std::strerror(errno) +
            (errno == EACCES || errno == EPERM ? "; only root can use a NIC under uio" : "");
    return nullptr;
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return owner;
  if (errno != EWOULDBLOCK) {
    error = file + " cannot be locked: " + std::strerror(errno);
    return nullptr;
  }
  error = "NIC " + address + " has an owner: ";
  const pid_t other = locker_of(fd);
  error += other == 0 ? "another program" : program_name(other) + ", pid " + std::to_string(other);
  error += "; end it, or reach its link (stpd:) instead";
  return nullptr;
}

PciOwner::~PciOwner() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace stp::port
