// SPDX-License-Identifier: BSD-3-Clause
// LMRs of the same bytes that are made and freed again and again, as programs do for each message.
#include "libst/udapl/core/memory.h"

#include <sys/utsname.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

// The inode of the file that is mapped at `ptr`; 0: none.
std::uint64_t file_at(const void* ptr) {
  const auto address = reinterpret_cast<std::uintptr_t>(ptr);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %lu", &begin, &end, &inode) == 3 &&
        begin <= address && address < end)
      return inode;
  }
  return 0;
}

// Whether the kernel tells what is mapped at an address, without which nothing is kept.
bool keeps_registrations() {
  utsname name{};
  int major = 0, minor = 0;
  return ::uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 11));
}

class LmrTest : public Dat {
 protected:
  static constexpr std::size_t kLength = 10'000;

  void make(unsigned privileges = kAllPrivileges) {
    ASSERT_EQ(
        Lmr::create(*server.ia, server.pz, {memory.data(), memory.size(), privileges, false}, lmr),
        Result::kSuccess);
  }
  void fill(int value) const { std::memset(memory.data(), value, memory.size()); }
  // A write of the client, with the context of an LMR.
  DtoStatus write(const std::shared_ptr<Ep>& ep, std::uint32_t context) {
    const LmrTriplet from[] = {client.at(0, kLength)};
    const auto base = reinterpret_cast<std::uint64_t>(memory.data());
    EXPECT_EQ(held(ep)->post_rdma_write(from, 1, {base, kLength, context}, 0), Result::kSuccess);
    return DatSide::next(*client.request).status;
  }
  // A message of the server.
  void send() {
    const LmrTriplet from[] = {{lmr->base(), kLength, lmr->context()}};
    const LmrTriplet into[] = {client.at(20'000, kLength)};
    ASSERT_EQ(held(client.ep)->post_recv(into, 2, 0), Result::kSuccess);
    ASSERT_EQ(held(server.ep)->post_send(from, 3, 0), Result::kSuccess);
    ASSERT_EQ(DatSide::next(*client.recv).status, DtoStatus::kSuccess);
    ASSERT_EQ(DatSide::next(*server.request).status, DtoStatus::kSuccess);
  }
  // The old context moves nothing, and costs the client its connection.
  void expect_dead(std::uint32_t context) {
    const auto from = client.make_ep(), to = server.make_ep();
    connect(from, to);
    fill(0x55);
    EXPECT_EQ(write(from, context), DtoStatus::kRemoteAccess);
    EXPECT_EQ(DatSide::next(*client.connect).number, EventNumber::kBroken);
    EXPECT_EQ(DatSide::next(*server.connect).number, EventNumber::kBroken);
    for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0x55);
  }

  Buffer memory{1 << 16};
  std::shared_ptr<Lmr> lmr;
};
STP_BOTH_WAYS(LmrTest);

TEST_P(LmrTest, TheSameBytesAreRegisteredAgainAndAgain) {
  connect();
  std::uint64_t file = 0;
  for (int round = 0; round < 4; ++round) {
    make();
    fill(round);
    ASSERT_EQ(write(client.ep, lmr->rmr_context()), DtoStatus::kSuccess);
    EXPECT_EQ(std::memcmp(memory.data(), client.buffer.data(), kLength), 0);
    EXPECT_EQ(memory[kLength], round);
    fill(round + 1);
    send();
    EXPECT_EQ(std::memcmp(client.buffer.data() + 20'000, memory.data(), kLength), 0);
    ASSERT_EQ(lmr->free(), Result::kSuccess);
    // Its pages have not been replaced once more.
    if (round == 0) file = file_at(memory.data());
    EXPECT_TRUE(file_at(memory.data()) == file || !keeps_registrations());
  }
}

TEST_P(LmrTest, TheContextOfOneThatWasFreedIsDeadAlsoOnceItsBytesAreRegisteredAgain) {
  connect();
  make();
  const auto old = lmr->rmr_context();
  ASSERT_EQ(write(client.ep, old), DtoStatus::kSuccess);
  ASSERT_EQ(lmr->free(), Result::kSuccess);
  expect_dead(old);
  make();
  EXPECT_NE(lmr->rmr_context(), old);
  expect_dead(old);
  EXPECT_EQ(write(client.ep, lmr->rmr_context()), DtoStatus::kSuccess);
  ASSERT_EQ(lmr->free(), Result::kSuccess);
  make(kLocalRead | kLocalWrite);
  expect_dead(old);
}

}  // namespace
}  // namespace stp::test
