// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/endpoints.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

class EndpointTableTest : public ::testing::Test {
 protected:
  Mechanisms with;
  EndpointTable endpoints{{with.common.config, with.vcs.table, with.pacing}};
};

TEST_F(EndpointTableTest, the_endpoints_of_an_owner_share_what_belongs_to_the_owner) {
  EndpointId first = kNoneId, second = kNoneId, other = kNoneId;
  ASSERT_EQ(endpoints.open({}, first, 1), 0);
  ASSERT_EQ(endpoints.open({}, second, 1), 0);
  ASSERT_EQ(endpoints.open({}, other, 2), 0);
  EXPECT_EQ(endpoints.find(first)->owner, endpoints.find(second)->owner);
  EXPECT_NE(endpoints.find(first)->owner, endpoints.find(other)->owner);
  ASSERT_EQ(endpoints.close(*endpoints.find(first)), 0);
  EXPECT_EQ(endpoints.find(first), nullptr);
  EXPECT_EQ(endpoints.find(second)->owner->endpoints, 1U);
}

TEST_F(EndpointTableTest, what_is_in_use_is_neither_changed_nor_closed) {
  EndpointId id = kNoneId;
  ASSERT_EQ(endpoints.open({}, id, 1), 0);
  auto& endpoint = *endpoints.find(id);
  endpoint.regions = 1;
  EXPECT_EQ(endpoints.configure(endpoint, {.bufsize = 12}), -EBUSY);
  EXPECT_EQ(endpoints.close(endpoint), -EBUSY);
  endpoint.regions = 0;
  EXPECT_EQ(endpoints.configure(endpoint, {.bufsize = 12}), 0);
  EXPECT_EQ(endpoint.receive.bufsize(), 12U);
  EXPECT_EQ(endpoints.configure(endpoint, {.bufsize = 99}), -EINVAL);
  EXPECT_EQ(endpoint.config.bufsize, 12U) << "a refused setting changes nothing";
  EXPECT_EQ(endpoints.close(endpoint), 0);
}

}  // namespace
}  // namespace stp::test
