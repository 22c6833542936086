// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/liar.h"

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/layout.h"

namespace stp::sim {
namespace {

using namespace wire;

// Where the Schedule Header begins, in frames as this project sends them without a tag.
std::size_t header_at(const Frame& frame) {
  const bool snap = load16(frame.data() + kEthernetSize - 2) <= kMax8023Length;
  return kEthernetSize + (snap ? kSnapSize : 0);
}

bool long_enough(const Frame& frame) {
  return frame.size() >= kEthernetSize && frame.size() >= header_at(frame) + kHeaderSize;
}

}  // namespace

void Liar::keep(const Frame& frame) {
  if (kept_.size() < kKept)
    kept_.push_back(frame);
  else
    kept_[next_kept_++ % kKept] = frame;
}

void Liar::overhear(const Frame& frame) {
  if (!long_enough(frame)) return;
  const auto at = header_at(frame) + 4 * dice_.below(kHeaderSize / 4);
  const auto word = load32(frame.data() + at);
  if (words_.size() < kKept)
    words_.push_back(word);
  else
    words_[next_word_++ % kKept] = word;
}

std::uint32_t Liar::invent(std::uint32_t truth) {
  switch (dice_.below(6)) {
    case 0:
      return dice_.next();
    case 1:
      return truth + 1;
    case 2:
      return truth - 1;
    case 3:
      return dice_.chance(kAlways / 2) ? 0 : ~0U;
    case 4:
      return truth ^ 1U << dice_.below(32);
    default:
      return words_.empty() ? 0 : words_[dice_.below(words_.size())];
  }
}

void Liar::change_field(Frame& frame) {
  auto* const header = frame.data() + header_at(frame);
  if (dice_.chance(kAlways / 2)) {
    auto* const field = header + 2 * dice_.below(kHeaderSize / 2);
    store16(field, static_cast<std::uint16_t>(invent(load16(field))));
  } else {
    auto* const field = header + 4 * dice_.below(kHeaderSize / 4);
    store32(field, invent(load32(field)));
  }
}

void Liar::change_length(Frame& frame) {
  if (dice_.chance(kAlways / 2))
    frame.resize(dice_.between(1, frame.size()));
  else
    frame.resize(frame.size() + dice_.between(1, 64));
}

// Half of the changed frames get a correct checksum: it does not protect against its sender.
void Liar::repair_checksum(Frame& frame) {
  const auto at = header_at(frame);
  auto* const cksum = frame.data() + at + at::kCksum;
  if (load16(cksum) == 0) return;
  store16(cksum, 0);
  Checksum sum;
  sum.add(Bytes(frame).subspan(at));
  store16(cksum, sum.wire_value());
}

bool Liar::mutate(Frame& frame) {
  keep(frame);
  if (!dice_.chance(lies_) || !long_enough(frame)) return false;
  if (dice_.chance(kAlways / 8)) {
    change_length(frame);
    return true;
  }
  for (auto changes = dice_.between(1, 2); changes > 0; --changes) change_field(frame);
  if (dice_.chance(kAlways / 2)) repair_checksum(frame);
  return true;
}

Frame Liar::replay() {
  if (kept_.empty() || !dice_.chance(lies_ / 4)) return {};
  auto frame = kept_[dice_.below(kept_.size())];
  if (long_enough(frame) && dice_.chance(kAlways / 2)) change_field(frame);
  return frame;
}

}  // namespace stp::sim
