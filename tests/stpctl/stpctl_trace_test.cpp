// SPDX-License-Identifier: BSD-3-Clause
// Traces that are ordered while the daemon runs.
#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "tests/stpctl/stpctl_fixture.h"
#include "tests/stpd/read_trace.h"

namespace stp::test {
namespace {

class StpctlTrace : public StpctlFixture {
 protected:
  // Frames: two RS, two RSR at the least, and those of a connection.
  void make_traffic() {
    Program listener(command({"ping", "--serve", ":3000"}));
    ASSERT_TRUE(listener.says("listening")) << listener.output();
    const auto said = stpctl({"ping", ":3000", "--count", "2", "--interval", "0"});
    EXPECT_EQ(said.exit_status, 0) << said.text;
  }
  const std::string path = directory.path() + "/trace.pcapng";
};

TEST_F(StpctlTrace, BetweenStartAndStopEveryFrameIsInAFileThatOthersRead) {
  const auto stpd = serve();
  const auto started = stpctl({"trace", "start", "--out", path});
  EXPECT_EQ(started.exit_status, 0) << started.text;
  make_traffic();
  EXPECT_TRUE(is_json(stpctl({"trace", "status", "--json"}).text));
  const auto stopped = stpctl({"trace", "stop"});
  EXPECT_EQ(stopped.exit_status, 0) << stopped.text;
  const auto frames = read_trace(path);
  EXPECT_GE(frames.size(), 4U);
  EXPECT_TRUE(contains(stopped.text, "ended: " + std::to_string(frames.size()) + " frames"))
      << stopped.text;
  EXPECT_TRUE(contains(stopped.text, " 0 frames dropped"));
  make_traffic();  // nobody looks any more
  EXPECT_EQ(read_trace(path).size(), frames.size());
}

TEST_F(StpctlTrace, DoesNotGoToStandardOutput) {
  const auto said = stpctl({"trace", "--out", "-"});  // before it looks for a daemon
  EXPECT_EQ(said.exit_status, 2);
  EXPECT_TRUE(contains(said.text, "--out -: a trace goes into a regular file")) << said.text;
}

TEST_F(StpctlTrace, RunsUntilCtrlCAndSaysWhatItHas) {
  const auto stpd = serve();
  Program trace(command({"trace", "--out", path}));
  ASSERT_TRUE(trace.says("tracing to")) << trace.output();
  make_traffic();
  trace.signal(SIGINT);
  EXPECT_EQ(trace.wait(), 0) << trace.output();
  EXPECT_TRUE(contains(trace.output(), "ended: ")) << trace.output();
  EXPECT_GE(read_trace(path).size(), 4U);
}

TEST_F(StpctlTrace, EndsByItselfAfterSoManyFramesOrSeconds) {
  const auto stpd = serve();
  Program by_frames(command({"trace", "--out", path, "--frames", "3"}));
  ASSERT_TRUE(by_frames.says("tracing to")) << by_frames.output();
  make_traffic();
  EXPECT_EQ(by_frames.wait(), 0) << by_frames.output();
  EXPECT_EQ(read_trace(path).size(), 3U);
  const auto by_time = stpctl({"trace", "--out", path, "--for", "0.2", "--json"});
  EXPECT_EQ(by_time.exit_status, 0) << by_time.text;
  EXPECT_TRUE(is_json(by_time.text));
  EXPECT_TRUE(read_trace(path).empty());
}

TEST_F(StpctlTrace, KeepsTheBeginningOfEachFrameIfOnlyThatIsAskedFor) {
  const auto stpd = serve();
  const auto started = stpctl({"trace", "start", "--out", path, "--snap", "58", "--buffer", "1M"});
  ASSERT_EQ(started.exit_status, 0) << started.text;
  make_traffic();
  ASSERT_EQ(stpctl({"trace", "stop"}).exit_status, 0);
  char error[PCAP_ERRBUF_SIZE] = {};
  auto* const file = pcap_open_offline(path.c_str(), error);
  ASSERT_NE(file, nullptr) << error;
  pcap_pkthdr* head = nullptr;
  const u_char* bytes = nullptr;
  int cut = 0;
  while (pcap_next_ex(file, &head, &bytes) == 1) {
    EXPECT_LE(head->caplen, 58U);
    cut += head->caplen < head->len ? 1 : 0;
  }
  pcap_close(file);
  EXPECT_GE(cut, 4);
  for (const auto* const wrong : {"--snap=10", "--buffer=2G", "--buffer=1", "--buffer=much"})
    EXPECT_EQ(stpctl({"trace", "--out", path, wrong}).exit_status, 2) << wrong;
}

TEST_F(StpctlTrace, EndsWithTheProgramThatWasKilledWhileItWaited) {
  const auto stpd = serve();
  {
    Program trace(command({"trace", "--out", path}));
    ASSERT_TRUE(trace.says("tracing to"));
  }
  EXPECT_TRUE(stpd->says("trace ended")) << stpd->output();
  stpd->signal(SIGTERM);  // what it ended may not have been written yet
  EXPECT_EQ(stpd->wait(), 0);
  EXPECT_TRUE(read_trace(path).empty());
}

TEST_F(StpctlTrace, ThereIsOneAtATimeAndASecondSpoilsNoFile) {
  const auto stpd = serve();
  ASSERT_EQ(stpctl({"trace", "start", "--out", path}).exit_status, 0);
  const auto second = stpctl({"trace", "--out", directory.path() + "/other"});
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_TRUE(contains(second.text, "a trace is running already")) << second.text;
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/other"));
  EXPECT_EQ(stpctl({"trace", "stop"}).exit_status, 0);
  EXPECT_EQ(stpctl({"trace", "start", "--out", path}).exit_status, 0);
  EXPECT_EQ(stpctl({"trace", "stop"}).exit_status, 0);
}

TEST_F(StpctlTrace, SaysWhatItCannotWriteTo) {
  const auto stpd = serve();
  EXPECT_TRUE(contains(stpctl({"trace", "stop"}).text, "there was no trace"));
  EXPECT_TRUE(contains(stpctl({"trace", "--out", directory.path()}).text, "Is a directory"));
  const auto device = stpctl({"trace", "--out", "/dev/null"});
  EXPECT_EQ(device.exit_status, 1);
  EXPECT_TRUE(contains(device.text, "regular files only")) << device.text;
}

// One that has been replaced since stpd read it, too.
TEST_F(StpctlTrace, IntoAFileThatTheDaemonHasIsRefusedAndSpoilsNothing) {
  const auto config = directory.path() + "/stpd.conf", beside = directory.path() + "/beside";
  const std::string text = "log-level = info\n";
  std::ofstream(config) << text;
  const auto stpd = serve({"--config", config, "--pcap", beside});
  const auto replaced = directory.path() + "/replaced";
  std::ofstream(replaced) << text;
  std::filesystem::rename(replaced, config);
  const auto said = stpctl({"trace", "start", "--out", config});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(
      said.text, "--out " + config + ": the daemon has this file already, as its configuration"))
      << said.text;
  EXPECT_EQ(std::filesystem::file_size(config), text.size());
  EXPECT_TRUE(contains(stpctl({"trace", "--out", beside}).text, "another trace is written there"));
  EXPECT_TRUE(contains(stpctl({"trace", "--out", socket}).text, "it is a socket"));
  // The link goes on, and another file is emptied.
  std::ofstream(path) << std::string(10'000, 'x');
  EXPECT_EQ(stpctl({"trace", "start", "--out", path}).exit_status, 0);
  EXPECT_EQ(stpctl({"trace", "stop"}).exit_status, 0);
  EXPECT_TRUE(read_trace(path).empty());
  EXPECT_LT(std::filesystem::file_size(path), 1'000U);
}

// It knows them by what they were while it had its rights, and by where they are.
TEST_F(StpctlTrace, IntoAFileThatTheDaemonMayNotLookAtAnyMoreOrIntoItsLogSpoilsNothing) {
  const auto folder = directory.path() + "/closed", config = folder + "/stpd.conf";
  const auto log = directory.path() + "/log", other = folder + "/other";
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  for (const auto& path : {config, other}) std::ofstream(path) << "log-level = info\n";
  const std::string user = ::geteuid() == 0 ? " --user nobody" : "";
  Program stpd({"/bin/sh", "-c",
                "exec " STPD_PATH " --link loop --socket " + socket + " --config " + config + user +
                    " 2>" + log});
  constexpr int kMost = 3'000;
  for (int i = 0; i < kMost && !std::filesystem::exists(socket); ++i) ::usleep(10'000);
  const auto is_refused = [&](const std::string& path) {
    const auto said = stpctl({"trace", "start", "--out", path});
    EXPECT_EQ(said.exit_status, 1);
    EXPECT_TRUE(contains(said.text, "--out " + path + ": the daemon has this file already"))
        << said.text;
    EXPECT_NE(std::filesystem::file_size(path), 0U);
  };
  is_refused(config);
  is_refused(log);
  std::filesystem::rename(other, config);
  is_refused(config);
  EXPECT_EQ(stpctl({"trace", "start", "--out", other}).exit_status, 0);
}

TEST_F(StpctlTrace, StatusTellsThatNobodyHasStartedOne) {
  const auto stpd = serve();
  const auto said = stpctl({"trace", "status"});
  EXPECT_EQ(said.exit_status, 0);
  EXPECT_TRUE(contains(said.text, "none: nobody has started a trace")) << said.text;
  const auto json = stpctl({"--json", "trace", "status"});
  EXPECT_EQ(json.exit_status, 0);
  EXPECT_TRUE(contains(json.text, R"("running":false,"frames":0)")) << json.text;
}

// As on a full disk.
TEST_F(StpctlTrace, OfTheCommandLineThatEndsEarlyIsWarnedOfAndTroubleOfTheLink) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  os::UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto stpd = serve({"--pcap", path});
  reader.reset();
  make_traffic();
  const std::string trouble = "the trace of --pcap has ended early: Broken pipe; it has 0 frames (";
  EXPECT_TRUE(stpd->says(trouble + path)) << stpd->output();
  const auto links = stpctl({"links"});
  EXPECT_TRUE(contains(links.text, "\nloop: " + trouble + path + "), and begins anew with stpd\n"))
      << links.text;
  // So is a socket that somebody has removed. Administrators have another one.
  ASSERT_EQ(::rename(socket.c_str(), (socket + ".away").c_str()), 0);
  const std::string lost = "the socket " + socket + " has been removed: programs that begin";
  EXPECT_TRUE(stpd->says("error: " + lost)) << stpd->output();
  const auto still = stpctl({"links"});
  EXPECT_TRUE(contains(still.text, "\nloop: " + lost)) << still.text;
  EXPECT_TRUE(contains(still.text, "; " + trouble)) << still.text;
  ASSERT_EQ(::rename((socket + ".away").c_str(), socket.c_str()), 0);
  EXPECT_TRUE(stpd->says("the socket " + socket + " is there again")) << stpd->output();
  EXPECT_TRUE(contains(stpctl({"links"}).text, "\nloop: " + trouble));
}

// What the file begins with fits, and what it ends with does not.
TEST_F(StpctlTrace, OfTheCommandLineThatFindsNoRoomAtItsEndIsWarnedOf) {
  Program stpd({"/usr/bin/prlimit", "--fsize=100", STPD_PATH, "--link", "loop", "--socket", socket,
                "--pcap", path});
  ASSERT_TRUE(stpd.says("stpd: ready\n")) << stpd.output();
  stpd.signal(SIGTERM);
  EXPECT_EQ(stpd.wait(), 0);
  EXPECT_TRUE(contains(stpd.output(), "the trace of --pcap has ended early: File too large"))
      << stpd.output();
}

TEST_F(StpctlTrace, GoesOnBesideTheOneOfTheCommandLine) {
  const auto whole = directory.path() + "/whole.pcapng";
  const auto stpd = serve({"--pcap", whole});
  ASSERT_EQ(stpctl({"trace", "start", "--out", path}).exit_status, 0);
  make_traffic();
  ASSERT_EQ(stpctl({"trace", "stop"}).exit_status, 0);
  make_traffic();
  stpd->signal(SIGTERM);
  EXPECT_EQ(stpd->wait(), 0);
  const auto part = read_trace(path).size();
  EXPECT_GE(part, 4U);
  EXPECT_GT(read_trace(whole).size(), part);
}

}  // namespace
}  // namespace stp::test
