// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stp/wire/golden_frames.h"

#include "tests/stp/wire/frames.h"

namespace stp::wire {
namespace {

// A is the Initiator, B the Responder of every sequence here.
constexpr std::uint16_t kPortA = 0x0101, kPortB = 0x0202;
constexpr std::uint32_t kKeyA = 0x11223344, kKeyB = 0xa1b2c3d4;
constexpr Envelope kBToA = {.dst = kMacA, .src = kMacB, .vlan = {}, .checksum = false};
constexpr bool kSnap = true, kEthernet2 = false;

constexpr const char* kCounting =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
// Operand, compare, and the unused half.
constexpr const char* kOperands =
    "1122334455667788 0000000000000000 00000000000000000000000000000000";

constexpr Envelope in_vlan(Envelope envelope, std::uint16_t tag) {
  envelope.vlan = tag;
  return envelope;
}

constexpr Envelope with_checksum(Envelope envelope) {
  envelope.checksum = true;
  return envelope;
}

constexpr std::uint16_t function(Function function) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(function) << kFunctionShift);
}

Buffer join(Buffer head, const Buffer& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// clang-format off
void add_connections(std::vector<GoldenFrame>& all) {
  all.push_back({"RC", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestConnection), .param = 64, .s_port = kPortA, .bufx = 14,
       .offset = kKeyA, .sync = 13, .d_id = 3000},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "08000040 00000101 00000000 00000000 0000000e"
            "11223344 0000000d 00000000 00000bb8 00000000"
            "000000000000")});
  all.push_back({"RcWithOptionPayload", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestConnection), .param = 64, .s_port = kPortA, .bufx = 14,
       .offset = kKeyA, .sync = 13, .d_id = 3000},
      bytes(kCounting), {},
      bytes("020000000002 020000000001 8181"
            "08000040 00000101 00000000 00000000 0000000e"
            "11223344 0000000d 00000000 00000bb8 00000000"
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")});
  all.push_back({"CA", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kConnectionAnswer), .param = 128, .d_port = kPortA,
       .s_port = kPortB, .d_key = kKeyA, .bufx = 12, .offset = kKeyB, .sync = 10, .s_id = 3000},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "10000080 01010202 11223344 00000000 0000000c"
            "a1b2c3d4 0000000a 00000000 00000000 00000bb8"
            "000000000000")});
  all.push_back({"CaReject", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kConnectionAnswer, flag::kReject), .d_port = kPortA,
       .d_key = kKeyA, .s_id = 3000},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "10040000 01010000 11223344 00000000 00000000"
            "00000000 00000000 00000000 00000000 00000bb8"
            "000000000000")});
  all.push_back({"RD", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestDisconnect), .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .offset = kKeyA},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "18000000 02020101 a1b2c3d4 00000000 00000000"
            "11223344 00000000 00000000 00000000 00000000"
            "000000000000")});
  all.push_back({"DA", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kDisconnectAnswer), .d_port = kPortA, .s_port = kPortB,
       .d_key = kKeyA, .offset = kKeyB},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "20000000 01010202 11223344 00000000 00000000"
            "a1b2c3d4 00000000 00000000 00000000 00000000"
            "000000000000")});
  all.push_back({"DC", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kDisconnectComplete), .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .offset = kKeyA},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "28000000 02020101 a1b2c3d4 00000000 00000000"
            "11223344 00000000 00000000 00000000 00000000"
            "000000000000")});
}

void add_transfers(std::vector<GoldenFrame>& all) {
  all.push_back({"RTS", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestToSend), .param = 4, .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .mx = 20, .sync = 0x1, .b_num = 0x23456789, .d_id = kNoId, .s_id = 7},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "b0000004 02020101 a1b2c3d4 00000014 00000000"
            "00000000 00000001 23456789 ffffffff 00000007"
            "000000000000")});
  all.push_back({"RA", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kRequestAnswer), .d_port = kPortA, .s_port = kPortB,
       .d_key = kKeyA, .d_id = 7, .s_id = 9},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "b8000000 01010202 11223344 00000000 00000000"
            "00000000 00000000 00000000 00000007 00000009"
            "000000000000")});
  all.push_back({"CTS", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kClearToSend), .param = 16, .d_port = kPortA, .s_port = kPortB,
       .d_key = kKeyA, .mx = 3, .bufx = 0x100, .offset = 0x40, .b_num = 2, .d_id = 7, .s_id = 9},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "d0000010 01010202 11223344 00000003 00000100"
            "00000040 00000000 00000002 00000007 00000009"
            "000000000000")});
  all.push_back({"END", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kEnd), .d_port = kPortB, .s_port = kPortA, .d_key = kKeyB,
       .d_id = 9, .s_id = 7},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "f0000000 02020101 a1b2c3d4 00000000 00000000"
            "00000000 00000000 00000000 00000009 00000007"
            "000000000000")});
  all.push_back({"EA", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kEndAck), .d_port = kPortA, .s_port = kPortB, .d_key = kKeyA,
       .d_id = 7, .s_id = 9},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "f8000000 01010202 11223344 00000000 00000000"
            "00000000 00000000 00000000 00000007 00000009"
            "000000000000")});
}

void add_data(std::vector<GoldenFrame>& all) {
  all.push_back({"Data1024", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kData), .param = 1, .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .mx = 3, .bufx = 0x101, .sync = 5, .b_num = 2, .d_id = 9,
       .s_id = 0xdeadbeef},
      pattern(1024), {},
      join(bytes("020000000002 020000000001 8181"
                 "d8000001 02020101 a1b2c3d4 00000003 00000101"
                 "00000000 00000005 00000002 00000009 deadbeef"), pattern(1024))});
  all.push_back({"Data3WithChecksum", with_checksum(kAToB), kSnap,
      {.op_flags = op_flags(Op::kData, flag::kLast | flag::kSendState | flag::kInterrupt),
       .param = 2, .d_port = kPortB, .s_port = kPortA, .d_key = kKeyB, .cksum = 0x4727, .mx = 3,
       .bufx = 0x102, .offset = 0x10, .sync = 6, .b_num = 2, .d_id = 9, .s_id = 1},
      bytes("aabbcc"), {},
      bytes("020000000002 020000000001 0033 aaaa030000008181"
            "d8680002 02020101 a1b2c3d4 47270003 00000102"
            "00000010 00000006 00000002 00000009 00000001"
            "aabbcc")});
  all.push_back({"Data0", kAToB, kSnap,
      {.op_flags = op_flags(Op::kData, flag::kLast), .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .mx = 3, .bufx = 0x100, .d_id = 9},
      {}, {},
      bytes("020000000002 020000000001 0030 aaaa030000008181"
            "d8080000 02020101 a1b2c3d4 00000003 00000100"
            "00000000 00000000 00000000 00000009 00000000")});
  all.push_back({"Data8WithAppend", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kData, flag::kLast | flag::kAppend), .d_port = kPortB,
       .s_port = kPortA, .d_key = kKeyB, .mx = 3, .bufx = 0x100, .d_id = 9},
      bytes("3132333435363738"), Buffer(64, std::byte{0x5a}),
      bytes("020000000002 020000000001 8181"
            "d80a0000 02020101 a1b2c3d4 00000003 00000100"
            "00000000 00000000 00000000 00000009 00000000"
            "31323334353637385a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
            "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
            "5a5a5a5a5a5a5a5a")});
}

void add_regions(std::vector<GoldenFrame>& all) {
  all.push_back({"RMR", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestMemoryRegion), .param = 8, .d_port = kPortB,
       .s_port = kPortA, .d_key = kKeyB, .b_num = 65536, .s_id = 21},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "98000008 02020101 a1b2c3d4 00000000 00000000"
            "00000000 00000000 00010000 00000000 00000015"
            "000000000000")});
  all.push_back({"MRA", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kMemoryRegionAvailable), .param = 8, .d_port = kPortA,
       .s_port = kPortB, .d_key = kKeyA, .mx = 4, .bufx = 0x200, .b_num = 65536, .d_id = 21,
       .s_id = 22},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "a0000008 01010202 11223344 00000004 00000200"
            "00000000 00000000 00010000 00000015 00000016"
            "000000000000")});
  all.push_back({"GET", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kGet), .param = 4096, .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .mx = 5, .bufx = 0x200, .offset = 128, .sync = 0x10, .d_id = 22, .s_id = 1},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "a8001000 02020101 a1b2c3d4 00000005 00000200"
            "00000080 00000010 00000000 00000016 00000001"
            "000000000000")});
  all.push_back({"FetchIncrement", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kGet, function(Function::kFetchIncrement)), .param = 8,
       .d_port = kPortB, .s_port = kPortA, .d_key = kKeyB, .mx = 5, .bufx = 0x200, .offset = 64,
       .sync = 0x10, .b_num = 8, .d_id = 22, .s_id = 2},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "a9000008 02020101 a1b2c3d4 00000005 00000200"
            "00000040 00000010 00000008 00000016 00000002"
            "000000000000")});
  all.push_back({"CompareAndSwap", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kGet, function(Function::kCompareAndSwap)), .param = 8,
       .d_port = kPortB, .s_port = kPortA, .d_key = kKeyB, .mx = 5, .bufx = 0x200, .offset = 64,
       .sync = 0x10, .b_num = 8, .d_id = 22, .s_id = 3},
      bytes(kOperands), {},
      bytes("020000000002 020000000001 8181"
            "ad000008 02020101 a1b2c3d4 00000005 00000200"
            "00000040 00000010 00000008 00000016 00000003"
            "1122334455667788000000000000000000000000000000000000000000000000")});
  all.push_back({"FetchOpComplete", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kGet, function(Function::kFetchOpComplete)), .d_port = kPortB,
       .s_port = kPortA, .d_key = kKeyB, .d_id = 22, .s_id = 2},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "af000000 02020101 a1b2c3d4 00000000 00000000"
            "00000000 00000000 00000000 00000016 00000002"
            "000000000000")});
}

void add_states(std::vector<GoldenFrame>& all) {
  all.push_back({"RsSlotsOnly", kAToB, kEthernet2,
      {.op_flags = op_flags(Op::kRequestState), .d_port = kPortB, .s_port = kPortA,
       .d_key = kKeyB, .sync = 77, .b_num = kNoId, .d_id = kNoId},
      {}, {},
      bytes("020000000002 020000000001 8181"
            "e0000000 02020101 a1b2c3d4 00000000 00000000"
            "00000000 0000004d ffffffff ffffffff 00000000"
            "000000000000")});
  all.push_back({"RSR", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kRequestStateResponse), .param = 60, .d_port = kPortA,
       .s_port = kPortB, .d_key = kKeyA, .sync = 77, .b_num = kNoId, .d_id = kNoId},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "e800003c 01010202 11223344 00000000 00000000"
            "00000000 0000004d ffffffff ffffffff 00000000"
            "000000000000")});
  all.push_back({"RsrOfTransfer", kBToA, kEthernet2,
      {.op_flags = op_flags(Op::kRequestStateResponse), .param = 59, .d_port = kPortA,
       .s_port = kPortB, .d_key = kKeyA, .offset = 3, .sync = 78, .b_num = kNoId, .d_id = 7,
       .s_id = 9},
      {}, {},
      bytes("020000000001 020000000002 8181"
            "e800003b 01010202 11223344 00000000 00000000"
            "00000003 0000004e ffffffff 00000007 00000009"
            "000000000000")});
  all.push_back({"NopInVlan5", in_vlan(kAToB, 5), kEthernet2,
      {.op_flags = op_flags(Op::kNoOperation), .param = 0xbeef, .d_port = kPortB,
       .s_port = kPortA, .d_key = kKeyB},
      {}, {},
      bytes("020000000002 020000000001 81000005 8181"
            "8000beef 02020101 a1b2c3d4 00000000 00000000"
            "00000000 00000000 00000000 00000000 00000000"
            "0000")});
}
// clang-format on
}  // namespace

const std::vector<GoldenFrame>& golden_frames() {
  static const std::vector<GoldenFrame> frames = [] {
    std::vector<GoldenFrame> all;
    add_connections(all);
    add_transfers(all);
    add_data(all);
    add_regions(all);
    add_states(all);
    return all;
  }();
  return frames;
}

}  // namespace stp::wire
