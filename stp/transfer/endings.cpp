// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/endings.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"
#include "stp/transfer/ids.h"

namespace stp {

Completion& Completions::add(Completion::Kind kind, Context context, int status,
                             std::uint64_t length) {
  auto& c = ready_.place();
  c = {};
  c.kind = kind;
  c.context = context;
  c.status = status;
  c.length = length;
  return c;
}

void Completions::add_puts(std::span<const PutDone> puts) {
  if (!ready_.empty()) {
    for (const auto& put : puts) fill_in(put, ready_.place());
    return;
  }
  if (!puts.empty() && !first_.is_ready && !has_more_puts()) {
    add_put(puts[0].context, puts[0].status, puts[0].length);
    puts = puts.subspan(1);
  }
  while (!puts.empty()) {
    const auto row = more_puts().places(puts.size());
    std::copy_n(puts.begin(), row.size(), row.begin());
    puts = puts.subspan(row.size());
  }
}

void Completions::add_once_taken(const Completion& completion) {
  STP_ASSERT(held_.empty() || held_.back().first <= outbox_.last_number(),
             "completions are held in order");
  held_.push_back({outbox_.last_number(), completion});
  release();
}

void Completions::release(std::uint64_t before) {
  for (; !held_.empty() && held_.front().first < before; held_.pop_front())
    add(held_.front().second);
}

[[gnu::noinline]] std::size_t Completions::next_more_puts(std::span<PutDone> out) {
  std::size_t count = 0;
  while (has_more_puts() && count < out.size()) {
    const auto row = more_->row(0, out.size() - count);
    std::copy_n(row.begin(), row.size(), out.begin() + static_cast<std::ptrdiff_t>(count));
    more_->pop_front(row.size());
    count += row.size();
  }
  return count;
}

std::size_t Completions::next_puts(std::span<PutDone> out) {
  std::size_t count = 0;
  if (first_.is_ready && !out.empty()) {
    first_.is_ready = false;
    out[count++] = {first_.context, first_.length, first_.status};
  }
  return has_more_puts() ? count + next_more_puts(out.subspan(count)) : count;
}

bool Completions::next(Completion& out) {
  if (PutDone put; next_puts({&put, 1}) != 0) {
    fill_in(put, out);
    return true;
  }
  if (ready_.empty()) return false;
  const auto& next = ready_.front();
  if (next.kind == Completion::Kind::kRegion || next.kind == Completion::Kind::kRevoked)
    out = next;
  else  // all but what it does not have, which is the last part
    std::memcpy(static_cast<void*>(&out), &next, offsetof(Completion, region));
  ready_.pop_front();
  return true;
}
static_assert(offsetof(Completion, region) + sizeof(RemoteRegion) == sizeof(Completion),
              "whatever follows would be left out of most completions");

void Endings::end(std::uint32_t r_id, std::uint32_t i_id,
                  const std::optional<Completion>& completion, std::uint32_t msn) {
  STP_ASSERT(!endings_.contains(i_id), "what we know by an id ends once");
  auto& ending = endings_[i_id];
  ending.completion = completion;
  ending.request.header = wire::to_header(wire::End{.r_id = r_id, .i_id = i_id});
  if (msn != 0) store_msn(ending.request, msn);
  repeats_.start(ending.awaited, kAnswerPatience);
  outbox_.add(ending.request);
  ending.awaited.number = outbox_.last_number();
}

void Endings::on_end_ack(const wire::EndAck& ea) {
  const auto found = endings_.find(ea.i_id);
  if (found == endings_.end()) return;
  if (found->second.completion) completions_.add(*found->second.completion);
  endings_.erase(found);
}

// protocol: 10.11
void Endings::expire() {
  for (auto next = endings_.begin(); next != endings_.end();) {
    const auto here = next++;
    auto& ending = here->second;
    const auto what = repeats_.next(ending.awaited, Repeats::Answerer::kUser);
    if (what == Repeats::Next::kSend) {
      outbox_.add(ending.request);
      ending.awaited.number = outbox_.last_number();
    }
    if (what != Repeats::Next::kGiveUp) continue;
    if (ending.completion) completions_.add(*ending.completion);
    endings_.erase(here);
  }
}

void Endings::fail() {
  for (const auto& [id, ending] : endings_)
    if (ending.completion) completions_.add(*ending.completion);
  endings_.clear();
}

std::size_t Endings::outstanding() const {
  std::size_t count = 0;
  for (const auto& [id, ending] : endings_) count += ending.completion.has_value();
  return count;
}

}  // namespace stp
