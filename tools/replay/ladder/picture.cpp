// SPDX-License-Identifier: BSD-3-Clause
// A ladder as one SVG: every frame is drawn, its fields are the arrow's title.
#include "tools/replay/ladder/ladder.h"

namespace stp::replay {
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

}  // namespace stp::replay
