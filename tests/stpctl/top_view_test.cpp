// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/top.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace stp::stpctl {
namespace {

Connection connection_of(unsigned pid, const std::string& peer, unsigned port) {
  Connection c;
  c.owner = {.pid = pid, .uid = pid / 10};
  c.peer = peer;
  c.local_port = port;
  return c;
}

// The bytes that it has received and sent are those of the second look.
Sample sample_of(const std::string& name, std::vector<Connection> connections,
                 const std::vector<std::pair<std::uint64_t, std::uint64_t>>& bytes) {
  Look before, now;
  before.link.name = now.link.name = name;
  now.link.up = true;
  now.link.state = "up";
  before.connections = connections;
  std::uint64_t rx = 0, tx = 0;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    connections[i].traffic.rx_data_bytes = bytes[i].first;
    connections[i].traffic.tx_data_bytes = bytes[i].second;
    rx += bytes[i].first;
    tx += bytes[i].second;
  }
  now.connections = std::move(connections);
  now.link.connections = static_cast<unsigned>(now.connections.size());
  before.counters["rx_data_bytes"] = {.name = "rx_data_bytes"};
  before.counters["tx_data_bytes"] = {.name = "tx_data_bytes"};
  now.counters["rx_data_bytes"] = {.name = "rx_data_bytes", .value = rx};
  now.counters["tx_data_bytes"] = {.name = "tx_data_bytes", .value = tx};
  now.time = before.time + std::chrono::seconds(1);
  auto rates = rates_between(before, now);
  return {std::move(now), std::move(rates)};
}

std::vector<Sample> three_connections() {
  std::vector<Sample> links;
  links.push_back(sample_of("loop",
                            {connection_of(100, "10.0.0.1", 1), connection_of(200, "10.0.0.2", 2),
                             connection_of(200, "10.0.0.3", 3)},
                            {{500, 0}, {0, 900}, {100, 0}}));
  return links;
}

constexpr Screen kScreen{.rows = 24, .columns = 80};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The peers of the connections that are shown, from top to bottom.
std::string peers_in(const std::string& text) {
  std::string peers;
  for (const auto& line : lines_of(text))
    if (const auto at = line.find("10.0.0."); at != std::string::npos) peers += line[at + 7];
  return peers;
}

TEST(TopView, ConnectionsAreOrderedByWhatTheUserChooses) {
  const auto links = three_connections();
  TopView view(false, 1);
  EXPECT_TRUE(view.press("c"));
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "213") << "by both ways together";
  view.press("s");
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "132") << "by what is received";
  view.press("s");
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "213") << "by what is sent";
  for (int i = 0; i < 4; ++i) view.press("s");
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "213") << "from the beginning again";
}

TEST(TopView, RowsWithoutTheTextAreLeftOut) {
  const auto links = three_connections();
  TopView view(false, 1);
  view.press("c");
  for (const auto* key : {"/", "0", ".", "3", "q", "\177"}) EXPECT_TRUE(view.press(key)) << key;
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "3");
  EXPECT_NE(view.text(links, kScreen).find("connections 1 by rate with \"0.3_\" of 3"),
            std::string::npos);
  view.press("\r");
  EXPECT_FALSE(view.press("q")) << "keys are commands again";
  view.press("\033");
  EXPECT_EQ(peers_in(view.text(links, kScreen)), "213");
}

TEST(TopView, ConnectionsOfAProgramAreAddedUp) {
  const auto links = three_connections();
  TopView view(false, 1);
  view.press("p");
  const auto text = view.text(links, kScreen);
  EXPECT_NE(text.find("programs 2"), std::string::npos);
  const auto lines = lines_of(text);
  const auto row = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("200   20            2") != std::string::npos;
  });
  ASSERT_NE(row, lines.end()) << text;
  EXPECT_NE(row->find(" 100     900 "), std::string::npos) << *row;
}

TEST(TopView, EachPageFitsItsScreen) {
  std::vector<Connection> many;
  for (unsigned i = 0; i < 100; ++i) many.push_back(connection_of(i, "10.0.0.1", i));
  std::vector<Sample> links;
  links.push_back(
      sample_of("iface:eth0", many, std::vector<std::pair<std::uint64_t, std::uint64_t>>(100)));
  links.push_back(
      sample_of("udp:10.0.0.5", many, std::vector<std::pair<std::uint64_t, std::uint64_t>>(100)));
  for (const auto& screen : {Screen{24, 80}, Screen{20, 40}, Screen{50, 200}}) {
    TopView view(false, 1);
    for (int i = 0; i < 30; ++i) view.add(links);
    for (const auto* key : {"o", "l", "p", "c", "?"}) {
      view.press(key);
      const auto lines = lines_of(view.text(links, screen));
      EXPECT_LE(lines.size(), screen.rows) << key << ' ' << screen.columns;
      for (const auto& line : lines) EXPECT_LE(line.size(), screen.columns) << key << ": " << line;
    }
  }
}

TEST(TopView, ScrollingEndsAtTheLastRow) {
  std::vector<Connection> many;
  for (unsigned i = 1; i <= 100; ++i) many.push_back(connection_of(i, "10.0.0.1", i));
  std::vector<Sample> links;
  links.push_back(
      sample_of("loop", many, std::vector<std::pair<std::uint64_t, std::uint64_t>>(100)));
  TopView view(false, 1);
  view.press("c");
  for (int i = 0; i < 5; ++i) view.press("s");  // by PID
  for (int i = 0; i < 50; ++i) view.press("\033[6~");
  EXPECT_EQ(lines_of(view.text(links, kScreen)).back().find("100 "), 0U);
  view.press("\033[H");
  EXPECT_EQ(lines_of(view.text(links, kScreen))[3].find("  1 "), 0U);
}

TEST(TopView, TheHistoryIsShownBesideItsGreatestValue) {
  EXPECT_EQ(bars({0, 1, 4, 8}, 8, 6, false), "   .=@");
  EXPECT_EQ(bars({1, 2, 3, 8}, 8, 2, true), "▃█") << "the newest";
  EXPECT_EQ(bars({0.001}, 8, 1, false), ".") << "what is not 0 can be seen";
  EXPECT_EQ(bars({0}, 0, 1, false), " ");
  const auto links = three_connections();
  TopView view(false, 1);
  view.add(links);
  const auto text = view.text(links, kScreen);
  EXPECT_NE(text.find("@ max 600\n"), std::string::npos) << text;
  EXPECT_NE(text.find("@ max 900\n"), std::string::npos) << text;
}

TEST(TopView, EachHistoryOfSeveralLinksHasTheNameOfItsLink) {
  std::vector<Sample> links;
  links.push_back(sample_of("slow", {connection_of(1, "10.0.0.1", 1)}, {{100, 0}}));
  links.push_back(sample_of("fast", {connection_of(2, "10.0.0.2", 2)}, {{900, 0}}));
  TopView view(true, 1);
  view.add(links);
  view.press("l");
  const auto text = view.text(links, kScreen);
  const auto slow = text.rfind("slow\n"), fast = text.rfind("fast\n");
  ASSERT_LT(slow, fast) << text;
  EXPECT_NE(text.substr(slow, fast - slow).find("max 100\n"), std::string::npos) << text;
  EXPECT_NE(text.substr(fast).find("max 900\n"), std::string::npos) << text;
}

TEST(TopView, TimeIsTheUsers) {
  TopView view(false, 1);
  view.press("+");
  EXPECT_EQ(view.interval(), 0.5);
  for (int i = 0; i < 9; ++i) view.press("-");
  EXPECT_EQ(view.interval(), 60);
  view.press(" ");
  EXPECT_TRUE(view.paused());
  EXPECT_NE(view.text(three_connections(), kScreen).find("stopped"), std::string::npos);
}

TEST(TopView, WithoutATerminalThereIsNothingButTheOverview) {
  const auto text = TopView(false, 1).text(three_connections(), {});
  EXPECT_EQ(lines_of(text)[0], "loop");
  EXPECT_EQ(peers_in(text), "213");
}

}  // namespace
}  // namespace stp::stpctl
