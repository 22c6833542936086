// SPDX-License-Identifier: BSD-3-Clause
// A Node with one user, and a peer that sends the frames of the script.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

#include "tests/conformance/conversation/script.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::conversation {

// The operation with that short name, and its field of that name.
std::optional<wire::Op> find_op(std::string_view name);
std::optional<wire::Word> find_field(wire::Op op, std::string_view name);

class Stage {
 public:
  Stage();
  // Returns an empty string if the line holds, else what happened instead.
  std::string play(const Line& line);
  // Returns what the Node still sends at the end, or an empty string.
  std::string rest();

 private:
  struct Sent {
    Time time;
    std::vector<std::byte> bytes;
  };

  // --- the peer: stage_wire.cpp
  std::string peer_sends(const Line& line);
  std::string node_sends(const Line& line);
  std::string compare(const Line& line, const wire::Header& header, std::size_t payload);
  wire::Header defaults(wire::Op op) const;
  void fill(const Line& line, wire::Header& header);
  void learn(const wire::Frame& frame);

  // --- the user: stage_user.cpp
  std::string user_calls(const Line& line);
  EndpointConfig config_of(const Line& line);
  void open(const Line& line);
  void listen(const Line& line);
  void connect(const Line& line);
  OptionPayload words_of(const Line& line);
  std::string accept();
  void decide(const Line& line);
  std::string check_told(const Line& line);
  std::string connected(const Line& line);
  void endpoint(const Line& line);
  void map(const Line& line);
  std::string user_sends(const Line& line);
  std::string user_receives(const Line& line);
  std::string check_state(const Line& line);
  std::string check_memory(const Line& line);
  std::string check_counter(const Line& line);

  void pass(Time span);
  void collect();
  std::uint64_t number(const Line& line, const std::string& name, std::uint64_t otherwise);

  test::Host host_;
  Time now_ = kSecond;
  Variables variables_;
  std::deque<Sent> sent_;
  EndpointId endpoint_ = kNoneId;
  RegionId receive_ = kNoneId, transmit_ = kNoneId;
  test::Connection user_;
  std::unique_ptr<test::Buffers> target_, source_;
  std::uint32_t target_bufx_ = 0;
};

}  // namespace stp::conversation
