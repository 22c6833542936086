// SPDX-License-Identifier: BSD-3-Clause
// The API, driven by byte code: any sequence of calls on two Nodes and on Sequencers, with live,
// ended and unknown ids, and users who write anything into their rings.
#include <algorithm>

#include "stp/transfer/sequencer.h"
#include "stp/wire/syntax.h"
#include "tests/fuzz/party.h"

namespace stp::fuzz {
namespace {

class World {
 public:
  explicit World(ByteCode& code) {
    if (code.chance(64)) return;
    for (auto& party : parties_) party.begin();
    parties_[0].connect_to_peer(now_);
    exchange(4, true);
  }
  void step(ByteCode& code) {
    const auto side = code.below(2);
    auto& party = parties_[side];
    switch (code.below(12)) {
      case 0:
        return exchange(code.below(4) + 1, code.chance(128));
      case 1:
        return party.release(code.below(8));
      case 2:
        now_ += Time{code.u8()} << (code.below(4) * 8);
        parties_[0].expire(now_);
        return parties_[1].expire(now_);
      case 3: {
        const auto frame = maker_.make(code, party.host());
        return party.receive(frame, now_);
      }
      case 4:
        return sequence(code, party);
      default:
        return party.call(code, now_);
    }
  }
  void finish() {
    // From here on both obey the protocol, so everything ends within its timeouts.
    const auto end = now_ + 20 * kSecond;
    for (auto& party : parties_) party.close_all(now_);
    exchange(16, true);
    while (next_deadline() <= end) {
      now_ = std::max(now_, next_deadline());
      for (auto& party : parties_) party.expire(now_);
      for (auto& party : parties_) party.close_all(now_);
      exchange(16, true);
    }
    for (auto& party : parties_) party.expect_nothing_left();
  }

 private:
  static constexpr MacAddr kMacA{{2, 0, 0, 0, 0, 1}}, kMacB{{2, 0, 0, 0, 0, 2}};

  [[nodiscard]] Time next_deadline() const {
    return std::min(parties_[0].host().node.next_deadline(),
                    parties_[1].host().node.next_deadline());
  }
  // Exchanges one burst in both directions, or bursts until neither side sends any more.
  void exchange(unsigned burst, bool to_the_end) {
    for (int round = 0; round < 1'000; ++round) {
      std::size_t moved = 0;
      for (auto side : {0, 1}) {
        for (const auto& frame : parties_[side].transmit(burst, now_)) {
          ++moved;
          maker_.learn(frame);
          parties_[1 - side].receive(frame, now_);
        }
        parties_[side].release(to_the_end ? ~std::size_t{0} : 0);
      }
      if (moved == 0 || !to_the_end) return;
    }
    ADD_FAILURE() << "the Nodes never come to rest";
  }
  // Gives a Sequencer anything that a Node might deliver, and any request.
  void sequence(ByteCode& code, Party& party) {
    const Landing landing{
        static_cast<std::uint16_t>(code.below(6)), {code.number(), code.number()}, length(code)};
    const RemoteRegion region{
        code.below(4), 1, {code.number(), code.number()}, length(code), code.number()};
    const Address from{code.number(), code.number()};
    const auto context = Context{code.below(16)};
    auto& s = sequencer_;
    switch (code.below(16)) {
      case 0:
        s.write(context, from, length(code));
        break;
      case 1:
        s.post_receive(context, landing);
        break;
      case 2:
        s.read(context, landing);
        break;
      case 3:
        s.serve_read(code.below(16), context, from, length(code));
        break;
      case 4:
        s.request_region(context, length(code), code.number());
        break;
      case 5:
        s.serve_region(code.below(16), landing, code.number());
        break;
      case 6:
        s.refuse(code.below(16));
        break;
      case 7: {
        const auto at = length(code), bytes = length(code);
        const auto flags = code.u8();
        s.put(context, region, at, from, bytes, {.flags = flags, .quiet = flags % 2 != 0});
        if (flags == 1) s.confirm_puts();
        break;
      }
      case 8:
        s.get(context, region, length(code), landing);
        break;
      case 9:
        s.fetch(context, region, length(code), static_cast<wire::Function>(code.below(8)), 1, 2,
                landing);
        break;
      case 10:
        s.end_region(region);
        break;
      case 11:
        s.cancel(context);
        break;
      case 12:
        s.taken(code.number());
        break;
      default:
        tell(code);
    }
    if (now_ >= s.next_deadline()) s.expire(now_);
    SendEntry entry{};
    for (int i = 0; i < 16 && s.transmit(entry, now_); ++i) party.send(code, entry);
    for (Completion c; s.next_completion(c);) {
    }
  }
  static std::uint64_t length(ByteCode& code) {
    return code.chance(224) ? code.number() : code.u64();
  }
  // Delivers a header that has passed the Node's checks of form.
  void tell(ByteCode& code) {
    ReceivedEntry entry{};
    auto& h = entry.header;
    h.op_flags = static_cast<std::uint16_t>((0x10 + code.below(16)) << wire::kOpShift);
    if (code.chance(96)) flip_flags(code, h);
    h.s_port = 1;
    h.param = static_cast<std::uint16_t>(code.chance(128) ? 8 + code.below(6) : code.number());
    h.mx = static_cast<std::uint16_t>(8 + code.below(8));
    h.bufx = code.number();
    h.offset = code.number();
    h.set_t_len(length(code));
    h.d_id = code.chance(192) ? code.below(16) : code.number();
    h.s_id = code.chance(192) ? code.below(16) : code.number();
    if (code.chance(64)) {
      entry.payload_length = wire::kOptionSize;
      const auto option = code.take(8);
      std::copy(option.begin(), option.end(), reinterpret_cast<std::byte*>(entry.payload));
    }
    if (wire::check_op(h) == DropReason::kNone && wire::check_fields(h) == DropReason::kNone)
      sequencer_.receive(entry, now_);
  }

  Party parties_[2]{{kMacA, kMacB, 1}, {kMacB, kMacA, 2}};
  Sequencer sequencer_{{.local_bufsize = 10,
                        .remote_bufsize = 9,
                        .send_stu_log2 = 9,
                        .receive_stu_log2 = 10,
                        .max_block = 14}};
  FrameMaker maker_;
  Time now_ = kSecond;
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
