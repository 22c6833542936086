// SPDX-License-Identifier: BSD-3-Clause
// The managed layer with a peer at level 0 that answers correctly, wrongly or with nonsense. Each
// operation of the user completes once, and the peer can make the layer keep only bounded state.
#include <map>

#include "stp/transfer/sequencer.h"
#include "tests/fuzz/estate.h"
#include "tests/fuzz/frame_maker.h"
#include "tools/sim/live_bytes.h"

namespace stp::fuzz {
namespace {

using Kind = Completion::Kind;

// A's connection has a Sequencer. B's Node obeys the protocol, and B's user is the fuzzer.
class World : public test::TwoNodes {
 public:
  explicit World(ByteCode& code)
      : TwoNodes(NodeConfig{.mac = {}, .max_stu = 10, .vlan = {}, .attach_from = 512}) {
    const EndpointConfig both{
        .bufsize = Estate::kBufsize, .slots = 8, .credits = 8, .recover = code.chance(128)};
    connect(both, both);
    estate_.map(a.node, endpoint_a);
    SequencerConfig config;
    config.local_bufsize = config.remote_bufsize = Estate::kBufsize;
    config.send_stu_log2 = config.receive_stu_log2 = Estate::kBufsize;
    config.max_block = 11 + code.below(4);
    sequencer_ = std::make_unique<Sequencer>(config);
    at_start_ = test::live_bytes();
  }

  void step(ByteCode& code) {
    switch (code.below(8)) {
      case 0:
      case 1:
        begin(code);
        break;
      case 2:
      case 3:
        inject(code, 1);
        break;
      case 4:
        inject(code, kFew + 4 * code.u8());
        break;
      case 5:
        serve(code);
        break;
      case 6:
        run(Time{code.u8()} << (code.below(4) * 8));
        break;
      default:
        change_peer(code);
    }
    drive();
    forget_history();
    EXPECT_LE(test::live_bytes(), at_start_ + kMaxKept);
  }

  void finish() {
    drive();
    sequencer_->fail(-ENOTCONN);
    collect();
    for (const auto& [context, completions] : begun_)
      EXPECT_EQ(completions, 1U) << "context " << context;
    EXPECT_EQ(sequencer_->outstanding(), 0U);
    EXPECT_EQ(sequencer_->next_deadline(), kNever);
    EXPECT_TRUE(estate_.intact());
  }

 private:
  void TestBody() override {}

  [[nodiscard]] Landing landing(ByteCode& code, std::uint64_t longest) const {
    const auto length = code.u16() % (longest + 1);
    const auto at = std::uint64_t{code.u8()} * 32 % (Estate::kGrantedBytes - length + 1);
    return {estate_.mx(), Estate::granted(at & ~std::uint64_t{7}), length};
  }
  void began(int result) {
    if (result == 0) begun_.emplace(next_context_, 0U);
    ++next_context_;
  }
  void begin(ByteCode& code) {
    const auto context = next_context_;
    const auto from = Estate::source(std::uint64_t{code.u8()} * 16);
    const auto length = code.u16() % 8'000U;
    const RemoteRegion region =
        regions_.empty() ? RemoteRegion{} : regions_[code.below(8) % regions_.size()];
    auto& s = *sequencer_;
    switch (code.below(10)) {
      case 0:
        return began(s.write(context, from, length, {.tag = code.u8(), .flags = code.u8()}));
      case 1:
        return began(s.post_receive(context, landing(code, 8'000)));
      case 2:
        return began(s.read(context, landing(code, 8'000)));
      case 3:
        return began(s.request_region(context, length, 1 + code.below(8)));
      case 4:
        return began(s.put(context, region, code.u16(), from, length));
      case 5:
        return began(s.get(context, region, code.u16(), landing(code, 8'000)));
      case 6: {
        const auto function = static_cast<wire::Function>(code.below(8));
        auto word = landing(code, 1'000);
        word.length = 8;
        return began(s.fetch(context, region, std::uint64_t{code.u8()} * 8, function, 1, 2, word));
      }
      case 7:
        s.end_region(region);
        return;
      case 8:
        s.no_operation();
        return;
      default:
        s.cancel(code.u8() % (context + 1));
    }
  }
  void serve(ByteCode& code) {
    if (requests_.empty()) return;
    const auto at = code.u8() % requests_.size();
    const auto request = requests_[at];
    auto& s = *sequencer_;
    switch (code.below(3)) {
      case 0:
        return began(s.serve_read(request.request, next_context_, Estate::source(0),
                                  std::min<std::uint64_t>(request.length, 16'384)));
      case 1:
        s.serve_region(request.request, landing(code, 8'000), code.below(8));
        return;
      default:
        s.refuse(request.request);
    }
  }
  // Changes whether the peer's user reads, and which answers of its Node arrive: all, only Slots,
  // or none.
  void change_peer(ByteCode& code) {
    peer_reads_ = code.chance(128);
    switch (code.below(3)) {
      case 0:
        wire = nullptr;
        return;
      case 1:
        wire = [](const Frame& frame, bool from_a) {
          const auto h = parsed(frame).header;
          const bool state = h.op() == wire::Op::kRequestStateResponse;
          return from_a || (state && h.d_id == wire::kNoId) ? 1U : 0U;
        };
        return;
      default:
        wire = [](const Frame&, bool from_a) { return from_a ? 1U : 0U; };
    }
  }
  // Injects a frame repeatedly. After a few times it must not increase the state that is kept.
  void inject(ByteCode& code, std::size_t times) {
    const auto frame = maker_.make(code, a);
    std::size_t after_few = 0;
    for (std::size_t i = 0; i < times; ++i) {
      if (i == kFew) {
        forget_history();
        after_few = test::live_bytes();
      }
      arrive(a, frame);
      drive();
    }
    forget_history();
    if (times > kFew) {
      EXPECT_LE(test::live_bytes(), after_few + kSlack)
          << wire::short_name(parsed(frame).header.op()) << " times " << times;
    }
  }

  // Lets A's user work, B's user read, and both Nodes send all that they have.
  void drive() {
    for (bool moved = true; moved;) {
      settle();
      moved = false;
      while (const auto entry = get(ca)) {
        sequencer_->receive(*entry, now);
        moved = true;
      }
      sequencer_->taken(ca.user.taken());
      sequencer_->observe_path(ca.user.cts_repeated(), ca.user.path_block(), ca.user.steps());
      sequencer_->taken(ca.user.taken());
      if (now >= sequencer_->next_deadline()) sequencer_->expire(now);
      if (ca.user.state() == ChannelState::kFailed) sequencer_->fail(ca.user.error());
      if (ca.user.state() == ChannelState::kPeerClosed) sequencer_->fail(-ENOTCONN);
      SendEntry entry;
      while (ca.user.writable() && sequencer_->transmit(entry, now)) {
        put(a, ca, entry);
        moved = true;
      }
      while (peer_reads_ && get(cb)) moved = true;
    }
    collect();
  }
  void run(Time span) {
    const auto end = now + span;
    for (;;) {
      drive();
      const auto next =
          std::min({a.node.next_deadline(), b.node.next_deadline(), sequencer_->next_deadline()});
      if (next > end) break;
      now = std::max(now, next);
      a.node.expire(now);
      b.node.expire(now);
    }
    now = end;
  }
  void collect() {
    Completion c;
    while (sequencer_->next_completion(c)) {
      if (c.kind == Kind::kReadRequest || c.kind == Kind::kRegionRequest) {
        if (requests_.size() < kRemembered) requests_.push_back(c);
        continue;
      }
      if (c.kind >= Kind::kEnded) continue;  // no operation of the user
      if (c.kind == Kind::kRegion && c.status == 0 && regions_.size() < kRemembered)
        regions_.push_back(c.region);
      const auto found = begun_.find(c.context);
      ASSERT_NE(found, begun_.end()) << "nobody began " << c.context;
      EXPECT_EQ(++found->second, 1U) << "context " << c.context;
    }
  }
  // Frees what the fixture itself keeps, which is not to be measured.
  void forget_history() {
    for (const auto& frame : seen) maker_.learn(frame);
    seen = std::vector<Frame>();
    a.events = b.events = std::vector<Event>();
  }

  static constexpr std::size_t kMaxKept = std::size_t{3} << 20;  // twice the sum of the bounds
  static constexpr std::size_t kSlack = std::size_t{32} << 10;
  static constexpr std::size_t kFew = 64;
  static constexpr std::size_t kRemembered = 64;
  Estate estate_;
  std::unique_ptr<Sequencer> sequencer_;
  std::map<Context, unsigned> begun_;
  std::vector<Completion> requests_;
  std::vector<RemoteRegion> regions_;
  Context next_context_ = 1;
  bool peer_reads_ = true;
  FrameMaker maker_;
  std::size_t at_start_ = 0;
};

}  // namespace
}  // namespace stp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  stp::fuzz::ByteCode code(std::as_bytes(std::span(data, size)));
  stp::fuzz::World world(code);
  while (!code.done()) world.step(code);
  world.finish();
  return 0;
}
