// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/receives.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace stp::fi {
namespace {

// The next `length` bytes of a buffer of several messages, which keeps the rest.
Receive cut(Receive& whole, std::size_t length) {
  Receive part = whole;
  auto& left = whole.segments.iov[0];
  length = std::min(length, left.iov_len);
  part.segments.iov[0].iov_len = part.segments.length = length;
  left.iov_base = static_cast<std::byte*>(left.iov_base) + length;
  left.iov_len -= length;
  whole.segments.length = left.iov_len;
  return part;
}

// The least tag above `tag` that is `wanted` but for the bits that are ignored; nullopt: none.
std::optional<std::uint64_t> tag_after(std::uint64_t tag, std::uint64_t wanted,
                                       std::uint64_t ignored) {
  const auto fixed = ~ignored;
  // Below the highest bit that is another one, all bits may be the least ones; it is raised, or one
  // above it.
  const auto highest = std::bit_floor((tag ^ wanted) & fixed);
  const auto below = highest == 0 ? 0 : highest - 1;
  if ((wanted & highest) != 0) return (tag & ignored & ~below) | wanted;
  const auto raised = ((tag | fixed | highest | below) + 1) & ignored;
  if (raised == 0) return std::nullopt;
  return raised | wanted;
}

}  // namespace

std::size_t cost_of(const Message& message) {
  return (message.announced ? 0 : message.head.length) + kCostOfMessage;
}

void copy_out(Message& message) {
  const auto* const bytes = message.bytes();
  message.buffer = nullptr;
  message.laned = false;
  if (std::exchange(message.lies, nullptr) == nullptr || message.announced) return;
  const auto length = message.head.length;
  if (length == 0) return;
  message.copy = std::make_unique_for_overwrite<std::byte[]>(length);
  std::memcpy(message.copy.get(), bytes, length);
}

std::optional<Receive> Matching::take_receive(const Message& message, std::size_t least) {
  auto& waiting = receives_for(message.tagged());
  const auto found =
      std::ranges::find_if(waiting, [&](const Receive& each) { return fits(each, message); });
  if (found == waiting.end()) return std::nullopt;
  if (!found->shared) {
    auto taken = std::move(*found);
    spare_.splice(spare_.begin(), waiting, found);
    return taken;
  }
  auto part = part_of(*found, message, least);
  if (part.shared->used_up) waiting.erase(found);
  return part;
}

Receive Matching::part_of(Receive& whole, const Message& message, std::size_t least) {
  auto part = cut(whole, message.head.length);
  ++part.shared->busy;
  part.shared->used_up = whole.segments.length < std::max<std::size_t>(least, 1);
  return part;
}

bool Matching::goes_to_shared(const Message& message) const {
  const auto& waiting = message.tagged() ? tagged_ : plain_;
  const auto found =
      std::ranges::find_if(waiting, [&](const Receive& each) { return fits(each, message); });
  return found != waiting.end() && found->shared;
}

std::optional<Message> Matching::take_message(const Receive& receive) {
  auto taken = messages_for(receive.tagged).take(receive);
  if (!taken || taken->from != nullptr) return taken;
  left_bytes_ -= cost_of(*taken);
  std::exchange(taken->left_by, nullptr)->left -= cost_of(*taken);
  return taken;
}

Message* Matching::take_from_buffer(const Source& from) {
  auto* const tagged = early_tagged_.take_from_buffer(from);
  return tagged != nullptr ? tagged : early_.take_from_buffer(from);
}

Receive& Matching::add_place(bool tagged) {
  auto& waiting = receives_for(tagged);
  if (spare_.empty()) return waiting.emplace_back();
  waiting.splice(waiting.end(), spare_, spare_.begin());
  return waiting.back();
}

void Matching::add(Message&& message) {
  messages_for(message.tagged()).add(std::move(message));
}

std::optional<Receive> Matching::cancel(const void* context) {
  for (auto* const waiting : {&tagged_, &plain_}) {
    const auto found = std::ranges::find(*waiting, context, &Receive::context);
    if (found == waiting->end()) continue;
    auto taken = std::move(*found);
    waiting->erase(found);
    return taken;
  }
  return std::nullopt;
}

std::list<Receive> Matching::take_receives_from(const Address& source) {
  std::list<Receive> taken;
  for (auto* const waiting : {&tagged_, &plain_})
    for (auto each = waiting->begin(); each != waiting->end();) {
      const auto next = std::next(each);
      if (each->source == source) taken.splice(taken.end(), *waiting, each);
      each = next;
    }
  return taken;
}

std::list<Receive> Matching::take_receives() {
  auto all = std::exchange(tagged_, {});
  all.splice(all.end(), plain_);
  return all;
}

std::list<Receive> Matching::clear() {
  auto all = take_receives();
  early_tagged_.clear();
  early_.clear();
  left_bytes_ = 0;
  claimed_.clear();
  return all;
}

void Matching::claim(const void* context, Message&& message) {
  claimed_.push_back({context, std::move(message)});
}

std::optional<Message> Matching::take_claimed(const void* context) {
  const auto found = std::ranges::find(claimed_, context, &Claimed::context);
  if (found == claimed_.end()) return std::nullopt;
  auto taken = std::move(found->message);
  claimed_.erase(found);
  return taken;
}

void Matching::forget(const Source& from, const std::shared_ptr<OfHost>& host) {
  for (auto* const waiting : {&early_tagged_, &early_})
    waiting->of(from, [&](Message& each) {
      if (each.announced) return true;
      copy_out(each);
      each.from = nullptr;
      left_bytes_ += cost_of(each);
      each.left_by = host;
      host->left += cost_of(each);
      return false;
    });
  // Who claims a message that is lost hears of it.
  for (auto& each : claimed_) {
    if (each.message.from != &from) continue;
    copy_out(each.message);
    each.message.from = nullptr;
  }
}

void Matching::drop(const Source& from) {
  for (auto* const waiting : {&early_tagged_, &early_})
    waiting->of(from, [](const Message&) { return true; });
}

// ---- messages that wait ----

void Early::add(Message&& message) {
  const auto at = all_.emplace_hint(all_.end(), next_++, std::move(message));
  if (at->second.buffer != nullptr) buffered_.emplace(at->second.from, at->first);
  if (indexed_) return index(*at);
  if (all_.size() <= kFew) return;
  for (const auto& each : all_) index(each);
  indexed_ = true;
}

void Early::index(const All::value_type& entry) {
  const auto& [number, message] = entry;
  tags_.emplace(tag_of(message), number);
  sources_.emplace(message.source, tag_of(message), number);
  if (message.from != nullptr) connections_.emplace(message.from, number);
}

void Early::erase(All::iterator at) {
  if (at->second.buffer != nullptr) buffered_.erase({at->second.from, at->first});
  if (indexed_) {
    tags_.erase({tag_of(at->second), at->first});
    sources_.erase({at->second.source, tag_of(at->second), at->first});
    connections_.erase({at->second.from, at->first});
  }
  all_.erase(at);
  if (all_.empty()) indexed_ = false;
}

void Early::clear() {
  all_.clear();
  tags_.clear();
  sources_.clear();
  connections_.clear();
  buffered_.clear();
  indexed_ = false;
}

const Message* Early::find(const Receive& receive) {
  const auto at = place_of(receive);
  return at == all_.end() ? nullptr : &at->second;
}

std::optional<Message> Early::take(const Receive& receive) {
  const auto at = place_of(receive);
  if (at == all_.end()) return std::nullopt;
  std::optional<Message> taken(std::move(at->second));  // what it is found by stays there
  erase(at);
  return taken;
}

Early::All::iterator Early::place_of(const Receive& receive) {
  if (!indexed_)
    return std::ranges::find_if(all_, [&](const auto& each) { return fits(receive, each.second); });
  if (receive.source.port != 0) return by_source(receive);
  if (receive.tagged && receive.ignore != 0) return by_mask(receive);
  return by_tag(receive.tagged ? receive.tag : 0);
}

Early::All::iterator Early::by_tag(std::uint64_t tag) {
  const auto found = tags_.lower_bound({tag, 0});
  return found == tags_.end() || found->first != tag ? all_.end() : all_.find(found->second);
}

// Of those of one sender, the first one of each tag that fits; and all in their order, as by_mask()
// does. Open MPI ignores some bits with each receive, and mostly few tags fit. Where a peer has
// left ten thousands that do, an old one is found soon.
Early::All::iterator Early::by_source(const Receive& receive) {
  const auto ignored = receive.tagged ? receive.ignore : 0;
  const auto wanted = receive.tagged ? receive.tag & ~ignored : 0;
  if (ignored == 0) {
    const auto at = sources_.lower_bound({receive.source, wanted, 0});
    const auto is_there =
        at != sources_.end() && std::get<0>(*at) == receive.source && std::get<1>(*at) == wanted;
    return is_there ? all_.find(std::get<2>(*at)) : all_.end();
  }
  auto& looked = looked_at(receive);
  auto next = all_.lower_bound(looked.next);
  auto oldest = next_;
  auto found = all_.end();
  for (std::optional<std::uint64_t> tag = wanted;; ++next) {
    if (next == all_.end() || fits(receive, next->second)) {
      found = next;
      break;
    }
    const auto at = tag ? sources_.lower_bound({receive.source, *tag, 0}) : sources_.end();
    if (at == sources_.end() || std::get<0>(*at) != receive.source) {
      found = all_.find(oldest);
      break;
    }
    tag = std::get<1>(*at);
    if (((*tag ^ wanted) & ~ignored) == 0) oldest = std::min(oldest, std::get<2>(*at));
    tag = tag_after(*tag, wanted, ignored);
  }
  looked.next = next == all_.end() ? next_ : next->first;
  return found;
}

Early::All::iterator Early::by_mask(const Receive& receive) {
  auto& looked = looked_at(receive);
  auto at = all_.lower_bound(looked.next);
  while (at != all_.end() && !fits(receive, at->second)) ++at;
  looked.next = at == all_.end() ? next_ : at->first;
  return at;
}

Early::Looked& Early::looked_at(const Receive& receive) {
  const auto tag = receive.tag & ~receive.ignore;
  const auto known = std::ranges::find_if(looked_, [&](const Looked& each) {
    return each.tag == tag && each.ignore == receive.ignore && each.source == receive.source;
  });
  if (known != looked_.end()) return *known;
  return looked_[replaced_++ % looked_.size()] = {
             .tag = tag, .ignore = receive.ignore, .source = receive.source};
}

Message* Early::take_from_buffer(const Source& from) {
  const auto at = buffered_.lower_bound({&from, 0});
  if (at == buffered_.end() || at->first != &from) return nullptr;
  auto& message = all_.find(at->second)->second;
  buffered_.erase(at);
  return &message;
}

std::optional<Early::Number> Early::next_of(const Source& from, Number number) const {
  if (indexed_) {
    const auto next = connections_.lower_bound({&from, number});
    return next == connections_.end() || next->first != &from ? std::nullopt
                                                              : std::optional(next->second);
  }
  const auto next = std::find_if(all_.lower_bound(number), all_.end(),
                                 [&from](const auto& each) { return each.second.from == &from; });
  return next == all_.end() ? std::nullopt : std::optional(next->first);
}

}  // namespace stp::fi
