// SPDX-License-Identifier: BSD-3-Clause
// st_getopt and st_setopt: all fourteen options, on both kinds of handle.
#include <unistd.h>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

int set(void* handle, int option, unsigned value) {
  return st_setopt(handle, option, &value);
}

class Options : public LibstTest {};
STP_BOTH_WAYS(Options);

TEST_P(Options, AnEndpointBeginsWithTheDocumentedDefaults) {
  Endpoint endpoint;
  EXPECT_EQ(option(endpoint, ST_OPT_BUFSIZE_LOCAL), 14u);
  EXPECT_EQ(option(endpoint, ST_OPT_MAXSTU_LOCAL), 14u);
  EXPECT_EQ(option(endpoint, ST_OPT_KEY_LOCAL), 0u);
  EXPECT_EQ(option(endpoint, ST_OPT_PORT_LOCAL), 0u);
  EXPECT_EQ(option(endpoint, ST_OPT_RX_BUFX_BASE), 0u);
  EXPECT_EQ(option(endpoint, ST_OPT_RX_BUFX_COUNT), 65'536u);
  EXPECT_EQ(option(endpoint, ST_OPT_RX_SLOTS), 64u);
  EXPECT_EQ(option(endpoint, ST_OPT_TX_BUFX_BASE), 0u);
  EXPECT_EQ(option(endpoint, ST_OPT_TX_BUFX_COUNT), 65'536u);
  EXPECT_EQ(option(endpoint, ST_OPT_TX_CREDITS), 64u);
}

TEST_P(Options, WhatIsSetIsWhatIsRead) {
  Endpoint endpoint;
  struct {
    int option;
    unsigned value;
  } const settings[] = {
      {ST_OPT_BUFSIZE_LOCAL, 12},         {ST_OPT_MAXSTU_LOCAL, 10},  {ST_OPT_PORT_LOCAL, 4'711},
      {ST_OPT_RX_BUFX_BASE, 1'000},       {ST_OPT_RX_BUFX_COUNT, 77}, {ST_OPT_RX_SLOTS, 200},
      {ST_OPT_TX_BUFX_BASE, 0x9000'0000}, {ST_OPT_TX_BUFX_COUNT, 88}, {ST_OPT_TX_CREDITS, 9},
  };
  for (const auto& setting : settings) set_option(endpoint, setting.option, setting.value);
  for (const auto& setting : settings)
    EXPECT_EQ(option(endpoint, setting.option), setting.value) << "option " << setting.option;
}

TEST_P(Options, ValuesOutOfRangeAreRefusedAndChangeNothing) {
  Endpoint endpoint;
  EXPECT_EQ(set(endpoint, ST_OPT_BUFSIZE_LOCAL, 7), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_BUFSIZE_LOCAL, 31), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_MAXSTU_LOCAL, 7), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_MAXSTU_LOCAL, 17), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_PORT_LOCAL, 65'536), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_RX_SLOTS, 0), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_RX_SLOTS, 65'536), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_TX_CREDITS, 0), -EINVAL);
  EXPECT_EQ(set(endpoint, ST_OPT_TX_CREDITS, 65'537), -EINVAL);
  // The range would exceed the largest Bufx.
  EXPECT_EQ(set(endpoint, ST_OPT_RX_BUFX_BASE, 0xffff'ffff), -EINVAL);
  EXPECT_EQ(option(endpoint, ST_OPT_BUFSIZE_LOCAL), 14u);
  EXPECT_EQ(option(endpoint, ST_OPT_RX_SLOTS), 64u);
  EXPECT_EQ(option(endpoint, ST_OPT_RX_BUFX_BASE), 0u);
}

TEST_P(Options, UnknownOptionsAndNullValuesAreInvalid) {
  Endpoint endpoint;
  unsigned value = 1;
  EXPECT_EQ(st_getopt(endpoint, 0, &value), -EINVAL);
  EXPECT_EQ(st_getopt(endpoint, 1000, &value), -EINVAL);
  EXPECT_EQ(st_setopt(endpoint, -1, &value), -EINVAL);
  EXPECT_EQ(st_getopt(endpoint, ST_OPT_RX_SLOTS, nullptr), -EINVAL);
  EXPECT_EQ(st_setopt(endpoint, ST_OPT_RX_SLOTS, nullptr), -EINVAL);
}

TEST_P(Options, RemoteOnesAreNeverSetAndUnknownToAnEndpoint) {
  Endpoint endpoint;
  unsigned value = 0;
  for (const auto remote :
       {ST_OPT_BUFSIZE_REMOTE, ST_OPT_MAXSTU_REMOTE, ST_OPT_KEY_REMOTE, ST_OPT_PORT_REMOTE}) {
    EXPECT_EQ(set(endpoint, remote, 12), -EPERM);
    EXPECT_EQ(st_getopt(endpoint, remote, &value), -ENOTCONN);
  }
}

TEST_P(Options, OnlyRootSetsAKey) {
  Endpoint endpoint;
  if (::geteuid() == 0) {
    EXPECT_EQ(set(endpoint, ST_OPT_KEY_LOCAL, 0x1234'5678), 0);
    EXPECT_EQ(option(endpoint, ST_OPT_KEY_LOCAL), 0x1234'5678u);
  } else {
    EXPECT_EQ(set(endpoint, ST_OPT_KEY_LOCAL, 0x1234'5678), -EPERM);
  }
}

TEST_P(Options, TheyAreSettledOnceMemoryIsMapped) {
  Endpoint endpoint;
  Buffer memory(1 << 16);
  st_mhandle_t region = nullptr;
  ASSERT_EQ(st_map(endpoint, ST_MAP_TX, memory.data(), memory.length(), 0, -1, &region, nullptr),
            0);
  EXPECT_EQ(set(endpoint, ST_OPT_BUFSIZE_LOCAL, 12), -EBUSY);
  EXPECT_STRNE(st_strerror(-EBUSY), st_strerror(-ENOENT));
  EXPECT_EQ(option(endpoint, ST_OPT_BUFSIZE_LOCAL), 14u);
}

TEST_P(Options, TheyAreSettledOnceItListens) {
  Endpoint endpoint(":3000");
  ASSERT_EQ(st_listen(endpoint), 0);
  EXPECT_EQ(set(endpoint, ST_OPT_RX_SLOTS, 65), -EBUSY);
}

class ConnectionOptions : public ConnectedTest {
 protected:
  void configure() override {
    set_option(server_, ST_OPT_BUFSIZE_LOCAL, 13);
    set_option(server_, ST_OPT_MAXSTU_LOCAL, 9);
    set_option(server_, ST_OPT_RX_SLOTS, 100);
    set_option(client_, ST_OPT_PORT_LOCAL, 4'711);
  }
};
STP_BOTH_WAYS(ConnectionOptions);

TEST_P(ConnectionOptions, WhatOneSideChoseIsWhatTheOtherReads) {
  struct {
    int local, remote;
  } const pairs[] = {{ST_OPT_BUFSIZE_LOCAL, ST_OPT_BUFSIZE_REMOTE},
                     {ST_OPT_MAXSTU_LOCAL, ST_OPT_MAXSTU_REMOTE},
                     {ST_OPT_KEY_LOCAL, ST_OPT_KEY_REMOTE},
                     {ST_OPT_PORT_LOCAL, ST_OPT_PORT_REMOTE}};
  for (const auto& [local, remote] : pairs) {
    EXPECT_EQ(option(accepted_, local), option(connected_, remote));
    EXPECT_EQ(option(connected_, local), option(accepted_, remote));
  }
  EXPECT_EQ(option(connected_, ST_OPT_BUFSIZE_REMOTE), 13u);
  EXPECT_EQ(option(connected_, ST_OPT_MAXSTU_REMOTE), 9u);
  EXPECT_EQ(option(connected_, ST_OPT_PORT_LOCAL), 4'711u);
  EXPECT_NE(option(connected_, ST_OPT_KEY_LOCAL), 0u);
  EXPECT_NE(option(connected_, ST_OPT_KEY_LOCAL), option(accepted_, ST_OPT_KEY_LOCAL));
}

TEST_P(ConnectionOptions, RangesAndQueuesAreThoseOfTheEndpoint) {
  EXPECT_EQ(option(accepted_, ST_OPT_RX_SLOTS), 100u);
  EXPECT_EQ(option(accepted_, ST_OPT_RX_BUFX_BASE), 0u);
  EXPECT_EQ(option(accepted_, ST_OPT_RX_BUFX_COUNT), 65'536u);
  EXPECT_EQ(option(accepted_, ST_OPT_TX_BUFX_BASE), 0u);
  EXPECT_EQ(option(accepted_, ST_OPT_TX_BUFX_COUNT), 65'536u);
  EXPECT_EQ(option(accepted_, ST_OPT_TX_CREDITS), 64u);
}

TEST_P(ConnectionOptions, AConnectionHasSettledThemAll) {
  EXPECT_EQ(set(connected_, ST_OPT_RX_SLOTS, 65), -EBUSY);
  EXPECT_EQ(set(client_, ST_OPT_RX_SLOTS, 65), -EBUSY);
  EXPECT_EQ(set(connected_, ST_OPT_KEY_REMOTE, 65), -EPERM);
  EXPECT_EQ(set(connected_, ST_OPT_RX_SLOTS, 0), -EINVAL);
}

}  // namespace
}  // namespace stp::test
