// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/completions.h"

#include "stp/base/assert.h"

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

bool Completions::next(Completion& out) {
  if (ready_.empty()) return false;
  out = ready_.front();
  ready_.pop_front();
  return true;
}

}  // namespace stp
