// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sched.h>
#include <stp/managed.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "libst/libfabric/link.h"
#include "tests/host/test_port.h"
#include "tests/libfabric/rdm_fixture.h"
#include "tests/libst/libst_fixture.h"

namespace {

// Of a thread whose core has others to run: its yields take long. How often it has slept.
thread_local bool is_crowded = false;
thread_local int slept = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) int sched_yield() {
  const auto begin = std::chrono::steady_clock::now();
  while (is_crowded && std::chrono::steady_clock::now() - begin < std::chrono::microseconds(50))
    ;
  static const auto real =
      reinterpret_cast<decltype(&sched_yield)>(::dlsym(RTLD_NEXT, "sched_yield"));
  return is_crowded ? 0 : real();
}

extern "C" __attribute__((visibility("default"))) int stm_queue_wait(stm_queue_t queue,
                                                                     int threshold,
                                                                     stm_event_t* events, int count,
                                                                     int64_t timeout) {
  static const auto real =
      reinterpret_cast<decltype(&stm_queue_wait)>(::dlsym(RTLD_NEXT, "stm_queue_wait"));
  if (!is_crowded) return real(queue, threshold, events, count, timeout);
  ++slept;
  return -EWOULDBLOCK;
}

namespace stp::test::link_lock_test {
namespace {

// Without that, it would have the mutex again before the other one is awake.
TEST(LinkMutex, WhoPollsLetsThoseGoFirstThatWait) {
  fi::LinkMutex mutex;
  for (int i = 0; i < 20; ++i) {
    auto had = false;
    mutex.lock();
    std::thread other([&] {
      fi::LinkLock const lock(mutex);
      had = true;
    });
    while (!mutex.is_awaited()) std::this_thread::yield();
    mutex.unlock();
    {
      fi::PollLock const lock(mutex);
      EXPECT_TRUE(had);
    }
    other.join();
  }
}

TEST(LinkMutex, EachOfManyHasItInTheEnd) {
  constexpr int kThreads = 4, kTimes = 5'000;
  fi::LinkMutex mutex;
  int had = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, polls = i % 2 == 0] {
      for (int k = 0; k < kTimes; ++k) {
        if (polls) {
          fi::PollLock const lock(mutex);
          ++had;
        } else {
          fi::LinkLock const lock(mutex);
          ++had;
        }
      }
    });
  for (auto& each : threads) each.join();
  EXPECT_EQ(had, kThreads * kTimes);
}

// It sleeps with the mutex.
TEST(LinkMutex, WhoRestsIsRousedByThoseWhoDoNotPoll) {
  std::atomic<bool> roused = false;
  fi::LinkMutex mutex{[&] { roused = true; }};
  std::thread polls, goes_on;
  mutex.lock();
  mutex.rest_unless_awaited([&] {
    polls = std::thread([&] { fi::PollLock const lock(mutex); });
    while (!mutex.is_awaited()) std::this_thread::yield();
    EXPECT_FALSE(roused);
    goes_on = std::thread([&] { fi::LinkLock const lock(mutex); });
    while (!roused) std::this_thread::yield();
  });
  mutex.rest_unless_awaited([] { FAIL() << "others wait"; });
  mutex.unlock();
  polls.join();
  goes_on.join();
}

using fi::IdlePolls;

// How many polls it takes until it is time.
unsigned until_time(IdlePolls& polls) {
  unsigned count = 1;
  while (!polls.is_time()) ++count;
  return count;
}

TEST(IdlePolls, FewerAreEnoughWhereTheCoreIsCrowded) {
  IdlePolls polls;
  EXPECT_EQ(until_time(polls), IdlePolls::kMany);
  polls.looked(true);
  polls.told();
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
  polls.looked(false);
  EXPECT_EQ(until_time(polls), IdlePolls::kMany - IdlePolls::kFew);
}

// Each look there costs a yield, and mostly it tells nothing: nobody else has to run for the poll.
TEST(IdlePolls, LookMoreSeldomOnALinkOfTheirOwn) {
  IdlePolls polls;
  polls.no_stpd_drives_it();
  EXPECT_EQ(until_time(polls), IdlePolls::kManyAlone);
  polls.looked(true);
  polls.told();
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
}

// What is awaited mostly comes before.
TEST(IdlePolls, OfAFavoredThreadManyComeBeforeTheFirstSleep) {
  IdlePolls polls;
  polls.no_stpd_drives_it();
  EXPECT_EQ(until_time(polls), IdlePolls::kManyAlone);
  polls.looked(true, true);
  polls.told();
  EXPECT_EQ(until_time(polls), IdlePolls::kManyAlone);
  polls.looked(true, true);
  EXPECT_EQ(until_time(polls), IdlePolls::kManyAlone) << "then twice as many";
}

// A program that works between its polls (MPI_Test) sleeps ever more seldom until it is told
// something.
TEST(IdlePolls, SleepsComeTwiceAsSeldomEachTime) {
  IdlePolls polls;
  polls.looked(true);
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
  for (unsigned count = IdlePolls::kFew; count < IdlePolls::kRare; count *= 2)
    EXPECT_EQ(until_time(polls), count);
  EXPECT_EQ(until_time(polls), IdlePolls::kRare);
  EXPECT_EQ(until_time(polls), IdlePolls::kRare);
  // One that polls and polls does nothing else: the core is for those it waits for.
  for (unsigned in_vain = 3 * IdlePolls::kRare; in_vain < IdlePolls::kWaits;)
    in_vain += until_time(polls);
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
  polls.told();
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
}

// A program that is told one message after the other, and polls once more each time, does not
// sleep.
TEST(IdlePolls, OneAfterWhatWasToldIsNotInVain) {
  IdlePolls polls;
  polls.looked(true);
  for (int i = 0; i < 100; ++i) {
    polls.told();
    EXPECT_FALSE(polls.is_time());
  }
}

TEST(IdlePolls, SleepsAreMostlyWhereEventsComeButNotAlone) {
  IdlePolls polls;
  EXPECT_TRUE(polls.may_sleep(false));
  unsigned count = 1;
  while (!polls.may_sleep(true)) ++count;
  EXPECT_EQ(count, IdlePolls::kOfOthers);
}

// Who polls two links in turn hears at one. Who looks there no more does not.
TEST(Hearing, IsWhereAThreadLooks) {
  const char here = 0, there = 0;
  fi::Hearing hearing;
  EXPECT_FALSE(hearing.is_elsewhere(&here));
  hearing.heard(&there);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(hearing.is_elsewhere(&here));
    EXPECT_FALSE(hearing.is_elsewhere(&there));
  }
  for (unsigned i = 0; i < IdlePolls::kOfOthers; ++i) EXPECT_TRUE(hearing.is_elsewhere(&here));
  EXPECT_FALSE(hearing.is_elsewhere(&here));
  hearing.heard(&there);
  hearing.ends(&there);
  EXPECT_FALSE(hearing.is_elsewhere(&here));
}

}  // namespace
}  // namespace stp::test::link_lock_test

namespace stp::test::link_test {
namespace {

in_addr_t name_of(fid& id) {
  sockaddr_in name{};
  auto length = sizeof name;
  EXPECT_EQ(fi_getname(&id, &name, &length), 0);
  return ntohl(name.sin_addr.s_addr);
}

// An endpoint's own address is the one that its link has at present.
TEST(FiLink, TheNamesOfEndpointsHaveThePresentAddress) {
  auto* const port = new TestPort;
  const Daemon daemon{std::unique_ptr<port::Port>(port)};
  const UseLink link(daemon.link());
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  Side side(info);
  fid_pep* made = nullptr;
  ASSERT_EQ(fi_passive_ep(side.fabric.get(), info.get(), &made, nullptr), 0);
  const Fid<fid_pep> pep(made);
  const auto ep = side.endpoint(info.get());
  EXPECT_EQ(name_of(pep->fid), 0x0a090001U);
  port->address = 0x0a090009;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (name_of(pep->fid) != 0x0a090009 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(name_of(pep->fid), 0x0a090009U);
  EXPECT_EQ(name_of(ep->fid), 0x0a090009U);
}

// Before it has a port there is no name to tell.
TEST(FiLink, AnEndpointIsCalledAsTheProgramSaysBeforeItIsEnabled) {
  const UseLink link("loop");
  Info info;
  const auto asked = rdm_hints();
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  const RdmNode node(info);
  const auto ep = opened<fid_ep>(
      [&](auto** e) { return fi_endpoint(node.domain.get(), info.get(), e, nullptr); });
  sockaddr_in name{};
  auto length = sizeof name;
  EXPECT_EQ(fi_getname(&ep->fid, &name, &length), -FI_EOPBADSTATE);
  name.sin_family = AF_INET;
  name.sin_port = htons(4711);
  ASSERT_EQ(fi_setname(&ep->fid, &name, sizeof name), 0);
  sockaddr_in told{};
  length = sizeof told;
  ASSERT_EQ(fi_getname(&ep->fid, &told, &length), 0);
  EXPECT_EQ(ntohs(told.sin_port), 4711);
  EXPECT_EQ(ntohl(told.sin_addr.s_addr), INADDR_LOOPBACK);
}

// The program tells a number alone. The log says what is used up, and what to raise.
TEST(FiLink, ALimitOfStpdIsNamed) {
  Daemon daemon;
  const UseLink link(daemon.link());
  Info info;
  const auto asked = rdm_hints();
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  const RdmNode node(info);
  daemon.limit_endpoints(1);
  const auto ep = opened<fid_ep>(
      [&](auto** e) { return fi_endpoint(node.domain.get(), info.get(), e, nullptr); });
  ASSERT_EQ(fi_ep_bind(ep.get(), &node.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &node.rx->fid, FI_RECV), 0);
  const Log log;
  EXPECT_EQ(fi_enable(ep.get()), -FI_ENOSPC);
  EXPECT_TRUE(log.says("<warn> any port: stpd: this program has all that --max-endpoints 1 of"));
}

// A UDP port that nobody has. Peers of a link that names its port have the same one.
std::string free_udp_port() {
  const int fd = ::socket(AF_INET6, SOCK_DGRAM, 0);
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  socklen_t length = sizeof name;
  EXPECT_EQ(::bind(fd, as_any, length), 0);
  EXPECT_EQ(::getsockname(fd, as_any, &length), 0);
  ::close(fd);
  return std::to_string(ntohs(name.sin6_port));
}

TEST(FiLink, AUdpPortThatAnotherProgramHasIsTold) {
  const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(fd, as_any, size), 0);
  ASSERT_EQ(::getsockname(fd, as_any, &size), 0);
  const UseLink link("udp:[::1],port=" + std::to_string(ntohs(name.sin6_port)));
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  const Log log;
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), -FI_EADDRINUSE);
  EXPECT_TRUE(log.says("another program has this UDP port"));
  ::close(fd);
}

// Of a thread whose core is crowded, and that polls in vain so often.
int sleeps_in(unsigned polls, fid_cq* queue) {
  slept = 0;
  is_crowded = true;
  for (unsigned i = 0; i < polls; ++i) fi_cq_read(queue, nullptr, 1);
  is_crowded = false;
  return slept;
}

// A thread that polls one link alone gives its core to others, whatever other threads hear.
TEST(FiLink, WhereTheCoreIsCrowdedAThreadSleepsThoughAnotherOneHearsElsewhere) {
  constexpr unsigned kPolls = 400;
  const auto node_on = [](const Daemon& daemon) {
    const UseLink link(daemon.link());
    Info info;
    EXPECT_EQ(get_info(nullptr, nullptr, 0, rdm_hints(), info), 0);
    return std::make_unique<RdmNode>(info);
  };
  const Daemon first, second;
  const auto a = node_on(first), b = node_on(second);
  std::thread([&] {
    const auto to_itself = a->insert(a->name());
    EXPECT_EQ(fi_tsend(a->ep.get(), "x", 1, nullptr, to_itself, 1, nullptr), 0);
    a->completed(a->tx.get());
  }).join();
  EXPECT_GE(sleeps_in(kPolls, b->rx.get()), 4);
}

// The peer may want the same core.
TEST(FiLink, WhereTheCoreIsCrowdedAThreadSleepsOnALinkOfItsOwnToo) {
  const UseLink link("loop");
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, rdm_hints(), info), 0);
  const RdmNode node(info);
  EXPECT_GE(sleeps_in(8 * fi::IdlePolls::kManyAlone, node.rx.get()), 4);
}

// Endpoints with IPv6 addresses: a pair of FI_EP_RDM, and who a message is from.
TEST(FiLink, EndpointsHaveIpv6AddressesOverUdp) {
  const auto port = free_udp_port();
  const UseLink link("udp:[::1],port=" + port);
  Info info;
  const auto asked = rdm_hints();
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  RdmNode a(info), b(info);
  a.others = {&b};
  b.others = {&a};
  const auto insert = [&](const RdmNode& to, const RdmNode& other) {
    sockaddr_in6 name{};
    auto length = sizeof name;
    EXPECT_EQ(fi_getname(&other.ep->fid, &name, &length), 0);
    EXPECT_EQ(length, sizeof name);
    EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&name.sin6_addr));
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(to.av.get(), &name, 1, &number, 0, nullptr), 1);
    std::array<char, 64> text{};
    auto room = text.size();
    fi_av_straddr(to.av.get(), &name, text.data(), &room);
    EXPECT_EQ(text.data(),
              "fi_sockaddr_in6://[::1]/" + port + ":" + std::to_string(ntohs(name.sin6_port)));
    sockaddr_in6 again{};
    EXPECT_EQ(fi_av_lookup(to.av.get(), number, &again, &(length = sizeof again)), 0);
    EXPECT_EQ(std::memcmp(&again, &name, sizeof name), 0);
    return number;
  };
  const auto to_b = insert(a, b), to_a = insert(b, a);
  char got[6]{};
  ASSERT_EQ(fi_trecv(b.ep.get(), got, sizeof got, nullptr, to_a, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep.get(), "hello", 6, nullptr, to_b, 7, nullptr), 0);
  EXPECT_EQ(b.completed(b.rx.get()).source, to_a);
  EXPECT_STREQ(got, "hello");
}

// Links of one host that have UDP ports of their own: a name has the port, and a message comes from
// whom the receiver has that name of.
void expect_found_by_udp_port(const std::string& address) {
  const auto node_on = [&](const std::string& options) {
    const UseLink link("udp:" + address + ",port=0" + options);
    Info info;
    EXPECT_EQ(get_info(nullptr, nullptr, 0, rdm_hints(), info), 0);
    return std::make_unique<RdmNode>(info);
  };
  const auto a = node_on(""), b = node_on(",mtu=1500");
  a->others = {b.get()};
  b->others = {a.get()};
  const auto insert = [](const RdmNode& to, const RdmNode& other, std::string& text) {
    sockaddr_in6 name{};
    auto length = sizeof name;
    EXPECT_EQ(fi_getname(&other.ep->fid, &name, &length), 0);
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(to.av.get(), &name, 1, &number, 0, nullptr), 1);
    std::array<char, 64> told{};
    auto room = told.size();
    fi_av_straddr(to.av.get(), &name, told.data(), &room);
    text = told.data();
    return number;
  };
  std::string at_b, at_a;
  const auto to_b = insert(*a, *b, at_b), to_a = insert(*b, *a, at_a);
  char got[6]{};
  ASSERT_EQ(fi_trecv(b->ep.get(), got, sizeof got, nullptr, to_a, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a->ep.get(), "hello", 6, nullptr, to_b, 7, nullptr), 0);
  EXPECT_EQ(b->completed(b->rx.get()).source, to_a);
  EXPECT_STREQ(got, "hello");

  // The same by the name of the host.
  const auto host = at_b.find("//") + 2, slash = at_b.find('/', host), colon = at_b.rfind(':');
  ASSERT_NE(slash, std::string::npos) << at_b;
  const auto node = at_b.substr(host, colon - host);
  auto bare = node;
  std::erase_if(bare, [](char c) { return c == '[' || c == ']'; });
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  const auto service = at_b.substr(colon + 1);
  ASSERT_EQ(fi_av_insertsvc(a->av.get(), bare.c_str(), service.c_str(), &number, 0, nullptr), 1);
  sockaddr_in6 one{}, other{};
  auto length = sizeof one;
  ASSERT_EQ(fi_av_lookup(a->av.get(), to_b, &one, &length), 0);
  ASSERT_EQ(fi_av_lookup(a->av.get(), number, &other, &length), 0);
  EXPECT_EQ(std::memcmp(&one, &other, sizeof one), 0);
  const UseLink link("udp:" + address + ",port=0");
  Info info;
  ASSERT_EQ(get_info(node.c_str(), service.c_str(), 0, rdm_hints(), info), 0);
  EXPECT_EQ(std::memcmp(&one, info->dest_addr, info->dest_addrlen), 0);
}

TEST(FiLink, PeersHaveUdpPortsOfTheirOwn) {
  expect_found_by_udp_port("127.0.0.1");
  expect_found_by_udp_port("[::1]");
}

TEST(FiLink, AUdpPortIsForLinksThatHaveSome) {
  const auto refused = [](const char* link, const char* node, std::uint64_t flags,
                          const char* reason) {
    const UseLink use(link);
    const Log log;
    Info info;
    EXPECT_EQ(get_info(node, "4711", flags, rdm_hints(), info), -FI_ENODATA);
    EXPECT_TRUE(log.says(reason)) << reason;
  };
  refused("loop", "127.0.0.1/9001", 0, "the destination has a UDP port, and stations of this");
  refused("udp:127.0.0.1", "127.0.0.1/9001", FI_SOURCE, "a source has the UDP port of its link");
  for (const char* node : {"127.0.0.1/0", "127.0.0.1/65536", "[::1]/x", "127.0.0.1/"})
    refused("udp:127.0.0.1", node, 0, "a UDP port, 1 to 65535, stands after the slash");
  refused("udp:127.0.0.1", "[::1/9001", 0, "no address is known of [::1/9001 (HOST/UDP-PORT)");
}

// Peers have the port of the link itself (port=9001) if none is named.
TEST(FiLink, AnAddressWithoutAUdpPortIsOneWithTheUsualPort) {
  const auto port = free_udp_port();
  const auto node_at = [&](const std::string& address) {
    const UseLink link("udp:" + address + ",port=" + port);
    Info info;
    EXPECT_EQ(get_info(nullptr, nullptr, 0, rdm_hints(), info), 0);
    return std::make_unique<RdmNode>(info);
  };
  const auto a = node_at("127.0.0.1"), b = node_at("127.0.0.2");
  a->others = {b.get()};
  b->others = {a.get()};
  const auto unmarked = [](const RdmNode& node) {
    auto name = node.name();
    EXPECT_NE(std::count(std::begin(name.sin_zero), std::end(name.sin_zero), 0), 8);
    std::ranges::fill(name.sin_zero, std::uint8_t{0});
    return name;
  };
  const auto to_b = a->insert(unmarked(*b)), to_a = b->insert(unmarked(*a));
  char got[6]{};
  ASSERT_EQ(fi_trecv(b->ep.get(), got, sizeof got, nullptr, to_a, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a->ep.get(), "hello", 6, nullptr, to_b, 7, nullptr), 0);
  EXPECT_EQ(b->completed(b->rx.get()).source, to_a);
}

// Then each message that is not copied costs a registration.
TEST(FiLink, TheLogSaysThatRegistrationsAreNotKept) {
  constexpr auto kOff = "registrations are not kept: STP_REGISTRATION_CACHE is 0";
  const UseLink link("loop");
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  const Log log;
  const Side usual(info);
  EXPECT_FALSE(log.says(kOff));
  ASSERT_EQ(::setenv("STP_REGISTRATION_CACHE", "0", 1), 0);
  const Side side(info);
  ::unsetenv("STP_REGISTRATION_CACHE");
  EXPECT_TRUE(log.says(kOff));
}

// The name of an endpoint may be any of the host's addresses, and none of another one.
TEST(FiLink, AnEndpointMayBeCalledByAnIpv6AddressOfThisHost) {
  const UseLink link("udp:,port=0");
  Info info;
  ASSERT_EQ(get_info("::1", "4711", FI_SOURCE, hints(), info), 0);
  const Side side(info);
  fid_pep* made = nullptr;
  ASSERT_EQ(fi_passive_ep(side.fabric.get(), info.get(), &made, nullptr), 0);
  const Fid<fid_pep> pep(made);
  sockaddr_in6 name{};
  auto length = sizeof name;
  EXPECT_EQ(fi_getname(&pep->fid, &name, &length), 0);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&name.sin6_addr));
  ASSERT_EQ(::inet_pton(AF_INET6, "2001:db8::77", &name.sin6_addr), 1);
  EXPECT_EQ(fi_setname(&pep->fid, &name, sizeof name), -FI_EADDRNOTAVAIL);
}

}  // namespace
}  // namespace stp::test::link_test

namespace stp::test::dialers_test {
namespace {

using fi::Dialers;
using fi::LinkLock;
using fi::LinkMutex;

// Who is not connected hears of it.
class Caller final : public fi::Owner {
 public:
  explicit Caller(std::counting_semaphore<>& heard) : heard_(heard) {}
  void connection_event(const stm_event_t&) override {}
  void not_dialed(int status) override {
    status_ = status;
    heard_.release();
  }
  void arrived(fi::RxBuffer&, const stm_event_t&) override {}
  void serve(const stm_event_t&) override {}
  void part_done(fi::Op&, int) override {}
  void dialed() override { ++dialed_; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] int dialed_times() const { return dialed_; }

 private:
  int status_ = 0, dialed_ = 0;
  std::counting_semaphore<>& heard_;
};

class FiDialers : public testing::Test {
 protected:
  void dial(const std::string& host) {
    const LinkLock lock(mutex_);
    dialers_.dial({.owner = &caller_, .connection = nullptr, .peer = host + ":1", .data = {}});
  }
  bool hurry(std::chrono::steady_clock::time_point now) {
    const LinkLock lock(mutex_);
    return dialers_.hurry(now);
  }
  void dial_silent(std::size_t hosts) {
    for (std::size_t i = 0; i < hosts; ++i) dial("silent" + std::to_string(i));
  }
  // So many are given up.
  void give_up(std::size_t hosts) {
    patience_.release(static_cast<std::ptrdiff_t>(hosts));
    for (std::size_t i = 0; i < hosts; ++i) heard_.acquire();
  }
  // That many threads wait for answers.
  [[nodiscard]] bool wait(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i)
      if (!waiting_.try_acquire_for(kPatience)) return false;
    return true;
  }
  // Those whose names begin with "silent" do not answer, unless all do.
  int connect(const fi::Dial& dial) {
    if (all_answer_ || !dial.peer.starts_with("silent")) {
      begun_.release();
      return 0;
    }
    waiting_.release();
    patience_.acquire();
    return -EHOSTUNREACH;
  }

  static constexpr std::chrono::seconds kPatience{20};
  std::counting_semaphore<> heard_{0}, begun_{0}, waiting_{0}, patience_{0};
  std::atomic<bool> all_answer_ = false;
  Caller caller_{heard_};
  LinkMutex mutex_;
  Dialers dialers_{mutex_, [this](const fi::Dial& each) { return connect(each); }};
};

// However many they are, and however often the program tries.
TEST_F(FiDialers, HostsThatDidNotAnswerHoldUpNoOthers) {
  constexpr auto kHosts = 3 * Dialers::kMost;
  dial_silent(kHosts);
  give_up(kHosts);
  EXPECT_TRUE(wait(kHosts));
  EXPECT_EQ(caller_.status(), -EHOSTUNREACH);
  dial_silent(kHosts);
  EXPECT_TRUE(wait(Dialers::kMostToSilent));
  dial("there");
  EXPECT_TRUE(begun_.try_acquire_for(kPatience));
  EXPECT_FALSE(waiting_.try_acquire());
  give_up(kHosts);
}

// Of those that are new nobody knows yet that they are not there.
TEST_F(FiDialers, NewHostsThatDoNotAnswerHoldUpOthersForAMoment) {
  dial_silent(Dialers::kMost);
  EXPECT_TRUE(wait(Dialers::kMost));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(hurry(now)) << "a program may sleep for ever";
  dial("there");
  EXPECT_TRUE(hurry(now)) << "it may sleep for 50 ms";
  EXPECT_FALSE(begun_.try_acquire());
  hurry(now + std::chrono::seconds(1));
  EXPECT_TRUE(begun_.try_acquire_for(kPatience));
  give_up(Dialers::kMost);
}

// The connection may have been refused before the thread that has begun it goes on.
TEST_F(FiDialers, WhoHasEndedMeanwhileIsToldNothing) {
  for (const auto status : {0, -EHOSTUNREACH})
    for (const auto ends : {true, false}) {
      std::unique_ptr<Dialers> dialers;
      dialers = std::make_unique<Dialers>(mutex_, [&](const fi::Dial&) {
        const LinkLock lock(mutex_);
        if (ends) dialers->forget(caller_);
        begun_.release();
        return status;
      });
      {
        const LinkLock lock(mutex_);
        dialers->dial({.owner = &caller_, .connection = nullptr, .peer = "there:1", .data = {}});
      }
      begun_.acquire();
      dialers.reset();  // its thread has ended
      EXPECT_EQ(caller_.dialed_times(), status == 0 && ends ? 0 : 1);
      EXPECT_EQ(caller_.status(), status != 0 && !ends ? status : 0);
    }
}

TEST_F(FiDialers, AHostThatAnswersAgainIsOneOfTheOthers) {
  dial("silent host");
  give_up(1);
  all_answer_ = true;
  dial("silent host");
  begun_.acquire();
  all_answer_ = false;
  EXPECT_TRUE(wait(1));
  dial_silent(Dialers::kMostToSilent);
  give_up(Dialers::kMostToSilent);
  dial_silent(Dialers::kMostToSilent);
  EXPECT_TRUE(wait(2 * Dialers::kMostToSilent));
  dial("silent host");
  EXPECT_TRUE(wait(1));
  give_up(Dialers::kMostToSilent + 1);
}

}  // namespace
}  // namespace stp::test::dialers_test
