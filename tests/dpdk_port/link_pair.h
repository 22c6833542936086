// SPDX-License-Identifier: BSD-3-Clause
// Two joined links of one process, each with a ScriptEngine on it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "dpdk_port/link_port.h"
#include "tests/dpdk_port/open_port.h"
#include "tests/dpdk_port/script_engine.h"

namespace stp::port {

inline std::unique_ptr<LinkPort> open_link(const std::string& text, std::string& error) {
  LinkConfig config;
  if (!parse_link(text, config, error)) return nullptr;
  std::unique_ptr<Port> port = open_port(config, error);
  return std::unique_ptr<LinkPort>(static_cast<LinkPort*>(port.release()));
}

struct LinkEnd {
  void open(const std::string& text) {
    std::string error;
    port = open_link(text, error);
    ASSERT_TRUE(port) << error;
  }
  unsigned turn() { return port->turn(engine, now() + ahead); }
  [[nodiscard]] const MacAddr& mac() const { return port->info().mac; }

  // Declared so that the port is destroyed first, as port.h requires.
  ScriptEngine engine;
  std::unique_ptr<LinkPort> port;
  Time ahead = 0;  // of the clock
};

// Turns both ends in one thread until done(). Returns false after thirty seconds.
inline bool turn_until(LinkEnd& a, LinkEnd& b, const std::function<bool()>& done) {
  const Time end = now() + 30 * kSecond;
  while (!done()) {
    if (now() > end) return false;
    a.turn();
    b.turn();
  }
  return true;
}

// The same for what takes seconds: each turn takes 0.2 ms more by the clock of both links.
inline bool turn_faster_until(LinkEnd& a, LinkEnd& b, const std::function<bool()>& done) {
  return turn_until(a, b, [&] {
    a.ahead += kSecond / 5000;
    b.ahead = a.ahead;
    return done();
  });
}

// Checks that hold for every link.
void expect_frames_arrive_in_order(LinkEnd& a, LinkEnd& b, std::size_t length, unsigned count);
void expect_attached_memory_arrives(LinkEnd& a, LinkEnd& b, std::size_t length, unsigned count);
void expect_both_ends_resolve(LinkEnd& a, Ipv4 address_a, LinkEnd& b, Ipv4 address_b);

}  // namespace stp::port
