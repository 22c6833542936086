// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/asks.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"

namespace stp {
namespace {

using wire::Op;

constexpr std::size_t kMaxRequests = 1024;  // unanswered ones, and as many open regions

std::uint32_t id_of(const SendEntry& mra) {
  return wire::decode_as<wire::MemoryRegionAvailable>(mra.header).r_id;
}

// The most Put Blocks that may be under way into a region of `length` bytes. A Node keeps a bit for
// each STU of the region and Block, and bounds their sum. So a long region gets fewer Blocks: no
// more bits than one of 1 MiB has, but 16 Blocks.
// protocol: 7.14
std::uint32_t most_put_window(std::uint64_t length, unsigned stu_log2) {
  constexpr std::uint64_t kMost = 128, kLeast = 16, kShortest = 1'024;
  constexpr unsigned kShortStuLog2 = 10;  // no fewer Blocks because STUs are shorter than that
  const auto stus = std::max(length >> std::max(stu_log2, kShortStuLog2), kShortest);
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp(kMost * kShortest / stus, kLeast, kMost)));
}

}  // namespace

// While as much waits as no honest peer causes, a request is dropped as if it were lost. It would
// wait as long for its answer, and of a peer that gives no Slots, and ends what it has asked for,
// answers without end would wait.
void AsksIn::on_read_request(const wire::RequestToReceive& rtr) {
  for (const auto& [number, pending] : requests_)
    if (!pending.region && pending.i_id == rtr.i_id) return outbox_.tell_seen(rtr.i_id, number);
  if (finished_.is_over(rtr.i_id, Op::kRequestAnswer) || outbox_.overfull()) return;
  if (requests_.size() == kMaxRequests) return outbox_.refuse(Op::kRequestAnswer, rtr.i_id);
  const auto number = ids_.next();
  requests_[number] = {.i_id = rtr.i_id, .length = rtr.t_len};
  finished_.remember(rtr.i_id);  // a late duplicate is not a second request
  outbox_.tell_seen(rtr.i_id, number);
  completions_.add(Completion::Kind::kReadRequest, 0, 0, rtr.t_len).request = number;
}

void AsksIn::on_region_request(const ReceivedEntry& entry) {
  const auto rmr = wire::decode_as<wire::RequestMemoryRegion>(entry.header);
  if (const auto given = opened_.find(rmr.i_id); given != opened_.end())
    return outbox_.answer(given->second);
  for (const auto& [number, pending] : requests_)
    if (pending.region && pending.i_id == rmr.i_id) return;  // the user has not decided yet
  if (finished_.is_over(rmr.i_id, Op::kMemoryRegionAvailable) || outbox_.overfull()) return;
  if (requests_.size() == kMaxRequests || opened_.size() == kMaxRequests)
    return outbox_.refuse(Op::kMemoryRegionAvailable, rmr.i_id);
  const auto number = ids_.next();
  const auto name = load_name(entry);
  const auto will_do = name != 0 ? load_least(entry) : 0;
  const auto least = will_do != 0 && will_do < rmr.t_len ? will_do : rmr.t_len;
  requests_[number] = {.region = true,
                       .i_id = rmr.i_id,
                       .length = rmr.t_len,
                       .least = least,
                       .window = rmr.b_win,
                       .name = name};
  auto& c = completions_.add(Completion::Kind::kRegionRequest, 0, 0, rmr.t_len);
  c.request = number;
  c.tag = name;
  c.offset = least;
}

// protocol: 9.9
int AsksIn::take_read(std::uint32_t request, std::uint64_t length, std::uint32_t& i_id) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return -ECANCELED;
  if (found->second.region || length != found->second.length) return -EINVAL;
  i_id = found->second.i_id;
  requests_.erase(found);
  return 0;
}

int AsksIn::serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                         const RegionTerms& terms) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return -ECANCELED;
  const auto wanted = found->second;
  if (!wanted.region || landing.length < wanted.least || window == 0) return -EINVAL;
  const auto most = most_put_window(landing.length, config_.receive_stu_log2);
  SendEntry entry{};
  entry.header = wire::to_header(wire::MemoryRegionAvailable{
      .b_win = static_cast<std::uint16_t>(
          std::min({window, std::max(wanted.window, 1U), kMaxPutWindow, most})),
      .r_mx = landing.mx,
      .r_bufx = landing.at.bufx,
      .r_offset = landing.at.offset,
      .t_len = wanted.name != 0 ? landing.length : wanted.length,
      .i_id = wanted.i_id,
      .r_id = request,  // already an id of ours, and nobody else's
  });
  if (wanted.name != 0) store_terms(entry, terms);
  outbox_.add(entry);
  opened_[wanted.i_id] = entry;
  requests_.erase(found);
  return 0;
}

int AsksIn::refuse(std::uint32_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return -ECANCELED;
  finished_.refuse(found->second.region ? Op::kMemoryRegionAvailable : Op::kRequestAnswer,
                   found->second.i_id);
  requests_.erase(found);
  return 0;
}

// protocol: 9.18
int AsksIn::close_region(std::uint32_t request) {
  const auto given = std::find_if(opened_.begin(), opened_.end(),
                                  [=](const auto& each) { return id_of(each.second) == request; });
  if (given == opened_.end()) return -EINVAL;
  const auto i_id = given->first;
  opened_.erase(given);
  finished_.remember(i_id, true);
  endings_.end(i_id, request, std::nullopt);
  return 0;
}

void AsksIn::on_put(const ReceivedEntry& entry) {
  const auto data = wire::decode_as<wire::Data>(entry.header);
  for (const auto& [i_id, given] : opened_) {
    const auto mra = wire::decode_as<wire::MemoryRegionAvailable>(given.header);
    if (mra.r_id != data.r_id) continue;
    auto& c = completions_.add(Completion::Kind::kArrived, 0, 0, entry.length);
    c.request = mra.r_id;
    c.offset = Address{data.r_bufx, data.r_offset}.linear(config_.local_bufsize) -
               Address{mra.r_bufx, mra.r_offset}.linear(config_.local_bufsize);
    return;
  }
}

std::optional<std::uint32_t> AsksIn::find(std::uint32_t i_id) const {
  const auto given = opened_.find(i_id);
  if (given == opened_.end()) return std::nullopt;
  return id_of(given->second);
}

// The peer may not know our id of what it ends.
bool AsksIn::on_end(const wire::End& end) {
  const auto r_id = find(end.i_id);
  if (!r_id || (end.r_id != *r_id && end.r_id != wire::kNoId)) {
    std::erase_if(requests_, [&](const auto& each) { return each.second.i_id == end.i_id; });
    return false;
  }
  finished_.remember(end.i_id);
  Completion c{};
  c.kind = Completion::Kind::kEnded;
  c.request = *r_id;
  completions_.add_once_taken(c);
  opened_.erase(end.i_id);
  return true;
}

namespace flag = wire::flag;

int AsksOut::read(Context context, const Landing& landing) {
  if (landing.length == 0) return -EINVAL;
  auto& what = create(context, landing.length);
  what.landing = landing;
  begin(what);
  return 0;
}

int AsksOut::request_region(Context context, std::uint64_t length, std::uint32_t window,
                            std::uint32_t name, std::uint32_t least) {
  if (length == 0 || window == 0 || window > kMaxPutWindow) return -EINVAL;
  auto& what = create(context, length);
  what.region = true;
  what.window = window;
  what.name = name;
  what.least = least;
  begin(what);
  return 0;
}

AsksOut::Asked& AsksOut::create(Context context, std::uint64_t length) {
  const auto i_id = ids_.next();
  auto& what = asked_[i_id];
  what.i_id = i_id;
  what.context = context;
  what.length = length;
  return what;
}

void AsksOut::begin(Asked& what) {
  what.begun = clock_.now();
  repeats_.start(what.awaited, clock_.user_patience());
  send(what);
}

void AsksOut::send(Asked& what) {
  auto& entry = outbox_.add();
  if (what.region)
    entry.header = wire::to_header(wire::RequestMemoryRegion{
        .b_win = static_cast<std::uint16_t>(what.window), .t_len = what.length, .i_id = what.i_id});
  else
    entry.header = wire::to_header(wire::RequestToReceive{.t_len = what.length, .i_id = what.i_id});
  store_name(entry, what.name, what.least);
  what.awaited.number = outbox_.last_number();
}

bool AsksOut::on_answer(const wire::RequestAnswer& ra, bool refused) {
  const auto found = asked_.find(ra.i_id);
  if (found == asked_.end() || found->second.region) return false;
  if (refused) {
    completions_.add(Completion::Kind::kRead, found->second.context, -ECONNREFUSED);
    asked_.erase(found);
  } else {
    repeats_.start(found->second.awaited, kSecond, clock_.user_patience());
  }
  return true;
}

std::optional<AsksOut::Read> AsksOut::take_read(std::uint32_t i_id, std::uint64_t length) {
  const auto found = asked_.find(i_id);
  if (found == asked_.end() || found->second.region || found->second.length != length)
    return std::nullopt;
  const Read read{found->second.context, found->second.landing};
  asked_.erase(found);
  return read;
}

// The region that was requested, or a refusal.
void AsksOut::on_region(const ReceivedEntry& entry) {
  const auto mra = wire::decode_as<wire::MemoryRegionAvailable>(entry.header);
  const auto found = asked_.find(mra.i_id);
  if (found == asked_.end() || !found->second.region) return;
  const auto context = found->second.context;
  const auto& asked = found->second;
  const auto length = asked.least != 0 ? asked.least : asked.length;
  STP_ASSERT(length > 0, "a region that was asked for has a length");
  asked_.erase(found);
  const bool refused = entry.header.has(flag::kReject) || mra.b_win == 0;
  const bool taken = puts_.is_open(mra.r_id);  // protocol: 9.1
  if (refused || mra.t_len < length || taken) {
    completions_.add(Completion::Kind::kRegion, context, -ECONNREFUSED);
    return;
  }
  const auto terms = load_terms(entry);
  const RemoteRegion region{.r_id = mra.r_id,
                            .mx = mra.r_mx,
                            .at = {mra.r_bufx, mra.r_offset},
                            .length = mra.t_len,
                            .window = mra.b_win,
                            .base = terms.base,
                            .access = terms.access};
  puts_.open(mra.i_id, region);
  completions_.add(Completion::Kind::kRegion, context, 0, mra.t_len).region = region;
}

bool AsksOut::cancel(Context context) {
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [=](const auto& each) { return each.second.context == context; });
  if (found == asked_.end()) return false;
  end(found->second, -ECANCELED);
  asked_.erase(found);
  return true;
}

void AsksOut::end(const Asked& what, int status) {
  Completion c{};
  c.kind = what.kind();
  c.context = what.context;
  c.status = status;
  endings_.end(wire::kNoId, what.i_id, c);
}

// protocol: 10.11
void AsksOut::expire() {
  for (auto next = asked_.begin(); next != asked_.end();) {
    const auto here = next++;
    auto& what = here->second;
    const auto due = repeats_.next(what.awaited, Repeats::Answerer::kUser);
    if (due == Repeats::Next::kGiveUp || clock_.now() - what.begun >= kSeenPatience) {
      end(what, -ETIMEDOUT);
      asked_.erase(here);
    } else if (due == Repeats::Next::kSend) {
      send(what);
    }
  }
}

void AsksOut::fail(int error) {
  for (const auto& [i_id, what] : asked_) completions_.add(what.kind(), what.context, error);
  asked_.clear();
}

}  // namespace stp
