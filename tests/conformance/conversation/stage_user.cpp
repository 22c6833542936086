// SPDX-License-Identifier: BSD-3-Clause
// Calls of the script's user, and checks of what it sees.
#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "tests/conformance/conversation/stage.h"
#include "tools/replay/text.h"

namespace stp::conversation {
namespace {

constexpr MacAddr kOtherStation{{2, 0, 0, 0, 0, 2}};
constexpr std::size_t kSourceBuffers = 32;

std::string state_name(ChannelState state) {
  switch (state) {
    case ChannelState::kConnecting:
      return "connecting";
    case ChannelState::kOpen:
      return "open";
    case ChannelState::kPeerClosed:
      return "peer-closed";
    case ChannelState::kFailed:
      return "failed";
    case ChannelState::kClosed:
      return "closed";
  }
  return "?";
}

void expect(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + std::to_string(result));
}

}  // namespace

std::string Stage::user_calls(const Line& line) {
  const auto& verb = line.verb;
  if (verb == "listen") return listen(line), std::string();
  if (verb == "connect") return connect(line), std::string();
  if (verb == "accept") return accept();
  if (verb == "admit" || verb == "refuse") return decide(line), std::string();
  if (verb == "told") return check_told(line);
  if (verb == "connected") return connected(line);
  if (verb == "endpoint") return endpoint(line), std::string();
  if (verb == "map") return map(line), std::string();
  if (verb == "send") return user_sends(line);
  if (verb == "recv") return user_receives(line);
  if (verb == "state") return check_state(line);
  if (verb == "memory") return check_memory(line);
  if (verb == "count") return check_counter(line);
  if (verb == "stock") return host_.stock(endpoint_), std::string();
  if (verb == "unmap") {
    expect(host_.node.unmap(receive_), "unmap");
    return {};
  }
  if (verb == "close") {
    expect(host_.node.close(user_.id, line.has("now"), now_, words_of(line)), "close");
    collect();
    return {};
  }
  throw std::runtime_error("no verb " + verb);
}

EndpointConfig Stage::config_of(const Line& line) {
  EndpointConfig config;
  config.bufsize = static_cast<unsigned>(number(line, "bufsize", 12));
  config.max_stu = static_cast<unsigned>(number(line, "max_stu", 10));
  config.slots = static_cast<std::uint32_t>(number(line, "slots", 64));
  config.checksum = line.has("checksum");
  config.recover = line.has("recover");
  config.keep_alive = !line.has("no-keep-alive");
  config.connectionless = line.has("connectionless");
  config.inspect = line.has("inspect");
  config.connect_patience = number(line, "patience", 0) * kSecond;
  return config;
}

// "payload=N": N bytes of the pattern, as an option payload.
OptionPayload Stage::words_of(const Line& line) {
  std::vector<std::byte> bytes(number(line, "payload", 0));
  std::ranges::copy_n(source_->data(), static_cast<std::ptrdiff_t>(bytes.size()), bytes.begin());
  return to_option(bytes);
}

void Stage::open(const Line& line) {
  endpoint_ = host_.open(config_of(line));
  EndpointConfig config;
  expect(host_.node.endpoint_config(endpoint_, config), "endpoint");
  source_ = std::make_unique<test::Buffers>(config.bufsize, kSourceBuffers);
  source_->fill_pattern();
  const MutableBytes piece = source_->all();
  expect(host_.node.map(endpoint_, Direction::kTransmit, 0, {&piece, 1}, transmit_), "map");
}

// "listen UPORT [backlog=N] [slots=N ...]"
void Stage::listen(const Line& line) {
  open(line);
  const auto uport = static_cast<std::uint32_t>(std::stoul(line.words.at(0)));
  expect(host_.node.listen(endpoint_, uport), "listen");
  host_.stock(endpoint_, static_cast<unsigned>(number(line, "backlog", 1)));
}

// "connect UPORT [slots=N ...]"
void Stage::connect(const Line& line) {
  open(line);
  EndpointConfig config;
  expect(host_.node.endpoint_config(endpoint_, config), "endpoint");
  user_.memory =
      std::make_unique<test::ChannelMemory>(ChannelGeometry{config.slots, config.credits});
  const auto uport = static_cast<std::uint32_t>(std::stoul(line.words.at(0)));
  expect(host_.node.connect(endpoint_, kOtherStation, uport, user_.memory->data(), 1, user_.id,
                            now_, words_of(line)),
         "connect");
  user_.user = UserChannel(user_.memory->data());
  collect();
}

std::string Stage::accept() {
  if (host_.node.accept(endpoint_, user_.id) != 0) return "there is no connection to accept";
  VcInfo info{};
  expect(host_.node.vc_info(user_.id, info), "vc_info");
  user_.user = UserChannel(host_.stocked.at(info.cookie - 1)->data());
  return {};
}

// "admit [payload=N]", "refuse [payload=N]": the user's decision about an RC that it has inspected.
void Stage::decide(const Line& line) {
  const auto words = words_of(line);
  expect(line.verb == "admit" ? host_.node.admit(user_.id, words, now_)
                              : host_.node.refuse(user_.id, words, now_),
         line.verb.c_str());
  collect();
}

// "told payload=N": the option payload of the peer's last connection operation.
std::string Stage::check_told(const Line& line) {
  VcInfo info{};
  expect(host_.node.vc_info(user_.id, info), "vc_info");
  return info.peer_option == words_of(line) ? "" : "the peer has said something else";
}

// "endpoint [slots=N ...]": opens a connectionless endpoint, with memory as after "connected".
void Stage::endpoint(const Line& line) {
  auto step = line;
  step.words.emplace_back("connectionless");
  open(step);
  EndpointConfig config;
  expect(host_.node.endpoint_config(endpoint_, config), "endpoint");
  user_.memory =
      std::make_unique<test::ChannelMemory>(ChannelGeometry{config.slots, config.credits});
  expect(host_.node.open_port(endpoint_, user_.memory->data(), 1, user_.id, now_), "open_port");
  user_.user = UserChannel(user_.memory->data());
  VcInfo info{};
  expect(host_.node.vc_info(user_.id, info), "vc_info");
  variables_.set("port", info.local_port);
  variables_.set("key", info.local_key);
  step.words = {"0x100", "8"};
  map(step);
}

// "connected [slots=N ...]": listen 3000; < RC; > CA; accept; map 0x100 8
std::string Stage::connected(const Line& line) {
  auto step = line;
  step.words.insert(step.words.begin(), "3000");
  listen(step);
  const auto spoken = [](const char* op) {
    Line frame;
    frame.words = {op};
    return frame;
  };
  peer_sends(spoken("RC"));
  auto wrong = node_sends(spoken("CA"));
  if (wrong.empty()) wrong = accept();
  if (!wrong.empty()) return wrong;
  step.words = {"0x100", "8"};
  map(step);
  return {};
}

// "map BUFX COUNT [data get fetch]": receive buffers, and $mx on them; without words all is
// permitted.
void Stage::map(const Line& line) {
  EndpointConfig config;
  expect(host_.node.endpoint_config(endpoint_, config), "endpoint");
  target_bufx_ = static_cast<std::uint32_t>(std::stoul(line.words.at(0), nullptr, 0));
  target_ = std::make_unique<test::Buffers>(config.bufsize, std::stoul(line.words.at(1)));
  const MutableBytes piece = target_->all();
  expect(host_.node.map(endpoint_, Direction::kReceive, target_bufx_, {&piece, 1}, receive_),
         "map");
  unsigned permitted = 0;
  if (line.has("data")) permitted |= permit::kData;
  if (line.has("get")) permitted |= permit::kGet;
  if (line.has("fetch")) permitted |= permit::kFetchOp;
  std::uint16_t mx = 0;
  expect(
      host_.node.alloc_mx(receive_, user_.id,
                          static_cast<std::uint8_t>(permitted == 0 ? permit::kAll : permitted), mx),
      "alloc_mx");
  variables_.set("mx", mx);
}

// "send OP ... [length=N]": DATA takes N bytes of the user's pattern. "refused": the Node does not
// send it.
std::string Stage::user_sends(const Line& line) {
  auto plain = line;
  const bool refused = std::erase(plain.words, "refused") > 0;
  SendEntry entry{};
  const auto op = find_op(plain.words.at(0));
  if (!op) throw std::runtime_error("no operation " + plain.words[0]);
  unsigned flags = 0;
  for (const auto& word : plain.words) {
    for (const auto& named : replay::flag_names())
      if (named.name == word) flags |= named.flag;
    for (unsigned function = 1; function < 8; ++function)
      if (replay::function_name(static_cast<wire::Function>(function)) == word)
        flags |= function << wire::kFunctionShift;
  }
  entry.header.op_flags = wire::op_flags(*op, static_cast<std::uint16_t>(flags));
  fill(plain, entry.header);
  entry.destination_mac = kOtherStation.to_u64();  // used by connectionless endpoints only
  entry.length = static_cast<std::uint32_t>(number(plain, "length", 0));
  entry.payload_length =
      static_cast<std::uint8_t>(number(plain, "payload", number(plain, "append", 0)));
  for (std::size_t i = 0; i < entry.payload_length; ++i)
    entry.payload[i] = std::to_integer<std::uint8_t>(source_->data()[i]);
  const auto before = user_.user.refused();
  if (!user_.user.send(entry)) return "the transmit queue is full";
  host_.node.kick(user_.id);
  collect();
  const bool was_refused = user_.user.refused() != before;
  if (was_refused != refused) return was_refused ? "the Node refuses it" : "the Node takes it";
  return {};
}

// "recv OP ..." or "recv nothing"
std::string Stage::user_receives(const Line& line) {
  ReceivedEntry entry;
  const bool any = user_.user.receive(entry);
  if (line.words.at(0) == "nothing") return any ? "a header is there" : "";
  if (!any) return "no header is there";
  const auto length = entry.payload_length;
  auto wrong = compare(line, entry.header, length);
  const auto* const name = wire::short_name(entry.header.op());
  return wrong.empty() ? wrong : wrong + " (" + (name != nullptr ? name : "?") + ")";
}

// "state open", "state failed ETIMEDOUT"
std::string Stage::check_state(const Line& line) {
  const auto seen = state_name(user_.user.state());
  if (seen != line.words.at(0)) return "it is " + seen;
  if (line.words.size() < 2) return {};
  const auto wanted = line.words[1] == "ETIMEDOUT" ? -ETIMEDOUT : -ECONNREFUSED;
  return user_.user.error() == wanted ? "" : "its error is " + std::to_string(user_.user.error());
}

// "memory AT LENGTH [from=N]": those bytes are the pattern's from N on; "memory AT LENGTH zero".
std::string Stage::check_memory(const Line& line) {
  const auto at = std::stoul(line.words.at(0), nullptr, 0);
  const auto length = std::stoul(line.words.at(1), nullptr, 0);
  const auto from = number(line, "from", 0);
  for (std::size_t i = 0; i < length; ++i) {
    const auto wanted =
        line.has("zero") ? std::byte{0} : static_cast<std::byte>((from + i) * 7 + (from + i) / 251);
    if (target_->all()[at + i] != wanted)
      return "byte " + std::to_string(at + i) + " is " +
             std::to_string(std::to_integer<unsigned>(target_->all()[at + i]));
  }
  return {};
}

// "count bad_port 1"
std::string Stage::check_counter(const Line& line) {
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (line.words.at(0) != Counters::name(counter)) continue;
    const auto seen = host_.count(counter);
    return seen == std::stoull(line.words.at(1)) ? "" : "it is " + std::to_string(seen);
  }
  throw std::runtime_error("no counter " + line.words[0]);
}

}  // namespace stp::conversation
