// SPDX-License-Identifier: BSD-3-Clause
// A daemon without its program: a polled service, and its socket in a private directory.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "libst/host/poll_loop.h"
#include "tests/host/eventually.h"
#include "tests/host/test_port.h"
#include "tests/stpd/raw_client.h"
#include "tests/temporary_directory.h"
#include "tools/stpd/server.h"

namespace stp::stpd {

struct ServedSocket {
  void start() {
    EXPECT_EQ(server.start(), 0);
    loop.start();
  }
  // Lets other users reach the socket.
  void open_directory() const { ::chmod(directory.path().c_str(), 0755); }

  // A client of another user, or nullptr: only root can change its user.
  [[nodiscard]] std::unique_ptr<RawClient> client_of(uid_t uid) const {
    std::unique_ptr<RawClient> client;
    std::thread([&] {
      // Without the C library the system call changes only this thread, which ends here.
      if (::syscall(SYS_setresuid, -1, uid, -1) == 0) client = std::make_unique<RawClient>(path);
    }).join();
    return client;
  }
  std::size_t client_count() {
    const auto turn = service.drive();
    return turn->client_count();
  }
  bool clients_become(std::size_t count) {
    return host::eventually([&] { return client_count() == count; });
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  const std::shared_ptr<host::Budgets> budgets = std::make_shared<host::Budgets>();
  host::Service service{std::make_unique<test::TestPort>(), {}, budgets};
  host::PollLoop loop{service, host::PollPolicy::kAdaptive};
  Server server{service, path};
};

}  // namespace stp::stpd
