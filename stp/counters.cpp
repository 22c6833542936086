// SPDX-License-Identifier: BSD-3-Clause
#include "stp/counters.h"

namespace stp {
namespace {

struct Text {
  const char* name;
  const char* description;
};

constexpr std::array<Text, kCounterCount> kTexts = {{
#define STP_COUNTER_TEXT(id, name, text) {#name, text},
    STP_COUNTERS(STP_COUNTER_TEXT)
#undef STP_COUNTER_TEXT
}};

const Text& text_of(Counter c) {
  static constexpr Text kNoCounter = {"none", "no reason to drop"};
  const auto index = static_cast<std::size_t>(c);
  return index < kCounterCount ? kTexts[index] : kNoCounter;
}

}  // namespace

const char* Counters::name(Counter c) {
  return text_of(c).name;
}

const char* Counters::description(Counter c) {
  return text_of(c).description;
}

bool Counters::is_drop(Counter c) {
  switch (c) {
    // Form.
    case Counter::kNotStp:
    case Counter::kNotForUs:
    case Counter::kBadSource:
    case Counter::kTruncated:
    case Counter::kUnknownOp:
    case Counter::kBadFlags:
    case Counter::kBadExponent:
    case Counter::kZeroLength:
    case Counter::kStuTooLong:
    case Counter::kBadControlLength:
    case Counter::kZeroPort:
    case Counter::kBadChecksum:
    // Connections; what is refused or answered once more was not dropped.
    case Counter::kBadPort:
    case Counter::kBadKey:
    case Counter::kBadPeer:
    case Counter::kBadState:
    case Counter::kCrossedEnd:
    case Counter::kBacklogFull:
    case Counter::kLateRc:
    case Counter::kRcFirst:
    // Slots.
    case Counter::kSlotOverrun:
    case Counter::kStateLost:
    // Memory.
    case Counter::kBadMx:
    case Counter::kMxNotOwned:
    case Counter::kBadBufx:
    case Counter::kBadOffset:
    case Counter::kStuCrossesBuffer:
    case Counter::kNoPermission:
    case Counter::kNoGrant:
    case Counter::kBadBNum:
    case Counter::kOutsideGrant:
    case Counter::kBadStuNum:
    case Counter::kDuplicateStu:
    case Counter::kStaleFetch:
    case Counter::kDuplicateBlock:
    // Connectionless endpoints.
    case Counter::kKeyGuesses:
    case Counter::kBlocksFull:
      return true;
    default:
      return false;
  }
}

}  // namespace stp
