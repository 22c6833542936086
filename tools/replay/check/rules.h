// SPDX-License-Identifier: BSD-3-Clause
// Every rule that `stp-replay check` checks, in one table. Names are stable, because scripts rely
// on them. The sections are those of docs/protocol.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stp::replay {

// How a finding depends on what the capture holds.
//   kSure  the frame is wrong, whatever other frames there were
//   kIfAll wrong, unless the capture lacks a frame that explains it
//   kNote  not a violation of the protocol, but information about the capture
// X(id, section, name, certainty, what a frame has to be like)
// clang-format off
#define STP_REPLAY_RULES(X)                                                                        \
  X(SendEthernet2,    "2.4",  "send-ethernet2",    kSure,  "802.3 + SNAP is for DATA shorter than 6 bytes only") \
  X(ShortStuSnap,     "2.5",  "short-stu-snap",    kSure,  "DATA with fewer than 6 bytes goes as 802.3 + SNAP")  \
  X(ControlLength,    "2.7",  "control-length",    kSure,  "control payload is a header, or a header and 32 bytes; operands are there where needed") \
  X(BadSource,        "2.9",  "bad-source",        kSure,  "the source address is a station's own")   \
  X(OwnAddress,       "2.10", "own-address",       kSure,  "frames go to one station, never to a group") \
  X(UnusedField,      "3.3",  "unused-field",      kSure,  "a field that the operation does not use is 0") \
  X(OpCode,           "3.4",  "op-codes",          kSure,  "the op code is one of the table's")       \
  X(IllegalFlags,     "3.7",  "illegal-flags",     kSure,  "no reserved bit, illegal function, or Append without Last") \
  X(UnusedFlag,       "3.9",  "unused-flags",      kSure,  "a flag that the operation does not use is 0") \
  X(Exponent,         "3.11", "exponents",         kSure,  "Bufsize, Max_STU, Blocksize and Max_Block are legal") \
  X(StusOfBlock,      "3.12", "stus-of-block",     kSure,  "a Block has at most 65,535 STUs")         \
  X(BadChecksum,      "4.3",  "bad-checksum",      kSure,  "a Cksum other than 0 matches")            \
  X(CaUnasked,        "5.1",  "ca-unasked",        kIfAll, "a CA answers an RC")                      \
  X(DaUnasked,        "5.2",  "da-unasked",        kIfAll, "a DA answers an RD")                      \
  X(DcUnasked,        "5.2",  "dc-unasked",        kIfAll, "a DC answers a DA")                       \
  X(NoPort,           "5.3",  "no-port",           kSure,  "D_Port is 0 in RC only")                  \
  X(SecondVc,         "5.4",  "second-vc",         kSure,  "a repeated RC makes no second connection") \
  X(ZeroKey,          "5.5",  "zero-key",          kSure,  "Keys are never 0")                        \
  X(RejectPort,       "5.6",  "reject-port",       kSure,  "a CA with Reject has R_Port 0")           \
  X(CaKey,            "5.8",  "ca-key",            kSure,  "a CA gives the Port and Key of its RC back") \
  X(RcLate,           "5.10", "rc-late",           kIfAll, "for 4 s an RC of a connection that is gone makes none") \
  X(RdUnanswered,     "5.11", "rd-unanswered",     kIfAll, "RD is answered in every state")           \
  X(AfterRd,          "5.17", "after-rd",          kSure,  "who disconnects sends nothing more")      \
  X(NotEstablished,   "5.18", "not-established",   kIfAll, "operations need a connection that was answered") \
  X(WrongPort,        "5.18", "wrong-port",        kIfAll, "D_Port is that of the sender's peer")     \
  X(WrongKey,         "5.18", "wrong-key",         kIfAll, "D_Key is the one that the receiver gave") \
  X(WrongPeer,        "5.18", "wrong-peer",        kIfAll, "a Port is used by its peer's MAC address and Port only") \
  X(RetryTooSoon,     "5.21", "retry-too-soon",    kSure,  "a request is repeated after a timeout, then after twice that") \
  X(RetryTooOften,    "5.21", "retry-too-often",   kSure,  "RD and a Node's own RS are given up after 8 tries")   \
  X(SizesChanged,     "5.26", "sizes-changed",     kSure,  "a repeated RC or CA says what the first said") \
  X(RdOption,         "5.32", "rd-option",         kIfAll, "an RD has the option payload of the first; one of a connection that is not open has none") \
  X(NoCredit,         "6.3",  "no-credit",         kIfAll, "at credit 0 nothing is sent that uses a Slot") \
  X(RsrUnasked,       "6.4",  "rsr-unasked",       kIfAll, "an RSR has the Sync of a question, but for that of 13.21")       \
  X(RsrSlots,         "6.4",  "rsr-slots",         kSure,  "R_Slots is no more than was announced")   \
  X(RsrUnanswered,    "6.4",  "rs-unanswered",     kIfAll, "RS is answered")                          \
  X(RsrBSeqBack,      "6.13", "b-seq-back",        kIfAll, "B_seq never falls")                       \
  X(RsrBNum,          "6.13", "rsr-b-num",         kIfAll, "B_num of an RSR is that of the Block asked about if it is complete, else none") \
  X(MxZero,           "7.4",  "mx-zero",           kSure,  "Mx 0 is never given out")                 \
  X(BadOffset,        "7.6",  "bad-offset",        kSure,  "Offset lies inside a buffer")             \
  X(CrossesBuffer,    "7.6",  "crosses-buffer",    kSure,  "an STU crosses no buffer")                \
  X(NoGrant,          "7.6",  "no-grant",          kIfAll, "DATA has the id of a Transfer, region or Get") \
  X(BlockNotGranted,  "7.6",  "block-not-granted", kIfAll, "DATA belongs to a Block that a CTS let be sent") \
  X(WrongMx,          "7.6",  "wrong-mx",          kIfAll, "DATA has the Mx of its grant")            \
  X(OutsideGrant,     "7.6",  "outside-grant",     kIfAll, "every byte of DATA lies in what was granted") \
  X(GrantOffset,      "7.8",  "grant-own-memory",  kSure,  "CTS and MRA name an Offset inside a buffer") \
  X(GrantBeyond,      "7.9",  "grant-bounded",     kIfAll, "B_num of a CTS lies in the Transfer")     \
  X(PutWindowSize,    "7.13", "put-window",        kSure,  "an MRA opens 1 to 1024 Blocks")           \
  X(GetOutside,       "7.15", "get-checks",        kIfAll, "a GET lies in a region that an MRA opened") \
  X(FetchOperand,     "7.17", "fetch-operand",     kSure,  "a FetchOp names 8 bytes, 8-aligned")      \
  X(StuLength,        "8.2",  "tiling",            kIfAll, "an STU ends where its tile or its Block ends") \
  X(LastStu,          "8.3",  "last-stu",          kIfAll, "Last stands on a Block's final STU and no other") \
  X(StuPlace,         "8.6",  "strict-tiling",     kIfAll, "STU n begins the n-th tile of its Block") \
  X(StuTooLong,       "8.7",  "stu-too-long",      kSure,  "an STU is no longer than both sides take") \
  X(BlockFlags,       "8.11", "block-flags",       kSure,  "Send_state and Interrupt stand on Last; Order and Silent on all STUs or none") \
  X(IdInUse,          "9.1",  "id-in-use",         kIfAll, "an id is not used for something else meanwhile") \
  X(IdNone,           "9.1",  "id-none",           kSure,  "0xffffffff is no id")                     \
  X(AnswerUnasked,    "9.2",  "answer-unasked",    kIfAll, "RA and MRA answer a request")             \
  X(Blocksize,        "9.4",  "blocksize",         kSure,  "Blocksize is at most Max_Block, and stays") \
  X(FOffset,          "9.5",  "f-offset",          kIfAll, "F_Offset is 0 in a Block's first CTS, and lies in the Block") \
  X(BSeqAhead,        "9.6",  "b-seq",             kIfAll, "B_seq passes no Block that was not sent whole") \
  X(BytesChanged,     "9.7",  "bytes-changed",     kIfAll, "the bytes of a Block stay until B_seq has passed it") \
  X(ZeroLength,       "9.8",  "zero-length",       kSure,  "T_len is not 0 in RTR and RMR")           \
  X(ReadUnasked,      "9.9",  "read-unasked",      kIfAll, "the RTS that answers an RTR names it, and offers no more") \
  X(PutUnacknowledged,"9.11", "put-unacknowledged",kIfAll, "no more than B_win Put Blocks are sent beyond B_seq") \
  X(GetUnanswered,    "9.12", "get-unanswered",    kIfAll, "a GET is answered")                       \
  X(GetFlags,         "9.12", "get-flags",         kIfAll, "Silent of a GET stands on its answer")    \
  X(FetchOnce,        "9.15", "fetchop-once",      kSure,  "a repeated FetchOp is answered with the first result") \
  X(GNum,             "9.16", "g-num",             kIfAll, "G_num counts up by one")                  \
  X(TooManyGets,      "9.16", "too-many-gets",     kSure,  "at most 64 Gets and FetchOps are outstanding") \
  X(RefusalUnasked,   "9.17", "refusal-unasked",   kIfAll, "a GET with Reject comes back for a GET")  \
  X(AfterEnd,         "9.18", "after-end",         kSure,  "no DATA is sent after END or EA")         \
  X(EaUnasked,        "9.18", "ea-unasked",        kIfAll, "EA answers END")                          \
  X(EndUnanswered,    "9.18", "end-unanswered",    kIfAll, "END is answered")                         \
  X(MessageNumber,    "9.21", "message-number",    kIfAll, "managed messages are numbered from 1, one number each") \
  X(MessageWithdrawn, "9.22", "message-withdrawn", kIfAll, "the END of a managed Write says its number") \
  X(OfferUnanswered,  "9.24", "offer-unanswered",  kIfAll, "the RTS of a managed Write is answered")  \
  X(GrantsOutstanding,"9.25", "grants-outstanding",kIfAll, "no more CTS are outstanding than CTS_req asks for") \
  X(Tag,              "9.26", "tag",               kIfAll, "all DATA of a managed Write has one Opaque") \
  X(PutFlags,         "9.27", "put-flags",         kIfAll, "a managed Put is Silent or has Interrupt, and one in 32 asks by Send_state") \
  X(RegionTerms,      "9.29", "region-terms",      kIfAll, "the MRA for a named region has its terms, and the length that was asked for") \
  X(Hello,            "9.30", "hello",             kIfAll, "a managed connection begins with a request and its answer") \
  X(EagerSlot,        "9.31", "eager-slot",        kIfAll, "a short message stands in the next slot, which is free") \
  X(WriteWindow,      "9.32", "write-window",      kIfAll, "no Write begins while 64 have since the oldest that is not confirmed") \
  X(ManagedEnd,       "9.34", "managed-end",       kIfAll, "the option payload of a managed connection's RD says 1 or 2") \
  X(ReceiveWait,      "9.35", "receive-wait",      kIfAll, "an RD that says 2 leaves a message of its peer's waiting") \
  X(EagerSpan,        "9.41", "eager-span",        kIfAll, "a message in a ring takes no more slots than the ring's owner allows") \
  X(CtsTooSoon,       "10.3", "cts-too-soon",      kSure,  "a CTS is repeated after a data timeout, 1 ms at least, or when later Blocks, or a Last 8 STUs on, have passed") \
  X(PacedRepeats,     "10.16","paced-repeats",     kIfAll, "RS about a managed Transfer without progress come at doubling intervals, up to 1 s") \
  X(BlockMx,          "11.6", "block-mx",          kIfAll, "all STUs of a Block to an endpoint name one Mx") \
  X(BlockName,        "11.7", "block-name",        kIfAll, "a Block's name rests for 4 s before it names another") \
  X(EndpointOperation,"11.10","endpoint-operations",kIfAll,"RD, DA and DC name no endpoint")          \
  X(ZeroPort,         "12.2", "zero-port",         kSure,  "S_Port is not 0")                         \
  X(Truncated,        "12.2", "truncated",         kSure,  "the frame is as long as its headers say") \
  X(PathParts,        "13.19","path-parts",        kIfAll, "the parts of a Block join, go before the next Block, and only to who heeds them; a repeat names no more") \
  X(CaptureLoss,      "",     "capture-loss",      kNote,  "the capture lacks frames that both sides know of") \
  X(CaptureCut,       "",     "capture-cut",       kNote,  "the capture cut a frame inside its header") \
  X(ClockBackwards,   "",     "clock-backwards",   kNote,  "a frame is dated before the one in front of it") \
  X(OneSided,         "",     "one-sided",         kNote,  "the capture has the frames of one direction between two stations only") \
  X(Forgotten,        "",     "forgotten",         kNote,  "check has forgotten what the frame is about, to make room, and does not judge it; said once for each kind") \
  X(MidTrace,         "",     "mid-trace",         kNote,  "a connection began before the capture did, or an end is an endpoint")
// clang-format on

enum class Rule : std::uint8_t {
#define STP_REPLAY_RULE_ID(id, section, name, certainty, text) k##id,
  STP_REPLAY_RULES(STP_REPLAY_RULE_ID)
#undef STP_REPLAY_RULE_ID
};

enum class Certainty : std::uint8_t { kSure, kIfAll, kNote };

struct RuleText {
  Rule rule;
  std::string_view section;  // "5.18"; a note has none
  std::string_view name;     // "wrong-key"
  Certainty certainty;
  std::string_view text;
};

std::span<const RuleText> rules();
const RuleText& text_of(Rule rule);

}  // namespace stp::replay
