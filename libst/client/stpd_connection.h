// SPDX-License-Identifier: BSD-3-Clause
// The connection of this process to a stpd, for all shards of its link. One request at a time.
#pragma once

#include <atomic>
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
  static int open(const std::string& path, std::shared_ptr<StpdConnection>& out);
  StpdConnection(std::string path, service::UniqueFd socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}
  ~StpdConnection();
  StpdConnection(const StpdConnection&) = delete;
  StpdConnection& operator=(const StpdConnection&) = delete;

  // Sends a request with descriptors and waits for the reply with those that come along. The
  // reply's result, or error().
  int ask(const service::Request& request, std::span<const int> fds, service::Reply& reply,
          std::vector<service::UniqueFd>& received);
  // Call after the first hello was answered: from then on error() tells when stpd is gone, also to
  // programs that only poll their rings.
  int watch();
  // 0, or not: stpd has gone.
  [[nodiscard]] int error() const { return error_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void lost() { error_.store(-ENOTCONN, std::memory_order_release); }

  const std::string path_;
  const service::UniqueFd socket_;
  service::UniqueFd stop_;  // ends the watcher
  std::mutex mutex_;
  std::atomic<int> error_{0};
  std::thread watcher_;
};

}  // namespace stp::client
