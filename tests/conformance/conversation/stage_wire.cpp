// SPDX-License-Identifier: BSD-3-Clause
// Frames of the script: those of the peer, and those that the Node must send.
#include <stdexcept>

#include "tests/conformance/conversation/stage.h"
#include "tools/replay/text.h"

namespace stp::conversation {

std::optional<wire::Op> find_op(std::string_view name) {
  for (const auto& operation : wire::operations())
    if (operation.short_name == name) return operation.op;
  return std::nullopt;
}

std::optional<wire::Word> find_field(wire::Op op, std::string_view name) {
  for (const auto& named : replay::fields_of(op))
    if (named.name == name) return named.word;
  return std::nullopt;
}

namespace {

using replay::Field;
using wire::Header;
using wire::Op;

constexpr MacAddr kNode{{2, 0, 0, 0, 0, 1}}, kPeer{{2, 0, 0, 0, 0, 2}};
constexpr std::uint16_t kPeerPort = 202;
constexpr std::uint32_t kPeerKey = 0xb2b2b2b2;

// Words that are neither flags nor functions, but say how the frame is sent.
bool is_remark(const std::string& word) {
  return word == "snap" || word == "checksum" || word == "damaged" || word == "ethernet2";
}

std::uint16_t flags_of(const Line& line) {
  unsigned flags = 0;
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    const auto& word = line.words[i];
    if (is_remark(word)) continue;
    unsigned found = 0;
    for (const auto& named : replay::flag_names())
      if (named.name == word) found = named.flag;
    for (unsigned function = 1; function < 8; ++function)
      if (replay::function_name(static_cast<wire::Function>(function)) == word)
        found = function << wire::kFunctionShift;
    if (found == 0) throw std::runtime_error("no flag or function is called " + word);
    flags |= found;
  }
  return static_cast<std::uint16_t>(flags);
}

Op op_of(const Line& line) {
  const auto& name = line.words.at(0);
  if (const auto op = find_op(name)) return *op;
  return static_cast<Op>(std::stoul(name, nullptr, 0));
}

std::vector<std::byte> pattern(std::size_t length, std::size_t from) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>((from + i) * 7 + (from + i) / 251);
  return bytes;
}

wire::Frame parsed(const std::vector<std::byte>& bytes) {
  wire::Frame frame;
  if (const auto why = wire::parse(bytes, wire::kMaxMaxStu, frame); why != DropReason::kNone)
    throw std::runtime_error(std::string("the Node sent what is not well formed: ") + name_of(why));
  return frame;
}

std::string describe(const std::vector<std::byte>& bytes) {
  replay::Decoder decoder;
  const auto frame = decoder.decode({0, 0, bytes, bytes.size()});
  return replay::operation_text(frame);
}

}  // namespace

// The names under which both sides know the connection, unless the script says otherwise.
Header Stage::defaults(Op op) const {
  Header h;
  h.s_port = kPeerPort;
  h.d_port = static_cast<std::uint16_t>(variables_.value("$port").value_or(0));
  h.d_key = static_cast<std::uint32_t>(variables_.value("$key").value_or(0));
  if (op == Op::kRequestConnection || op == Op::kConnectionAnswer) {
    h.param = 64;
    h.bufx = 12;
    h.offset = kPeerKey;
    h.sync = 10;
    (op == Op::kRequestConnection ? h.d_id : h.s_id) = 3000;
  }
  if (op == Op::kRequestConnection) h.d_port = 0, h.d_key = 0;
  if (op == Op::kData) {
    h.mx = static_cast<std::uint16_t>(variables_.value("$mx").value_or(0));
    h.bufx = 0x100;
    h.d_id = 9;
  }
  if (op == Op::kRequestDisconnect || op == Op::kDisconnectAnswer || op == Op::kDisconnectComplete)
    h.offset = kPeerKey;
  return h;
}

void Stage::fill(const Line& line, Header& h) {
  for (const auto& [name, text] : line.values) {
    const auto value = variables_.value(text);
    if (!value) throw std::runtime_error(text + " has no value yet");
    if (name == "payload" || name == "pattern" || name == "append" || name == "cut" ||
        name == "length" || name == "from" || name == "bufx")
      continue;
    if (name == "S_Port")
      h.s_port = static_cast<std::uint16_t>(*value);
    else if (name == "D_Port")
      h.d_port = static_cast<std::uint16_t>(*value);
    else if (name == "D_Key")
      h.d_key = static_cast<std::uint32_t>(*value);
    else if (const auto field = find_field(h.op(), name))
      wire::set_word(h, *field, *value);
    else
      throw std::runtime_error(line.words.at(0) + " has no field " + name);
  }
}

// "< OP ..."
std::string Stage::peer_sends(const Line& line) {
  if (!sent_.empty()) return rest();
  const auto op = op_of(line);
  auto h = defaults(op);
  h.op_flags = wire::op_flags(op, flags_of(line));
  fill(line, h);
  const auto payload = pattern(number(line, "payload", 0), number(line, "pattern", 0));
  const auto append = pattern(number(line, "append", 0), 0);
  const auto source = number(line, "from", kPeer.to_u64());
  std::vector<std::byte> frame(20'000);
  const wire::Envelope envelope{kNode, MacAddr::from_u64(source), {}, line.has("checksum")};
  frame.resize(wire::emit(envelope, h, payload, append, frame));
  if (line.has("damaged")) frame[wire::kEthernetSize + wire::kHeaderSize - 1] ^= std::byte{1};
  frame.resize(frame.size() - number(line, "cut", 0));
  const Bytes bytes(frame);
  host_.node.receive({&bytes, 1}, now_);
  collect();
  return {};
}

// "> OP ..." or "> nothing"
std::string Stage::node_sends(const Line& line) {
  if (line.words.at(0) == "nothing") return rest();
  if (sent_.empty()) return "the Node sends nothing";
  const auto sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent.time != now_)
    return "the Node sent that " + std::to_string((now_ - sent.time) / kMicrosecond) +
           " us earlier: " + describe(sent.bytes);
  const auto frame = parsed(sent.bytes);
  if (frame.dst != kPeer) return "it goes to " + replay::to_string(frame.dst);
  if (line.has("snap") != frame.snap)
    return frame.snap ? "it goes as SNAP" : "it goes as Ethernet II";
  if (line.has("checksum") != (frame.header.cksum != 0))
    return "it has Cksum " + std::to_string(frame.header.cksum);
  auto wrong = compare(line, frame.header, frame.stu.size() + frame.option.size());
  if (!wrong.empty()) return wrong + ": " + describe(sent.bytes);
  learn(frame);
  return {};
}

// Compares all flags, and the fields that the line names.
std::string Stage::compare(const Line& line, const Header& h, std::size_t payload) {
  const auto op = op_of(line);
  if (h.op() != op || (h.op_flags & wire::kFlagsMask) != flags_of(line)) return "another operation";
  for (const auto& [name, text] : line.values) {
    const auto field = find_field(op, name);
    std::uint64_t seen = 0;
    if (name == "S_Port")
      seen = h.s_port;
    else if (name == "D_Port")
      seen = h.d_port;
    else if (name == "D_Key")
      seen = h.d_key;
    else if (name == "payload")
      seen = payload;
    else if (field)
      seen = wire::word_of(h, *field);
    else
      throw std::runtime_error(line.words.at(0) + " has no field " + name);
    if (!variables_.matches(text, seen)) return name + " is " + std::to_string(seen);
  }
  return {};
}

// Stores the Node's own names as $port and $key.
void Stage::learn(const wire::Frame& frame) {
  const auto& h = frame.header;
  const bool names = h.op() == Op::kRequestConnection ||
                     (h.op() == Op::kConnectionAnswer && !h.has(wire::flag::kReject));
  if (!names) return;
  variables_.set("port", h.s_port);
  variables_.set("key", h.offset);
}

}  // namespace stp::conversation
