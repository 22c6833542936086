// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/frame_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/wire/frame.h"
#include "stp/wire/padding.h"

namespace stp {
namespace {

// Limits of one turn of a connection, before the next owner or connection: its frames, and the work
// of its requests, including refused ones.
constexpr std::size_t kTurn = 16, kWorkOfTurn = 64;
// Limit of one call. The rest waits for the next turn of the loop: users may fill their queues
// faster than the Node empties them.
constexpr std::size_t kWorkOfCall = 256;  // units of 64 steps
constexpr std::size_t kMinFrame = wire::kEthernetSize + wire::kMinPayload;
// What is before the STU of a frame in Ethernet II without a tag.
constexpr std::size_t kHead = wire::kEthernetSize + wire::kHeaderSize;

}  // namespace

std::size_t FrameSender::send(std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  auto work = kWorkOfCall;
  auto& common = use_.common;
  auto& answers = common.answers;
  const auto& turns = use_.turns;
  if (!answers.empty()) {
    // If all answers are RSRs, lets one frame of a user go before them: no peer loses by that, and
    // the receiving program sees the frame sooner.
    if (!answers.has_pressing() && !turns.empty() && frames.size() > 1)
      count = send_next(frames.first(1), work, now);
    count += send_answers(frames.subspan(count));
  }
  const auto answered = count;
  if (!use_.pacing.empty()) count += send_held(frames.subspan(count), now);
  while (count < frames.size() && !turns.empty() && work > 0)
    count += send_next(frames.subspan(count, std::min(frames.size() - count, kTurn)), work, now);
  if (use_.pacing.may_go()) count += send_held(frames.subspan(count), now);
  common.unfinished = work == 0 && !turns.empty();
  // Answers that the requests caused: an RS for Slots, an RD.
  if (!answers.empty()) {
    answers.users_sent(count - answered);
    count += send_answers(frames.subspan(count));
    if (!answers.empty()) return count;
  }
  use_.departures.have_left();
  return count;
}

std::size_t FrameSender::send_answers(std::span<TxFrame> frames) {
  std::size_t count = 0;
  const bool users_wait = !use_.turns.empty();
  while (count < frames.size()) {
    const auto* const a = use_.common.answers.next(users_wait);
    if (a == nullptr) return count;
    use_.common.counters.add(Counter::kTxControl);
    const auto option = a->option ? Bytes(*a->option) : Bytes{};
    TxFrame& frame = frames[count++];
    emit(frame, a->dst, a->header, a->checksum, option, {}, false);
    if (const auto padding = wire::padding_of(a->header); padding.stu != 0)
      pad(frame, wire::kEthernetSize + wire::padded_length(padding.stu));
    frame.for_stranger = use_.common.answers.is_for_stranger();
    frame.presence = frame.for_stranger ? Presence::kClaimed : a->presence;
    use_.common.answers.sent(users_wait);
  }
  return count;
}

// Sends held CTS that may go now.
std::size_t FrameSender::send_held(std::span<TxFrame> frames, Time now) {
  std::size_t count = 0;
  use_.pacing.begin_burst(now);
  for (auto left = Pacing::kMostReleased; left > 0 && count < frames.size();) {
    const auto grant = use_.pacing.next(left, now);
    if (!grant) break;
    if (send_held(*grant, frames[count], now)) ++count;
  }
  return count;
}

// False: its user may no longer send it.
bool FrameSender::send_held(const Pacing::Grant& grant, TxFrame& frame, Time now) {
  auto& vc = grant.vc;
  auto entry = grant.held.entry;
  const auto* block = vc.inbound.granted(entry.header.s_id, entry.header.b_num);
  const auto before = block == nullptr ? 0 : block->end - block->start;
  if (const auto error = use_.checks.check(vc, entry, now, grant.held.part); error != 0) {
    if (error == -EDQUOT)
      use_.pacing.hold_again(grant, now);
    else if (error != -EALREADY)  // a late repeat is dropped silently
      count_refused(vc, error);
    return false;
  }
  use_.states.spend(vc, now);
  block = vc.inbound.granted(entry.header.s_id, entry.header.b_num);
  if (grant.held.part != 0 && block != nullptr && block->parts != nullptr) {
    name_part(entry, *block, before, vc.inbound.tiles());
    if (block->is_part()) use_.pacing.hold_rest(grant, block->whole_end - block->end);
  }
  emit_control(vc, entry, vc.addressed(entry.header), frame);
  frame.presence = use_.common.presence_of(vc, now);
  return true;
}

// The CTS `entry` asks for what is granted of `block` from byte `first` on.
// protocol: 13.19
void FrameSender::name_part(SendEntry& entry, const InboundBlock& block, std::uint64_t first,
                            const Tiles& tiles) {
  const auto before = first == 0 ? 0 : stu_count(block.start, first, tiles.stu_log2);
  wire::MissingStus part;
  for (auto number = before; number < block.granted_stus(tiles); ++number)
    part.add(static_cast<std::uint32_t>(number - before));
  entry.header.sync = static_cast<std::uint32_t>(first);
  entry.payload_length = wire::kOptionSize;
  part.encode(reinterpret_cast<std::byte*>(entry.payload));
}

// Sends frames of the next connection of the next owner. `work`: the work left for all of them
// together.
std::size_t FrameSender::send_next(std::span<TxFrame> frames, std::size_t& work, Time now) {
  auto& vc = use_.turns.next();
  auto share = std::min(work, kWorkOfTurn);
  work -= share;
  const bool controls = use_.common.controls_congestion();  // elsewhere there are no paths
  auto* const path = controls ? vc.inbound.account().path() : nullptr;
  const bool bounded_port = controls && vc.connectionless();
  const auto count = path != nullptr ? send_along(vc, *path, frames, share, now)
                     : bounded_port  ? send_from_port(vc, frames, share, now)
                                     : send_from(vc, frames, share, now);
  work += share;
  return count;
}

// As send_from(), where there is room on the path.
// protocol: 13.16
[[gnu::noinline]] std::size_t FrameSender::send_along(Vc& vc, Path& path, std::span<TxFrame> frames,
                                                      std::size_t& work, Time now) {
  const auto id = vc.id;
  const auto room = use_.bounds.room(vc, path, now);
  if (room == 0) return 0;
  const auto count = send_from(vc, frames.first(std::min(room, frames.size())), work, now);
  if (use_.vcs.find(id) == nullptr) return count;  // its end was all that it had to send
  std::uint64_t bytes = 0;
  for (const auto& frame : frames.first(count))
    bytes += frame.head_length + frame.attached.size() - wire::kEthernetSize;
  use_.bounds.sent(vc, path, bytes, now);
  return count;
}

// As send_from(), for the Port of a connectionless endpoint, whose requests may go to any station:
// a frame at a time, while that station has a budget. A Port that has sent a frame is still there.
// protocol: 13.17
[[gnu::noinline]] std::size_t FrameSender::send_from_port(Vc& vc, std::span<TxFrame> frames,
                                                          std::size_t& work, Time now) {
  for (std::size_t count = 0; count < frames.size(); ++count) {
    // take_request() asks for the first frame of a request.
    if (vc.is_sending && !use_.rates.may_send(vc, vc.peer_mac, now)) return count;
    if (send_from(vc, frames.subspan(count, 1), work, now) == 0) return count;
    const auto& frame = frames[count];
    MacAddr station;
    std::memcpy(station.octets.data(), frame.head, station.octets.size());
    use_.rates.sent(station, frame.head_length + frame.attached.size() - wire::kEthernetSize, now);
  }
  return frames.size();
}

// Tells the user which requests the Node has taken, and which no longer use its memory.
inline void FrameSender::tell_room(Vc& vc) {
  vc.channel.publish_taken();
  if (vc.attached == 0) vc.channel.complete(vc.channel.taken());
  use_.wake_ups.touch_room(vc);
}

// The current request is done (sent or refused).
inline void FrameSender::finish_request(Vc& vc) {
  vc.is_sending = false;
  if (vc.sending.source != Sending::Source::kUser) return;
  vc.channel.skip();
  tell_room(vc);
}

// Runs for each frame, so it is part of both who call it.
[[gnu::always_inline]] inline std::size_t FrameSender::send_requests(Vc& vc,
                                                                     std::span<TxFrame> frames,
                                                                     std::size_t& work, Time now) {
  std::size_t count = 0;
  bool untold = false;  // the user is told once of all Blocks of one STU in a row
  while (count < frames.size() && work > 0) {
    work::count("frames sent");
    if (!vc.is_sending && send_whole_block(vc, frames[count], now)) {
      VcEndings::progress(vc, now);
      untold = true;
      ++count;
      --work;
      continue;
    }
    if (std::exchange(untold, false)) tell_room(vc);
    if (!vc.is_sending && !take_request(vc, work, now)) return count;
    if (!vc.is_sending) break;  // the work of this turn is used up
    auto& frame = frames[count++];
    if (vc.sending.entry.header.op() == wire::Op::kData)
      build_stu(vc, frame);
    else
      build_control(vc, frame);
    if (frame.head_length == 0) {
      --count;  // its memory has been unmapped
    } else {
      VcEndings::progress(vc, now);
      if (vc.is_sending && count < frames.size()) [[unlikely]]
        count += build_alike(vc, frame, frames.subspan(count));
    }
  }
  if (untold) tell_room(vc);
  use_.turns.enter(vc);
  return count;
}

// Sends up to frames.size() frames of one connection. Queues the connection again if more remain.
std::size_t FrameSender::send_from(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now) {
  // Only links over IP want to know.
  if (use_.common.config.sources == nullptr ||
      (now - vc.heard < HeardStations::kLately && !vc.connectionless())) [[likely]]
    return send_requests(vc, frames, work, now);
  return send_to_doubtful(vc, frames, work, now);
}

// The peer may not be there, or each frame may have another station.
[[gnu::noinline]] std::size_t FrameSender::send_to_doubtful(Vc& vc, std::span<TxFrame> frames,
                                                            std::size_t& work, Time now) {
  const bool to_anybody = vc.connectionless();
  const auto presence = to_anybody ? Presence::kNamed : use_.common.presence_of(vc, now);
  const auto count = send_requests(vc, frames, work, now);
  if (presence != Presence::kProven) tell_presence(frames.first(count), presence, to_anybody, now);
  return count;
}

// `to_anybody`: each may have another station.
[[gnu::noinline]] void FrameSender::tell_presence(std::span<TxFrame> frames, Presence presence,
                                                  bool to_anybody, Time now) const {
  for (TxFrame& frame : frames) {
    MacAddr station;
    std::memcpy(station.octets.data(), frame.head, station.octets.size());
    frame.presence = to_anybody ? use_.common.presence_of(station, now) : presence;
  }
}

// Starts the next request of the user's queue, if `work` lasts for those before it. False: none can
// go now; the event that changes this queues the connection again.
bool FrameSender::take_request(Vc& vc, std::size_t& work, Time now) {
  while (work > 0) {
    if (vc.state != VcState::kOpen) return false;
    if (vc.one_sided && use_.gets.has_answer(vc)) return use_.gets.send_next(vc, now);
    if (!vc.channel.peek(vc.sending.entry)) {
      if (vc.channel.broken() || vc.user_closed) no_request(vc, now);
      return false;
    }
    vc.sending.source = Sending::Source::kUser;
    work -= std::min(work, RequestChecks::work_of(vc, vc.sending.entry));
    work::count("requests");
    const auto& h = vc.sending.entry.header;
    // protocol: 6.3
    const bool slot = wire::consumes_slot(h) && !vc.connectionless();
    if (slot && !use_.states.has_credit(vc, now)) return false;
    if (vc.connectionless() && use_.common.controls_congestion() &&
        !use_.rates.may_send(vc, MacAddr::from_u64(vc.sending.entry.destination_mac), now))
      return false;
    if (h.op() == wire::Op::kClearToSend && use_.pacing.hold(vc, vc.sending.entry, now)) {
      finish_request(vc);
      continue;
    }
    const auto error = use_.checks.check(vc, vc.sending.entry, now);
    if (error != 0 && !refuse_request(vc, error, now)) continue;
    vc.is_sending = true;
    vc.sending.done = 0;
    if (slot) use_.states.spend(vc, now);
    if (h.op() == wire::Op::kRequestState || h.has(wire::flag::kSendState)) vc.credit.asked(h.sync);
    return true;
  }
  return true;
}

// The queue is empty for good, or broken.
[[gnu::noinline]] void FrameSender::no_request(Vc& vc, Time now) {
  if (vc.channel.broken()) {
    use_.common.counters.add(Counter::kRingBroken);
    vc.channel.set_state(ChannelState::kFailed, -EPROTO);
    vc.user_closed = true;
  }
  use_.endings.begin(vc, now);
}

// The request cannot be sent as it is. True: another one is sent instead.
[[gnu::noinline]] bool FrameSender::refuse_request(Vc& vc, int error, Time now) {
  const auto op = vc.sending.entry.header.op();
  if (error == -EDQUOT && op == wire::Op::kClearToSend &&
      use_.pacing.hold_for_memory(vc, vc.sending.entry, now)) {
    finish_request(vc);
    return false;
  }
  if (error == -EDQUOT && op == wire::Op::kMemoryRegionAvailable) return reject_region(vc), true;
  // A repeat that came too late is dropped in silence.
  if (error != -EALREADY) count_refused(vc, error);
  finish_request(vc);
  return false;
}

void FrameSender::count_refused(Vc& vc, int error) {
  use_.common.counters.add(Counter::kTxRefused);
  if (error == -EDQUOT) use_.common.counters.add(Counter::kWindowsFull);
  vc.channel.count_refused(error == -EDQUOT);
}

// No memory for the region that the user wants to open: tells the peer so instead.
// protocol: 7.19
void FrameSender::reject_region(Vc& vc) {
  count_refused(vc, -EDQUOT);
  auto& entry = vc.sending.entry;
  wire::Header no;
  no.op_flags = wire::op_flags(wire::Op::kMemoryRegionAvailable, wire::flag::kReject);
  no.d_id = entry.header.d_id;
  entry.header = no;
  entry.payload_length = 0;
}

void FrameSender::build_control(Vc& vc, TxFrame& frame) {
  const auto& entry = vc.sending.entry;
  auto h = vc.addressed(entry.header);
  if (h.op() == wire::Op::kClearToSend && h.sync == 0)  // a repeated CTS asks only for the tail
    h.sync = vc.inbound.first_missing(h.s_id, h.b_num);
  emit_control(vc, entry, h, frame);
  finish_request(vc);
}

// Builds the control operation of `entry` with the header `h`.
void FrameSender::emit_control(Vc& vc, const SendEntry& entry, const wire::Header& h,
                               TxFrame& frame) {
  use_.common.counters.add(Counter::kTxControl);
  ++vc.traffic.tx_control;
  emit(frame, vc.peer_mac, h, vc.endpoint->config.checksum,
       std::as_bytes(std::span(entry.payload, entry.payload_length)), {}, false);
}

// The header of the STU that lands at linear address `at`.
// protocol: 8.3, 8.11
wire::Header FrameSender::stu_header(Vc& vc, std::uint64_t at, bool last) {
  auto& sending = vc.sending;
  const auto& wanted = sending.entry.header;
  auto flags = wanted.op_flags & wire::kFlagsMask & ~(wire::flag::kAppend | wire::flag::kLast);
  // These flags concern the Block, so its last STU carries them.
  if (!last) flags &= ~(wire::flag::kSendState | wire::flag::kInterrupt);
  if (last) flags |= wire::flag::kLast;
  if (last && sending.appends()) flags |= wire::flag::kAppend;
  auto h = vc.addressed(
      {.op_flags = wire::op_flags(wire::Op::kData, static_cast<std::uint16_t>(flags))});
  const auto to = Address::from_linear(at, vc.peer_bufsize);
  h.param = static_cast<std::uint16_t>(sending.stu_num++);
  h.mx = wanted.mx;
  h.bufx = to.bufx;
  h.offset = to.offset;
  h.sync = wanted.sync;
  h.b_num = wanted.b_num;
  h.d_id = wanted.d_id;
  h.s_id = wanted.s_id;
  return h;
}

// Copies `length` bytes from one or more pieces of memory. False: some are no longer mapped.
[[gnu::noinline]] bool FrameSender::gather(const BufxRange& source, std::uint64_t from,
                                           std::size_t length, std::byte* to) {
  for (RegionId region = kNoneId; length > 0;) {
    const auto piece = source.run(from, length, region);
    if (piece.empty()) return false;
    work::count("pieces of an STU");
    std::memcpy(to, piece.data(), piece.size());
    from += piece.size();
    to += piece.size();
    length -= piece.size();
  }
  return true;
}

// The frame reads memory of that mapped region until its token is returned.
[[gnu::always_inline]] inline void FrameSender::attach(Vc& vc, TxFrame& frame, RegionId region_id) {
  use_.memory.attach(region_id);
  frame.token = {vc.id, region_id};
  ++vc.attached;
}

// Runs once per STU, so it is one function.
[[gnu::flatten]] void FrameSender::build_stu(Vc& vc, TxFrame& frame) {
  auto& sending = vc.sending;
  const auto& entry = sending.entry;
  const auto remaining = entry.length - sending.done;
  const auto at =
      Address{entry.header.bufx, entry.header.offset}.linear(vc.peer_bufsize) + sending.done;
  const auto length = static_cast<std::size_t>(stu_length(at, remaining, vc.send_stu_log2));
  const bool last = length == remaining;
  const bool ends = last && entry.limited == 0;
  const auto h = stu_header(vc, at, ends);
  const auto append = ends && sending.appends() ? std::as_bytes(std::span(entry.payload)) : Bytes{};

  if (sending.source == Sending::Source::kRegion && !use_.gets.may_go_on(vc)) {
    use_.common.counters.add(Counter::kGetRefused);
    frame.head_length = 0;
    return finish_request(vc);
  }
  Bytes payload;
  RegionId region_id = kNoneId;
  bool attached = false;
  if (sending.source == Sending::Source::kValue) {
    payload = std::as_bytes(std::span(entry.payload)).first(length);
  } else if (length != 0) {
    const auto& source =
        sending.source == Sending::Source::kUser ? vc.endpoint->transmit : vc.endpoint->receive;
    const auto from = Address{entry.bufx, entry.offset}.linear(source.bufsize()) + sending.done;
    payload = source.run(from, length, region_id);
    attached =
        payload.size() == length && length >= use_.common.config.attach_from && append.empty();
    if (!attached) {  // copied to its place after the header
      auto* const behind = frame.head + wire::head_size(h, length + append.size(),
                                                        use_.common.config.vlan.has_value());
      if (payload.size() == length) {
        std::memcpy(behind, payload.data(), length);
      } else if (!gather(source, from, length, behind)) {  // unmapped in the middle of the Block
        count_refused(vc, -ERANGE);
        frame.head_length = 0;
        return finish_request(vc);
      }
      payload = {behind, length};
    }
  }
  emit(frame, vc.peer_mac, h, vc.endpoint->config.checksum, payload, append, attached);
  frame.may_be_marked = entry.may_be_marked != 0 && vc.marks == Marks::kWanted;
  use_.common.counters.add(Counter::kTxStus);
  use_.common.counters.add(Counter::kTxDataBytes, length);
  vc.traffic.tx_data_bytes += length;
  if (attached) attach(vc, frame, region_id);
  sending.done += length;
  if (last) finish_request(vc);
}

// The STUs behind `first` in its Block whose heads differ from that one's in number and place only:
// whole ones, but the last, of the same memory. Returns how many.
[[gnu::noinline]] std::size_t FrameSender::build_alike(Vc& vc, const TxFrame& first,
                                                       std::span<TxFrame> frames) {
  auto& sending = vc.sending;
  const auto& entry = sending.entry;
  const auto size = std::size_t{1} << vc.send_stu_log2;
  const auto left = entry.length - sending.done;
  if (left <= size || sending.source != Sending::Source::kUser || first.attached.size() != size ||
      first.head_length != kHead || vc.endpoint->config.checksum)
    return 0;
  const auto& source = vc.endpoint->transmit;
  const auto most = std::min<std::uint64_t>(frames.size(), (left - 1) / size);
  const auto from = Address{entry.bufx, entry.offset}.linear(source.bufsize()) + sending.done;
  RegionId region = kNoneId;
  const auto memory = source.run(from, most * size, region);
  const auto count = memory.size() / size;
  if (count == 0 || region != first.token.region) return 0;
  auto at = Address{entry.header.bufx, entry.header.offset}.linear(vc.peer_bufsize) + sending.done;
  for (std::size_t i = 0; i < count; ++i, at += size) {
    auto& frame = frames[i];
    std::memcpy(frame.head, first.head, kHead);
    auto* const header = frame.head + wire::kEthernetSize;
    const auto to = Address::from_linear(at, vc.peer_bufsize);
    wire::store16(header + wire::at::kParam, static_cast<std::uint16_t>(sending.stu_num++));
    wire::store32(header + wire::at::kBufx, to.bufx);
    wire::store32(header + wire::at::kOffset, to.offset);
    frame.head_length = kHead;
    frame.attached = memory.subspan(i * size, size);
    frame.token = first.token;
    frame.for_stranger = false;
    frame.presence = first.presence;
    frame.may_be_marked = first.may_be_marked;
  }
  work::count("frames sent", count);
  use_.memory.attach(region, static_cast<std::uint32_t>(count));
  vc.attached += static_cast<std::uint32_t>(count);
  use_.common.counters.add(Counter::kTxStus, count);
  use_.common.counters.add(Counter::kTxDataBytes, count * size);
  use_.common.counters.add(Counter::kTxFrames, count);
  use_.common.counters.add(Counter::kTxBytes, count * (kHead + size));
  vc.traffic.tx_data_bytes += count * size;
  sending.done += count * size;
  return count;
}

// Builds one frame. `payload` may already be in the frame, after the place of the head.
void FrameSender::emit(TxFrame& frame, const MacAddr& dst, const wire::Header& header,
                       bool checksum, Bytes payload, Bytes append, bool attach) {
  auto* const at_header = wire::emit_unsummed(dst, use_.common.config.mac, use_.common.config.vlan,
                                              header, payload.size() + append.size(), frame.head);
  if (checksum) wire::fill_checksum(at_header, std::array{payload, append});
  auto size = static_cast<std::size_t>(at_header - frame.head) + wire::kHeaderSize;
  frame.token = {};
  frame.for_stranger = frame.may_be_marked = false;
  frame.presence = Presence::kProven;
  frame.attached = attach ? payload : Bytes{};
  if (!attach) {
    auto* const behind = frame.head + size;
    if (!payload.empty() && payload.data() != behind)
      std::memcpy(behind, payload.data(), payload.size());
    if (!append.empty()) std::memcpy(behind + payload.size(), append.data(), append.size());
    size += payload.size() + append.size();
    if (size < kMinFrame) {
      std::memset(frame.head + size, 0, kMinFrame - size);
      size = kMinFrame;
    }
  }
  frame.head_length = size;
  use_.common.counters.add(Counter::kTxFrames);
  use_.common.counters.add(Counter::kTxBytes, size + frame.attached.size());
}

// Cksum does not cover what is added.
// protocol: 4.1, 13.20
void FrameSender::pad(TxFrame& frame, std::size_t length) {
  STP_ASSERT(length >= frame.head_length, "padding makes a frame longer");
  std::memset(frame.head + frame.head_length, 0, length - frame.head_length);
  use_.common.counters.add(Counter::kTxBytes, length - frame.head_length);
  frame.head_length = length;
}

// So many frames no longer read what they had attached.
[[gnu::always_inline]] inline void FrameSender::let_go(const TxToken& token, std::uint32_t frames) {
  if (token.region == kNoneId || !use_.memory.detach(token.region, frames)) return;
  auto* const vc = use_.vcs.find(token.vc);
  if (vc == nullptr) return use_.endings.left_behind(token.vc, frames);
  if (vc->attached < frames || (vc->attached -= frames) > 0) return;
  vc->channel.complete(vc->channel.taken());
  use_.wake_ups.touch_room(*vc);
}

void FrameSender::transmitted(const TxToken& token) {
  let_go(token, 1);
}
void FrameSender::transmitted(const TxToken& token, std::uint32_t frames) {
  let_go(token, frames);
}

// Fast path for the most common request: a Block of one STU, from contiguous memory, over a
// connection whose frames have neither tag nor Cksum. Makes once every check of request_checks.cpp
// that such a request can fail. Any other request takes the general path, which
// repeats all checks.

namespace {

// A word needs no call.
void copy_stu(Bytes stu, std::byte* to) {
  if (stu.size() == sizeof(std::uint64_t))
    std::memcpy(to, stu.data(), sizeof(std::uint64_t));
  else
    std::memcpy(to, stu.data(), stu.size());
}

}  // namespace

// Leaves telling the user to the caller. False: nothing has changed; the general path handles the
// oldest request of the queue, if any.
bool FrameSender::send_whole_block(Vc& vc, TxFrame& frame, Time now) {
  NodeChannel::Look request;
  if (!vc.channel.look(request)) return false;
  auto& common = use_.common;
  if (vc.connectionless() || vc.state != VcState::kOpen || vc.endpoint->config.checksum ||
      common.config.vlan || (vc.one_sided && vc.one_sided->next() != nullptr))
    return false;
  const auto& h = request.header;
  constexpr auto kIllegal = wire::flag::kReserved | wire::flag::kFunction;
  if (h.op() != wire::Op::kData || h.has(kIllegal) ||
      (request.special & ~NodeChannel::kMayBeMarked) != 0 ||
      h.offset >= std::uint64_t{1} << vc.peer_bufsize || vc.permitted.start_of(h.d_id, h.b_num))
    return false;
  // The STU ends with its tile, and no tile crosses a buffer: all of it has an address.
  // protocol: 8.2
  const std::size_t length = request.length;
  const auto size = std::uint64_t{1} << vc.send_stu_log2;
  if (wire::goes_as_snap(h, length) || length > size - (h.offset & (size - 1))) return false;
  // protocol: 6.2, 6.3
  const bool slot = !h.has(wire::flag::kSilent);
  if (slot && !vc.credit.available()) return false;
  RegionId region_id = kNoneId;
  const auto& source = vc.endpoint->transmit;
  if (request.offset >= std::uint64_t{1} << source.bufsize()) return false;
  const auto from = Address{request.bufx, request.offset}.linear(source.bufsize());
  const auto stu = source.run(from, length, region_id);
  if (stu.size() != length) return false;

  STP_ASSERT(!vc.is_sending, "one request of a connection is sent at a time");
  work::count("requests");
  if (slot) use_.states.spend(vc, now);
  if (h.has(wire::flag::kSendState)) vc.credit.asked(h.sync);
  const auto flags = (h.op_flags & wire::kFlagsMask & ~wire::flag::kAppend) | wire::flag::kLast;
  auto head = vc.addressed(h);
  head.op_flags = wire::op_flags(wire::Op::kData, static_cast<std::uint16_t>(flags));
  head.param = 0;
  wire::emit_unsummed(vc.peer_mac, common.config.mac, {}, head, length, frame.head);
  frame.for_stranger = false;
  frame.presence = Presence::kProven;
  frame.may_be_marked = request.special != 0 && vc.marks == Marks::kWanted;
  if (length < common.config.attach_from) {
    copy_stu(stu, frame.head + kHead);
    frame.head_length = kHead + length;
    frame.attached = {};
    frame.token = {};
  } else {
    frame.head_length = kHead;
    frame.attached = stu;
    attach(vc, frame, region_id);
  }
  common.counters.add(Counter::kTxStus);
  common.counters.add(Counter::kTxDataBytes, length);
  common.counters.add(Counter::kTxFrames);
  common.counters.add(Counter::kTxBytes, kHead + length);
  vc.traffic.tx_data_bytes += length;
  vc.channel.skip();
  return true;
}

}  // namespace stp
