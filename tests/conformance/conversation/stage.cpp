// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/conversation/stage.h"

#include <stdexcept>

#include "tools/replay/text.h"

namespace stp::conversation {

Stage::Stage()
    : host_(MacAddr{{2, 0, 0, 0, 0, 1}}, 1, NodeConfig{.mac = {}, .max_stu = 10, .vlan = {}}) {}

std::string Stage::play(const Line& line) {
  try {
    pass(line.pause);
    if (line.verb == "<") return peer_sends(line);
    if (line.verb == ">") return node_sends(line);
    return user_calls(line);
  } catch (const std::exception& error) {
    return std::string("the script is wrong: ") + error.what();
  }
}

std::string Stage::rest() {
  if (sent_.empty()) return {};
  replay::Decoder decoder;
  const auto& bytes = sent_.front().bytes;
  const auto frame = decoder.decode({0, 0, bytes, bytes.size()});
  return "the Node has sent what no line expects: " + replay::operation_text(frame);
}

void Stage::pass(Time span) {
  const auto end = now_ + span;
  while (host_.node.next_deadline() <= end) {
    now_ = std::max(now_, host_.node.next_deadline());
    host_.node.expire(now_);
    collect();
  }
  now_ = end;
}

void Stage::collect() {
  for (;;) {
    std::vector<std::byte> head(host_.node.frame_room());
    TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
    if (host_.node.transmit({&frame, 1}, now_) == 0) break;
    head.resize(frame.head_length);
    head.insert(head.end(), frame.attached.begin(), frame.attached.end());
    host_.node.transmitted(frame.token);
    sent_.push_back({now_, std::move(head)});
  }
  Event event{};
  while (host_.node.next_event(event)) host_.events.push_back(event);
}

std::uint64_t Stage::number(const Line& line, const std::string& name, std::uint64_t otherwise) {
  const auto at = line.values.find(name);
  if (at == line.values.end()) return otherwise;
  const auto value = variables_.value(at->second);
  if (!value) throw std::runtime_error(at->second + " has no value yet");
  return *value;
}

}  // namespace stp::conversation
