// SPDX-License-Identifier: BSD-3-Clause
// The cable that takes a machine's frames away. The machine's Nodes use it in turn.
#pragma once

#include <functional>
#include <vector>

#include "tools/sim/wire.h"

namespace stp::sim {

class Uplink {
 public:
  explicit Uplink(Wire& wire) : wire_(wire) {}

  // `free`: called when the user may try to send. Users are numbered from 0 on.
  void add_user(std::function<void()> free) { users_.push_back(std::move(free)); }
  [[nodiscard]] bool busy() const { return wire_.busy(); }
  // As Wire::send. Afterwards the users are called one by one, this one last.
  void send(std::size_t user, std::size_t size, std::function<Frame()> content) {
    wire_.send(size, std::move(content), [this, user] {
      for (std::size_t i = 1; i <= users_.size(); ++i) users_[(user + i) % users_.size()]();
    });
  }

 private:
  Wire& wire_;
  std::vector<std::function<void()>> users_;
};

}  // namespace stp::sim
