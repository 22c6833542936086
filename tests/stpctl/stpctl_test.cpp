// SPDX-License-Identifier: BSD-3-Clause
// stpctl as whoever runs it sees it.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

#include "libst/host/budgets.h"
#include "tests/stpctl/stpctl_fixture.h"

namespace stp::test {
namespace {

using StpctlTest = StpctlFixture;

std::size_t words_of(const std::string& line) {
  std::istringstream in(line);
  using Words = std::istream_iterator<std::string>;
  return static_cast<std::size_t>(std::distance(Words(in), Words()));
}

TEST_F(StpctlTest, WithoutADaemonTheMessageNamesCauseAndRemedy) {
  for (const std::string command :
       {"links", "connections", "regions", "users", "stats", "top", "trace status"}) {
    const auto said = shell(STPCTL_PATH " --socket " + socket + " " + command);
    EXPECT_EQ(said.exit_status, 1) << command;
    EXPECT_TRUE(contains(said.text, "no daemon at " + socket)) << said.text;
    EXPECT_TRUE(contains(said.text, "start stpd")) << said.text;
  }
}

TEST_F(StpctlTest, ASocketThatAKilledDaemonLeftIsToldFromOneThatIsNotThere) {
  const auto stpd = serve();
  stpd->signal(SIGKILL);
  stpd->wait();
  const auto said = stpctl({"links"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, "no daemon listens on it")) << said.text;
}

TEST_F(StpctlTest, APathOfSomethingElseIsNotTakenForASocket) {
  const auto directory = std::filesystem::path(socket).parent_path().string();
  const auto folder = shell(STPCTL_PATH " --socket " + directory + " links");
  EXPECT_EQ(folder.exit_status, 1);
  EXPECT_TRUE(
      contains(folder.text, "it is a directory: name a file in it, as " + directory + "/stpd.sock"))
      << folder.text;
  const auto file = shell(STPCTL_PATH " --socket /etc/passwd links");
  EXPECT_TRUE(contains(file.text,
                       "a file that is no socket is there: name another path, as "
                       "/run/stpd/stpd.sock"))
      << file.text;
}

TEST_F(StpctlTest, AnUnknownCommandIsAnsweredWithThoseThereAre) {
  const auto said = stpctl({"conections"});
  EXPECT_EQ(said.exit_status, 2);
  EXPECT_TRUE(contains(said.text, "there is no command 'conections'; there are links connections"))
      << said.text;
  EXPECT_TRUE(contains(said.text, "; did you mean 'connections'?")) << said.text;
  EXPECT_FALSE(contains(stpctl({"xyz"}).text, "did you mean"));
  const auto below = stpctl({"trace", "strat", "--out", "x"});
  EXPECT_EQ(below.exit_status, 2);
  EXPECT_TRUE(contains(below.text,
                       "there is no command 'trace strat'; there are start stop status; did you "
                       "mean 'trace start'?"))
      << below.text;
  const auto nothing = stpctl({});
  EXPECT_EQ(nothing.exit_status, 2);
  EXPECT_TRUE(contains(nothing.text, "a command is missing; there are links connections"))
      << nothing.text;
  EXPECT_EQ(stpctl({"stats", "--json", "--prometheus"}).exit_status, 2);
  EXPECT_EQ(stpctl({"trace"}).exit_status, 2);
}

// A terminal, and what a program writes to it.
class Terminal {
 public:
  Terminal(std::vector<std::string> words, unsigned short rows, unsigned short columns) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Terminal() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    ::close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Reads until it has been written.
  bool says(const std::string& what) {
    std::array<char, 4'096> part{};
    while (text.find(what) == std::string::npos) {
      pollfd output{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&output, 1, 20'000) <= 0) return false;
      const auto size = ::read(fd_, part.data(), part.size());
      if (size <= 0) return false;
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    return true;
  }
  void press(char key) const { ASSERT_EQ(::write(fd_, &key, 1), 1); }
  int wait() {
    while (says("nothing says this")) {
    }
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  std::string text;

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

TEST_F(StpctlTest, TopFitsItsTerminalAndEndsWithQ) {
  const auto stpd = serve();
  Terminal terminal(command({"top", "--interval", "0.05"}), 20, 40);
  ASSERT_TRUE(terminal.says("connections 0")) << terminal.text;
  ASSERT_TRUE(terminal.says("\033[2J")) << terminal.text;
  terminal.press('c');
  ASSERT_TRUE(terminal.says("connections 0 by rate")) << terminal.text;
  terminal.press('?');
  ASSERT_TRUE(terminal.says("order by the next")) << terminal.text;
  terminal.press('q');
  EXPECT_EQ(terminal.wait(), 0);
  std::istringstream lines(terminal.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (const auto end = line.rfind("\033[2J"); end != std::string::npos) line.erase(0, end + 4);
    EXPECT_LE(line.size(), 40U) << line;
  }
}

TEST_F(StpctlTest, AWrongOptionIsNamedWhateverElseIsWrong) {
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& what) {
    const auto said = stpctl(words);
    EXPECT_EQ(said.exit_status, 2);
    EXPECT_TRUE(contains(said.text, "stpctl: " + what)) << said.text;
  };
  refuses({"links", "--nonsense"},
          "there is no option --nonsense: 'stpctl links --help' lists those there are");
  refuses({"links", "--jsn"}, "there is no option --jsn: did you mean --json?");
  refuses({"links", "-json"}, "there is no option -json: did you mean --json?");
  refuses({"ping", "--nonsense"}, "there is no option --nonsense: 'stpctl ping --help'");
  refuses({"trace", "start", "--nonsense"}, "there is no option --nonsense: 'stpctl trace start");
  refuses({"trace", "stop", "--out", "x"}, "'trace stop' has no option --out");
  refuses({"trace", "--snap", "96", "status"}, "'trace status' has no option --snap");
  refuses({"--nonsense", "links"}, "there is no option --nonsense");
  refuses({"ping", "--count", "-1", "a:1"}, "--count: -1 is less than 0: write 0 or more");
  refuses({"ping", "--count", "", "a:1"},
          "--count: the value is empty: write a number, or leave the option out");
  refuses({"top", "--interval=", "--json"}, "--interval: the value is empty: write one, or leave");
  refuses({"--socket=", "links"}, "--socket: the value is empty: write one, or leave");
  refuses({"trace", "--out", "x", "--frames", "0"}, "--frames: 0 is too small: write 1 or more");
  refuses({"trace", "--out", "x", "--for", "1e10"},
          "--for: 1e10 is too large: write 0.001 to 1000000000");
  refuses({"top", "--interval", "nan"}, "--interval: nan is no number");
  refuses({"ping", "--count", "18446744073709551616", "a:1"},
          "--count: 18446744073709551616 is beyond 18446744073709551615");
  refuses({"links", "more"}, "'more' is too much: see 'stpctl links --help'");
  refuses({"top", "--interval", "never"}, "--interval: never is no number: write digits, as 2");
  refuses({"ping", "--link", "ifcae:eth0", ":1"}, "link 'ifcae:eth0': ");
  refuses({"ping", "--link", "loop", ":0"}, "':0': port '0' is not in 1..4294967295");
  refuses({"ping", "--link", "loop", "a:4294967296"},
          "'a:4294967296': port '4294967296' is not in 1..4294967295");
  refuses({"dat-conf", "--link", "iface:eth0:1"}, "link 'iface:eth0:1': ");
}

TEST_F(StpctlTest, AWrongStpLinkIsNotTakenForNone) {
  for (const std::string command : {"links", "top --count 1", "ping :1", "dat-conf"}) {
    const auto said = shell("STP_LINK=sptd:/run/a.sock " STPCTL_PATH " " + command);
    EXPECT_EQ(said.exit_status, 2) << command;
    EXPECT_TRUE(contains(said.text, "did you mean stpd:/run/a.sock?")) << said.text;
  }
  EXPECT_EQ(shell("STP_LINK=sptd:/run/a.sock " STPCTL_PATH " devices").exit_status, 0);
}

TEST_F(StpctlTest, HelpNamesEveryCommandAndItsOptions) {
  const auto said = stpctl({"--help"});
  EXPECT_TRUE(contains(stpctl({"links", "--help"}).text, "Options of all commands: stpctl --help"));
  EXPECT_EQ(said.exit_status, 0);
  for (const std::string word : {"links", "connections", "regions", "users", "stats", "top",
                                 "trace", "ping", "dat-conf", "--json", "--socket"})
    EXPECT_TRUE(contains(said.text, word)) << word;
  for (const char* command : {"trace", "trace start"})
    EXPECT_TRUE(
        contains(shell(STPCTL_PATH " " + std::string(command) + " --help").text, "--frames"));
  EXPECT_FALSE(contains(stpctl({"trace", "stop", "--help"}).text, "--frames"));
}

TEST_F(StpctlTest, DatConfPrintsALineForEitherKindOfProgramAndEachLink) {
  const auto said =
      shell(STPCTL_PATH " --socket /a.sock --socket /b.sock dat-conf --provider /p.so");
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_EQ(said.text,
            "stp0 u2.0 nonthreadsafe default /p.so stp.2.0 \"stpd:/a.sock\" \"\"\n"
            "stp0 u2.0 threadsafe default /p.so stp.2.0 \"stpd:/a.sock\" \"\"\n"
            "stp1 u2.0 nonthreadsafe default /p.so stp.2.0 \"stpd:/b.sock\" \"\"\n"
            "stp1 u2.0 threadsafe default /p.so stp.2.0 \"stpd:/b.sock\" \"\"\n");
  const auto other = shell(STPCTL_PATH " dat-conf --name x --link loop");
  EXPECT_TRUE(contains(other.text, "x0 u2.0 nonthreadsafe default ")) << other.text;
  EXPECT_TRUE(contains(other.text, "libdaplstp.so.0 stp.2.0 \"loop\" \"\"\n")) << other.text;
}

TEST_F(StpctlTest, DatConfRefusesWhatTheRegistryCouldNotRead) {
  const auto said = shell(STPCTL_PATH " dat-conf --name 'a b' --link loop");
  EXPECT_EQ(said.exit_status, 2);
  EXPECT_TRUE(contains(said.text, "that dat.conf does not allow")) << said.text;
  EXPECT_EQ(shell(STPCTL_PATH " dat-conf --json").exit_status, 2);
}

TEST_F(StpctlTest, EveryListIsATableAndValidJson) {
  const auto stpd = serve();
  Program listener(command({"ping", "--serve", ":3000"}));
  ASSERT_TRUE(listener.says("listening")) << listener.output();
  Program pinger(command({"ping", ":3000"}));
  ASSERT_TRUE(pinger.says("answer 1")) << pinger.output();

  const auto links = stpctl({"links"});
  EXPECT_EQ(links.exit_status, 0);
  EXPECT_TRUE(contains(links.text, "loop  up")) << links.text;
  const auto connections = stpctl({"connections"});
  EXPECT_TRUE(contains(connections.text, "open")) << connections.text;
  EXPECT_TRUE(contains(connections.text, "3000")) << connections.text;
  EXPECT_TRUE(contains(stpctl({"regions"}).text, "BUFSIZE"));
  std::istringstream users(stpctl({"users"}).text);
  std::set<std::size_t> columns;
  for (std::string line; std::getline(users, line);) columns.insert(words_of(line));
  EXPECT_EQ(columns, std::set{host::kResources + 1}) << users.str();

  for (const std::string list : {"links", "connections", "regions", "users", "stats"}) {
    const auto said = stpctl({list, "--json"});
    EXPECT_EQ(said.exit_status, 0) << said.text;
    EXPECT_TRUE(is_json(said.text)) << list;
  }
  EXPECT_TRUE(contains(stpctl({"--json", "connections"}).text, R"("state":"open")"));
  EXPECT_TRUE(contains(stpctl({"--json", "connections"}).text, R"("way":"own")"));
  EXPECT_TRUE(contains(stpctl({"--json", "connections"}).text, R"("accepted":true)"));
}

TEST_F(StpctlTest, WhatThePeerTellsOfAConnectionIsShownWhenItIsThere) {
  const auto stpd = serve();
  const Program pinger(command({"ping", "[02:00:00:00:00:99]:3000"}));
  Said said;
  for (int tries = 0; tries < 500 && !contains(said.text, "connecting"); ++tries)
    said = stpctl({"--json", "connections"});
  EXPECT_TRUE(contains(said.text, R"("way":null)")) << said.text;
  for (const char* unknown : {"accepted", "max_stu_bytes", "round_trip_ns"})
    EXPECT_TRUE(contains(said.text, std::string("\"") + unknown + "\":null")) << said.text;
  const auto table = stpctl({"connections"}).text;
  EXPECT_TRUE(contains(table, "connecting")) << table;
  EXPECT_FALSE(contains(table, "own")) << table;
  std::istringstream cells(table.substr(table.find("connecting")));
  std::string state, way, stu, slots, round_trip;
  cells >> state >> way >> stu >> slots >> round_trip;
  EXPECT_EQ(way + stu + slots + round_trip, "----") << table;
}

TEST_F(StpctlTest, SeveralDaemonsAreShownTogether) {
  const auto one = serve();
  const auto other_socket = directory.path() + "/other.sock";
  Program other({STPD_PATH, "--link", "loop,mac=02:00:00:00:00:07", "--socket", other_socket});
  ASSERT_TRUE(other.says("stpd: ready\n"));
  const auto said = stpctl({"--socket", other_socket, "links"});
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_TRUE(contains(said.text, "loop  ")) << said.text;
  EXPECT_TRUE(contains(said.text, "02:00:00:00:00:07")) << said.text;
  EXPECT_EQ(stpctl({"--socket", other_socket, "trace", "status"}).exit_status, 2);
}

TEST_F(StpctlTest, ADaemonThatIsDownKeepsNobodyFromSeeingTheOthers) {
  const auto stpd = serve();
  const auto down = directory.path() + "/down.sock";
  for (const std::string list : {"links", "connections", "regions", "users", "stats"}) {
    const auto said = stpctl({"--socket", down, list});
    EXPECT_EQ(said.exit_status, 1);
    EXPECT_TRUE(contains(said.text, "no daemon at " + down)) << said.text;
    EXPECT_TRUE(contains(said.text, "loop") || contains(said.text, "clients")) << said.text;
  }
}

TEST_F(StpctlTest, ASocketMayBeGivenByTheNameOfItsLink) {
  const auto said = run({STPCTL_PATH, "--socket", "no-such-link-of-a-test", "links"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, "no daemon at /run/stpd/no-such-link-of-a-test.sock"))
      << said.text;
}

TEST_F(StpctlTest, StatsNamesEveryCounterWithWhatItCounts) {
  const auto stpd = serve();
  EXPECT_TRUE(contains(stpctl({"stats"}).text, "programs that connected"));
  EXPECT_FALSE(contains(stpctl({"stats"}).text, "bad_key"));
  EXPECT_TRUE(contains(stpctl({"stats", "--all"}).text, "bad_key"));
  const auto two = stpctl({"stats", "bad_key", "stp_clients"}).text;
  EXPECT_TRUE(contains(two, "bad_key") && contains(two, "programs that connected")) << two;
  EXPECT_EQ(std::ranges::count(two, '\n'), 3) << two;
  EXPECT_TRUE(contains(stpctl({"--json", "stats", "stp_bad_key_total"}).text,
                       R"("counters":{"bad_key":0})"));
  const auto wrong = stpctl({"stats", "bad_kye"});
  EXPECT_EQ(wrong.exit_status, 2);
  EXPECT_TRUE(contains(wrong.text, "there is no counter bad_kye; did you mean bad_key?"))
      << wrong.text;
  const auto one = stpctl({"stats", "--prometheus", "bad_key"}).text;
  EXPECT_TRUE(contains(one, "# TYPE stp_bad_key_total counter\n")) << one;
  EXPECT_EQ(std::ranges::count(one, '\n'), 4) << one;
}

TEST_F(StpctlTest, StatsListsAllCountersThatThereAreWithoutADaemon) {
  const auto said = run({STPCTL_PATH, "stats", "--list"});
  EXPECT_EQ(said.exit_status, 0) << said.text;
  for (const auto* const name : {"\nbad_key ", "\nudp_peers ", "\nclients "})
    EXPECT_TRUE(contains(said.text, name)) << said.text;
  const auto json = run({STPCTL_PATH, "--json", "stats", "--list", "stp_clients_total"});
  EXPECT_EQ(json.text.rfind(R"({"counters":{"clients":")", 0), 0U) << json.text;
  EXPECT_EQ(run({STPCTL_PATH, "stats", "--list", "--all"}).exit_status, 2);
  EXPECT_EQ(stpctl({"stats", "--list"}).exit_status, 2);
}

TEST_F(StpctlTest, PrometheusGetsHelpAndTypeForEachMetric) {
  const auto stpd = serve();
  const auto said = stpctl({"stats", "--prometheus"});
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_TRUE(
      contains(said.text, "stp_rx_frames_total{link=\"loop\",socket=\"" + socket + "\"} 0\n"))
      << said.text;
  EXPECT_TRUE(contains(said.text, "# TYPE stp_clients_total counter\n"));
  std::istringstream lines(said.text);
  unsigned helps = 0, types = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      ++helps;
      EXPECT_NE(line.find(' ', 7), std::string::npos) << line;
      EXPECT_GT(line.size(), line.find(' ', 7) + 3) << line << ": says nothing";
    }
    types += line.starts_with("# TYPE ") ? 1 : 0;
    EXPECT_TRUE(line.starts_with("# ") || line.starts_with("stp_")) << line;
  }
  EXPECT_EQ(helps, types);
  EXPECT_GT(helps, 60U);
}

// Such as one that was killed: its socket stays.
TEST_F(StpctlTest, TopShowsTheLinksThatAreThereAndThenTellsOfTheOthers) {
  const auto stpd = serve();
  const auto nobody = directory.path() + "/nobody.sock";
  const auto said =
      stpctl({"--socket", nobody, "top", "--interval", "0.05", "--count", "1", "--json"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, R"("link":"loop")")) << said.text;
  EXPECT_TRUE(contains(said.text, "stpctl: no daemon at " + nobody + ": ")) << said.text;
}

TEST_F(StpctlTest, TopInAPipeHasNoControlCharactersAndEndsWhenItWasToldTo) {
  const auto stpd = serve();
  const auto said = stpctl({"top", "--interval", "0.1", "--count", "2"});
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_FALSE(contains(said.text, "\033"));
  const auto first = said.text.find("FRAMES/S");
  ASSERT_NE(first, std::string::npos) << said.text;
  EXPECT_NE(said.text.find("FRAMES/S", first + 1), std::string::npos) << said.text;
  const auto json = stpctl({"top", "--interval", "0.1", "--count", "3", "--json"});
  EXPECT_TRUE(is_json(json.text));
  EXPECT_EQ(std::count(json.text.begin(), json.text.end(), '\n'), 3);
}

TEST_F(StpctlTest, TopEndsWithItsReaderAndOnASignal) {
  const auto stpd = serve();
  const auto said = shell(STPCTL_PATH " --socket " + socket + " top --interval 0.05 | head -n 1");
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_EQ(said.text, "loop\n");
  Program top(command({"top", "--interval", "0.05"}));
  ASSERT_TRUE(top.says("FRAMES/S"));
  top.signal(SIGINT);
  EXPECT_EQ(top.wait(), 0);
}

class StpctlAsNobody : public StpctlFixture {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "only root can act as somebody else";
    if (run(as_nobody({STPCTL_PATH, "--version"})).exit_status != 0)
      GTEST_SKIP() << "nobody may not run programs from here";
    ASSERT_EQ(run(as_nobody({"/usr/bin/test", "-x", directory.path()})).exit_status, 0)
        << "others cannot reach " << directory.path() << ": a directory above it is closed to them";
  }
  static std::vector<std::string> as_nobody(std::vector<std::string> arguments,
                                            const std::string& groups = "--clear-groups") {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", groups});
    return arguments;
  }
};

TEST_F(StpctlAsNobody, SeesItsOwnConnectionsOnlyAndIsToldSo) {
  const auto stpd = serve();
  Program listener(command({"ping", "--serve", ":3000"}));
  ASSERT_TRUE(listener.says("listening"));
  Program pinger(as_nobody(command({"ping", ":3000"})));
  ASSERT_TRUE(pinger.says("answer 1")) << pinger.output();
  const auto mine = run(as_nobody(command({"connections", "--json"})));
  EXPECT_EQ(mine.exit_status, 0);
  EXPECT_TRUE(contains(mine.text, R"("uid":65534)")) << mine.text;
  EXPECT_FALSE(contains(mine.text, R"("uid":0,)")) << mine.text;
  EXPECT_TRUE(contains(mine.text, R"("complete":false)"));
  EXPECT_TRUE(contains(run(as_nobody(command({"connections"}))).text, "only what this user has"));
  EXPECT_TRUE(contains(stpctl({"connections", "--json"}).text, R"("uid":65534)"));
}

TEST_F(StpctlAsNobody, MayNotTraceUnlessItIsInTheGroupThatTheOperatorHasNamed) {
  const auto stpd = serve({"--admin-group", "daemon"});
  const auto refused = run(as_nobody(command({"trace", "status"})));
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_TRUE(contains(refused.text, "--admin-group")) << refused.text;
  const auto member = run(as_nobody(command({"links", "--json"}), "--groups=1"));
  EXPECT_TRUE(contains(member.text, R"("administrator":true)")) << member.text;
}

TEST_F(StpctlTest, StpdNamesAGroupThatIsNotThere) {
  const auto said =
      run({STPD_PATH, "--link", "loop", "--socket", socket, "--admin-group", "no-such-group"});
  EXPECT_NE(said.exit_status, 0);
  EXPECT_TRUE(contains(said.text, "no-such-group")) << said.text;
}

}  // namespace
}  // namespace stp::test
