// SPDX-License-Identifier: BSD-3-Clause
// The managed layer (docs/protocol.md, 9.21 to 9.35), on connections that begin with its request.
#include <bit>

#include "stp/wire/big_endian.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

namespace flag = wire::flag;

using namespace managed;
constexpr std::uint32_t kHelloVersion = 1, kMostPrivate = 1024;

constexpr std::uint32_t kSlots = 16, kSlotSize = 4096;
constexpr std::uint64_t kRingSize = std::uint64_t{kSlots} * kSlotSize;
constexpr std::uint64_t kMostWrites = 64;
constexpr std::uint32_t kAccess = 4 | 8 | 16;

Messages& messages_of(Side& side) {
  auto& traffic = side.with_traffic();
  if (!traffic.messages) traffic.messages = std::make_unique<Messages>();
  return *traffic.messages;
}

// Identifies the RTS or Block of a message number, so that repeats are recognized.
std::uint64_t as_write(std::uint32_t i_id) {
  return i_id;
}
std::uint64_t as_block(std::uint32_t b_num) {
  return std::uint64_t{1} << 32 | b_num;
}

// Returns the beginning of a Block's bytes, or nothing if it is not in this frame.
Bytes beginning(const Said& said, std::size_t length) {
  return said.h.param == 0 ? said.frame.beginning(said.frame.frame.stu, length) : Bytes{};
}

// Whether the capture cut the number of a message or the name of a region.
bool is_option_cut(const Said& said) {
  return said.frame.payload_held < sizeof(std::uint32_t);
}

unsigned index_of(const Said& said) {
  return &said.from == &said.c.sides[0] ? 0 : 1;
}

}  // namespace

// protocol: 9.21, 9.24
void Checker::Impl::on_managed_request(const Said& said, Request& request, bool fresh) {
  if (fresh) request.tries = {said.now, said.now, said.frame.number, 0, false};
  request.tries.last = said.now;
  ++request.tries.count;
  if (!said.c.managed || is_option_cut(said)) return;
  if (option_word(said.frame) != request.word)
    report(said, Rule::kMessageNumber, named("message", request.word) + ", as before",
           named("message", option_word(said.frame)));
  if (!fresh) return;
  check_write_window(said, request);
  if (said.h.d_id != wire::kNoId) return;  // the answer to an RTR is no message
  if (request.word == 0)
    return report(said, Rule::kMessageNumber, "a number in the option payload",
                  operation_text(said.frame));
  // protocol: 9.30
  if (!said.c.accepted && index_of(said) == said.c.asker)
    report(said, Rule::kHello, "no message before the accept", named("message", request.word));
  note_message(said, request.word, as_write(said.h.s_id));
}

// protocol: 9.32
void Checker::Impl::check_write_window(const Said& said, Request& request) {
  // A Write whose first RTS was forgotten is no new one.
  auto& messages = messages_of(said.from);
  request.begun = messages.writes;
  const auto* const known = messages.known.find(request.word);
  if (said.h.d_id == wire::kNoId && known != nullptr && *known == as_write(said.h.s_id)) return;
  ++messages.writes;
  for (const auto& [i_id, older] : said.from.with_traffic().requests.transfers()) {
    if (older.op != wire::Op::kRequestToSend || older.over || &older == &request) continue;
    if (request.begun > older.begun + kMostWrites)
      report(said, Rule::kWriteWindow,
             "no Write, as that with " + named_hex("I_id", i_id) + " is open",
             std::to_string(request.begun - older.begun - 1) + " others since");
    return;  // only the oldest matters
  }
}

// A number that was skipped may still arrive if the link reorders frames.
// protocol: 9.21
void Checker::Impl::note_message(const Said& said, std::uint32_t number, std::uint64_t what) {
  auto& messages = messages_of(said.from);
  messages.missing.erase(number);
  if (const auto* const known = messages.known.find(number); known != nullptr && *known != what)
    return report(said, Rule::kMessageNumber, "a number of its own",
                  named("message", number) + " once more");
  messages.known.put(number, what);
  const auto ahead = static_cast<std::int32_t>(number - messages.newest);
  if (ahead <= 0) return;
  const auto first = std::max(
      messages.newest + 1, number - std::min<std::uint32_t>(static_cast<std::uint32_t>(ahead), 64));
  for (auto between = first; between != number; ++between)
    messages.missing.put(between, {said.frame.number, said.now});
  messages.newest = number;
}

void Checker::Impl::miss_messages(const Connection& c, const Side& side) {
  if (!side.traffic || !side.traffic->messages) return;
  for (const auto& [number, missing] : side.traffic->messages->missing) {
    if (between(missing.at, side.heard) <= kReordering) continue;
    Decoded frame;
    frame.number = missing.frame;
    frame.time = missing.at;
    return report(frame, Rule::kMessageNumber, named("message", number), "it was left out",
                  options.lossy || c.lossy);
  }
}

// protocol: 9.22
void Checker::Impl::check_withdrawal(const Said& said, const Request& ended) {
  if (!said.c.managed || is_option_cut(said) || ended.op != wire::Op::kRequestToSend ||
      ended.word == 0)
    return;
  if (const auto word = option_word(said.frame); word != ended.word)
    report(said, Rule::kMessageWithdrawn, named("message", ended.word) + " in the option payload",
           word == 0 ? "none" : named("message", word));
}

// protocol: 9.34, 9.35
void Checker::Impl::check_managed_end(const Said& said) {
  if (!said.c.managed) return;
  const auto* const words = said.frame.frame.option.data();
  const auto mark = wire::load32(words), why = wire::load32(words + 4);
  if (mark != kEndMark || (why != kBrokenOff && why != kNoReceive))
    return report(said, Rule::kManagedEnd, named_hex("mark", kEndMark) + " and 1 or 2",
                  named_hex("mark", mark) + " and " + std::to_string(why));
  if (why == kNoReceive && !has_message_waiting(said))
    report(said, Rule::kReceiveWait, "a message that waits for a receive", "none");
}

// Whether the peer has offered a message that is not granted yet, or put one that is not taken yet.
bool Checker::Impl::has_message_waiting(const Said& said) {
  const auto& sent = messages_of(said.to);
  if (sent.eager != messages_of(said.from).taken || sent.uncounted) return true;
  auto& landings = said.from.with_traffic().landings;
  for (const auto& [i_id, offer] : said.to.with_traffic().requests.transfers()) {
    if (offer.op != wire::Op::kRequestToSend || offer.over || offer.word == 0) continue;
    bool granted = false;
    for (const auto& [r_id, landing] : landings.transfers())
      granted = granted || landing.i_id == i_id;
    if (!granted) return true;
  }
  return false;
}

// protocol: 9.25
void Checker::Impl::check_outstanding(const Said& said, Landing& landing, const Request& offer) {
  const auto most = std::max(offer.cts_req, 1U);
  if (!said.c.managed || landing.blocks.size() <= most) return;
  std::size_t open = 0;
  for (const auto& [b_num, block] : landing.blocks) open += block.whole() ? 0 : 1;
  if (open > most)
    report(said, Rule::kGrantsOutstanding, "at most " + std::to_string(most) + " Blocks open",
           std::to_string(open));
}

// protocol: 9.29, 9.31, 9.41
void Checker::Impl::on_managed_region(const Said& said, const Request& asked, Landing& region) {
  constexpr std::size_t kTerms = 12;
  if (!said.c.managed || asked.word == 0 || said.frame.payload_held < kTerms) return;
  const auto& h = said.h;
  const auto least =
      asked.least != 0 ? std::min<std::uint64_t>(asked.least, asked.t_len) : asked.t_len;
  if (h.t_len() < least)
    report(said, Rule::kRegionTerms, "T_len of at least " + std::to_string(least),
           named("T_len", h.t_len()));
  const auto terms = said.frame.frame.option;
  constexpr std::size_t kAccessAt = 8;
  if (terms.empty())
    report(said, Rule::kRegionTerms, "an option payload with the region's terms", "none");
  else if (const auto access = wire::load32(terms.data() + kAccessAt); (access & ~kAccess) != 0)
    report(said, Rule::kRegionTerms, "4 Get, 8 Put and 16 FetchOp only", named("access", access));
  if (!region.ring) return;
  const bool may_be_small = asked.least != 0 && h.t_len() >= kSlotSize && h.t_len() < kRingSize &&
                            std::has_single_bit(h.t_len());
  if (h.t_len() != kRingSize && !may_be_small)
    report(said, Rule::kEagerSlot, "a ring of 65536 bytes", named("T_len", h.t_len()));
  if (may_be_small) region.slots = static_cast<std::uint32_t>(h.t_len() / kSlotSize);
  if (!terms.empty())
    region.span = std::clamp<std::uint64_t>(wire::load64(terms.data()), 1, region.slots);
}

void Checker::Impl::on_managed_data(const Said& said, Landing& landing) {
  const auto& h = said.h;
  const auto* const block = landing.blocks.find(h.b_num);
  if (block == nullptr) return;  // it is complete
  const auto* const offer = said.from.with_traffic().requests.find(landing.i_id);
  const bool first = !landing.region && h.b_num == 0 && offer != nullptr && offer->word == 1;
  if (first) on_hello(said);
  if (!said.c.managed) return;
  if (landing.region) {
    if (h.has(flag::kLast)) on_managed_put(said, landing);
    if (landing.ring) on_eager(said, landing, *block);
    return;
  }
  // protocol: 9.26
  if (!landing.tag) landing.tag = h.s_id;
  if (*landing.tag != h.s_id)
    report(said, Rule::kTag, named_hex("Opaque", *landing.tag) + ", as before",
           named_hex("Opaque", h.s_id));
}

// At least one put in kAskOnce has Send_state. The others are short messages sent together, or
// quiet puts. protocol: 9.27
void Checker::Impl::on_managed_put(const Said& said, Landing& landing) {
  constexpr std::uint32_t kAskOnce = 32;
  const auto& h = said.h;
  landing.not_asked = h.has(flag::kSendState) ? 0 : landing.not_asked + 1;
  if (h.has(flag::kSilent) != h.has(flag::kInterrupt) && landing.not_asked < kAskOnce) return;
  report(said, Rule::kPutFlags, "Silent or Interrupt, and Send_state on one in 32",
         operation_text(said.frame));
}

// The first message of a side.
// protocol: 9.30
void Checker::Impl::on_hello(const Said& said) {
  auto& c = said.c;
  const auto head = beginning(said, kHelloHead);
  if (head.empty()) return;
  const bool hello = wire::load32(head.data()) == kHelloMagic;
  if (!c.managed) {
    if (!hello) return;
    c.managed = true;
    c.asker = index_of(said);
    auto& messages = messages_of(said.from);
    messages.newest = 1;
    messages.writes = 1;
  }
  const auto word = wire::load32(head.data() + 4);
  const auto kind = word & 0xffff, version = word >> 16;
  const auto length = wire::load32(head.data() + 8);
  const bool asks = index_of(said) == c.asker;
  const bool legal = hello && version == kHelloVersion && length <= kMostPrivate &&
                     (asks ? kind == kRequest : kind == kAccept || kind == kReject);
  if (!legal)
    return report(said, Rule::kHello,
                  std::string(asks ? "a request" : "an accept or reject") +
                      " of version 1 with at most 1024 bytes of private data",
                  named_hex("magic", wire::load32(head.data())) + ", " + named("version", version) +
                      ", " + named("kind", kind) + ", " + named("length", length));
  if (!asks && kind == kAccept) c.accepted = true;
  if (said.h.has(flag::kLast) && said.frame.frame.stu.size() != kHelloHead + length)
    report(said, Rule::kHello, std::to_string(kHelloHead + length) + " bytes",
           std::to_string(said.frame.frame.stu.size()));
}

// protocol: 9.31
void Checker::Impl::on_eager(const Said& said, Landing& ring, const Block& block) {
  const auto& h = said.h;
  const auto length = said.frame.frame.stu.size();
  if (h.has(flag::kLast) && !h.has(flag::kInterrupt))
    report(said, Rule::kEagerSlot, "Interrupt on a short message", operation_text(said.frame));
  const auto at = (std::uint64_t{h.bufx} << said.to.bufsize) + h.offset;
  if (const auto head = beginning(said, kEagerHead); !head.empty()) {
    const auto told_length = wire::load32(head.data() + 4);
    check_slots(said, ring, at - ring.start, told_length);
    ring.told_length = {h.b_num, std::uint64_t{kEagerHead} + told_length};
    note_message(said, wire::load32(head.data()), as_block(h.b_num));
    note_taken(said, wire::load32(head.data() + 12));
  } else if (h.param == 0 && said.frame.payload_held < kEagerHead) {
    count_no_more(said);
  }
  const bool told = ring.told_length && ring.told_length->first == h.b_num && block.start;
  if (told && h.has(flag::kLast) && at + length - *block.start != ring.told_length->second)
    report(said, Rule::kEagerSlot, std::to_string(ring.told_length->second) + " bytes, as it says",
           std::to_string(at + length - *block.start));
}

// A message at byte `at` of the ring: its slots are the next ones, and the peer has taken what was
// there. If the Block before it is not in the capture, its place is believed.
// protocol: 9.31, 9.41
void Checker::Impl::check_slots(const Said& said, const Landing& ring, std::uint64_t at,
                                std::uint32_t length) {
  auto& messages = messages_of(said.from);
  const auto slots = (std::uint64_t{kEagerHead} + length + kSlotSize - 1) / kSlotSize;
  if (slots > ring.span)
    return report(said, Rule::kEagerSpan, "at most " + std::to_string(ring.span) + " slots",
                  std::to_string(slots));
  const auto count = static_cast<std::uint32_t>(slots);
  const auto b_num = said.h.b_num;
  auto& ends = messages.eager_ends;
  const auto key = [&](std::uint32_t of) { return std::uint64_t{said.h.d_id} << 32 | of; };
  const auto* const again = ends.find(key(b_num));
  const auto* const before = ends.find(key(b_num - 1));
  const auto size = ring.slots;
  auto place = messages.eager;
  if (again != nullptr) {
    place = *again - count;
  } else if (before != nullptr || b_num == 0) {
    // The first one of a ring that replaces another begins with its first slot.
    if (before == nullptr) {
      messages.eager_before = place;
      messages.eager_begin = (place + kSlots - 1) / kSlots * kSlots;
    }
    place = before != nullptr ? *before : messages.eager_begin;
    const auto left = size - place % size;
    if (count > left) place += left;
  } else {
    place += (static_cast<std::uint32_t>(at / kSlotSize) - place) % size;
  }
  if (at != std::uint64_t{place % size} * kSlotSize)
    report(said, Rule::kEagerSlot, named("slot", place % size),
           "the place " + named("of byte", at));
  auto taken = messages_of(said.to).taken;
  const auto reaches = [&](std::uint32_t end) {
    return static_cast<std::int32_t>(taken - end) >= 0;
  };
  // What was left out before the ring, when all before that is taken.
  if (reaches(messages.eager_before) && !reaches(messages.eager_begin))
    taken = messages.eager_begin;
  if (static_cast<std::int32_t>(place + count - taken) > static_cast<std::int32_t>(size))
    report(said, Rule::kEagerSlot,
           "no short message, as " + std::to_string(size) + " slots are not taken",
           named("slots used", place + count) + " and " + named("taken", taken));
  if (again == nullptr) ends.put(key(b_num), place + count);
  if (static_cast<std::int32_t>(place + count - messages.eager) > 0) messages.eager = place + count;
}

void Checker::Impl::on_notice(const Said& said) {
  if (said.c.managed && said.h.sync == kNoticeMark) note_taken(said, said.h.b_num);
}

// Messages in a ring may be among what is not judged: its ring was forgotten, or the capture cut
// the frame.
void Checker::Impl::count_no_more(const Said& said) {
  messages_of(said.from).uncounted = true;
}

void Checker::Impl::note_taken(const Said& said, std::uint32_t count) {
  const auto& theirs = messages_of(said.to);
  const auto sent = theirs.eager;
  auto& mine = messages_of(said.from);
  if (!theirs.uncounted && static_cast<std::int32_t>(count - sent) > 0)
    return report(said, Rule::kEagerSlot, "at most " + std::to_string(sent) + " taken",
                  std::to_string(count));
  if (static_cast<std::int32_t>(count - mine.taken) > 0) mine.taken = count;
}

}  // namespace stp::replay
