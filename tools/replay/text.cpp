// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/text.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "stp/wire/big_endian.h"
#include "tools/json/json.h"
#include "tools/replay/check/connection.h"

namespace stp::replay {
namespace {

using wire::Op;
namespace flag = wire::flag;

constexpr std::array kFlags{
    FlagName{flag::kReserved, "Reserved"},   FlagName{flag::kAppend, "Append"},
    FlagName{flag::kReject, "Reject"},       FlagName{flag::kLast, "Last"},
    FlagName{flag::kOrder, "Order"},         FlagName{flag::kSendState, "Send_state"},
    FlagName{flag::kInterrupt, "Interrupt"}, FlagName{flag::kSilent, "Silent"}};

}  // namespace

std::span<const FieldName> fields_of(wire::Op op) {
  return wire::operation(op).fields;
}

std::string_view header_name(Field field) {
  for (const auto& named : fields_of(Op::kNoOperation))
    if (named.word == field) return named.name;
  return "T_len";
}

std::string op_name(const wire::Header& header) {
  if (const auto* const name = wire::short_name(header.op())) return name;
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned>(header.op());
  return {'0', 'x', kDigits[code >> 4], kDigits[code & 15]};
}

std::string_view function_name(wire::Function function) {
  switch (function) {
    case wire::Function::kGet:
      return "Get";
    case wire::Function::kFetchIncrement:
      return "Fetch_Increment";
    case wire::Function::kFetchDecrement:
      return "Fetch_Decrement";
    case wire::Function::kFetchClear:
      return "Fetch_Clear";
    case wire::Function::kFetchAdd:
      return "Fetch_Add";
    case wire::Function::kCompareAndSwap:
      return "Compare_And_Swap";
    case wire::Function::kFetchOpComplete:
      return "FetchOp_Complete";
  }
  return "illegal";
}

std::span<const FlagName> flag_names() {
  return kFlags;
}

std::uint16_t used_flags(wire::Op op) {
  return wire::operation(op).used_flags;
}

namespace {

std::string formatted(const char* format, std::uint64_t value) {
  std::array<char, 32> text{};
  const auto length = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<std::size_t>(length)};
}

// Prints names and memory addresses in hexadecimal, numbers in decimal.
bool reads_as_hex(const FieldName& named) {
  switch (named.word) {
    case Field::kBufx:
      return named.name.ends_with("Bufx");
    case Field::kOffset:
      return !named.name.ends_with("B_seq");
    case Field::kSync:
      return named.name == "Sync" || named.name == "I_Bufx" || named.name == "F_Offset";
    case Field::kDId:
    case Field::kSId:
      return !named.name.ends_with("UPort") && named.name != "G_num";
    default:
      return named.name == "I_Offset";
  }
}

std::string value_text(const FieldName& named, std::uint64_t value) {
  const bool may_be_none =
      named.word == Field::kDId || named.word == Field::kSId || named.name == "B_num";
  if (may_be_none && value == wire::kNoId) return "none";
  return reads_as_hex(named) ? hex(value) : std::to_string(value);
}

const char* cksum_name(Cksum cksum) {
  switch (cksum) {
    case Cksum::kNone:
      return "none";
    case Cksum::kGood:
      return "good";
    case Cksum::kBad:
      return "bad";
    case Cksum::kUnknown:
      break;
  }
  return "unknown";
}

std::size_t payload_length(const Decoded& frame) {
  return frame.frame.stu.size() + frame.frame.option.size();
}

void add_flags(Json& json, const wire::Header& header) {
  json.array("flags");
  for (const auto& named : flag_names())
    if (header.has(named.flag)) json.value({}, named.name);
  json.end();
}

void add_header(Json& json, const wire::Header& h) {
  json.value("op", op_name(h));
  add_flags(json, h);
  if (h.op() == wire::Op::kGet) json.value("function", function_name(h.function()));
  json.value("Param", h.param).value("D_Port", h.d_port).value("S_Port", h.s_port);
  json.value("D_Key", h.d_key).value("Cksum", h.cksum);
  for (const auto field : {Field::kMx, Field::kBufx, Field::kOffset, Field::kSync, Field::kBNum,
                           Field::kDId, Field::kSId})
    json.value(header_name(field), wire::word_of(h, field));
  for (const auto& named : fields_of(h.op()))
    if (named.name != header_name(named.word) || named.word == Field::kTLen)
      json.value(named.name, wire::word_of(h, named.word));
}

}  // namespace

std::string seconds(std::int64_t nanoseconds, std::int64_t epoch) {
  if (epoch != 0) {
    const auto part = nanoseconds % std::int64_t{kSecond};
    const auto begun = part < 0 ? 1 : 0;
    const auto whole = nanoseconds / std::int64_t{kSecond} - begun;
    std::int64_t both = 0;
    if (__builtin_add_overflow(epoch, whole, &both)) both = epoch;
    return std::to_string(both) + '.' +
           formatted("%09" PRIu64,
                     static_cast<std::uint64_t>(part + begun * std::int64_t{kSecond}));
  }
  const bool negative = nanoseconds < 0;
  const auto size = negative ? 0 - static_cast<std::uint64_t>(nanoseconds)
                             : static_cast<std::uint64_t>(nanoseconds);
  return (negative ? "-" : "") + std::to_string(size / kSecond) + '.' +
         formatted("%09" PRIu64, size % kSecond);
}

std::string sender_of(const Decoded& frame) {
  return frame.ends ? end_text(frame.ends->source, frame.ends->from) : to_string(frame.frame.src);
}

std::string receiver_of(const Decoded& frame) {
  return frame.ends ? end_text(frame.ends->destination, frame.ends->to)
                    : to_string(frame.frame.dst);
}

std::optional<MacAddr> parse_station(const std::string& text) {
  if (const auto end = parse_end(text)) return end;
  MacAddr mac;
  int end = 0;
  auto& o = mac.octets;
  const auto read = std::sscanf(text.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &o[0], &o[1],
                                &o[2], &o[3], &o[4], &o[5], &end);
  if (read != 6 || static_cast<std::size_t>(end) != text.size()) return std::nullopt;
  return mac;
}

void StationSearch::see(const Decoded& frame) {
  if (found_ || !(frame.has_link || frame.has_header)) return;
  found_ = frame.frame.src == wanted_ || frame.frame.dst == wanted_;
  for (const auto& name : {sender_of(frame), receiver_of(frame)}) {
    if (std::ranges::find(others_, name) != others_.end()) continue;
    has_more_ = others_.size() == kMost;
    if (!has_more_) others_.push_back(name);
  }
}

std::string StationSearch::others() const {
  std::string all;
  for (const auto& name : others_) all += (all.empty() ? "" : ", ") + name;
  return has_more_ ? all + " and others" : all;
}

std::string hex(std::uint64_t value) {
  return formatted("0x%" PRIx64, value);
}

std::string operation_text(const Decoded& decoded) {
  const auto& h = decoded.frame.header;
  std::string text = op_name(h);
  if (h.op() == wire::Op::kGet && h.function() != wire::Function::kGet)
    text += ' ' + std::string(function_name(h.function()));
  for (const auto& named : flag_names())
    if (h.has(named.flag)) text += ' ' + std::string(named.name);
  text += " Port=" + std::to_string(h.s_port) + '>' + std::to_string(h.d_port);
  text += " Key=" + hex(h.d_key);
  for (const auto& named : fields_of(h.op()))
    text += ' ' + std::string(named.name) + '=' + value_text(named, wire::word_of(h, named.word));
  if (const auto length = payload_length(decoded); length != 0 || h.op() == wire::Op::kData)
    text += " +" + std::to_string(length);
  if (!decoded.frame.append.empty()) text += " +append";
  if (decoded.frame.padded) text += " +padding";
  return text;
}

std::string line_of(const Decoded& decoded, std::int64_t start,
                    const std::vector<Detail>& details) {
  std::int64_t since = 0;
  if (__builtin_sub_overflow(decoded.time, start, &since)) since = 0;
  auto text = std::to_string(decoded.number) + ' ' + seconds(since);
  if (decoded.has_link || decoded.has_header)
    text += ' ' + sender_of(decoded) + " > " + receiver_of(decoded);
  if (decoded.outer_vlan) text += " outer-vlan=" + std::to_string(*decoded.outer_vlan & 0xfff);
  if (decoded.frame.vlan) text += " vlan=" + std::to_string(*decoded.frame.vlan & 0xfff);
  if (decoded.has_header) text += ' ' + operation_text(decoded);
  for (const auto& detail : details)
    text +=
        (&detail == &details.front() ? " [" : " ") + std::string(detail.name) + '=' + detail.text;
  if (!details.empty()) text += ']';
  if (decoded.has_header && decoded.frame.snap) text += " (SNAP)";
  if (decoded.cut) text += " (cut by the capture)";
  if (decoded.cksum == Cksum::kGood) text += " checksum good";
  if (const auto* const error = decoded.error())
    text +=
        std::string(" error: ") + error + " (" + std::to_string(decoded.wire_length) + " bytes)";
  return text;
}

static const char* encapsulation_of(const Decoded& decoded) {
  if (decoded.ends) return decoded.ends->to == 0 ? "IP" : "UDP";
  return decoded.frame.snap ? "SNAP" : "Ethernet II";
}

std::string json_of(const Decoded& decoded, const std::vector<Detail>& details) {
  Json json;
  json.object().value("frame", decoded.number).number("time", seconds(decoded.time, decoded.epoch));
  if (decoded.has_link || decoded.has_header) {
    json.value("src", sender_of(decoded)).value("dst", receiver_of(decoded));
    if (decoded.outer_vlan) json.value("outer_vlan", *decoded.outer_vlan & 0xfff);
    if (decoded.frame.vlan) json.value("vlan", *decoded.frame.vlan & 0xfff);
  }
  if (decoded.has_header) {
    json.value("encapsulation", encapsulation_of(decoded));
    add_header(json, decoded.frame.header);
    json.value("payload", payload_length(decoded));
    if (!decoded.frame.append.empty()) json.value("append", decoded.frame.append.size());
    json.value("checksum", cksum_name(decoded.cksum));
  }
  if (!details.empty()) {
    json.object("managed");
    for (const auto& detail : details) {
      if (detail.quoted)
        json.value(detail.name, detail.text);
      else
        json.number(detail.name, detail.text);
    }
    json.end();
  }
  json.value("length", decoded.wire_length);
  if (decoded.cut) json.value("cut", true);
  if (const auto* const error = decoded.error()) json.value("error", error);
  return json.end().text();
}

namespace {

using wire::Op;

Detail count(std::string_view name, std::uint64_t value) {
  return {name, std::to_string(value)};
}
Detail word(std::string_view name, std::string text) {
  return {name, std::move(text), true};
}
Detail hex_word(std::string_view name, std::uint64_t value) {
  return word(name, hex(value));
}

// The word `index` of an option payload, or 0 if it is not there.
std::uint32_t word_of(const Decoded& frame, std::size_t index) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  const auto bytes = frame.beginning(frame.frame.option, (index + 1) * kWord);
  return bytes.empty() ? 0 : wire::load32(bytes.data() + index * kWord);
}

std::vector<Detail> on_end(const Decoded& frame) {
  if (word_of(frame, 0) != managed::kEndMark) return {};
  const auto why = word_of(frame, 1);
  if (why == managed::kBrokenOff) return {word("ended", "broken off")};
  if (why == managed::kNoReceive) return {word("ended", "no receive")};
  return {word("ended", std::to_string(why))};
}

}  // namespace

// protocol: 9.30
std::vector<Detail> ManagedView::on_hello(const Said& said) {
  const auto head = said.frame.beginning(said.frame.frame.stu, managed::kHelloHead);
  if (head.empty() || wire::load32(head.data()) != managed::kHelloMagic) return {};
  said.pair.managed = true;
  constexpr std::array<std::string_view, 4> kKinds{"", "request", "accept", "reject"};
  const auto kind = wire::load16(head.data() + 6);
  const auto text = kind != 0 && kind < kKinds.size() ? std::string(kKinds.at(kind))
                                                      : "kind " + std::to_string(kind);
  return {word("hello", text), count("version", wire::load16(head.data() + 4)),
          count("private", wire::load32(head.data() + 8))};
}

// RTS and RMR, with the number of a message or the name of a region.
// protocol: 9.21, 9.29
std::vector<Detail> ManagedView::on_request(const Said& said) {
  const auto number = word_of(said.frame, 0);
  const bool write = said.h.op() == Op::kRequestToSend;
  (write ? said.from.writes : said.from.regions).put(said.h.s_id, number);
  if (!said.pair.managed || number == 0) return {};
  if (write) return {count("message", number)};
  if (number == managed::kRingName) return {word("region", "ring")};
  return {hex_word("region", number)};
}

// protocol: 9.29, 9.41
std::vector<Detail> ManagedView::on_region(const Said& said) {
  const auto* const name = said.to.regions.find(said.h.d_id);
  if (name == nullptr || said.h.has(wire::flag::kReject)) return {};
  const bool ring = *name == managed::kRingName;
  said.from.places.put(said.h.s_id, {ring ? What::kRing : What::kRegion, said.h.d_id, *name});
  if (!said.pair.managed || *name == 0) return {};
  if (ring) return {word("region", "ring"), count("slots", std::max(word_of(said.frame, 1), 1U))};
  return {hex_word("region", *name),
          hex_word("address", std::uint64_t{word_of(said.frame, 0)} << 32 | word_of(said.frame, 1)),
          count("access", word_of(said.frame, 2))};
}

// protocol: 9.26, 9.31
std::vector<Detail> ManagedView::on_data(const Said& said) {
  const auto& h = said.h;
  const auto* const place = said.to.places.find(h.d_id);
  if (place == nullptr) return {};
  if (place->what == What::kRegion) {
    if (!said.pair.managed || place->word == 0) return {};
    return {hex_word("region", place->word)};
  }
  if (place->what == What::kWrite) {
    const auto* const number = said.from.writes.find(place->i_id);
    const bool first = number != nullptr && *number == 1 && h.b_num == 0 && h.param == 0;
    if (auto hello = first ? on_hello(said) : std::vector<Detail>(); !hello.empty()) return hello;
    if (!said.pair.managed) return {};
    if (number == nullptr || *number == 0) return {hex_word("tag", h.s_id)};
    return {count("message", *number), hex_word("tag", h.s_id)};
  }
  const auto head = said.frame.beginning(said.frame.frame.stu, managed::kEagerHead);
  if (!said.pair.managed || h.param != 0 || head.empty()) return {};
  return {count("message", wire::load32(head.data())),
          count("length", wire::load32(head.data() + 4)),
          hex_word("tag", wire::load32(head.data() + 8)),
          count("taken", wire::load32(head.data() + 12))};
}

std::vector<Detail> ManagedView::look(const Decoded& frame) {
  if (!frame.well_formed()) return {};
  const auto& h = frame.frame.header;
  const EndName from{frame.frame.src.to_u64(), h.s_port}, to{frame.frame.dst.to_u64(), h.d_port};
  const bool up = from < to;
  const auto name = up ? PairName{from, to} : PairName{to, from};
  if (h.op() == Op::kConnectionAnswer) pairs_.erase(name);  // another connection
  if (h.op() == Op::kRequestConnection || h.op() == Op::kConnectionAnswer) return {};
  auto* pair = pairs_.find(name);
  if (pair == nullptr) pair = &pairs_.put(name, {});
  const Said said{frame, h, *pair, up ? pair->low : pair->high, up ? pair->high : pair->low};
  switch (h.op()) {
    case Op::kRequestToSend:
    case Op::kRequestMemoryRegion:
      return on_request(said);
    case Op::kClearToSend:
      if (const auto* const number = said.to.writes.find(h.d_id))
        said.from.places.put(h.s_id, {What::kWrite, h.d_id, *number});
      return {};
    case Op::kMemoryRegionAvailable:
      return on_region(said);
    case Op::kData:
      return on_data(said);
    case Op::kEnd:
      if (pair->managed && word_of(frame, 0) != 0) return {count("message", word_of(frame, 0))};
      return {};
    case Op::kNoOperation:
      if (h.sync == managed::kNoticeMark) return {count("taken", h.b_num)};
      return {};
    case Op::kRequestDisconnect:
      return on_end(frame);
    default:
      return {};
  }
}

}  // namespace stp::replay
