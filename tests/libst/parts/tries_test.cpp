// SPDX-License-Identifier: BSD-3-Clause
// Hosts that have several addresses. The clock of this program is the test's (time/clock.h).
#include "libst/client/tries.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stp/managed.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "libst/client/answers.h"
#include "libst/client/wait.h"
#include "libst/os/unique_fd.h"
#include "tests/host/test_port.h"
#include "tests/libst/libst_fixture.h"
#include "tests/libst/parts/resolver.h"
#include "tests/managed/time/clock.h"

namespace stp::test::tries_test {
namespace {

client::Tries tries_of(const std::vector<const char*>& addresses) {
  client::Places places;
  places.host = "several.test";
  for (const auto* const address : addresses)
    places.all.push_back({port::parse_internet_address(address).value(), ""});
  return client::Tries(std::move(places));
}

TEST(Tries, EachHasItsShareOfTheTimeAndTheLastOneTheRest) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2", "2001:db8::3"});
  tries.begin(0, 9 * kSecond);
  EXPECT_EQ(tries.limit(), 3 * kSecond);
  tries.give_up("");
  tries.begin(kSecond, 3 * kSecond);
  EXPECT_EQ(tries.limit(), 5 * kSecond / 2);
  tries.give_up("no route");
  tries.begin(kSecond + 5, 3 * kSecond);
  EXPECT_EQ(tries.limit(), 3 * kSecond);
  EXPECT_EQ(tries.look_at(), kNever) << "there is no other one";
  EXPECT_EQ(client::name_of(tries.present()), "[2001:db8::3]");
  tries.give_up("");
  EXPECT_TRUE(tries.is_over());
  EXPECT_EQ(tries.text(),
            "tried of 'several.test': 10.0.0.1 and [2001:db8::3] (no answer), 10.0.0.2 (no route)");
}

// What a user may have given as the timeout, and the usual ones.
TEST(Tries, EachIsAskedWithinTheTime) {
  for (const Time until : {kSecond, 2 * kSecond, 9 * kSecond / 2, 10 * kSecond, 30 * kSecond}) {
    auto tries = tries_of({"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6",
                           "10.0.0.7", "10.0.0.8"});
    const auto fair = std::min(until / 8, client::Tries::kLeast);
    Time now = 0;
    for (int i = 0; i < 7; ++i) {
      tries.begin(now, until);
      EXPECT_GE(tries.limit() - now, fair) << i << " of " << until;
      now = tries.limit();
      tries.give_up("");
    }
    tries.begin(now, until);
    EXPECT_EQ(tries.limit(), until);
    EXPECT_LE(now + fair, std::min(until, 10 * kSecond)) << until;
  }
}

TEST(Tries, ATextTellsWhatWasNotAskedOrHasNotAnsweredYet) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"});
  tries.begin(0, 9 * kSecond);
  EXPECT_FALSE(tries.any_silent());
  tries.give_up("");
  EXPECT_TRUE(tries.any_silent());
  EXPECT_EQ(tries.text(),
            "tried of 'several.test': 10.0.0.1 (no answer), 10.0.0.2 and 10.0.0.3 and 10.0.0.4 "
            "(not asked)");
  tries.begin(0, 9 * kSecond);
  tries.give_up("nobody answers for 10.0.0.2 on the link");
  tries.begin(0, 9 * kSecond);
  EXPECT_EQ(tries.text(),
            "tried of 'several.test': 10.0.0.1 (no answer), 10.0.0.2 (nobody answers on the link), "
            "10.0.0.3 (no answer yet), 10.0.0.4 (not asked)");
  tries.give_up("cannot send to 10.0.0.3/0: Network is unreachable");
  tries.give_up("the way to 10.0.0.4/0 reports: No route to host");
  EXPECT_EQ(tries.text(),
            "tried of 'several.test': 10.0.0.1 (no answer), 10.0.0.2 (nobody answers on the link), "
            "10.0.0.3 (cannot send: Network is unreachable), 10.0.0.4 (the way reports: No route "
            "to host)");
}

TEST(Tries, TheOneThatAnsweredComesFirstTheNextTime) {
  const auto place = [](const char* address) {
    return client::Place{port::parse_internet_address(address).value(), ""};
  };
  const std::vector<client::Place> all = {place("10.1.0.1"), place("10.1.0.2"), place("10.1.0.3")};
  auto tries = tries_of({"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  tries.give_up("");
  EXPECT_TRUE(tries.any_silent());
  tries.answered("");
  EXPECT_FALSE(tries.any_silent()) << "what firewalls do is no news then";
  auto places = all;
  client::put_answers_first(places);
  EXPECT_EQ(places, (std::vector{all[1], all[0], all[2]}));
  for (const bool refuses : {false, true}) {
    client::remember_answer(all[1]);
    auto next = tries_of({"10.1.0.2", "10.1.0.1"});
    refuses ? next.answered("refused") : next.give_up("");
    places = all;
    client::put_answers_first(places);
    EXPECT_EQ(places, all) << refuses;
  }
}

TEST(Tries, TheLatestAnswersAreRemembered) {
  std::vector<client::Place> all;
  for (unsigned i = 0; i <= client::kMostAnswers; ++i) {
    const auto address = "10.2.0." + std::to_string(i + 1);
    all.push_back({port::parse_internet_address(address).value(), ""});
    client::remember_answer(all.back());
  }
  auto places = all;
  client::put_answers_first(places);
  EXPECT_EQ(places.front(), all.back());
  EXPECT_EQ(places.back(), all.front());
  for (const auto& place : all) client::forget_answer(place);
}

TEST(Tries, AProgramHasAMomentToDecide) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  tries.begin(0, 6 * kSecond);
  EXPECT_EQ(tries.limit(), client::Tries::kShortest);
  tries.begin(0, 2 * kSecond);
  EXPECT_EQ(tries.limit(), kSecond) << "the others need something, too";
}

TEST(Tries, AStationHasItsShareAndASecondAtMost) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  tries.begin(0, 3 * kSecond / 2);
  EXPECT_EQ(tries.ask_by(), kSecond / 2);
  tries.begin(0, 30 * kSecond);
  EXPECT_EQ(tries.ask_by(), kSecond);
  auto one = tries_of({"10.0.0.1"});
  one.begin(0, kSecond / 2);
  EXPECT_EQ(one.ask_by(), kNever);
}

TEST(Tries, NoneOfSeveralTakesLongerThanAHostMayBeSilent) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2"});
  tries.begin(0, 60 * kSecond);
  EXPECT_EQ(tries.limit(), client::Tries::kLongest);
  tries.give_up("");
  tries.begin(client::Tries::kLongest, 60 * kSecond);
  EXPECT_EQ(tries.limit(), 60 * kSecond);
}

TEST(Tries, AReportIsBelievedOnce) {
  auto tries = tries_of({"10.0.0.1", "10.0.0.2"});
  for (const auto* const address : {"10.0.0.1", "10.0.0.2"}) {
    tries.begin(0, 4 * kSecond);
    EXPECT_EQ(client::name_of(tries.present()), address);
    EXPECT_EQ(tries.look_at(), client::Tries::kFirstLook);
    tries.looked(100 * kMillisecond);
    EXPECT_EQ(tries.look_at(), 200 * kMillisecond);
    tries.give_up_for_now("gone");
  }
  for (const auto* const address : {"10.0.0.1", "10.0.0.2"}) {
    tries.begin(0, 4 * kSecond);
    EXPECT_EQ(client::name_of(tries.present()), address);
    EXPECT_EQ(tries.look_at(), kNever);
    tries.give_up("");
  }
  EXPECT_TRUE(tries.is_over());
  EXPECT_EQ(tries.text(), "tried of 'several.test': 10.0.0.1 and 10.0.0.2 (gone)");
  EXPECT_FALSE(tries.any_silent());
}

TEST(Tries, OfManyAddressesTheFirstOnesAreTried) {
  auto tries = tries_of(std::vector<const char*>(20, "10.0.0.1"));
  unsigned count = 0;
  for (; !tries.is_over(); ++count) tries.give_up("");
  EXPECT_EQ(count, client::Tries::kMost);
}

// ---- whole connections: the server is at 127.0.0.1, and nobody at 127.0.0.8 and 127.0.0.9

// A socket that hears everything and answers nothing; or what keeps a port from others.
os::UniqueFd socket_at(const char* address, std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &name.sin_addr);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  return fd;
}

std::uint16_t free_port() {
  const auto fd = socket_at("127.0.0.1", 0);
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length);
  return ntohs(name.sin_port);
}

// How each ended depends on how fast this machine is.
void expect_once(const std::string& text, std::initializer_list<const char*> parts) {
  for (const std::string part : parts) {
    const auto at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part << " is missing in: " << text;
    EXPECT_EQ(text.find(part, at + 1), std::string::npos) << part << " is there twice: " << text;
  }
}

std::string as_server(std::uint16_t port) {
  return "udp:127.0.0.1,port=" + std::to_string(port);
}

// As long as it lives, time passes until somebody has waited for so long.
class Waiting {
 public:
  explicit Waiting(Time time)
      : thread_([time] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // most likely it waits then
          let_pass(time);
        }) {}
  ~Waiting() { thread_.join(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::thread thread_;
};

class SeveralAddresses : public testing::TestWithParam<Way> {
 protected:
  ~SeveralAddresses() override { several.clear(); }
  // Of the client.
  std::string link(const std::string& text) {
    if (GetParam() == Way::kInProcess) return text;
    daemon_.emplace(text);
    return daemon_->link();
  }
  const std::uint16_t port_ = free_port();
  const std::string peer_ = "several.test/" + std::to_string(port_) + ":3000";

 private:
  std::optional<Daemon> daemon_;
};
class Level0 : public SeveralAddresses {
 protected:
  Level0() {
    const UseLink at(as_server(port_));
    server_.emplace(":3000");
    EXPECT_EQ(st_listen(*server_), 0);
    use_.emplace(link("udp:127.0.0.1,port=0"));
    client_.emplace();
  }
  int connect() {
    st_chandle_t connection = nullptr;
    return st_connect(*client_, peer_.c_str(), &connection);
  }
  std::optional<Endpoint> server_, client_;
  std::optional<UseLink> use_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, Level0, testing::Values(Way::kInProcess, Way::kThroughDaemon),
                         [](const auto& info) {
                           return info.param == Way::kInProcess ? "InProcess" : "ThroughDaemon";
                         });

TEST_P(Level0, TheNextOneIsTriedWhereNobodyIsReportedToBe) {
  several = {"127.0.0.8", "127.0.0.9", "127.0.0.1"};
  const auto begin = client::now();
  EXPECT_EQ(connect(), 0) << st_strerror(-ETIMEDOUT);
  EXPECT_LT(client::now() - begin, 3 * kSecond) << "their share of the time would be more";
}

TEST_P(Level0, TheNextOneIsTriedWhereNobodyAnswers) {
  several = {"127.0.0.9", "127.0.0.1"};
  const auto silent = socket_at("127.0.0.9", port_);
  const Waiting waiting(2'600 * kMillisecond);
  EXPECT_EQ(connect(), 0) << st_strerror(-ETIMEDOUT);
}

TEST_P(Level0, TheErrorNamesAllOfThem) {
  several = {"127.0.0.8", "::1", "127.0.0.9"};
  asked_for_both = 0;
  set_option(*client_, ST_OPT_CONNECT_PATIENCE, 40);
  ASSERT_EQ(connect(), -ETIMEDOUT);
  const std::string why = st_strerror(-ETIMEDOUT);
  EXPECT_TRUE(why.starts_with("nobody answered in time; tried of 'several.test': ")) << why;
  EXPECT_NE(why.find("has no socket for that port"), std::string::npos) << why;
  expect_once(why, {"tried of", "127.0.0.8", "127.0.0.9"});
  EXPECT_EQ(asked_for_both, 0U) << "a resolver that drops such questions holds everybody up";
}

// Its Node has answered.
TEST_P(Level0, ARefusalIsFinal) {
  several = {"127.0.0.1", "127.0.0.9"};
  server_->reset();
  const UseLink at(as_server(port_));
  const Endpoint another;
  EXPECT_EQ(connect(), -ECONNREFUSED);
  EXPECT_NE(std::string(st_strerror(-ECONNREFUSED)).find("127.0.0.1 (refused)"), std::string::npos)
      << st_strerror(-ECONNREFUSED);
}

TEST_P(Level0, AllThatAreSilentAreNamedOnce) {
  several = {"127.0.0.7", "127.0.0.8", "127.0.0.9"};
  const auto seven = socket_at("127.0.0.7", port_), eight = socket_at("127.0.0.8", port_),
             nine = socket_at("127.0.0.9", port_);
  set_option(*client_, ST_OPT_CONNECT_PATIENCE, 30);
  ASSERT_EQ(connect(), -ETIMEDOUT);
  const std::string why = st_strerror(-ETIMEDOUT);
  EXPECT_TRUE(why.starts_with("nobody answered in time; tried of 'several.test': ")) << why;
  expect_once(why,
              {"tried of", "127.0.0.7", "127.0.0.8", "127.0.0.9", "see also whether firewalls"});
}

// A domain with a queue, by the managed API.
struct Domain {
  explicit Domain(const std::string& link) {
    stm_domain_attr_t attr{};
    attr.size = sizeof attr;
    attr.link = link.c_str();
    EXPECT_EQ(stm_domain_open(&attr, &domain), 0);
    EXPECT_EQ(stm_queue_create(domain, 64, &queue), 0);
  }
  ~Domain() { stm_domain_close(domain); }
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  stm_event_t next() const {
    stm_event_t event{};
    EXPECT_EQ(stm_queue_wait(queue, 1, &event, 1, 20'000'000), 1);
    return event;
  }
  stm_domain_t domain = nullptr;
  stm_queue_t queue = nullptr;
};

class Managed : public SeveralAddresses {
 protected:
  Managed() {
    stm_connection_attr_t attr{};
    attr.size = sizeof attr;
    attr.events = client_.queue;
    EXPECT_EQ(stm_connection_create(client_.domain, &attr, &connection_), 0);
  }
  void listen() {
    server_.emplace(as_server(port_));
    stm_listener_t listener = nullptr;
    EXPECT_EQ(stm_listen(server_->domain, ":3000", server_->queue, 0, 0, &listener), 0);
  }
  // The server gets the request while the client waits, and accepts.
  void expect_connected() {
    stm_event_t event{};
    std::thread serving([&] {
      const auto request = server_->next();
      EXPECT_EQ(request.kind, std::uint32_t{STM_REQUEST});
      stm_connection_attr_t attr{};
      attr.size = sizeof attr;
      attr.events = server_->queue;
      EXPECT_EQ(stm_accept(request.connection, &attr, nullptr, 0), 0);
      server_->next();
    });
    event = client_.next();
    EXPECT_EQ(event.kind, std::uint32_t{STM_CONNECTED}) << st_strerror(event.status);
    if (event.kind != STM_CONNECTED) server_.reset();
    serving.join();
  }
  int connect(std::int64_t timeout) {
    return stm_connect(connection_, peer_.c_str(), timeout, nullptr, 0);
  }
  Domain client_{link("udp:127.0.0.1,port=0")};
  stm_connection_t connection_ = nullptr;
  std::optional<Domain> server_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, Managed, testing::Values(Way::kInProcess, Way::kThroughDaemon),
                         [](const auto& info) {
                           return info.param == Way::kInProcess ? "InProcess" : "ThroughDaemon";
                         });

TEST_P(Managed, TheNextOneIsTriedWhereNobodyIsReportedToBe) {
  several = {"127.0.0.8", "127.0.0.9", "127.0.0.1"};
  listen();
  const auto begin = client::now();
  ASSERT_EQ(connect(-1), 0);
  expect_connected();
  EXPECT_LT(client::now() - begin, 2 * kSecond) << "their share of the time would be more";
}

TEST_P(Managed, TheNextOneIsTriedWhereNobodyAnswers) {
  several = {"127.0.0.9", "127.0.0.1"};
  const auto silent = socket_at("127.0.0.9", port_);
  listen();
  ASSERT_EQ(connect(-1), 0);
  const Waiting waiting(2'300 * kMillisecond);
  expect_connected();
}

// A report may be forged, or true for a moment.
TEST_P(Managed, OneThatWasReportedGoneIsTriedAgain) {
  several = {"127.0.0.1", "127.0.0.9"};
  ASSERT_EQ(connect(-1), 0);
  std::string told;
  while (told.find("127.0.0.9") == std::string::npos) {  // so it has been asked for
    stm_link_info_t info{};
    info.size = sizeof info;
    ASSERT_EQ(stm_link_query(client_.domain, &info), 0);
    told = info.trouble;
    stm_event_t event{};
    ASSERT_EQ(stm_queue_poll(client_.queue, &event, 1), 0);
  }
  const Domain server(as_server(port_));  // where nobody listens: that is its answer
  EXPECT_EQ(client_.next().status, -ECONNREFUSED);
}

TEST_P(Managed, WhatIsKnownOfThePeerNamesAllOfThem) {
  several = {"127.0.0.8", "::1", "127.0.0.9"};
  ASSERT_EQ(connect(40'000), 0);
  const auto event = client_.next();
  EXPECT_EQ(event.kind, std::uint32_t{STM_FAILED});
  EXPECT_EQ(event.status, -ETIMEDOUT);
  stm_peer_info_t peer{};
  peer.size = sizeof peer;
  ASSERT_EQ(stm_peer_query(connection_, &peer), 0);
  const std::string why = peer.trouble;
  EXPECT_NE(why.find("has no socket for that port"), std::string::npos) << why;
  expect_once(why, {"tried of", "127.0.0.8", "127.0.0.9"});
  EXPECT_EQ(stm_connection_close(connection_), 0);
}

std::string trouble_of(stm_connection_t connection) {
  stm_peer_info_t peer{};
  peer.size = sizeof peer;
  EXPECT_EQ(stm_peer_query(connection, &peer), 0);
  return peer.trouble;
}

// Had it opened a connection there, another one would not wait for the silent ones again.
TEST_P(Managed, TheOneBehindManySilentOnesIsReachedAndRemembered) {
  several = {"127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9", "127.0.0.1"};
  const auto six = socket_at("127.0.0.6", port_), seven = socket_at("127.0.0.7", port_),
             eight = socket_at("127.0.0.8", port_), nine = socket_at("127.0.0.9", port_);
  const auto begin = client::now();
  ASSERT_EQ(connect(30'000'000), 0);
  const Domain server(as_server(port_));  // where nobody listens: that is its answer
  stm_event_t event{};
  while (stm_queue_wait(client_.queue, 1, &event, 1, 1'000) <= 0) {
    ASSERT_LT(client::now() - begin, 10 * kSecond) << trouble_of(connection_);
    if (trouble_of(connection_).find("127.0.0.1 (no answer yet)") == std::string::npos)
      let_pass(100 * kMillisecond);
  }
  EXPECT_EQ(event.status, -ECONNREFUSED);
  EXPECT_TRUE(trouble_of(connection_)
                  .starts_with("tried of 'several.test': 127.0.0.6 and 127.0.0.7 and 127.0.0.8 and "
                               "127.0.0.9 (no answer), 127.0.0.1 (refused)"))
      << trouble_of(connection_);
  auto address = port::parse_internet_address("127.0.0.1").value();
  address.port = port_;
  client::remember_answer({address, ""});
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = client_.queue;
  stm_connection_t again = nullptr;
  ASSERT_EQ(stm_connection_create(client_.domain, &attr, &again), 0);
  ASSERT_EQ(stm_connect(again, peer_.c_str(), 30'000'000, nullptr, 0), 0);
  EXPECT_EQ(client_.next().status, -ECONNREFUSED);
  EXPECT_TRUE(trouble_of(again).starts_with("tried of 'several.test': 127.0.0.1 (refused), "))
      << trouble_of(again);
}

TEST_P(Managed, AConnectionMayBeClosedBetweenTwoOfThem) {
  several = {"127.0.0.8", "127.0.0.9"};
  ASSERT_EQ(connect(-1), 0);
  for (int turn = 0; turn < 20; ++turn) {
    stm_event_t event{};
    EXPECT_EQ(stm_queue_poll(client_.queue, &event, 1), 0);
  }
  EXPECT_EQ(stm_connection_close(connection_), 0);
}

// ---- addresses of an Ethernet that no station answers for: each question takes time

class Unanswered final : public TestPort {
 public:
  std::atomic<Time> per_question = 60 * kMillisecond;
  std::atomic<unsigned> asked = 0;
  std::optional<MacAddr> resolve(port::Ipv4 address, Time) override {
    if (address == *port::parse_ipv4("10.9.0.2")) return info().mac;
    ++asked;
    let_pass(per_question);
    return std::nullopt;
  }
};

class NoStation : public testing::Test {
 protected:
  ~NoStation() override {
    for (const auto& address : several)
      client::forget_answer({port::parse_internet_address(address).value(), ""});
    several.clear();
  }
  void create(stm_connection_t& connection) {
    stm_connection_attr_t attr{};
    attr.size = sizeof attr;
    attr.events = client_.queue;
    EXPECT_EQ(stm_connection_create(client_.domain, &attr, &connection), 0);
  }
  void listen() {
    stm_listener_t listener = nullptr;
    EXPECT_EQ(stm_listen(server_.domain, ":3000", server_.queue, 0, 0, &listener), 0);
  }
  Unanswered* const link_ = new Unanswered;
  Daemon daemon_{std::unique_ptr<port::Port>(link_)};
  Domain client_{daemon_.link()}, server_{daemon_.link()};
  const Time begin_ = client::now();
};

TEST_F(NoStation, TheyShareTheTimeWithTheOthers) {
  several = {"10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.0.7", "10.9.0.1"};
  listen();
  stm_connection_t connection = nullptr;
  create(connection);
  EXPECT_EQ(stm_connect(connection, "several.test:3000", -1, nullptr, 0), 0);
  EXPECT_EQ(server_.next().kind, std::uint32_t{STM_REQUEST});
  EXPECT_LT(client::now() - begin_, 4'500 * kMillisecond);
}

TEST_F(NoStation, TheyHaveNoMoreThanTheTimeout) {
  several = {"10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6"};
  stm_connection_t connection = nullptr;
  create(connection);
  EXPECT_EQ(stm_connect(connection, "several.test:3000", 100'000, nullptr, 0), -EHOSTUNREACH);
  EXPECT_LT(client::now() - begin_, kSecond);
}

TEST_F(NoStation, TheyShareThePatienceOfLevel0) {
  several = {"10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.0.7", "10.9.0.1"};
  const UseLink use(daemon_.link());
  const Endpoint server(":3001"), client;
  ASSERT_EQ(st_listen(server), 0);
  set_option(client, ST_OPT_CONNECT_PATIENCE, 2'000);
  st_chandle_t connection = nullptr;
  EXPECT_EQ(st_connect(client, "several.test:3001", &connection), 0) << st_strerror(-ETIMEDOUT);
  EXPECT_LT(client::now() - begin_, 4 * kSecond);
}

TEST_F(NoStation, WhoAsksForOneWaitsASecondForAll) {
  several.assign(100, "");
  for (std::size_t i = 0; i < several.size(); ++i) several[i] = "10.9.1." + std::to_string(i + 1);
  const UseLink use(daemon_.link());
  const Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "several.test", &mac), -EHOSTUNREACH);
  EXPECT_LT(client::now() - begin_, 2 * kSecond);
}

// Another connection shows that the host is there at its first address: no reason to wait for a
// station at the second one.
TEST_F(NoStation, ItIsNotWaitedForWhereTheOneBeforeIsThere) {
  several = {"10.9.0.2", "10.9.0.3"};
  link_->per_question = 0;
  link_->cut = true;
  listen();
  stm_connection_t connection = nullptr, other = nullptr;
  create(connection);
  ASSERT_EQ(stm_connect(connection, "several.test:3000", -1, nullptr, 0), 0);
  stm_event_t event{};
  const auto go_on = [&](Time time) {
    let_pass(time);
    return stm_queue_wait(client_.queue, 1, &event, 1, 1'000);
  };
  while (link_->asked == 0) ASSERT_LE(go_on(100 * kMillisecond), 0);
  link_->cut = false;
  create(other);
  ASSERT_EQ(stm_connect(other, "10.9.0.1:3000", -1, nullptr, 0), 0);
  while (stm_queue_poll(server_.queue, &event, 1) == 0) ASSERT_LE(go_on(0), 0);
  while (client::now() - begin_ < 10 * kSecond && go_on(100 * kMillisecond) <= 0) {
  }
  EXPECT_EQ(event.connection, connection);
  EXPECT_EQ(event.status, -ETIMEDOUT);
}

}  // namespace
}  // namespace stp::test::tries_test
