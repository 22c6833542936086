// SPDX-License-Identifier: BSD-3-Clause
// Attributes of a connection: its group, how long messages wait, how it ends.
#include <endian.h>
#include <stp/st.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

class Terms : public LibstTest, protected TwoSides {
 protected:
  // The server accepts with these.
  void establish_with(const stm_connection_attr_t& terms) {
    listen();
    const auto asking = client.attr();
    ASSERT_EQ(stm_connection_create(client.domain, &asking, &client.connection), 0);
    ASSERT_EQ(stm_connect(client.connection, ":3000", -1, nullptr, 0), 0);
    server.connection = server.next(STM_REQUEST).connection;
    ASSERT_EQ(stm_accept(server.connection, &terms, nullptr, 0), 0);
    ASSERT_EQ(client.next(STM_CONNECTED).kind, unsigned{STM_CONNECTED});
    ASSERT_EQ(server.next(STM_CONNECTED).kind, unsigned{STM_CONNECTED});
  }
  // The status of a put of the client into a region of that group.
  int put_into(std::uint64_t group) {
    stm_region_t region = nullptr;
    stm_remote_t remote{};
    EXPECT_EQ(stm_region_open_group(there, buffer.data(), 64, STM_REMOTE_WRITE, group, 0, &region,
                                    &remote),
              0);
    EXPECT_EQ(stm_put(client.connection, group, 0, mine, source.data(), 8, remote.key, 0), 0);
    return client.completion(group).status;
  }

  Buffer buffer{4096}, source{1 << 16};
  stm_memory_t there = server.memory(buffer.data(), 4096, STM_REMOTE_WRITE);
  stm_memory_t mine = client.memory(source.data(), source.size());
};
STP_BOTH_WAYS(Terms);

TEST_P(Terms, ARegionOfAGroupIsForTheConnectionsOfThatGroupAlone) {
  auto terms = server.attr();
  terms.group = 7;
  establish_with(terms);
  EXPECT_EQ(put_into(7), 0);
  EXPECT_EQ(put_into(8), -EACCES);
  stm_region_t region = nullptr;
  stm_remote_t remote{};
  EXPECT_EQ(
      stm_region_open_group(there, buffer.data(), 64, STM_REMOTE_WRITE, 0, 0, &region, &remote),
      -EINVAL);
}

TEST_P(Terms, AConnectionWithoutAGroupReachesNoGroupsRegion) {
  establish_with(server.attr());
  EXPECT_EQ(put_into(7), -EACCES);
}

// Somebody that has seen the key on the wire, say.
// protocol: 9.29
TEST_P(Terms, WhoIsNotAcceptedReachesNoRegion) {
  listen();
  stm_region_t region = nullptr;
  stm_remote_t remote{};
  ASSERT_EQ(
      stm_region_open(there, buffer.data(), 64, STM_REMOTE_WRITE, nullptr, 0, &region, &remote), 0);
  Endpoint stranger;
  st_chandle_t chandle = nullptr;
  ASSERT_EQ(st_connect(stranger, ":3000", &chandle), 0);
  st_header_t rmr{};
  rmr.op_flags = ST_OP_FLAGS(ST_OP_RMR, 0);
  rmr.b_win = 4;
  st_set_t_len(&rmr, 1);
  rmr.s_id = 7;
  std::array<std::uint8_t, 64> option{};
  const auto key = htobe32(remote.key);
  std::memcpy(option.data(), &key, sizeof key);
  ASSERT_EQ(st_tx(chandle, &rmr, option.data(), 0, 0, 0), 0);
  st_header_t answer{};
  timeval patience{.tv_sec = 20, .tv_usec = 0};
  ASSERT_GE(st_rx(chandle, &answer, option.data(), &patience), 0);
  EXPECT_EQ(ST_OP(answer.op_flags), unsigned{ST_OP_MRA});
  EXPECT_NE(answer.op_flags & ST_FLAG_REJECT, 0);
  EXPECT_EQ(st_close(chandle), 0);
}

// protocol: 5.32, 9.34
TEST_P(Terms, WhoBreaksAConnectionOffTellsItsPeer) {
  establish_with(server.attr());
  ASSERT_EQ(stm_receive(client.connection, 5, nullptr, nullptr, 0), 0);
  ASSERT_EQ(stm_disconnect(server.connection, STM_BROKEN), 0);
  EXPECT_EQ(client.completion(5).status, -ECONNRESET);
  EXPECT_EQ(client.next(STM_FAILED).status, -ECONNRESET);
  EXPECT_EQ(server.next(STM_DISCONNECTED).status, 0);
}

// protocol: 9.35
TEST_P(Terms, AMessageThatFindsNoReceiveInTimeEndsTheConnectionForBoth) {
  auto terms = server.attr();
  terms.receive_wait = 50'000;
  establish_with(terms);
  // Too long for the ring: the receiver is asked.
  ASSERT_EQ(stm_send(client.connection, 5, 0, 0, mine, source.data(), 40'000), 0);
  EXPECT_EQ(client.completion(5).status, -ENOBUFS);
  EXPECT_EQ(client.next(STM_FAILED).status, -ENOBUFS);
  EXPECT_EQ(server.next(STM_FAILED).status, -ENOBUFS);
}

TEST_P(Terms, AWatermarkNeedsAPool) {
  establish_with(server.attr());
  EXPECT_EQ(stm_set_watermark(server.connection, 1), -EINVAL);
  EXPECT_EQ(std::string(st_strerror(-EINVAL)), "the connection has no pool");
  EXPECT_EQ(stm_set_watermark(nullptr, 1), -EBADF);
}

TEST_P(Terms, WhereThereIsAPoolReceivesArePostedThere) {
  auto terms = client.attr();
  ASSERT_EQ(stm_pool_create(client.domain, 1, &terms.pool), 0);
  ASSERT_EQ(stm_connection_create(client.domain, &terms, &client.connection), 0);
  EXPECT_EQ(stm_receive(client.connection, 1, nullptr, nullptr, 0), -EINVAL);
  EXPECT_EQ(std::string(st_strerror(-EINVAL)), "the connection has a pool: post the receive there");
}

TEST_P(Terms, FlagsThatMeanNothingAreRefused) {
  auto terms = client.attr();
  terms.flags = 8;
  EXPECT_EQ(stm_connection_create(client.domain, &terms, &client.connection), -EINVAL);
}

}  // namespace
}  // namespace stp::test
