// SPDX-License-Identifier: BSD-3-Clause
// The connection of this process to one link of stpd, for all its shards. One request at a time.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"

namespace stp::client {

class StpdConnection {
 public:
  // How long open() and ask() wait for a stpd that does not answer.
  static constexpr std::chrono::milliseconds kPatience{30'000};

  // Connects to the socket at `path`. Returns 0; -ETIMEDOUT: the backlog of stpd has stayed full
  // for `patience`; or another negative errno.
  static int open(const std::string& path, std::shared_ptr<StpdConnection>& out,
                  std::chrono::milliseconds patience = kPatience);
  StpdConnection(std::string path, service::UniqueFd socket,
                 std::chrono::milliseconds patience = kPatience);
  ~StpdConnection();
  StpdConnection(const StpdConnection&) = delete;
  StpdConnection& operator=(const StpdConnection&) = delete;

  // Sends a request with descriptors, and waits for the reply and its descriptors as long as open()
  // was told. A reply to kMap may take longer: stpd maps gigabytes page by page, and answers others
  // meanwhile, which shows that it is there. Returns the reply's result; or after a failure to send
  // or receive, which ends the connection, -ETIMEDOUT: stpd does not answer, or error(). -EMFILE
  // with a result of 0 in `reply`: this process has no room for the reply's descriptors. That does
  // not end the connection.
  int ask(const service::Request& request, std::span<const int> fds, service::Reply& reply,
          std::vector<service::UniqueFd>& received);
  // Starts a thread that notices when stpd goes, so that error() tells it also to programs that
  // only poll their rings. Call once, after the first hello was answered. Returns 0 or a negative
  // errno.
  int watch();
  // Returns 0, or -ENOTCONN: stpd has gone.
  [[nodiscard]] int error() const { return error_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int await_reply(const service::Request& request, service::Reply& reply,
                  std::vector<service::UniqueFd>& received);
  [[nodiscard]] bool answers_others() const;
  [[nodiscard]] int silent() const;
  void lost() { error_.store(-ENOTCONN, std::memory_order_release); }

  const std::string path_;
  const service::UniqueFd socket_;
  const std::chrono::milliseconds patience_;
  service::UniqueFd stop_;  // ends the watcher
  std::mutex mutex_;
  bool answered_ = false;  // the first request has a reply
  std::atomic<int> error_{0};
  std::thread watcher_;
};

}  // namespace stp::client
