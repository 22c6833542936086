// SPDX-License-Identifier: BSD-3-Clause
// Passive endpoints, connection requests, what comes along, and how connections end.
#include "tests/libfabric/stranger.h"
#include "tests/no_threads.h"

namespace stp::test::connect_test {
namespace {

using FiConnect = FiTest;

std::string text(const std::vector<char>& bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST_F(FiConnect, DataGoesAlongBothWays) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, "who asks", 8), 0);
  std::vector<char> data;
  const auto asked = request(&data);
  EXPECT_EQ(text(data), "who asks");
  ASSERT_EQ(asked->dest_addrlen, sizeof(sockaddr_in));
  accepted_ = server_->endpoint(asked.get());
  ASSERT_EQ(fi_accept(accepted_.get(), "welcome", 7), 0);
  EXPECT_EQ(client_->event(&data), FI_CONNECTED);
  EXPECT_EQ(text(data), "welcome");
  EXPECT_EQ(server_->event(&data), FI_CONNECTED);
  EXPECT_EQ(text(data), "");
  sockaddr_in peer{};
  auto length = sizeof peer;
  EXPECT_EQ(fi_getpeer(connected_.get(), &peer, &length), 0);
  EXPECT_EQ(peer.sin_port, static_cast<sockaddr_in*>(to->dest_addr)->sin_port);
  length = 3;
  EXPECT_EQ(fi_getpeer(connected_.get(), &peer, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof peer);
}

TEST_F(FiConnect, ARejectionSaysWhy) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  ASSERT_EQ(fi_reject(pep_.get(), asked->handle, "full", 4), 0);
  std::vector<char> data;
  const auto error = client_->event_error(data);
  EXPECT_EQ(error.err, FI_ECONNREFUSED);
  EXPECT_EQ(error.fid, &connected_->fid);
  EXPECT_EQ(text(data), "full");
}

TEST_F(FiConnect, NobodyListensThere) {
  listen();
  auto to = destination();
  pep_.reset();
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  std::vector<char> data;
  EXPECT_EQ(client_->event_error(data).err, FI_ECONNREFUSED);
}

TEST_F(FiConnect, AConnectForWhichThereIsNoThreadMayBeRepeated) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get());
  {
    const test::NoThreads now;
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), -FI_EAGAIN);
  }
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  accepted_ = server_->endpoint(asked.get());
  ASSERT_EQ(fi_accept(accepted_.get(), nullptr, 0), 0);
  EXPECT_EQ(client_->event(), FI_CONNECTED);
}

class Asker : public StrangeProgram {
 public:
  Asker() : StrangeProgram(1, 'a') {}
  // Afterwards the endpoint has the request: it has refused one that came behind it.
  void ask(std::uint16_t port) {
    dial(port, 0x53544649);
    const auto asked = connection_;
    dial(port, 0);
    EXPECT_TRUE(becomes_true([this] {
      stm_event_t event{};
      progress();
      return stm_queue_wait(queue_, 1, &event, 1, 0) == 1 && event.kind == STM_REFUSED;
    }));
    go();
    connection_ = asked;
  }
  void go() { EXPECT_EQ(stm_connection_close(connection_), 0); }
};

// The server does not read its event queue: nothing of those that have gone stays there.
TEST_F(FiConnect, OfThoseWhoAskAndGoAFewAreToldAtMost) {
  constexpr int kMany = 400;
  listen();
  const auto to = destination();
  Asker asker;
  asker.progress = [this] { fi_cq_read(server_->rx.get(), nullptr, 0); };
  for (int i = 0; i < kMany; ++i) {
    asker.ask(ntohs(static_cast<sockaddr_in*>(to->dest_addr)->sin_port));
    asker.go();
  }
  int told = 0;
  fi_eq_cm_entry entry{};
  std::uint32_t event = 0;
  while (fi_eq_read(server_->eq.get(), &event, &entry, sizeof entry, 0) > 0) {
    ASSERT_EQ(event, static_cast<std::uint32_t>(FI_CONNREQ));
    const Info asked(entry.info);
    EXPECT_EQ(fi_reject(pep_.get(), asked->handle, nullptr, 0), 0);
    ++told;
  }
  EXPECT_GT(told, 0) << "they had come";
  EXPECT_LT(told, kMany / 2);
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  EXPECT_NE(request(), nullptr);
}

TEST_F(FiConnect, AnEndpointOfARequestThatIsClosedRejectsIt) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  server_->endpoint(asked.get()).reset();
  std::vector<char> data;
  EXPECT_EQ(client_->event_error(data).err, FI_ECONNREFUSED);
}

TEST_F(FiConnect, ARequestEndsWithItsPassiveEndpoint) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  pep_.reset();
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(server_->domain.get(), asked.get(), &ep, nullptr), -FI_EINVAL);
  std::vector<char> data;
  EXPECT_EQ(client_->event_error(data).err, FI_ECONNREFUSED);
}

TEST_F(FiConnect, ConnectingAndAcceptingEnable) {
  const auto bound = [](Side& side, fi_info* info) {
    auto ep =
        opened<fid_ep>([&](auto** e) { return fi_endpoint(side.domain.get(), info, e, nullptr); });
    EXPECT_EQ(fi_ep_bind(ep.get(), &side.eq->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep.get(), &side.tx->fid, FI_TRANSMIT | FI_RECV), 0);
    return ep;
  };
  listen();
  const auto to = destination();
  connected_ = bound(*client_, to.get());
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  accepted_ = bound(*server_, asked.get());
  ASSERT_EQ(fi_accept(accepted_.get(), nullptr, 0), 0);
  EXPECT_EQ(client_->event(), FI_CONNECTED);
  EXPECT_EQ(server_->event(), FI_CONNECTED);
}

TEST_F(FiConnect, APortHasOneListener) {
  listen();
  const auto to = destination();
  fid_pep* second = nullptr;
  ASSERT_EQ(fi_passive_ep(server_->fabric.get(), info_.get(), &second, nullptr), 0);
  const Fid<fid_pep> holder(second);
  EXPECT_EQ(fi_listen(second), -FI_ENOEQ);
  ASSERT_EQ(fi_pep_bind(second, &server_->eq->fid, 0), 0);
  ASSERT_EQ(fi_setname(&second->fid, to->dest_addr, to->dest_addrlen), 0);
  EXPECT_EQ(fi_listen(second), -FI_EADDRINUSE);
}

TEST_F(FiConnect, AnEndpointTakesOverTheNameOfAPassiveOne) {
  constexpr std::uint16_t kPort = 3117;
  fid_pep* made = nullptr;
  ASSERT_EQ(fi_passive_ep(client_->fabric.get(), info_.get(), &made, nullptr), 0);
  Fid<fid_pep> own(made);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(kPort);
  ASSERT_EQ(fi_setname(&own->fid, &name, sizeof name), 0);
  auto asking = hints();
  asking->handle = &own->fid;
  listen();
  const auto listener = destination();
  const auto port = ntohs(static_cast<sockaddr_in*>(listener->dest_addr)->sin_port);
  Info to;
  ASSERT_EQ(get_info("127.0.0.1", std::to_string(port).c_str(), 0, asking, to), 0);
  asking->handle = nullptr;
  EXPECT_EQ(to->handle, &own->fid);
  connected_ = client_->endpoint(to.get());
  own.reset();
  auto length = sizeof name;
  ASSERT_EQ(fi_getname(&connected_->fid, &name, &length), 0);
  EXPECT_EQ(ntohs(name.sin_port), kPort);
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  EXPECT_EQ(ntohs(static_cast<sockaddr_in*>(asked->dest_addr)->sin_port), kPort);
}

TEST_F(FiConnect, APassiveEndpointThatListensKeepsItsName) {
  listen();
  const auto info = Info(fi_dupinfo(info_.get()));
  info->handle = &pep_->fid;
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(server_->domain.get(), info.get(), &ep, nullptr), -FI_EOPBADSTATE);
}

TEST_F(FiConnect, WhatWasInjectedArrivesThoughItsEndpointIsClosed) {
  constexpr int kMessages = 20;
  connect();
  std::vector<char> room(4000);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(accepted_.get(), room.data(), room.size(), nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_inject(connected_.get(), room.data(), room.size(), 0), 0);
  }
  connected_.reset();
  for (int i = 0; i < kMessages; ++i)
    EXPECT_EQ(server_->completed(server_->rx.get()).len, room.size());
}

TEST_F(FiConnect, TheEndCancelsReceivesAndIsTold) {
  connect();
  std::vector<char> room(100);
  ASSERT_EQ(fi_recv(accepted_.get(), room.data(), room.size(), nullptr, 0, room.data()), 0);
  ASSERT_EQ(fi_shutdown(connected_.get(), 0), 0);
  EXPECT_EQ(server_->event(), FI_SHUTDOWN);
  const auto error = server_->failed(server_->rx.get());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, room.data());
  EXPECT_EQ(fi_send(accepted_.get(), room.data(), 1, nullptr, 0, nullptr), -FI_ENOTCONN);
}

TEST_F(FiConnect, WhatIsInUseIsNotClosed) {
  connect();
  EXPECT_EQ(fi_close(&server_->tx->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&server_->eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&server_->domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&server_->fabric->fid), -FI_EBUSY);
}

TEST_F(FiConnect, AnEndpointWithoutQueuesIsNotEnabled) {
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(client_->domain.get(), info_.get(), &ep, nullptr), 0);
  const Fid<fid_ep> holder(ep);
  EXPECT_EQ(fi_enable(ep), -FI_ENOEQ);
  ASSERT_EQ(fi_ep_bind(ep, &client_->eq->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  EXPECT_EQ(fi_connect(ep, nullptr, nullptr, 0), -FI_EINVAL);
}

}  // namespace
}  // namespace stp::test::connect_test
