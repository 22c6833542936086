// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/receives.h"

#include <algorithm>
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
  auto part = cut(*found, message.head.length);
  ++part.shared->busy;
  if (found->segments.length < least) {
    part.shared->used_up = true;
    waiting.erase(found);
  }
  return part;
}

bool Matching::goes_to_shared(const Message& message) const {
  const auto& waiting = message.tagged() ? tagged_ : plain_;
  const auto found =
      std::ranges::find_if(waiting, [&](const Receive& each) { return fits(each, message); });
  return found != waiting.end() && found->shared;
}

std::optional<Message> Matching::take_message(const Receive& receive) {
  auto& waiting = messages_for(receive.tagged);
  const auto found =
      std::ranges::find_if(waiting, [&](const Message& each) { return fits(receive, each); });
  if (found == waiting.end()) return std::nullopt;
  auto taken = std::move(*found);
  waiting.erase(found);
  if (taken.from != nullptr) return taken;
  left_bytes_ -= cost_of(taken);
  std::exchange(taken.left_by, nullptr)->left -= cost_of(taken);
  return taken;
}

const Message* Matching::find_message(const Receive& receive) const {
  const auto& waiting = receive.tagged ? early_tagged_ : early_;
  const auto found =
      std::ranges::find_if(waiting, [&](const Message& each) { return fits(receive, each); });
  return found == waiting.end() ? nullptr : &*found;
}

Message* Matching::in_buffer(const Source& from) {
  for (auto* const waiting : {&early_tagged_, &early_}) {
    const auto found = std::find_if(waiting->rbegin(), waiting->rend(), [&](const Message& each) {
      return each.from == &from && each.buffer != nullptr;
    });
    if (found != waiting->rend()) return &*found;
  }
  return nullptr;
}

Receive& Matching::add_place(bool tagged) {
  auto& waiting = receives_for(tagged);
  if (spare_.empty()) return waiting.emplace_back();
  waiting.splice(waiting.end(), spare_, spare_.begin());
  return waiting.back();
}

void Matching::add(Message&& message) {
  messages_for(message.tagged()).push_back(std::move(message));
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
  const auto is_lost = [&](const Message& each) { return each.from == &from && each.announced; };
  for (auto* const waiting : {&early_tagged_, &early_}) {
    std::erase_if(*waiting, is_lost);
    for (auto& each : *waiting) {
      if (each.from != &from) continue;
      copy_out(each);
      each.from = nullptr;
      left_bytes_ += cost_of(each);
      each.left_by = host;
      host->left += cost_of(each);
    }
  }
  // Who claims a message that is lost hears of it.
  for (auto& each : claimed_) {
    if (each.message.from != &from) continue;
    copy_out(each.message);
    each.message.from = nullptr;
  }
}

void Matching::drop(const Source& from) {
  for (auto* const waiting : {&early_tagged_, &early_})
    std::erase_if(*waiting, [&](const Message& each) { return each.from == &from; });
}

}  // namespace stp::fi
