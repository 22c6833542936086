// SPDX-License-Identifier: BSD-3-Clause
// As many outstanding operations on an EP as an IA allows.
#include <malloc.h>

#include <vector>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class ManyDtosTest : public Dat {
 protected:
  ManyDtosTest() {
    for (auto* const side : {&server, &client}) {
      side->recv = side->evd(kMaxDtos, kStreamDto);
      side->request = side->evd(2 * kMaxDtos, kStreamDto | kStreamBind);
      side->attr.max_recv_dtos = side->attr.max_request_dtos = kMaxDtos;
    }
  }
  // Expects completions in the order of their cookies, from 0.
  static void expect_all(Evd& from) {
    for (std::uint64_t i = 0; i < kMaxDtos; ++i) {
      const auto event = DatSide::next(from);
      ASSERT_EQ(event.cookie, i);
      ASSERT_EQ(event.status, DtoStatus::kSuccess);
    }
  }
};
STP_BOTH_WAYS(ManyDtosTest);

TEST_P(ManyDtosTest, AnEpTakesAllThatItsAttributesSayEachWay) {
  static_assert(kMaxDtos >= 65'536);
  connect();
  const LmrTriplet from[] = {client.at(0, 8)};
  // Buffers that are written at the same time have different places.
  const auto post_recv = [&](std::uint64_t i) {
    LmrTriplet const into[] = {server.at(i % 1'024 * 8, 8)};
    return held(server.ep)->post_recv(into, i, 0);
  };
  for (std::uint64_t i = 0; i < kMaxDtos; ++i) ASSERT_EQ(post_recv(i), Result::kSuccess) << i;
  EXPECT_EQ(post_recv(kMaxDtos), Result::kInsufficientResources);
  for (std::uint64_t i = 0; i < kMaxDtos; ++i)
    ASSERT_EQ(held(client.ep)->post_send(from, i, 0), Result::kSuccess) << i;
  expect_all(*server.recv);
  expect_all(*client.request);
}

TEST_P(ManyDtosTest, RequestsWithoutAReceiveWaitUntilThereAreAsManyAsTheEpTakes) {
  connect();
  const LmrTriplet from[] = {client.at(0, 8)};
  auto result = Result::kSuccess;
  std::uint64_t posted = 0;
  for (; result == Result::kSuccess && posted <= 2 * kMaxDtos; posted += result == Result::kSuccess)
    result = held(client.ep)->post_send(from, posted, 0);
  EXPECT_EQ(result, Result::kInsufficientResources);
  EXPECT_GE(posted, kMaxDtos);
  client.ep->disconnect(true);
  std::uint64_t told = 0;
  for (; told < posted; ++told) ASSERT_EQ(DatSide::next(*client.request).cookie, told);
}

TEST_P(ManyDtosTest, AnEpCostsWhatIsPostedOnItAndNotWhatMayBe) {
  constexpr int kEps = 1000;
  const auto before = mallinfo2().uordblks;
  std::vector<std::shared_ptr<Ep>> eps;
  for (int i = 0; i < kEps; ++i) eps.push_back(client.make_ep());
  EXPECT_LT(mallinfo2().uordblks - before, kEps * std::size_t{16'384});
}

}  // namespace
}  // namespace stp::test
