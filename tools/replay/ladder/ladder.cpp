// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/ladder/ladder.h"

#include <algorithm>
#include <array>

#include "tools/replay/fields.h"

namespace stp::replay {
namespace {

std::string end_text(const EndName& end) {
  MacAddr mac;
  for (std::size_t i = 0; i < mac.octets.size(); ++i)
    mac.octets[i] = static_cast<std::uint8_t>(end.mac >> (8 * (mac.octets.size() - 1 - i)));
  return to_string(mac) + (end.port == 0 ? "" : " Port " + std::to_string(end.port));
}

std::string text_of(const Decoded& frame, const std::vector<Detail>& details) {
  std::string text = frame.has_header ? operation_text(frame) : "";
  const auto append = [&text](const std::string& word) {
    text += (text.empty() ? "" : " ") + word;
  };
  for (const auto& detail : details) append(std::string(detail.name) + '=' + detail.text);
  if (frame.frame.vlan) append("vlan=" + std::to_string(*frame.frame.vlan & 0xfff));
  if (const auto* const error = frame.error()) append(std::string("error: ") + error);
  return text;
}

}  // namespace

std::size_t Ladder::station(const MacAddr& mac) {
  const auto [at, added] = by_mac_.try_emplace(mac.to_u64(), stations_.size());
  if (!added) return at->second;
  if (stations_.size() < kMostStations) {
    stations_.push_back(stations_.size() + 1 < kMostStations ? to_string(mac) : "other stations");
  } else {
    by_mac_.erase(at);
  }
  return stations_.size() - 1;
}

void Ladder::add(const Decoded& frame, const std::vector<Detail>& details) {
  if (!started_) start_ = frame.time;
  started_ = true;
  if (!frame.is_stp() || !frame.has_link) return;
  if (frame.number < limits_.from || rows_.size() == limits_.frames) {
    ++other_frames_;
    return;
  }
  std::int64_t since = 0;
  if (__builtin_sub_overflow(frame.time, start_, &since)) since = 0;
  LadderRow row;
  row.number = frame.number;
  row.time = seconds(since);
  row.from = station(frame.frame.src);
  row.to = station(frame.frame.dst);
  if (frame.has_header) row.conversation = conversations_.of(frame);
  row.operation = frame.well_formed() ? op_name(frame.frame.header) : "?";
  row.text = text_of(frame, details);
  rows_.push_back(std::move(row));
}

void Ladder::add(const Finding& finding) {
  const auto row = std::ranges::lower_bound(rows_, finding.frame, {}, &LadderRow::number);
  if (row == rows_.end() || row->number != finding.frame || findings_.size() == kMostFindings) {
    ++other_findings_;
    return;
  }
  row->findings.push_back(findings_.size());
  findings_.push_back(finding);
}

std::string name_of(const Conversation& conversation) {
  return end_text(conversation.first) + " – " + end_text(conversation.second) +
         (conversation.uport == 0 ? "" : ", UPort " + std::to_string(conversation.uport));
}

std::string link_of(const RuleText& rule, const std::string& pages) {
  // The headings of docs/protocol.md, as GitHub and other renderers name their anchors.
  static constexpr std::array<const char*, 13> kHeadings = {
      "",
      "1-words",
      "2-frames-on-ethernet",
      "3-schedule-header",
      "4-checksum",
      "5-virtual-connections",
      "6-slots",
      "7-memory",
      "8-tiling-and-delivery",
      "9-sequences",
      "10-recovery",
      "11-connectionless-endpoints",
      "12-syntax-errors",
  };
  std::size_t section = 0;
  for (const char digit : rule.section.substr(0, rule.section.find('.')))
    section = section * 10 + static_cast<std::size_t>(digit - '0');
  if (section == 0) return pages + "/conformance.md#the-rules-of-check";
  return pages + "/protocol.md#" + kHeadings.at(section);
}

const char* colour_of(std::string_view operation) {
  if (operation == "DATA") return "#0b5cad";
  if (operation == "CTS" || operation == "MRA") return "#1a7f37";
  for (const auto* const name : {"RC", "CA", "RD", "DA", "DC"})
    if (operation == name) return "#7a5200";
  return "#57606a";
}

}  // namespace stp::replay
