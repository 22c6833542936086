// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/joined.h"

#include <algorithm>
#include <array>

#include "stp/wire/big_endian.h"
#include "stp/wire/frame.h"
#include "stp/wire/padding.h"

namespace stp::replay {
namespace {

constexpr std::size_t kShortest = wire::kHeaderSize;
// A capture of more connections than that is one of which the oldest are over.
constexpr std::size_t kMostKnown = 65'536;
// An STU may name its connection everywhere, and each length that is tried costs a pass over it.
constexpr unsigned kMostTries = 64;
constexpr std::size_t kUdpLengthAt = 4, kHeadOfUdp = 8;  // in the header of UDP; how long that is

std::uint64_t name_in(const std::byte* header) {
  return wire::load64(header + wire::at::kDPort);
}

bool may_begin(const std::byte* header) {
  const auto h = wire::decode(header);
  return wire::check_op(h) == DropReason::kNone && wire::check_fields(h) != DropReason::kZeroPort;
}

bool is_data(Bytes data) {
  return wire::decode(data.data()).op() == wire::Op::kData;
}

// Whether this is one datagram, as its header says, with nothing behind it.
bool is_one(Bytes data) {
  wire::Frame frame;
  // As there, the length is stated: nothing is padded but an RC or CA that says so, which is
  // longer.
  frame.snap = is_data(data) || data.size() < wire::kHeaderSize + wire::kOptionSize;
  frame.header = wire::decode(data.data());
  const auto why = frame.header.op() == wire::Op::kData
                       ? wire::parse_payload<true>(data, {}, wire::kMaxMaxStu, frame)
                       : wire::parse_payload<false>(data, {}, wire::kMaxMaxStu, frame);
  return why == DropReason::kNone;
}

// How long a control operation may be.
std::array<std::size_t, 3> own_lengths(Bytes data) {
  const auto header = wire::decode(data.data());
  const auto padding = wire::padding_of(header);
  const bool padded = wire::is_legal(padding, header);
  return {wire::kHeaderSize, wire::kHeaderSize + wire::kOptionSize,
          padded ? wire::padded_length(padding.stu) : wire::kHeaderSize};
}

bool is_longer(Bytes data, std::size_t length) {
  return length > std::ranges::max(own_lengths(data));
}

}  // namespace

void JoinedDatagrams::look(CapturedFrame& frame) {
  length_ = 0;
  if (frame.over_udp) return;
  const auto found = find_datagram(frame);
  if (!found || found->from == 0 || found->data.size() < kShortest) return;
  const Bytes data = found->data;
  if (data.size() < found->length) {  // it was cut
    frame.perhaps_joined =
        !is_data(data) && may_begin(data.data()) && is_longer(data, found->length);
    return;
  }
  if (is_data(data) || is_one(data)) know(data);
  const auto length = find_length(data);
  if (length == 0) {
    frame.perhaps_joined = has_second(data);
    return;
  }
  head_ = static_cast<std::size_t>(data.data() - frame.bytes.data());
  bytes_.assign(frame.bytes.begin(),
                frame.bytes.begin() + static_cast<std::ptrdiff_t>(head_ + data.size()));
  joined_ = frame;
  length_ = length;
  at_ = 0;
  for (std::size_t at = 0; at < data.size(); at += length) know(data.subspan(at));
  give(frame);
  joined_.dropped = 0;
}

bool JoinedDatagrams::next(CapturedFrame& out) {
  if (length_ == 0 || head_ + at_ >= bytes_.size()) return false;
  give(out);
  return true;
}

void JoinedDatagrams::give(CapturedFrame& out) {
  const auto size = std::min(length_, bytes_.size() - head_ - at_);
  const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(head_ + at_);
  one_.assign(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
  one_.insert(one_.end(), from, from + static_cast<std::ptrdiff_t>(size));
  wire::store16(one_.data() + head_ - kHeadOfUdp + kUdpLengthAt,
                static_cast<std::uint16_t>(kHeadOfUdp + size));
  at_ += size;
  out = joined_;
  out.bytes = one_;
  out.wire_length = one_.size();
}

void JoinedDatagrams::know(Bytes data) {
  if (known_.size() == kMostKnown) known_.clear();
  if (may_begin(data.data())) known_.insert(name_in(data.data()));
}

// Called for each byte of DATA: most have no such code.
bool JoinedDatagrams::is_known(const std::byte* header) const {
  const auto code = wire::load16(header) >> wire::kOpShift;
  return wire::syntax_of(static_cast<wire::Op>(code)).known && known_.contains(name_in(header));
}

// Whether a control operation has headers behind it at equal distances, all of connections that
// others have shown, and the first of a right form. Other bytes there are a fault of the operation.
bool JoinedDatagrams::has_second(Bytes data) const {
  if (is_data(data) || !may_begin(data.data()) || !is_longer(data, data.size())) return false;
  return std::ranges::any_of(own_lengths(data), [&](std::size_t length) {
    if (data.size() < length + kShortest || !may_begin(data.data() + length)) return false;
    for (auto at = length; at + kShortest <= data.size(); at += length)
      if (!is_known(data.data() + at)) return false;
    return true;
  });
}

// How long each is; 0: it is one datagram, or that is not sure. A control operation says how long
// it is. Of DATA it takes a header behind it whose connection was seen before.
std::size_t JoinedDatagrams::find_length(Bytes data) const {
  if (data.size() < 2 * kShortest) return 0;
  if (!is_data(data)) {
    for (const auto length : own_lengths(data))
      if (data.size() != length && divides(data, length)) return length;
    return 0;
  }
  const bool has_sum = wire::load16(data.data() + wire::at::kCksum) != 0;
  if (has_sum && is_one(data)) return 0;
  unsigned tries = 0;
  for (auto length = kShortest; length + kShortest <= data.size(); ++length) {
    if (!is_known(data.data() + length)) continue;
    if (divides(data, length)) return length;
    if (++tries == kMostTries) return 0;
  }
  return 0;
}

bool JoinedDatagrams::divides(Bytes data, std::size_t length) const {
  for (std::size_t at = 0; at < data.size(); at += length) {
    const auto one = data.subspan(at, std::min(length, data.size() - at));
    if (one.size() < kShortest || !is_one(one)) return false;
  }
  return true;
}

}  // namespace stp::replay
