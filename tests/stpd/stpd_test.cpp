// SPDX-License-Identifier: BSD-3-Clause
// stpd as whoever runs it sees it: its messages, its exit status, what it leaves behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "libst/ipc/socket.h"
#include "tests/host/any_message.h"
#include "tests/stpd/program.h"
#include "tests/stpd/read_trace.h"
#include "tests/temporary_directory.h"

namespace stp::stpd {
namespace {

class StpdTest : public testing::Test {
 protected:
  std::unique_ptr<test::Program> stpd(std::vector<std::string> options) {
    options.insert(options.begin(), STPD_PATH);
    return std::make_unique<test::Program>(std::move(options));
  }
  std::unique_ptr<test::Program> serving(std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--link", "loop", "--socket", socket};
    options.insert(options.end(), more.begin(), more.end());
    auto program = stpd(options);
    EXPECT_TRUE(program->says("stpd: ready\n")) << program->output();
    return program;
  }
  std::string write(const std::string& text) {
    auto path = directory.path() + "/stpd.conf";
    std::ofstream(path) << text;
    return path;
  }
  int hello() {
    os::UniqueFd client;
    if (const auto error = ipc::connect_to(socket, client); error != 0) return error;
    return ask(client.get(), ipc::RequestKind::kHello);
  }
  int ask(int client, ipc::RequestKind kind, EndpointId endpoint = kNoneId) {
    host::Request request{};
    request.version = ipc::kProtocolVersion;
    request.kind = kind;
    request.endpoint = endpoint;
    request.uport = 3'000;
    request.mac = mac;
    request.config.bufsize = 14;
    request.config.max_stu = 14;
    request.config.slots = 64;
    request.config.credits = 64;
    std::vector<os::UniqueFd> fds;
    if (const auto error = send_request(client, request, {}); error != 0) return error;
    if (const auto error = receive_reply(client, reply, fds); error != 0) return error;
    if (kind == ipc::RequestKind::kHello) mac = reply.mac;
    return reply.result;
  }
  // Two endpoints of one client, connected to each other.
  void connect_to_itself(int client) {
    ASSERT_EQ(ask(client, ipc::RequestKind::kHello), 0);
    ASSERT_EQ(ask(client, ipc::RequestKind::kOpenEndpoint), 0);
    const auto listener = reply.endpoint;
    ASSERT_EQ(ask(client, ipc::RequestKind::kListen, listener), 0);
    ASSERT_EQ(ask(client, ipc::RequestKind::kOpenEndpoint), 0);
    ASSERT_EQ(ask(client, ipc::RequestKind::kConnect, reply.endpoint), 0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int result = -EAGAIN;
    while (result == -EAGAIN && std::chrono::steady_clock::now() < until)
      result = ask(client, ipc::RequestKind::kAccept, listener);
    ASSERT_EQ(result, 0);
  }

  static std::vector<unsigned> usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    return cpus;
  }
  static int use_only(unsigned cpu, pid_t process = 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return ::sched_setaffinity(process, sizeof set, &set);
  }

  test::TemporaryDirectory directory;
  const std::string socket = directory.path() + "/stpd.sock";
  std::uint64_t mac = 0;
  host::Reply reply{};
};

TEST_F(StpdTest, ServesUntilItIsAskedToLeave) {
  for (const auto signal : {SIGTERM, SIGINT}) {
    const auto program = serving();
    EXPECT_NE(program->output().find("link loop: device "), std::string::npos) << program->output();
    EXPECT_NE(program->output().find("socket " + socket), std::string::npos);
    EXPECT_EQ(hello(), 0);
    program->signal(signal);
    EXPECT_EQ(program->wait(), 0) << program->output();
    EXPECT_FALSE(std::filesystem::exists(socket));
    EXPECT_NE(program->output().find("  clients 1\n"), std::string::npos) << program->output();
  }
}

TEST_F(StpdTest, LeavesCleanlyWithClientsConnected) {
  const auto program = serving();
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_NE(program->output().find("  vc_opened 2\n"), std::string::npos) << program->output();
}

TEST_F(StpdTest, ALinkThatCannotBeOpenedIsNamedWithItsReason) {
  // 2: there is no such link, whatever the machine has.
  for (const auto& [link, status] :
       {std::pair<std::string, int>{"iface:lo", 1}, {"nonsense:veth0", 2}, {"memif:", 2}}) {
    const auto program = stpd({"--link", link, "--socket", socket});
    EXPECT_EQ(program->wait(), status) << link;
    EXPECT_NE(program->output().find(link), std::string::npos) << program->output();
    EXPECT_EQ(program->output().find("ready"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(socket));
  }
}

TEST_F(StpdTest, ASecondDaemonOnTheSameSocketIsRefused) {
  const auto first = serving();
  const auto second = stpd({"--link", "loop", "--socket", socket});
  EXPECT_EQ(second->wait(), 1);
  EXPECT_NE(second->output().find(socket), std::string::npos) << second->output();
  EXPECT_NE(second->output().find("another daemon"), std::string::npos) << second->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, ASocketThatCannotBeMadeIsNamedWithTheRemedy) {
  const auto nowhere = stpd({"--link", "loop", "--socket", "/nowhere/stpd/stpd.sock"});
  EXPECT_EQ(nowhere->wait(), 1);
  EXPECT_NE(nowhere->output().find("there is no directory /nowhere: make it (mkdir -p), or name"),
            std::string::npos)
      << nowhere->output();
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  test::Program nobody({"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", STPD_PATH,
                        "--link", "loop", "--socket", socket});
  EXPECT_EQ(nobody.wait(), 1);
  EXPECT_NE(nobody.output().find("this user may not make it there: name one elsewhere (--socket"),
            std::string::npos)
      << nobody.output();
  // As /run/stpd, where root has not made it.
  test::Program first({"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", STPD_PATH,
                       "--link", "loop", "--socket", "/usr/stpd-of-nobody/stpd.sock"});
  EXPECT_EQ(first.wait(), 1);
  EXPECT_NE(first.output().find("this user may not make it there: name one elsewhere (--socket"),
            std::string::npos)
      << first.output();
}

TEST_F(StpdTest, TheSocketOfAKilledOneIsReplaced) {
  {
    const auto killed = serving();
    killed->signal(SIGKILL);
    EXPECT_EQ(killed->wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(std::filesystem::exists(socket));
  EXPECT_EQ(hello(), -ECONNREFUSED);
  const auto program = serving();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, AConfigurationFileSaysTheSame) {
  const auto config = directory.path() + "/stpd.conf";
  std::ofstream(config) << "link=loop\nsocket=" << socket << "\npoll=busy\n";
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, TheAddressGoesToTheLink) {
  const auto program = serving({"--address", "10.9.0.1/24"});
  EXPECT_NE(program->output().find("address 10.9.0.1"), std::string::npos) << program->output();
}

TEST_F(StpdTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_NE(stpd({})->wait(), 0);
  EXPECT_NE(stpd({"--link", "loop", "--poll", "never"})->wait(), 0);
  EXPECT_NE(stpd({"--link", "loop", "--nonsense"})->wait(), 0);
  const auto program = stpd({"--version"});
  EXPECT_EQ(program->wait(), 0);
  EXPECT_EQ(program->output().substr(0, 5), "stpd ");
}

TEST_F(StpdTest, ATraceHasTheFramesAskedFor) {
  const auto trace = directory.path() + "/trace.pcapng";
  const auto program = serving({"--pcap", trace, "--pcap-frames", "2", "--pcap-buffer", "1M"});
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  const auto packets = test::read_trace(trace);
  ASSERT_EQ(packets.size(), 2U);
  for (const auto& packet : packets) {
    ASSERT_GE(packet.bytes.size(), 54U);
    EXPECT_EQ(packet.bytes[12], std::byte{0x81});  // the EtherType of STP
    EXPECT_EQ(packet.bytes[13], std::byte{0x81});
  }
}

TEST_F(StpdTest, ATraceHasAsMuchOfEachFrameAsAskedFor) {
  const auto trace = directory.path() + "/trace.pcapng";
  const auto program = serving({"--pcap", trace, "--pcap-snap", "58"});
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  const auto packets = test::read_trace(trace, false);
  ASSERT_FALSE(packets.empty());
  for (const auto& packet : packets) EXPECT_EQ(packet.bytes.size(), 58U);
}

// The headers of IPv6 and UDP stand in front of that of STP.
TEST_F(StpdTest, ATraceOfALinkOverUdpHasAtLeastTheHeaders) {
  const auto trace = directory.path() + "/trace.pcapng";
  const auto program = stpd(
      {"--link", "udp:127.0.0.1,port=0", "--socket", socket, "--pcap", trace, "--pcap-snap", "58"});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  const auto packets = test::read_trace(trace, false);
  ASSERT_FALSE(packets.empty());
  for (const auto& packet : packets) EXPECT_GE(packet.bytes.size(), 14U + 20U + 8U + 40U);
}

TEST_F(StpdTest, ATraceThatCannotBeWrittenIsAnError) {
  const auto program =
      stpd({"--link", "loop", "--socket", socket, "--pcap", "/nowhere/trace.pcapng"});
  EXPECT_EQ(program->wait(), 1);
  EXPECT_NE(program->output().find("/nowhere/trace.pcapng"), std::string::npos);
}

// Where the table becomes longer later, the thread that opens a file waits for all processors.
TEST_F(StpdTest, TheKernelsTableOfItsFilesIsAsLongAsItWillGet) {
  const auto program = serving({});
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::ifstream status("/proc/" + std::to_string(program->pid()) + "/status");
  rlim_t size = 0;
  for (std::string word; size == 0 && status >> word;)
    if (word == "FDSize:") status >> size;
  EXPECT_GE(size, std::min<rlim_t>(limit.rlim_max, 1U << 20U));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A limit of its address space as long as it has, and programs that have taken all of its heap.
TEST_F(StpdTest, WithoutMemoryItRefusesAndGoesOn) {
  ::setenv("MALLOC_ARENA_MAX", "1", 1);  // all of the heap counts in that length
  const auto program = serving();
  ::unsetenv("MALLOC_ARENA_MAX");
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  connect_to_itself(client.get());
  rlim_t pages = 0;
  std::ifstream("/proc/" + std::to_string(program->pid()) + "/statm") >> pages;
  rlimit limit{.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)),
               .rlim_max = RLIM_INFINITY};
  rlimit before{};
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, nullptr, &before), 0);
  limit.rlim_max = before.rlim_max;
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, &limit, nullptr), 0);
  int result = 0;
  while (result == 0) result = ask(client.get(), ipc::RequestKind::kOpenEndpoint);
  EXPECT_EQ(result, -ENOMEM);
  for (int i = 0; i < 20; ++i) EXPECT_NE(hello(), 0);
  EXPECT_EQ(ask(client.get(), ipc::RequestKind::kLinkState), 0);
  ASSERT_EQ(::prlimit(program->pid(), RLIMIT_AS, &before, nullptr), 0);
  EXPECT_EQ(hello(), 0);
  EXPECT_EQ(ask(client.get(), ipc::RequestKind::kOpenEndpoint), 0);
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
}
#endif

// ---- several links, and the configuration file ----

TEST_F(StpdTest, SeveralLinksEachHaveTheirSocket) {
  const auto config = write(
      "log-level = info  # said twice\n"
      "[link.a]\nlink = loop\nsocket = \"" +
      directory.path() +
      "/a.sock\"\n"
      "[link.b]\nlink = \"loop,mac=02:00:00:00:00:0b\"\npoll = busy\ncpus = " +
      std::to_string(usable_cpus().front()) +
      "\n"
      "socket = \"" +
      directory.path() + "/b.sock\"\n");
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready: 2 links\n")) << program->output();
  EXPECT_NE(program->output().find("stpd: [b] link loop,mac="), std::string::npos);
  for (const auto* const name : {"/a.sock", "/b.sock"}) {
    os::UniqueFd client;
    ASSERT_EQ(ipc::connect_to(directory.path() + name, client), 0);
    connect_to_itself(client.get());
  }
  EXPECT_EQ(mac, 0x02000000000bU);
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
}

TEST_F(StpdTest, OneLinkThatFailsDoesNotKeepOthersFromServing) {
  const auto config = write("[link.bad]\nlink = \"iface:lo\"\nsocket = \"" + directory.path() +
                            "/bad.sock\"\n[link.good]\nlink = loop\nsocket = \"" + socket + "\"\n");
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready: 1 of 2 links: good\n")) << program->output();
  EXPECT_NE(program->output().find("stpd: [bad] error: "), std::string::npos) << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, TheCommandLineHasTheLastWord) {
  const auto config = write("link = loop\nlog-format = json\nsocket = /nowhere/at/all.sock\n");
  const auto program = stpd({"--config", config, "--socket", socket, "--log-format", "text"});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, HangUpReloadsWhatCanBeAndNamesWhatCannot) {
  const auto config = write("link = loop\nsocket = \"" + socket + "\"\nmax-endpoints = 1\n");
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  os::UniqueFd client;
  ASSERT_EQ(ipc::connect_to(socket, client), 0);
  ASSERT_EQ(ask(client.get(), ipc::RequestKind::kOpenEndpoint), 0);
  EXPECT_EQ(ask(client.get(), ipc::RequestKind::kOpenEndpoint), -EDQUOT);
  write("link = loop\nsocket = /elsewhere/stpd.sock\nmax-endpoints = 2\nlog-format = json\n");
  program->signal(SIGHUP);
  ASSERT_TRUE(program->says("takes a restart")) << program->output();
  EXPECT_NE(program->output().find(R"("level":"warning","message":"links)"), std::string::npos)
      << program->output();
  EXPECT_EQ(ask(client.get(), ipc::RequestKind::kOpenEndpoint), 0);
  EXPECT_EQ(ask(client.get(), ipc::RequestKind::kOpenEndpoint), -EDQUOT);
}

TEST_F(StpdTest, AReloadOfABadFileChangesNothing) {
  const auto config = write("link = loop\nsocket = \"" + socket + "\"\n");
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  write("link = loop\nlog-level = loud\n");
  program->signal(SIGHUP);
  ASSERT_TRUE(program->says("stpd: error: not reloaded")) << program->output();
  EXPECT_NE(program->output().find(config + ":2:"), std::string::npos) << program->output();
  EXPECT_EQ(hello(), 0);
}

// A pipe that nobody writes to would keep it from hearing anything else.
TEST_F(StpdTest, AReloadReadsRegularFilesOnly) {
  const auto config = write("link = loop\nsocket = \"" + socket + "\"\n");
  const auto program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  ASSERT_EQ(::unlink(config.c_str()), 0);
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  program->signal(SIGHUP);
  ASSERT_TRUE(program->says("stpd: error: not reloaded")) << program->output();
  EXPECT_NE(program->output().find(config + ": only a regular file"), std::string::npos)
      << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, AReloadWithoutACpuOfTheCommandLineChangesNothing) {
  const auto cpus = usable_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "this machine lets the test use one CPU only";
  const auto program = serving({"--cpus", std::to_string(cpus.back())});
  ASSERT_EQ(use_only(cpus.front(), program->pid()), 0);
  program->signal(SIGHUP);
  ASSERT_TRUE(program->says("stpd: error: not reloaded")) << program->output();
  EXPECT_NE(program->output().find("may not run on CPU"), std::string::npos) << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, ShardsShareTheCpusThatItMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  ASSERT_EQ(use_only(usable_cpus().front()), 0);
  const auto program = stpd({"--link", "loop,queues=2", "--socket", socket});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  EXPECT_NE(program->output().find("2 shards share 1 CPU:"), std::string::npos)
      << program->output();
}

// ---- who it is, and who it tells ----

TEST_F(StpdTest, BecomesAUserWithoutRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const auto program = serving({"--user", "nobody", "--group", "0"});
  std::ifstream status("/proc/" + std::to_string(program->pid()) + "/status");
  std::string const text((std::istreambuf_iterator<char>(status)), {});
  const auto nobody = std::to_string(::getpwnam("nobody")->pw_uid);
  EXPECT_NE(text.find("Uid:\t" + nobody + "\t" + nobody + "\t" + nobody), std::string::npos);
  EXPECT_NE(text.find("CapPrm:\t0000000000000000"), std::string::npos) << text;
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos) << text;
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, TellsAServiceManagerThatItIsReadyAndAlive) {
  const auto path = directory.path() + "/notify";
  const os::UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "100000", 1);
  const auto program = serving();
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  const auto told = [&] {
    std::array<char, 256> text{};
    pollfd ready{.fd = manager.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 30'000) != 1) return std::string("nothing");
    const auto length = ::recv(manager.get(), text.data(), text.size(), 0);
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  };
  EXPECT_EQ(told().substr(0, 8), "READY=1\n");
  EXPECT_EQ(told(), "WATCHDOG=1");
  program->signal(SIGHUP);
  while (told() == "WATCHDOG=1") {
  }
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0);
}

TEST_F(StpdTest, LogsAsJson) {
  const auto program =
      stpd({"--link", "loop", "--socket", socket, "--log-format", "json", "--log-level", "info"});
  ASSERT_TRUE(program->says(R"("level":"info","message":"ready"})"
                            "\n"))
      << program->output();
  std::istringstream lines(program->output());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.substr(0, 9), R"({"time":")") << line;
    EXPECT_EQ(line.back(), '}') << line;
  }
}

TEST_F(StpdTest, LinesOfTextCanHaveATime) {
  const auto program = stpd({"--link", "loop", "--socket", socket, "--log-format", "timed"});
  ASSERT_TRUE(program->says("Z stpd: ready\n")) << program->output();
  std::istringstream lines(program->output());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.substr(0, 2), "20") << line;  // of the year
    EXPECT_EQ(line.find("Z stpd: "), 23U) << line;
  }
}

TEST_F(StpdTest, ALogOfErrorsSaysNothingElse) {
  const auto program = stpd({"--link", "loop", "--socket", socket, "--log-level", "error"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (hello() != 0 && std::chrono::steady_clock::now() < until) {
  }
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0);
  EXPECT_EQ(program->output(), "");
}

}  // namespace
}  // namespace stp::stpd
