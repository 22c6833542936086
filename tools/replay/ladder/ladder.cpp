// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/ladder/ladder.h"

#include <algorithm>
#include <array>

#include "tools/json/json.h"
#include "tools/replay/ladder_page.h"
#include "tools/replay/text.h"

namespace stp::replay {

std::size_t Conversations::begin(const EndName& first, const EndName& second, std::uint16_t uport) {
  all_.push_back({first, second, uport});
  return all_.size() - 1;
}

// A repeated RC has the Key of the first. Another Key asks for another connection.
std::size_t Conversations::of_request(const Decoded& frame, const EndName& from,
                                      const EndName& to) {
  const auto& h = frame.frame.header;
  const auto known = requests_.find({from, to});
  if (known != requests_.end() && known->second.key == h.offset) return known->second.conversation;
  const auto made = begin(from, to, static_cast<std::uint16_t>(h.d_id));
  requests_[{from, to}] = {made, h.offset, false};
  return made;
}

std::size_t Conversations::of(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const EndName from{frame.frame.src.to_u64(), h.s_port}, to{frame.frame.dst.to_u64(), h.d_port};
  if (h.op() == wire::Op::kRequestConnection) return of_request(frame, from, {to.mac, 0});
  const Name ends = from < to ? Name{from, to} : Name{to, from};
  // The first answer to a request says the other Port; one that refuses has none.
  if (h.op() == wire::Op::kConnectionAnswer) {
    const auto asked = requests_.find({to, {from.mac, 0}});
    if (asked != requests_.end() && !asked->second.answered) {
      asked->second.answered = true;
      all_[asked->second.conversation].second = from;
      by_ends_[ends] = asked->second.conversation;
      return asked->second.conversation;
    }
  }
  const auto known = by_ends_.find(ends);
  if (known != by_ends_.end()) return known->second;
  return by_ends_[ends] = begin(from, to, 0);
}

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

std::size_t Ladder::station(const MacAddr& mac, const std::string& text) {
  const auto [at, added] = by_mac_.try_emplace(mac.to_u64(), stations_.size());
  if (!added) return at->second;
  if (stations_.size() < kMostStations) {
    stations_.push_back(stations_.size() + 1 < kMostStations ? text : "other stations");
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
  row.from = station(frame.frame.src, sender_of(frame));
  row.to = station(frame.frame.dst, receiver_of(frame));
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
  static constexpr std::array<const char*, 14> kHeadings = {
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
      "13-stp-over-udp",
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

// --- a ladder as one SVG: every frame is drawn, its fields are the arrow's title

namespace {

constexpr std::size_t kRow = 34, kTop = 70, kLeft = 130, kBetween = 560, kRight = 110;
constexpr std::size_t kWithFindings = 330;  // on the right, if there are any
constexpr std::size_t kLongestText = 66, kLongestFinding = 40;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
  }
  return out;
}

std::string shortened(const std::string& text, std::size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 1) + "…";
}

struct Style {
  const char* anchor = "middle";
  int size = 12;
  const char* colour = "#1b1f24";
  const char* more = "";
};

std::string text_at(std::size_t x, std::size_t y, const std::string& text, const Style& style) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" +
         style.anchor + "\" font-size=\"" + std::to_string(style.size) + "\" fill=\"" +
         style.colour + '"' + style.more + '>' + escaped(text) + "</text>\n";
}

std::string line_at(std::size_t x1, std::size_t y1, std::size_t x2, std::size_t y2,
                    const std::string& colour) {
  return "<line x1=\"" + std::to_string(x1) + "\" y1=\"" + std::to_string(y1) + "\" x2=\"" +
         std::to_string(x2) + "\" y2=\"" + std::to_string(y2) + "\" stroke=\"" + colour +
         "\" stroke-width=\"1.5\"/>\n";
}

// A frame that a station sends to itself is a short arrow beside its column.
std::string arrow(std::size_t y, std::size_t begin, std::size_t end, const std::string& colour) {
  const bool right = begin < end;
  const auto tip = right ? end - 9 : end + 9;
  const auto point = [](std::size_t x, std::size_t at) {
    return std::to_string(x) + ',' + std::to_string(at);
  };
  return line_at(begin, y, tip, y, colour) + "<polygon points=\"" + point(end, y) + ' ' +
         point(tip, y - 4) + ' ' + point(tip, y + 4) + "\" fill=\"" + colour + "\"/>\n";
}

std::size_t place_of(std::size_t station) {
  return kLeft + kBetween * station;
}

std::string finding_at(std::size_t x, std::size_t y, const Finding& finding,
                       const std::string& pages) {
  const auto& rule = text_of(finding.rule);
  const auto name =
      std::string(rule.section) + (rule.section.empty() ? "" : " ") + std::string(rule.name);
  return "<a href=\"" + escaped(link_of(rule, pages)) + "\" class=\"finding\"><title>" +
         escaped(std::string(rule.text) + "\n" + line_of(finding)) + "</title>\n" +
         text_at(x, y, shortened(name, kLongestFinding),
                 {.anchor = "start",
                  .colour = finding.is_note() ? "#57606a" : kWrongColour,
                  .more = " text-decoration=\"underline\""}) +
         "</a>\n";
}

std::string row_at(std::size_t y, const LadderRow& row, const Ladder& ladder,
                   const std::string& pages) {
  bool wrong = false;
  std::string title = std::to_string(row.number) + ' ' + row.time + '\n' + row.text;
  for (const auto finding : row.findings) {
    wrong = wrong || !ladder.findings()[finding].is_note();
    title += '\n' + line_of(ladder.findings()[finding]);
  }
  const std::string colour = wrong ? kWrongColour : colour_of(row.operation);
  const auto begin = place_of(row.from);
  const auto end = row.from == row.to ? begin + 60 : place_of(row.to);
  std::string out = "<g class=\"frame\"><title>" + escaped(title) + "</title>\n";
  out += text_at(6, y + 4, std::to_string(row.number) + ' ' + row.time,
                 {.anchor = "start", .size = 11, .colour = "#57606a"});
  out += arrow(y, begin, end, colour);
  out += text_at((begin + end) / 2, y - 6, shortened(row.text, kLongestText), {}) + "</g>\n";
  const auto right = place_of(ladder.stations().size() - 1) + 12;
  for (std::size_t i = 0; i < row.findings.size(); ++i)
    out += finding_at(right, y + 4 + 13 * i, ladder.findings()[row.findings[i]], pages);
  return out;
}

}  // namespace

std::string svg_of(const Ladder& ladder, const std::string& pages) {
  const auto& stations = ladder.stations();
  const auto columns = stations.empty() ? 0 : stations.size() - 1;
  const auto width = place_of(columns) + (ladder.findings().empty() ? kRight : kWithFindings);
  const auto height = kTop + kRow * ladder.rows().size() + 20;
  const auto size = std::to_string(width) + ' ' + std::to_string(height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
                    "\" width=\"" + std::to_string(width) + "\" height=\"" +
                    std::to_string(height) + "\" font-family=\"monospace\">\n<title>" +
                    escaped(ladder.title()) +
                    "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (std::size_t i = 0; i < stations.size(); ++i)
    out += text_at(place_of(i), 28, stations[i], {.size = 13, .more = " font-weight=\"bold\""}) +
           line_at(place_of(i), 40, place_of(i), height - 10, "#8c959f");
  for (std::size_t i = 0; i < ladder.rows().size(); ++i)
    out += row_at(kTop + kRow * i + 12, ladder.rows()[i], ladder, pages);
  return out + "</svg>\n";
}

// --- a ladder as one page: page.html with the frames as JSON in it

namespace {

void add_conversations(Json& json, const Ladder& ladder) {
  std::vector<std::size_t> frames(ladder.conversations().size()), wrong(frames.size());
  for (const auto& row : ladder.rows()) {
    if (row.conversation == LadderRow::kNone) continue;
    ++frames[row.conversation];
    for (const auto finding : row.findings)
      wrong[row.conversation] += ladder.findings()[finding].is_note() ? 0 : 1;
  }
  json.array("connections");
  for (std::size_t i = 0; i < frames.size(); ++i) {
    json.object().value("name", name_of(ladder.conversations()[i]));
    json.value("frames", frames[i]).value("findings", wrong[i]).end();
  }
  json.end();
}

void add_findings(Json& json, const Ladder& ladder, const std::string& pages) {
  json.array("findings");
  for (const auto& finding : ladder.findings()) {
    const auto& rule = text_of(finding.rule);
    json.object().value("section", rule.section).value("rule", rule.name);
    json.value("text", rule.text).value("link", link_of(rule, pages));
    json.value("note", finding.is_note());
    json.value("expected", finding.expected).value("seen", finding.seen).end();
  }
  json.end();
}

void add_frames(Json& json, const Ladder& ladder) {
  json.array("frames");
  for (const auto& row : ladder.rows()) {
    json.array().value({}, row.number).value({}, row.time);
    json.value({}, row.from).value({}, row.to);
    if (row.conversation == LadderRow::kNone)
      json.value({}, -1);
    else
      json.value({}, row.conversation);
    json.value({}, row.operation).value({}, row.text).array();
    for (const auto finding : row.findings) json.value({}, finding);
    json.end().end();
  }
  json.end();
}

void add_colours(Json& json) {
  json.object("colours");
  for (const auto* const name : {"RC", "CA", "RD", "DA", "DC", "CTS", "MRA", "DATA", "wrong", ""})
    json.value(name, name == std::string_view("wrong") ? kWrongColour : colour_of(name));
  json.end();
}

// Nothing in the data may end the element that holds it.
std::string for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string html_of(const Ladder& ladder, const std::string& pages) {
  Json json;
  json.object().value("title", ladder.title());
  json.array("stations");
  for (const auto& station : ladder.stations()) json.value({}, station);
  json.end();
  add_colours(json);
  add_conversations(json, ladder);
  add_findings(json, ladder, pages);
  add_frames(json, ladder);
  json.value("otherFrames", ladder.other_frames());
  json.value("otherFindings", ladder.other_findings()).end();
  return std::string(kPageHead) + for_script(json.text()) + std::string(kPageTail);
}

}  // namespace stp::replay
