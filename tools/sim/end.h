// SPDX-License-Identifier: BSD-3-Clause
// One end of a connection: the channel's memory, and the loop that runs the user program when the
// Node wakes it or its deadline has come.
#pragma once

#include "stp/channel/user_side.h"
#include "tools/sim/application.h"
#include "tools/sim/memory.h"

namespace stp::sim {

class Host;

class End {
 public:
  End(Host& host, std::uint64_t cookie, const ChannelGeometry& geometry)
      : host_(host), cookie_(cookie), channel_(geometry.size()) {}

  [[nodiscard]] std::byte* channel() const { return channel_.data(); }
  [[nodiscard]] std::uint64_t cookie() const { return cookie_; }
  [[nodiscard]] VcId id() const { return id_; }
  [[nodiscard]] Host& host() const { return host_; }
  [[nodiscard]] Application* application() const { return application_; }
  [[nodiscard]] std::uint32_t taken() const { return user_.taken(); }
  [[nodiscard]] std::uint32_t cts_repeated() const { return user_.cts_repeated(); }
  [[nodiscard]] unsigned path_block() const { return user_.path_block(); }

  void attach(VcId id, Application& application);
  // The program looks at its connection after `delay`.
  void wake(Time delay);
  // Closes without waiting for queued operations.
  void abort();

 private:
  void run();
  bool end_if_over(Time now);
  void serve(Time now);
  void close(bool at_once, int error, Time now);

  Host& host_;
  std::uint64_t cookie_;
  Memory channel_;
  VcId id_ = kNoneId;
  UserChannel user_;
  Application* application_ = nullptr;
  bool opened_ = false, closed_ = false;
  Time next_run_ = kNever;
};

}  // namespace stp::sim
