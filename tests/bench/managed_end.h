// SPDX-License-Identifier: BSD-3-Clause
// One side of dat-bench on the managed API. Both sides poll.
#pragma once

#include <stp/managed.hpp>

#include <cstddef>
#include <vector>

namespace stp::bench {

inline constexpr std::size_t kMessageSize = 64, kWriteSize = std::size_t{1} << 20;

class ManagedEnd {
 public:
  explicit ManagedEnd(const std::string& link);
  void accept();
  void connect(const std::string& host);
  void send();
  void receive();
  void write();
  void await_write() { await(STM_PUT); }

 private:
  stm_event_t await(unsigned kind);
  [[nodiscard]] stm_connection_attr_t attr() const;
  void begin();

  std::vector<std::byte> bytes_;
  Domain domain_;
  Queue queue_;
  Memory memory_;
  Region region_;
  Connection connection_;
  stm_remote_t remote_{};
  unsigned counts_[STM_HIGH + 1] = {};
};

}  // namespace stp::bench
