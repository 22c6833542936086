// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/asks_out.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/patience.h"
#include "stp/transfer/region_terms.h"

namespace stp {

namespace flag = wire::flag;

int AsksOut::read(Context context, const Landing& landing) {
  if (landing.length == 0) return -EINVAL;
  auto& what = create(context, landing.length);
  what.landing = landing;
  begin(what);
  return 0;
}

int AsksOut::request_region(Context context, std::uint64_t length, std::uint32_t window,
                            std::uint32_t name) {
  if (length == 0 || window == 0 || window > kMaxPutWindow) return -EINVAL;
  auto& what = create(context, length);
  what.region = true;
  what.window = window;
  what.name = name;
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
  repeats_.start(what.awaited, kUserPatience);
  send(what);
}

void AsksOut::send(Asked& what) {
  auto& entry = outbox_.add();
  if (what.region)
    entry.header = wire::to_header(wire::RequestMemoryRegion{
        .b_win = static_cast<std::uint16_t>(what.window), .t_len = what.length, .i_id = what.i_id});
  else
    entry.header = wire::to_header(wire::RequestToReceive{.t_len = what.length, .i_id = what.i_id});
  store_name(entry, what.name);
  what.awaited.number = outbox_.last_number();
}

bool AsksOut::on_answer(const wire::RequestAnswer& ra, bool refused) {
  const auto found = asked_.find(ra.i_id);
  if (found == asked_.end() || found->second.region) return false;
  if (refused) {
    completions_.add(Completion::Kind::kRead, found->second.context, -ECONNREFUSED);
    asked_.erase(found);
  } else {
    repeats_.start(found->second.awaited, kSecond, kUserPatience);
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
  const auto length = found->second.length;
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
