// SPDX-License-Identifier: BSD-3-Clause
// A DAT program that forks: the child has its own copy of the bytes, and the parent's RDMA
// continues.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test::fork_test {
namespace {

using namespace udapl;

class DatForking : public Dat {};
STP_BOTH_WAYS(DatForking);

TEST_P(DatForking, WritesOfAChildAreItsOwnAndThoseOfPeersAreSeenWithoutACall) {
  constexpr std::size_t kAt = 100, kLength = 20'000;
  std::vector<char> heap(kLength + kAt, 1);  // its first and last pages also hold other data
  std::shared_ptr<Lmr> lmr;
  ASSERT_EQ(Lmr::create(*server.ia, server.pz, {&heap[kAt], kLength, kAllPrivileges, false}, lmr),
            Result::kSuccess);
  connect();
  for (int round = 2; round < 22; ++round) {
    const auto child = ::fork();
    if (child == 0) {
      std::memset(heap.data(), 0xee, heap.size());
      ::_exit(0);
    }
    std::memset(client.buffer.data(), round, kLength);
    const LmrTriplet from[] = {client.at(0, kLength)};
    ASSERT_EQ(
        held(client.ep)->post_rdma_write(from, 1, {lmr->base(), kLength, lmr->rmr_context()}, 0),
        Result::kSuccess);
    EXPECT_EQ(DatSide::next(*client.request).status, DtoStatus::kSuccess);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (std::size_t i = 0; i < kAt; ++i) ASSERT_EQ(heap[i], 1);
    for (std::size_t i = kAt; i < heap.size(); ++i) ASSERT_EQ(heap[i], round);
  }
  ASSERT_EQ(lmr->free(), Result::kSuccess);
}

}  // namespace
}  // namespace stp::test::fork_test
