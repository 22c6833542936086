// SPDX-License-Identifier: BSD-3-Clause
// Finds the provider of a handle: the first word of the object points to it. A handle may point
// anywhere, so the word is read only from memory that is known to be readable, and accepted only if
// it is the address of a registered provider.
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "libst/udapl/dat1/registry/registry.h"

namespace stp::udapl::registry {
namespace {

std::array<std::atomic<const DAT_PROVIDER*>, kMaxProviders> providers;
std::atomic<std::size_t> used_places{0};  // all places from here on are free

// Pages on which objects of providers were found, counted from 1. They need no system call.
constexpr std::uintptr_t kPageBits = 12;
std::array<std::atomic<std::uintptr_t>, 256> seen_pages;

std::atomic<std::uintptr_t>& place_of(std::uintptr_t page) {
  return seen_pages[page % seen_pages.size()];
}

// If the kernel does not let a process read its own memory this way, the handle has to be trusted.
bool is_readable(DAT_HANDLE handle) {
  void* word = nullptr;
  const iovec local{&word, sizeof word}, remote{handle, sizeof word};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) ==
             static_cast<ssize_t>(sizeof word) ||
         errno == ENOSYS || errno == EPERM;
}

bool is_provider(const DAT_PROVIDER* provider) {
  const auto places = used_places.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < places; ++i)
    if (providers[i].load(std::memory_order_acquire) == provider) return provider != nullptr;
  return false;
}

}  // namespace

bool admit(const DAT_PROVIDER& provider) {
  for (std::size_t i = 0; i < kMaxProviders; ++i) {
    if (providers[i].load(std::memory_order_relaxed) != nullptr) continue;
    providers[i].store(&provider, std::memory_order_release);
    if (i >= used_places.load(std::memory_order_relaxed))
      used_places.store(i + 1, std::memory_order_release);
    return true;
  }
  return false;
}

void expel(const DAT_PROVIDER& provider) {
  for (auto& place : providers)
    if (place.load(std::memory_order_relaxed) == &provider)
      return place.store(nullptr, std::memory_order_release);
}

const DAT_PROVIDER* provider_of(DAT_HANDLE handle) {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  if (address == 0 || address % alignof(void*) != 0) return nullptr;
  const auto page = (address >> kPageBits) + 1;
  const auto seen = place_of(page).load(std::memory_order_relaxed) == page;
  if (!seen && !is_readable(handle)) return nullptr;
  const auto* const provider = *static_cast<const DAT_PROVIDER* const*>(handle);
  if (!is_provider(provider)) return nullptr;
  if (!seen) place_of(page).store(page, std::memory_order_relaxed);
  return provider;
}

}  // namespace stp::udapl::registry
