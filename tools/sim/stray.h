// SPDX-License-Identifier: BSD-3-Clause
// A program for a connection that belongs to no session any more, because its peer has given up or
// its own host has rebooted. Closes it after a while unless it ends by itself.
#pragma once

#include "tools/sim/application.h"

namespace stp::sim {

class Stray : public Application {
 public:
  explicit Stray(Time since) : since_(since) {}
  [[nodiscard]] bool is_gone() const { return gone_; }
  [[nodiscard]] Time since() const { return since_; }

  void opened(End&, const VcInfo&, Time) override {}
  void receive(const ReceivedEntry&, Time) override {}
  void work(Time) override {}
  bool transmit(SendEntry&, Time) override { return false; }
  [[nodiscard]] Time next_deadline() const override {
    return closes_ ? kNever : since_ + kPatience;
  }
  void expire(Time) override { closes_ = true; }
  [[nodiscard]] bool wants_close() const override { return closes_; }
  void ended(int, Time) override {}
  void gone() override { gone_ = true; }
  void lost() override { gone_ = true; }

 private:
  static constexpr Time kPatience = kSecond;
  Time since_;
  bool closes_ = false, gone_ = false;
};

}  // namespace stp::sim
