// SPDX-License-Identifier: BSD-3-Clause
// A ladder as one page: page.html with the frames as JSON in it.
#include "tools/json/json.h"
#include "tools/replay/ladder/ladder.h"
#include "tools/replay/ladder_page.h"

namespace stp::replay {
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
