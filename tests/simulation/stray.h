// SPDX-License-Identifier: BSD-3-Clause
// A program for a connection whose other end has given up before this one came to be: it waits
// for the end, which must come.
#pragma once

#include "tests/simulation/application.h"

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
  [[nodiscard]] Time next_deadline() const override { return kNever; }
  void expire(Time) override {}
  [[nodiscard]] bool wants_close() const override { return false; }
  void ended(int, Time) override {}
  void gone() override { gone_ = true; }
  void lost() override { gone_ = true; }

 private:
  Time since_;
  bool gone_ = false;
};

}  // namespace stp::sim
