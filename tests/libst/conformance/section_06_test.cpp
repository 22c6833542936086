// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 6: configuration. One test for each option.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

int set(void* handle, int which, unsigned value) {
  return st_setopt(handle, which, &value);
}
int get(void* handle, int which) {
  unsigned value = 0;
  return st_getopt(handle, which, &value);
}

class Section06 : public LibstTest {
 protected:
  Endpoint endpoint_;
  void defaults_to(int which, unsigned value) { EXPECT_EQ(option(endpoint_, which), value); }
  void can_be_set(int which, unsigned value) {
    set_option(endpoint_, which, value);
    EXPECT_EQ(option(endpoint_, which), value);
  }
  // Checks an option whose value the peer sends when a connection is set up.
  void is_the_remote_sides(int which) {
    EXPECT_EQ(set(endpoint_, which, 12), -EPERM);
    EXPECT_EQ(get(endpoint_, which), -ENOTCONN);
  }
};
STP_BOTH_WAYS(Section06);

TEST_P(Section06, ReturnsZeroOrANegatedErrno) {
  EXPECT_EQ(get(endpoint_, ST_OPT_RX_SLOTS), 0);
  EXPECT_EQ(get(endpoint_, 1000), -EINVAL);
  EXPECT_EQ(set(endpoint_, 1000, 1), -EINVAL);
  EXPECT_EQ(get(nullptr, ST_OPT_RX_SLOTS), -EBADF);
}

TEST_P(Section06, BufsizeLocalIsAPowerOfTwoAnd14ByDefault) {
  defaults_to(ST_OPT_BUFSIZE_LOCAL, 14);
  can_be_set(ST_OPT_BUFSIZE_LOCAL, 12);
}

TEST_P(Section06, MaxStuLocalIsAPowerOfTwoAnd14ByDefault) {
  defaults_to(ST_OPT_MAXSTU_LOCAL, 14);
  can_be_set(ST_OPT_MAXSTU_LOCAL, 10);
}

TEST_P(Section06, BufsizeRemoteIsExchangedAndNotSet) {
  is_the_remote_sides(ST_OPT_BUFSIZE_REMOTE);
}

TEST_P(Section06, MaxStuRemoteIsExchangedAndNotSet) {
  is_the_remote_sides(ST_OPT_MAXSTU_REMOTE);
}

TEST_P(Section06, KeyRemoteIsExchangedAndNotSet) {
  is_the_remote_sides(ST_OPT_KEY_REMOTE);
}

TEST_P(Section06, PortRemoteIsExchangedAndNotSet) {
  is_the_remote_sides(ST_OPT_PORT_REMOTE);
}

TEST_P(Section06, KeyLocalIsSetByRootOnly) {
  int as_another = 0;
  std::thread([&] {
    // Without the C library the system call changes only this thread, which ends here.
    if (::geteuid() == 0) ::syscall(SYS_setresuid, -1, 65'534, -1);
    as_another = set(endpoint_, ST_OPT_KEY_LOCAL, 1);
  }).join();
  EXPECT_EQ(as_another, -EPERM);
  EXPECT_EQ(option(endpoint_, ST_OPT_KEY_LOCAL), 0U);
  if (::geteuid() == 0) can_be_set(ST_OPT_KEY_LOCAL, 0x12345678);
}

TEST_P(Section06, PortLocalIsTheLocalStpPort) {
  defaults_to(ST_OPT_PORT_LOCAL, 0);
  can_be_set(ST_OPT_PORT_LOCAL, 4321);
}

TEST_P(Section06, BufxBaseAndCountAreOfTheEndpoint) {
  for (const auto which : {ST_OPT_RX_BUFX_BASE, ST_OPT_TX_BUFX_BASE}) can_be_set(which, 100);
  for (const auto which : {ST_OPT_RX_BUFX_COUNT, ST_OPT_TX_BUFX_COUNT}) can_be_set(which, 8);
}

TEST_P(Section06, BufxBaseAndCountDefineTheValidSet) {
  Buffer memory(16'384);
  st_mhandle_t region = nullptr;
  set_option(endpoint_, ST_OPT_RX_BUFX_BASE, 100);
  set_option(endpoint_, ST_OPT_RX_BUFX_COUNT, 2);
  set_option(endpoint_, ST_OPT_TX_BUFX_BASE, 200);
  set_option(endpoint_, ST_OPT_TX_BUFX_COUNT, 1);
  const auto map = [&](int flags, int base) {
    return st_map(endpoint_, flags, memory.data(), -1, base, 1, &region, nullptr);
  };
  EXPECT_EQ(map(ST_MAP_RX, 99), -ERANGE);
  EXPECT_EQ(map(ST_MAP_RX, 102), -ERANGE);
  EXPECT_EQ(map(ST_MAP_TX, 101), -ERANGE);
  EXPECT_EQ(map(ST_MAP_RX, 101), 0);
  EXPECT_EQ(map(ST_MAP_TX, 200), 0);
}

// Options that the document does not have.
TEST_P(Section06, OptionsBeyondTheDocumentAreSwitches) {
  defaults_to(ST_OPT_CHECKSUM, 0);
  defaults_to(ST_OPT_KEEP_ALIVE, 1);
  defaults_to(ST_OPT_RECOVER, 0);
  defaults_to(ST_OPT_INSPECT, 0);
  defaults_to(ST_OPT_CONNECT_PATIENCE, 0);
  for (const auto which : {ST_OPT_CHECKSUM, ST_OPT_KEEP_ALIVE, ST_OPT_RECOVER, ST_OPT_INSPECT}) {
    can_be_set(which, 1);
    can_be_set(which, 0);
    EXPECT_EQ(set(endpoint_, which, 2), -EINVAL);
  }
  can_be_set(ST_OPT_CONNECT_PATIENCE, 2500);
  EXPECT_EQ(set(endpoint_, ST_OPT_CONNECT_PATIENCE, 3'600'001), -EINVAL);
}

// ---- on a connection ----

class Section06Connection : public ConnectedTest {
 protected:
  void configure() override {
    set_option(server_, ST_OPT_BUFSIZE_LOCAL, 12);
    set_option(server_, ST_OPT_MAXSTU_LOCAL, 9);
    set_option(server_, ST_OPT_RX_SLOTS, 7);
    set_option(server_, ST_OPT_PORT_LOCAL, 4321);
    if (::geteuid() == 0) set_option(server_, ST_OPT_KEY_LOCAL, 0x12345678);
    set_option(client_, ST_OPT_TX_CREDITS, 2);
    set_option(client_, ST_OPT_CHECKSUM, 1);
  }
};
STP_BOTH_WAYS(Section06Connection);

TEST_P(Section06Connection, RemoteValuesAreWhatTheOtherSideChose) {
  EXPECT_EQ(option(connected_, ST_OPT_BUFSIZE_REMOTE), 12u);
  EXPECT_EQ(option(connected_, ST_OPT_MAXSTU_REMOTE), 9u);
  EXPECT_EQ(option(connected_, ST_OPT_KEY_REMOTE), option(accepted_, ST_OPT_KEY_LOCAL));
  EXPECT_EQ(option(connected_, ST_OPT_PORT_REMOTE), option(accepted_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(option(accepted_, ST_OPT_KEY_REMOTE), option(connected_, ST_OPT_KEY_LOCAL));
}

TEST_P(Section06Connection, PortAndKeyThatWereSetAreThoseOfTheConnection) {
  EXPECT_EQ(option(connected_, ST_OPT_PORT_REMOTE), 4321U);
  if (::geteuid() == 0) {
    EXPECT_EQ(option(connected_, ST_OPT_KEY_REMOTE), 0x12345678U);
  }
  st_header_t got;
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(accepted_, got), 0);
  EXPECT_EQ(got.d_port, 4321U);
  EXPECT_EQ(got.d_key, option(connected_, ST_OPT_KEY_REMOTE));
}

// 4.4: one side sends checksums, the other does not, and both are understood.
// protocol: 4.4
TEST_P(Section06Connection, AChecksumGoesWithWhatIsSent) {
  st_header_t got;
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(accepted_, got), 0);
  EXPECT_NE(got.cksum, 0u);
  ASSERT_EQ(send(accepted_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(connected_, got), 0);
  EXPECT_EQ(got.cksum, 0u);
}

TEST_P(Section06Connection, RxSlotsAreTheSlotsOfTheScheduleHeaderQueue) {
  EXPECT_EQ(option(accepted_, ST_OPT_RX_SLOTS), 7u);
  auto rs = header(ST_OP_RS);
  rs.sync = 5;
  rs.b_num = rs.d_id = ST_NO_ID;
  rs.s_id = 1;
  st_header_t got;
  ASSERT_EQ(send(connected_, rs), 0);
  ASSERT_EQ(receive(connected_, got), 0);
  EXPECT_EQ(got.r_slots, 7u);
}

// More than Slots and credits together can hold: the last ones wait until the other side reads.
TEST_P(Section06Connection, TxCreditsAreTheSendsOutstandingBeforeThePipelineBlocks) {
  constexpr int kSends = 7 + 2 + 3;
  std::atomic<int> sent = 0;
  std::thread sender([&] {
    for (int i = 0; i < kSends; ++i, ++sent) ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GE(sent, 7);
  EXPECT_LE(sent, 7 + 2);
  st_header_t got;
  for (int i = 0; i < kSends; ++i) ASSERT_EQ(receive(accepted_, got), 0);
  sender.join();
  EXPECT_EQ(sent, kSends);
}

}  // namespace
}  // namespace stp::test
