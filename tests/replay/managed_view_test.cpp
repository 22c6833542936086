// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/text.h"

#include "stp/wire/big_endian.h"
#include "tests/replay/frame_file.h"

namespace stp::replay::test {
namespace {

using wire::Op;

class Viewing : public ::testing::Test {
 protected:
  using Words = std::vector<std::uint32_t>;

  static std::vector<std::byte> bytes_of(const Words& words, std::size_t size) {
    std::vector<std::byte> bytes(std::max(size, 4 * words.size()));
    for (std::size_t i = 0; i < words.size(); ++i) wire::store32(bytes.data() + 4 * i, words[i]);
    return bytes;
  }
  // The details of a frame of A (or B), as a line shows them.
  std::string say(wire::Header h, const Words& payload = {}, bool by_b = false,
                  std::size_t held = 10'000) {
    if (by_b) std::swap(h.s_port, h.d_port);
    const auto size = payload.empty() ? 0 : h.op() == Op::kData ? 1 : std::size_t{32};
    const auto body = bytes_of(payload, size);
    std::vector<std::byte> frame(200);
    const wire::Envelope envelope{by_b ? kMacA : kMacB, by_b ? kMacB : kMacA, {}, false};
    frame.resize(wire::emit(envelope, h, body, {}, frame));
    const auto decoded =
        decoder.decode({1, 0, Bytes(frame).first(std::min(held, frame.size())), frame.size()});
    EXPECT_TRUE(decoded.well_formed()) << decoded.error();
    std::string text;
    details = view.look(decoded);
    for (const auto& detail : details)
      text += (text.empty() ? "" : " ") + std::string(detail.name) + '=' + detail.text;
    return text;
  }
  std::string write(std::uint32_t number, const Words& payload, std::uint32_t tag = 0) {
    auto rts = header_of(Op::kRequestToSend);
    rts.mx = 16;
    rts.s_id = 100 + number;
    rts.d_id = wire::kNoId;
    auto text = say(rts, {number});
    auto cts = header_of(Op::kClearToSend);
    cts.param = 16;
    cts.mx = 3;
    cts.d_id = 100 + number;
    cts.s_id = 200 + number;
    EXPECT_EQ(say(cts, {}, true), "");
    auto data = header_of(Op::kData, wire::flag::kLast);
    data.mx = 3;
    data.d_id = 200 + number;
    data.s_id = tag;
    return text + '|' + say(data, payload);
  }
  void begin() {
    ASSERT_EQ(write(1, {0x53544d48, 0x00010001, 0}), "|hello=request version=1 private=0");
  }
  std::string region(std::uint32_t name, const Words& terms) {
    auto rmr = header_of(Op::kRequestMemoryRegion);
    rmr.param = 16;
    rmr.set_t_len(65'536);
    rmr.s_id = 300 + name;
    auto text = say(rmr, {name});
    auto mra = header_of(Op::kMemoryRegionAvailable);
    mra.param = 16;
    mra.mx = 4;
    mra.set_t_len(65'536);
    mra.d_id = 300 + name;
    mra.s_id = 400 + name;
    return text + '|' + say(mra, terms, true);
  }
  std::string put(std::uint32_t name, const Words& payload, std::size_t held = 10'000) {
    auto data = header_of(Op::kData, wire::flag::kLast);
    data.mx = 4;
    data.d_id = 400 + name;
    return say(data, payload, false, held);
  }

  Decoder decoder;
  ManagedView view;
  std::vector<Detail> details;
};

TEST_F(Viewing, messages_are_shown_with_number_and_tag) {
  begin();
  EXPECT_EQ(write(2, {1, 2, 3}, 0xabc), "message=2|message=2 tag=0xabc");
  auto end = header_of(Op::kEnd);
  end.s_id = 103;
  EXPECT_EQ(say(end, {3}), "message=3");
}

TEST_F(Viewing, a_ring_is_shown_with_what_its_messages_say) {
  begin();
  EXPECT_EQ(region(1, {0, 8}), "region=ring|region=ring slots=8");
  EXPECT_EQ(put(1, {5, 0, 7, 3}), "message=5 length=0 tag=0x7 taken=3");
  auto notice = header_of(Op::kNoOperation);
  notice.sync = 0x53544d4e;
  notice.b_num = 9;
  EXPECT_EQ(say(notice, {}, true), "taken=9");
  EXPECT_EQ(put(1, {5, 0, 7, 3}, 14 + 40 + 16), "message=5 length=0 tag=0x7 taken=3");
  EXPECT_EQ(put(1, {5, 0, 7, 3}, 14 + 40 + 15), "");
}

TEST_F(Viewing, regions_are_shown_by_their_names) {
  begin();
  EXPECT_EQ(region(77, {0x10, 0x20, 28}), "region=0x4d|region=0x4d address=0x1000000020 access=28");
  EXPECT_EQ(put(77, {1}), "region=0x4d");
}

TEST_F(Viewing, the_end_says_why) {
  auto rd = header_of(Op::kRequestDisconnect);
  EXPECT_EQ(say(rd), "");
  EXPECT_EQ(say(rd, {0x53544d45, 1}), "ended=broken off");
  EXPECT_EQ(say(rd, {0x53544d45, 2}), "ended=no receive");
  EXPECT_EQ(say(rd, {7, 2}), "");
}

// What programs of level 0 write there is theirs.
TEST_F(Viewing, other_connections_have_none_of_that) {
  EXPECT_EQ(write(1, {1, 2, 3}), "|");
  EXPECT_EQ(write(2, {1, 2, 3}), "|");
  EXPECT_EQ(region(1, {0, 8}), "|");
  EXPECT_EQ(put(1, {5, 0, 7, 3}), "");
}

TEST_F(Viewing, another_connection_of_the_same_ports_begins_anew) {
  begin();
  auto ca = header_of(Op::kConnectionAnswer);
  ca.bufx = 12;
  ca.sync = 10;
  EXPECT_EQ(say(ca, {}, true), "");
  EXPECT_EQ(write(2, {1}), "|");
}

TEST_F(Viewing, lines_and_objects_show_it) {
  begin();
  const auto frame = frame_of(header_of(Op::kNoOperation));
  const auto decoded = decoder.decode({1, 0, frame, frame.size()});
  const auto line = line_of(decoded, 0, details);
  EXPECT_NE(line.find(" [hello=request version=1 private=0]"), std::string::npos) << line;
  const auto json = json_of(decoded, details);
  EXPECT_NE(json.find(R"("managed":{"hello":"request","version":1,"private":0})"),
            std::string::npos)
      << json;
}

}  // namespace
}  // namespace stp::replay::test
