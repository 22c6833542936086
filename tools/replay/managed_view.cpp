// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/managed_view.h"

#include <algorithm>
#include <array>

#include "stp/wire/big_endian.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {
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
