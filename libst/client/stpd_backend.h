// SPDX-License-Identifier: BSD-3-Clause
// A shard of a link that stpd runs: requests go over stpd's socket, headers through rings in shared
// memory.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "libst/client/backend.h"
#include "libst/ipc/requests.h"
#include "libst/os/shared_core.h"
#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"

namespace stp::client {

// The connection of this process to one link of stpd, for all its shards. One request at a time.
// Thread-safe.
class StpdConnection {
 public:
  // How long open() and ask() wait for a stpd that does not answer.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Connects to the socket at `path`. Returns 0; -ETIMEDOUT: the backlog of stpd has stayed full
  // for `patience`; -EPERM: who serves it is not to be trusted; or another negative errno.
  static int open(const std::string& path, std::shared_ptr<StpdConnection>& out,
                  std::chrono::milliseconds patience = kPatience);
  StpdConnection(std::string path, os::UniqueFd socket,
                 std::chrono::milliseconds patience = kPatience);
  ~StpdConnection();
  StpdConnection(const StpdConnection&) = delete;
  StpdConnection& operator=(const StpdConnection&) = delete;

  // Sends a request with descriptors, and waits for the reply and its descriptors as long as open()
  // was told. A reply to kMap may take longer: stpd maps gigabytes page by page, and answers others
  // meanwhile, which shows that it is there. So may one to kMapped, which waits for such work of
  // the same user, but not for ever. Returns the reply's result; or after a failure to send or
  // receive, which ends the connection, -ETIMEDOUT: stpd does not answer, or error(). -EMFILE with
  // a result of 0 in `reply`: this process has no room for the reply's descriptors. That does not
  // end the connection.
  int ask(const ipc::RequestMessage& request, std::span<const int> fds, ipc::ReplyMessage& reply,
          std::vector<os::UniqueFd>& received);
  // Starts a thread that notices when stpd goes, so that error() tells it also to programs that
  // only wait or poll their rings. A stpd that is stopped keeps its socket open: so the thread asks
  // it for a sign of life now and then, and gives it up as ask() does. Call once, after the first
  // hello was answered. Returns 0 or a negative errno.
  int watch();
  // Returns 0, or -ENOTCONN: stpd has gone, or was given up.
  [[nodiscard]] int error() const { return error_.load(std::memory_order_acquire); }
  // The same, and st_strerror() says which.
  [[nodiscard]] int gone() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int await_reply(ipc::RequestKind kind, ipc::ReplyMessage& reply,
                  std::vector<os::UniqueFd>& received);
  [[nodiscard]] bool is_there(int stop) const;
  [[nodiscard]] int silent() STP_REQUIRES(mutex_);
  bool asks_for_a_sign();
  void lost() { error_.store(-ENOTCONN, std::memory_order_release); }

  const std::string path_;
  const os::UniqueFd socket_;
  const std::chrono::milliseconds patience_;
  os::UniqueFd stop_;  // ends the watcher
  Mutex mutex_{LockRank::kStpd};
  bool answered_ STP_GUARDED_BY(mutex_) = false;  // the first request has a reply
  std::atomic<bool> silent_{false};               // it was given up
  std::atomic<int> error_{0};
  std::thread watcher_;
};

class StpdBackend final : public Backend {
 public:
  // What stpd's reply to a hello says of the link.
  struct Welcome {
    std::uint32_t shards = 1;
    std::uint32_t first = 0;  // the shard to begin with, so that programs are spread over them
  };
  // Says hello to a shard. `shard`: its number, from 0. Returns 0 or a negative errno.
  static int open(const std::shared_ptr<StpdConnection>& stpd, std::uint32_t shard,
                  std::shared_ptr<Backend>& out, Welcome& welcome);
  StpdBackend(std::shared_ptr<StpdConnection> stpd, std::uint32_t shard)
      : stpd_(std::move(stpd)), shard_(shard) {}

  void rung(Time now) override;
  int attend(Condition condition, Time deadline) override;
  [[nodiscard]] bool lends_memory() const override { return true; }
  [[nodiscard]] int error() const override { return stpd_->error(); }
  [[nodiscard]] int gone() const override { return stpd_->gone(); }

 private:
  int exchange(ipc::RequestMessage& request, Payload& payload, ipc::ReplyMessage& reply) override;
  int greet(Welcome& welcome);
  int take_channel(const GivenChannel& given, os::UniqueFd fd, Payload& payload);
  int may_map(const ipc::RequestMessage& request, const Payload& payload);
  int ask_to_map(ipc::RequestMessage& request, Payload& payload, ipc::ReplyMessage& reply);
  int ask_to_map(ipc::RequestMessage& request, Payload& payload, ipc::ReplyMessage& reply,
                 bool anew);
  int tell_mapped(std::uint64_t vc);
  void give_back(std::uint64_t vc);

  // How long a caller polls before it sleeps. If stpd does not answer within microseconds, it waits
  // for a frame itself.
  static constexpr Time kPatience = 10 * kMicrosecond;

  const std::shared_ptr<StpdConnection> stpd_;
  const std::uint32_t shard_;
  os::SharedCore core_;
  os::UniqueFd bell_;  // an eventfd: writing it wakes the shard's thread
};

}  // namespace stp::client
