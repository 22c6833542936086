// SPDX-License-Identifier: BSD-3-Clause
// A checker, and frames of two stations for it.
#pragma once

#include <vector>

#include "tests/replay/frame_file.h"
#include "tools/replay/check/checker.h"

namespace stp::replay::test {

class Checking : public ::testing::Test {
 protected:
  std::vector<Finding> findings;
  Checker::Sink sink = [this](const Finding& finding) { findings.push_back(finding); };
  Checker whole{sink}, with_losses{sink, {.lossy = true}};
  Checker* checker = &whole;
  Decoder decoder;
  std::int64_t now = 1'700'000'000'000'000'000;
  std::uint64_t number = 0;
  std::uint16_t slots = 64;  // of either side

  void say(const wire::Header& h, const MacAddr& from, const MacAddr& to, Bytes payload = {}) {
    std::vector<std::byte> frame(200 + payload.size());
    frame.resize(wire::emit({to, from, {}, false}, h, payload, {}, frame));
    auto decoded = decoder.decode({++number, now, frame, frame.size()});
    if (over_ip)
      decoded.ends = {std::as_bytes(std::span(from.octets)).last<4>(),
                      std::as_bytes(std::span(to.octets)).last<4>(), 8181, 8181};
    checker->frame(decoded);
    now += 20'000;
  }
  bool over_ip = false;  // frames come in datagrams
  void connect(std::uint16_t port, std::uint32_t key) { connect(port, port, key); }
  // Connects; the answer comes from Port `other`.
  void connect(std::uint16_t port, std::uint16_t other, std::uint32_t key) {
    auto rc = header_of(wire::Op::kRequestConnection);
    rc.s_port = port;
    rc.d_port = 0;
    rc.param = slots;
    rc.bufx = 12;
    rc.offset = key;
    rc.sync = 10;
    rc.d_id = 3000;
    say(rc, kMacA, kMacB);
    auto ca = rc;
    ca.op_flags = wire::op_flags(wire::Op::kConnectionAnswer);
    ca.s_port = other;
    ca.d_port = port;
    ca.d_key = key;
    ca.d_id = 0;
    ca.s_id = 3000;
    say(ca, kMacB, kMacA);
  }
  wire::Header named(wire::Op op, std::uint16_t port, std::uint32_t key) {
    auto h = header_of(op);
    h.s_port = h.d_port = port;
    h.d_key = key;
    if (op <= wire::Op::kDisconnectComplete) h.offset = key;
    return h;
  }
  void disconnect(std::uint16_t port, std::uint32_t key) {
    say(named(wire::Op::kRequestDisconnect, port, key), kMacA, kMacB);
    say(named(wire::Op::kDisconnectAnswer, port, key), kMacB, kMacA);
    say(named(wire::Op::kDisconnectComplete, port, key), kMacA, kMacB);
  }
};

}  // namespace stp::replay::test
