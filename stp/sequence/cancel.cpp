// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "stp/sequence/sequencer_impl.h"

namespace stp {

int Sequencer::cancel(Context context) {
  if (impl_->ended != 0) return impl_->ended;
  return impl_->cancel_transfer(context) || impl_->cancel_one_sided(context) ? 0 : -ENOENT;
}

bool Sequencer::Impl::cancel_transfer(Context context) {
  Completion c{};
  c.context = context;
  c.status = -ECANCELED;
  for (auto const& [i_id, out] : outbound) {
    if (out.context != context) continue;
    c.kind = out.kind;
    forget_requests(out.r_id);
    end(out.r_id, i_id, c, out.msn);
    outbound.erase(i_id);
    return true;
  }
  for (auto& [r_id, in] : incoming) {
    if (in.context != context) continue;
    end(in.i_id, r_id, std::nullopt);  // voids the grants as it leaves
    finish(in, -ECANCELED);
    return true;
  }
  auto const posted = std::find_if(receives.begin(), receives.end(),
                                   [&](const auto& r) { return r.first == context; });
  if (posted != receives.end()) {
    receives.erase(posted);
    complete(Completion::Kind::kReceive, context, -ECANCELED);
    return true;
  }
  for (auto const& [i_id, what] : asked) {
    if (what.context != context) continue;
    c.kind = what.region ? Completion::Kind::kRegion : Completion::Kind::kRead;
    end(wire::kNoId, i_id, c);
    asked.erase(i_id);
    return true;
  }
  return false;
}

bool Sequencer::Impl::cancel_one_sided(Context context) {
  for (auto& [r_id, stream] : puts) {
    bool found = false;
    for (auto& block : stream.blocks) {
      if (block.context != context || block.cancelled) continue;
      found = true;
      block.cancelled = true;
    }
    if (!found) continue;
    // What has been sent keeps its number until the peer has it; the rest is never sent.
    auto const unsent = stream.blocks.begin() + static_cast<std::ptrdiff_t>(stream.sent);
    stream.blocks.erase(
        std::remove_if(unsent, stream.blocks.end(), [](const PutBlock& b) { return b.cancelled; }),
        stream.blocks.end());
    complete(Completion::Kind::kPut, context, -ECANCELED);
    return true;
  }
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
