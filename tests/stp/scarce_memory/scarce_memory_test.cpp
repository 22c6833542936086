// SPDX-License-Identifier: BSD-3-Clause
// If the system refuses memory while a Node handles a request of a user or a frame of its peer,
// only that request or frame fails, whichever allocation it is.
#include <cstdlib>
#include <new>

#include "stp/base/scarce_memory.h"
#include "tests/stp/node/write_fixture.h"
#include "tests/stp/scarce_memory/failing_allocations.h"

void* operator new(std::size_t size, std::align_val_t alignment) {
  auto& left = stp::test::allocations_left;
  if (left >= 0 && --left < 0 && (!stp::test::some_is_kept || stp::Refusable::here()))
    throw std::bad_alloc();
  const auto unit = static_cast<std::size_t>(alignment);
  auto* const made = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void* operator new(std::size_t size) {
  return operator new (size, std::align_val_t{__STDCPP_DEFAULT_NEW_ALIGNMENT__});
}
void operator delete(void* made) noexcept {
  std::free(made);
}
void operator delete(void* made, std::size_t) noexcept {
  std::free(made);
}
void operator delete(void* made, std::align_val_t) noexcept {
  std::free(made);
}
void operator delete(void* made, std::size_t, std::align_val_t) noexcept {
  std::free(made);
}

namespace stp::test {
namespace {

using wire::Op;

class ScarceMemory : public Writing {
 protected:
  // Prepares and calls once for each allocation of the call that can fail, and at the end without a
  // failure.
  template <typename Prepare, typename Call>
  int failures_of(Prepare&& prepare, Call&& call) {
    for (int failures = 0; failures < 100; ++failures) {
      prepare();
      allocations_left = failures;
      EXPECT_NO_THROW(call());
      const bool failed = allocations_left < 0;
      allocations_left = -1;
      if (!failed) return failures;
    }
    return -1;
  }
  // Makes a request of B's user.
  void ask(const SendEntry& entry) {
    ASSERT_TRUE(cb.user.send(entry));
    b.node.kick(cb.id);
  }
  // Lets B's Node take the request. Returns how many frames it sends.
  std::size_t turn_b() { return b.node.transmit({&frame, 1}, now); }
  SendEntry permission(std::uint32_t id) {
    auto e = cts(0, kTargetBufx, 0, kBlocksize);
    e.header.d_id = e.header.s_id = id;
    return e;
  }
  SendEntry region(std::uint32_t id) {
    auto e = control(Op::kMemoryRegionAvailable);
    e.header.param = 16;
    e.header.mx = mx;
    e.header.bufx = kTargetBufx;
    e.header.set_t_len(kBuffers * kStu);
    e.header.d_id = e.header.s_id = id;
    return e;
  }

  std::vector<std::byte> head = std::vector<std::byte>(b.node.frame_room());
  TxFrame frame{.head = head.data(), .attached = {}, .token = {}};
};

TEST_F(ScarceMemory, in_a_cts_refuses_it) {
  std::uint32_t id = 1;
  std::size_t sent = 0;
  const auto failures = failures_of([&] { ask(permission(id++)); }, [&] { sent += turn_b(); });
  EXPECT_GT(failures, 2);
  EXPECT_EQ(sent, 1U);
  EXPECT_EQ(cb.user.refused(), static_cast<std::uint32_t>(failures));
  // Everything still works.
  grant(kStu);
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  pass(kSecond);
}

TEST_F(ScarceMemory, in_an_mra_refuses_it_and_in_data_drops_the_frame) {
  std::uint32_t id = 20;
  const auto failures = failures_of([&] { ask(region(id++)); }, [&] { turn_b(); });
  EXPECT_GT(failures, 0);
  EXPECT_EQ(cb.user.refused(), static_cast<std::uint32_t>(failures));
  // The first of two STUs of a Put Block.
  auto h = stu(region(id - 1).header, 0, 0);
  h.b_num = 0;
  Frame bytes(20'000);
  bytes.resize(wire::emit({kMacB, kMacA, {}, false}, h, Bytes(source.data(), kStu), {}, bytes));
  const Bytes burst(bytes);
  const auto dropped = failures_of([] {}, [&] { b.node.receive({&burst, 1}, now); });
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(b.count(Counter::kBlocksFull), static_cast<std::uint64_t>(dropped));
  EXPECT_EQ(b.count(Counter::kRxStus), 1U);
}

}  // namespace
}  // namespace stp::test
