// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/memory_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "libst/client/shared_pages.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

bool is_wanted() {
  const auto* const text = std::getenv("STP_REGISTRATION_CACHE");
  return text == nullptr || std::string_view(text) != "0";
}

bool kernel_tells_areas() {
  client::SharedPages::instance();  // keeps the list of areas open
  static const std::byte here{};
  std::vector<client::AreaAt> areas;
  return client::areas_at({&here, 1}, areas);
}

}  // namespace

MemoryCache::MemoryCache() : on_(is_wanted() && kernel_tells_areas()) {}

void MemoryCache::keep(std::shared_ptr<Memory> memory) {
  const auto size = memory->bound_size();
  if (!on_ || size > kMostBytes) return memory->unbind();
  kept_.push_front(std::move(memory));
  bytes_ += size;
  if (!kept_.front()->rest()) remove(kept_.begin())->unbind();
  while (kept_.size() > kMost || bytes_ > kMostBytes) remove(std::prev(kept_.end()))->unbind();
}

bool MemoryCache::restore(Memory& memory) {
  const auto bytes = memory.bytes();
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
    return kept->bytes().data() == bytes.data() && kept->bytes().size() == bytes.size() &&
           kept->access() == memory.access();
  });
  if (at == kept_.end()) return false;
  const auto kept = remove(at);
  if (memory.take_over(*kept)) return true;
  kept->unbind();
  return false;
}

bool MemoryCache::clear() {
  if (kept_.empty()) return false;
  while (!kept_.empty()) remove(kept_.begin())->unbind();
  return true;
}

std::shared_ptr<Memory> MemoryCache::remove(Kept::iterator at) {
  auto memory = std::move(*at);
  kept_.erase(at);
  STP_ASSERT(bytes_ >= memory->bound_size(), "what is removed was counted");
  bytes_ -= memory->bound_size();
  return memory;
}

}  // namespace stp::managed
