// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/dat1/registry/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace stp::udapl::registry {
namespace {

// A later minor version than wanted also serves, and so does a thread-safe provider where none was
// wanted.
bool serves(const DAT_PROVIDER_INFO& offered, const DAT_PROVIDER_INFO& wanted) {
  return std::strcmp(offered.ia_name, wanted.ia_name) == 0 &&
         offered.dapl_version_major == wanted.dapl_version_major &&
         offered.dapl_version_minor >= wanted.dapl_version_minor &&
         (offered.is_thread_safe == DAT_TRUE || wanted.is_thread_safe == DAT_FALSE);
}

// Compares two providers that serve. Neither is less thread-safe than wanted, so the less
// thread-safe one is closer to what was wanted.
bool closer(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  if (a.is_thread_safe != b.is_thread_safe) return a.is_thread_safe < b.is_thread_safe;
  return a.dapl_version_minor < b.dapl_version_minor;
}

}  // namespace

// Never destroyed: threads of the program may still call while it exits.
Registry& Registry::instance() {
  static auto& made = *new Registry;
  return made;
}

void Registry::read_static() {
  if (read_) return;
  read_ = true;
  missing_ = !read_conf(lines_);
}

Registry::Entry* Registry::find(const DAT_PROVIDER_INFO& info) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return same(entry.info, info); });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<DAT_PROVIDER_INFO> Registry::known() {
  read_static();
  std::vector<DAT_PROVIDER_INFO> all;
  const auto note = [&](const DAT_PROVIDER_INFO& info) {
    if (std::none_of(all.begin(), all.end(), [&](const auto& it) { return same(it, info); }))
      all.push_back(info);
  };
  for (const auto& line : lines_) note(line.info);
  for (const auto& entry : entries_) note(entry.info);
  return all;
}

DAT_RETURN Registry::list(DAT_COUNT most, DAT_COUNT& number, DAT_PROVIDER_INFO** out) {
  std::lock_guard const guard(mutex_);
  const auto all = known();
  number = static_cast<DAT_COUNT>(all.size());
  if (missing_ && all.empty()) return DAT_INTERNAL_ERROR;
  if (out == nullptr || most < number) return DAT_INVALID_PARAMETER;
  if (std::find(out, out + number, nullptr) != out + number) return DAT_INVALID_PARAMETER;
  for (std::size_t i = 0; i < all.size(); ++i) *out[i] = all[i];
  return DAT_SUCCESS;
}

DAT_RETURN Registry::add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  std::lock_guard const guard(mutex_);
  if (find(info) != nullptr) return DAT_PROVIDER_ALREADY_REGISTERED;
  if (!admit(provider)) return DAT_INSUFFICIENT_RESOURCES;
  entries_.push_back({&provider, info, 0});
  return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  std::lock_guard const guard(mutex_);
  auto* const entry = find(info);
  if (entry == nullptr || entry->provider != &provider) return DAT_INVALID_PARAMETER;
  if (entry->users != 0) return DAT_PROVIDER_IN_USE;
  expel(provider);
  entries_.erase(entries_.begin() + (entry - entries_.data()));
  return DAT_SUCCESS;
}

const DAT_PROVIDER* Registry::acquire(const DAT_PROVIDER_INFO& wanted) {
  std::lock_guard const one(loading_);
  std::unique_lock lock(mutex_);
  const auto all = known();
  const DAT_PROVIDER_INFO* best = nullptr;
  for (const auto& info : all)
    if (serves(info, wanted) && (best == nullptr || closer(info, *best))) best = &info;
  if (best == nullptr) return nullptr;
  if (find(*best) == nullptr) {
    lock.unlock();  // the library's init function registers the provider
    load(*best);
    lock.lock();
  }
  auto* const entry = find(*best);
  if (entry == nullptr) return nullptr;
  ++entry->users;
  return entry->provider;
}

void Registry::release(const DAT_PROVIDER& provider) {
  std::lock_guard const guard(mutex_);
  for (auto& entry : entries_)
    if (entry.provider == &provider && entry.users != 0) --entry.users;
}

// The library stays loaded, because its threads may outlive the IAs.
void Registry::load(const DAT_PROVIDER_INFO& info) {
  const auto line = std::find_if(lines_.begin(), lines_.end(),
                                 [&](const auto& it) { return same(it.info, info); });
  auto* const library = ::dlopen(line->library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto* const init =
      reinterpret_cast<DAT_PROVIDER_INIT_FUNC*>(::dlsym(library, DAT_PROVIDER_INIT_FUNC_STR));
  if (init != nullptr) init(&line->info, line->instance_data.c_str());
}

}  // namespace stp::udapl::registry
