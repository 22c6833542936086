// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

int Sequencer::cancel(Context context) {
  if (impl_->ended != 0) return impl_->ended;
  const bool found =
      impl_->cancel_transfer(context) || impl_->cancel_put(context) || impl_->cancel_get(context);
  return found ? 0 : -ENOENT;
}

bool Sequencer::Impl::cancel_transfer(Context context) {
  Completion c{};
  c.context = context;
  c.status = -ECANCELED;
  for (const auto& [i_id, out] : outbound) {
    if (out.context != context) continue;
    c.kind = out.kind;
    forget_requests(out.r_id);
    end(out.r_id, i_id, c, out.msn);
    outbound.erase(i_id);
    return true;
  }
  for (auto& [r_id, in] : incoming) {
    if (in.context != context) continue;
    end(in.i_id, r_id, std::nullopt);  // voids the grants when it leaves
    finish(in, -ECANCELED);
    return true;
  }
  const auto posted = std::find_if(receives.begin(), receives.end(),
                                   [&](const auto& r) { return r.first == context; });
  if (posted != receives.end()) {
    receives.erase(posted);
    complete(Completion::Kind::kReceive, context, -ECANCELED);
    return true;
  }
  for (const auto& [i_id, what] : asked) {
    if (what.context != context) continue;
    c.kind = what.region ? Completion::Kind::kRegion : Completion::Kind::kRead;
    end(wire::kNoId, i_id, c);
    asked.erase(i_id);
    return true;
  }
  return false;
}

// The Blocks of a put that have been sent have their numbers and may be repeated until the peer has
// them; only then is their memory returned. The rest is never sent. If there is no rest, the put is
// done.
bool Sequencer::Impl::cancel_put(Context context) {
  const auto is_its = [context](const PutBlock& b) { return b.context == context; };
  for (auto& [r_id, stream] : puts) {
    if (std::none_of(stream.blocks.begin(), stream.blocks.end(), is_its)) continue;
    const auto unsent = stream.blocks.begin() + static_cast<std::ptrdiff_t>(stream.sent);
    STP_ASSERT(stream.sent <= stream.blocks.size(), "what has been sent is in the queue");
    const auto kept = std::remove_if(unsent, stream.blocks.end(), is_its);
    if (kept == stream.blocks.end()) return true;
    stream.blocks.truncate(static_cast<std::size_t>(kept - stream.blocks.begin()));
    const auto newest_first = std::make_reverse_iterator(stream.blocks.end());
    const auto oldest = std::make_reverse_iterator(stream.blocks.begin());
    const auto last_sent = std::find_if(newest_first, oldest, is_its);
    if (last_sent == oldest) {
      complete(Completion::Kind::kPut, context, -ECANCELED);
    } else {
      last_sent->last = last_sent->cancelled = true;
    }
    return true;
  }
  return false;
}

bool Sequencer::Impl::cancel_get(Context context) {
  bool found = false;
  for (std::size_t i = 0; i < gets.size(); ++i) {
    auto& piece = gets[i];
    if (piece.context != context || piece.done) continue;
    found = true;
    piece.done = true;
    piece.status = -ECANCELED;
    if (i < gets_sent) release_get(piece);
  }
  if (found) finish_gets();
  return found;
}

}  // namespace stp
