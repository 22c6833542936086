// SPDX-License-Identifier: BSD-3-Clause
// A and B with the managed layer on both ends of one connection.
#pragma once

#include <map>

#include "stp/transfer/sequencer.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {

// One end: its Sequencer, its memory, and its completions.
struct Side {
  std::unique_ptr<Sequencer> sequencer;
  std::unique_ptr<Buffers> source, landing;
  RegionId source_region = kNoneId, landing_region = kNoneId;
  std::uint16_t mx = 0;
  std::vector<Completion> completions;

  [[nodiscard]] const Completion* find(Completion::Kind kind, Context context = 0) const {
    for (const auto& c : completions)
      if (c.kind == kind && c.context == context) return &c;
    return nullptr;
  }
};

class Managed : public TwoNodes {
 protected:
  static constexpr unsigned kBufsize = 12;
  static constexpr std::size_t kBuffers = 256;
  static constexpr std::uint32_t kSource = 0, kLanding = 0;

  Side sa, sb;

  void SetUp() override {
    const EndpointConfig both{.bufsize = kBufsize, .slots = 128, .credits = 128, .recover = true};
    connect(both, both);
    prepare(a, endpoint_a, ca, sa);
    prepare(b, listener, cb, sb);
  }

  void prepare(Host& host, EndpointId endpoint, Connection& c, Side& side) {
    VcInfo info{};
    ASSERT_EQ(host.node.vc_info(c.id, info), 0);
    SequencerConfig config;
    config.local_bufsize = info.local_bufsize;
    config.remote_bufsize = info.remote_bufsize;
    config.send_stu_log2 =
        stu_size_log2(info.remote_max_stu, info.local_max_stu, info.remote_bufsize);
    config.receive_stu_log2 =
        stu_size_log2(info.local_max_stu, info.remote_max_stu, info.local_bufsize);
    config.max_block = 16;
    side.sequencer = std::make_unique<Sequencer>(config);
    side.source = std::make_unique<Buffers>(kBufsize, kBuffers);
    side.landing = std::make_unique<Buffers>(kBufsize, kBuffers);
    side.source->fill_pattern();
    const auto from = side.source->all(), to = side.landing->all();
    ASSERT_EQ(
        host.node.map(endpoint, Direction::kTransmit, kSource, {&from, 1}, side.source_region), 0);
    ASSERT_EQ(host.node.map(endpoint, Direction::kReceive, kLanding, {&to, 1}, side.landing_region),
              0);
    ASSERT_EQ(host.node.alloc_mx(side.landing_region, kNoneId, permit::kAll, side.mx), 0);
  }

  [[nodiscard]] static Address at(std::size_t offset) {
    return Address::from_linear(offset, kBufsize);
  }
  [[nodiscard]] static Landing landing(const Side& side, std::size_t offset, std::uint64_t length) {
    return {side.mx, at(offset), length};
  }

  // Runs the users: handles headers, requests and timers.
  bool drive(Host& host, Connection& c, Side& side) {
    bool moved = false;
    while (auto entry = get(c)) {
      side.sequencer->receive(*entry, now);
      moved = true;
    }
    side.sequencer->taken(c.user.taken(), now);
    side.sequencer->observe_path(c.user.cts_repeated(), c.user.path_block(), c.user.steps());
    if (now >= side.sequencer->next_deadline()) side.sequencer->expire(now);
    const auto state = c.user.state();
    if (state == ChannelState::kFailed) side.sequencer->fail(c.user.error());
    if (state == ChannelState::kPeerClosed) side.sequencer->fail(-ENOTCONN);
    if (side.sequencer->transmit(c.user, now)) {
      host.node.kick(c.id);
      moved = true;
    }
    Completion completion;
    while (side.sequencer->next_completion(completion)) side.completions.push_back(completion);
    return moved;
  }
  void run(Time span) {
    const auto end = now + span;
    for (;;) {
      settle();
      const auto one_has_sent = [this] {
        const bool first = drive(a, ca, sa), second = drive(b, cb, sb);
        return first || second;
      };
      while (one_has_sent()) settle();
      const auto next = std::min({a.node.next_deadline(), b.node.next_deadline(),
                                  sa.sequencer->next_deadline(), sb.sequencer->next_deadline()});
      if (next > end) break;
      now = std::max(now, next);
      a.node.expire(now);
      b.node.expire(now);
    }
    now = end;
  }
  [[nodiscard]] bool landed(const Side& from, const Side& to, std::size_t source,
                            std::size_t target, std::size_t length) const {
    return std::memcmp(from.source->data() + source, to.landing->data() + target, length) == 0;
  }
  // Loses and duplicates frames at random, by seed.
  void hostile(std::uint64_t seed, unsigned loss_percent) {
    wire = [random = SeededRandom(seed), loss_percent](const Frame&, bool) mutable -> unsigned {
      const auto dice = random.next() % 100;
      return dice < loss_percent ? 0 : dice < loss_percent + 5 ? 2 : 1;
    };
  }
  RemoteRegion open_region(std::uint64_t length, std::uint32_t window = 4) {
    EXPECT_EQ(sa.sequencer->request_region(900, length, window), 0);
    run(10 * kMillisecond);
    const auto* const asked = sb.find(Completion::Kind::kRegionRequest);
    EXPECT_NE(asked, nullptr);
    EXPECT_EQ(sb.sequencer->serve_region(asked->request, landing(sb, 0, length), window), 0);
    run(10 * kMillisecond);
    const auto* const done = sa.find(Completion::Kind::kRegion, 900);
    EXPECT_TRUE(done != nullptr && done->status == 0);
    return done->region;
  }
};

}  // namespace stp::test
