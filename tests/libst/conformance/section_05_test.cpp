// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 5: constructors and destructors. (5.2: the connectionless tests.)
#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

class Section05 : public LibstTest {
 protected:
  // An endpoint created with `name` is reached on the port in the name and on no other.
  static void serves_port_3000(const char* name) {
    Endpoint server(name), client;
    ASSERT_EQ(server.error(), 0) << name;
    ASSERT_EQ(st_listen(server), 0);
    st_chandle_t connected = nullptr;
    EXPECT_EQ(st_connect(client, ":3001", &connected), -ECONNREFUSED);
    EXPECT_EQ(st_connect(client, ":3000", &connected), 0);
  }
};
STP_BOTH_WAYS(Section05);

// ---- 5.1 st_create ----

TEST_P(Section05, CreateTakesAHostNameAndAPort) {
  serves_port_3000("localhost:3000");
}

TEST_P(Section05, CreateTakesAnIpAddressAndAPort) {
  serves_port_3000("127.0.0.1:3000");
}

TEST_P(Section05, CreateWithoutANameLeavesPortAndInterfaceToConnect) {
  Endpoint server(":3000"), client(nullptr);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(option(client, ST_OPT_PORT_LOCAL), 0u);
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t connected = nullptr;
  ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
  EXPECT_NE(option(connected, ST_OPT_PORT_LOCAL), 0u);
}

TEST_P(Section05, CreateReturnsZeroOrANegatedErrno) {
  st_ehandle_t endpoint = nullptr;
  EXPECT_EQ(st_create("not a name", &endpoint), -EINVAL);
  EXPECT_EQ(st_create("8.8.8.8:3", &endpoint), -EADDRNOTAVAIL);
  EXPECT_EQ(std::string(st_strerror(-EADDRNOTAVAIL)), "'8.8.8.8' is not this host");
  EXPECT_EQ(endpoint, nullptr);
  ASSERT_EQ(st_create(nullptr, &endpoint), 0);
  EXPECT_NE(endpoint, nullptr);
  EXPECT_EQ(st_delete(endpoint), 0);
}

// ---- 5.3 st_delete ----

class Section05Delete : public WriteTest {};
STP_BOTH_WAYS(Section05Delete);

TEST_P(Section05Delete, ClosesAStillOpenConnectionSilently) {
  client_.reset();
  st_header_t got;
  EXPECT_EQ(receive(accepted_, got), -ENOTCONN);
  EXPECT_EQ(st_close(connected_), -EBADF) << "its handle went, too";
}

TEST_P(Section05Delete, WaitsForPendingTransmissionsToFlush) {
  constexpr std::size_t kBytes = std::size_t{1} << kBlocksize;
  map(kBytes);
  announce(kBytes);
  permit(0);
  send_block(kBytes);
  client_.reset();
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_DATA});
  expect_target_equals_source(kBytes);
}

TEST_P(Section05Delete, OfWhatIsNoEndpointIsAnError) {
  EXPECT_EQ(st_delete(nullptr), -EBADF);
  EXPECT_EQ(st_delete(reinterpret_cast<st_ehandle_t>(connected_)), -EBADF);
}

}  // namespace
}  // namespace stp::test
