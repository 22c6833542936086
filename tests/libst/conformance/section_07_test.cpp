// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 7: the connection-oriented model. (7.5: tools/examples.)
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

class Section07 : public LibstTest {
 protected:
  Endpoint server_{":3000"}, client_;
  st_chandle_t connected_ = nullptr, accepted_ = nullptr;
};
STP_BOTH_WAYS(Section07);

// ---- 7.1 st_listen ----

TEST_P(Section07, ListenPreparesForRequestsBeforeAnybodyAccepts) {
  EXPECT_EQ(st_connect(client_, ":3000", &connected_), -ECONNREFUSED);
  ASSERT_EQ(st_listen(server_), 0);
  EXPECT_EQ(st_connect(client_, ":3000", &connected_), 0);
  EXPECT_EQ(st_accept(server_, &accepted_), 0);
}

TEST_P(Section07, ListenReturnsZeroOrANegatedErrno) {
  EXPECT_EQ(st_listen(server_), 0);
  EXPECT_EQ(st_listen(client_), -EINVAL) << "it was created without a port";
  EXPECT_EQ(st_listen(nullptr), -EBADF);
}

// ---- 7.2 st_accept ----

TEST_P(Section07, AcceptBlocksUntilAClientHasBeenAccepted) {
  ASSERT_EQ(st_listen(server_), 0);
  std::atomic<int> result = 1;
  std::thread accepting([&] { result = st_accept(server_, &accepted_); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(result, 1);
  EXPECT_EQ(st_connect(client_, ":3000", &connected_), 0);
  accepting.join();
  EXPECT_EQ(result, 0);
  EXPECT_NE(accepted_, nullptr);
}

TEST_P(Section07, OneListenerAcceptsManyClients) {
  ASSERT_EQ(st_listen(server_), 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(st_connect(client_, ":3000", &connected_), 0);
    ASSERT_EQ(st_accept(server_, &accepted_), 0);
  }
}

// ---- 7.3 st_connect ----

TEST_P(Section07, ConnectTakesAHostNameOrAnAddressAndAPort) {
  ASSERT_EQ(st_listen(server_), 0);
  for (const auto* const peer : {"localhost:3000", "127.0.0.1:3000"}) {
    EXPECT_EQ(st_connect(client_, peer, &connected_), 0) << peer;
    EXPECT_EQ(st_accept(server_, &accepted_), 0);
  }
}

TEST_P(Section07, ConnectReturnsZeroOrANegatedErrno) {
  EXPECT_EQ(st_connect(client_, "no port", &connected_), -EINVAL);
  EXPECT_EQ(st_connect(client_, ":3001", &connected_), -ECONNREFUSED);
  EXPECT_EQ(connected_, nullptr);
}

// ---- 7.4 st_close ----

class Section07Close : public WriteTest {};
STP_BOTH_WAYS(Section07Close);

TEST_P(Section07Close, BlocksUntilPendingTransmitsAreCleared) {
  constexpr std::size_t kBytes = std::size_t{1} << kBlocksize;
  map(kBytes);
  announce(kBytes);
  permit(0);
  send_block(kBytes);
  ASSERT_EQ(st_close(connected_), 0);
  for (std::size_t i = 0; i < kBytes; ++i) (*source_)[i] = 0xee;  // no longer read by the link
  ASSERT_EQ(receive(accepted_, got_), 0);
  const Buffer same(kBytes, 3);
  EXPECT_EQ(std::memcmp(target_->data(), same.data(), kBytes), 0);
}

TEST_P(Section07Close, ClosesWhatConnectOrAcceptMade) {
  EXPECT_EQ(st_close(accepted_), 0);
  st_header_t got;
  EXPECT_EQ(receive(connected_, got), -ENOTCONN);
  EXPECT_EQ(st_close(connected_), 0);
  EXPECT_EQ(st_close(connected_), -EBADF);
}

}  // namespace
}  // namespace stp::test
