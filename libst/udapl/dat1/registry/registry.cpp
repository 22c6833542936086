// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/dat1/registry/registry.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string_view>

namespace stp::udapl::registry {
namespace {

constexpr DAT_UINT32 kMajor = 1;

// "u1.2"
bool parse_version(std::string_view text, DAT_PROVIDER_INFO& info) {
  if (text.empty() || text.front() != 'u') return false;
  const auto* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data() + 1, end, info.dapl_version_major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, end, info.dapl_version_minor);
  return minor.ec == std::errc() && minor.ptr == end && info.dapl_version_major == kMajor;
}

bool parse_safety(std::string_view text, DAT_PROVIDER_INFO& info) {
  info.is_thread_safe = text == "threadsafe" ? DAT_TRUE : DAT_FALSE;
  return info.is_thread_safe == DAT_TRUE || text == "nonthreadsafe";
}

bool is_default(std::string_view text) {
  return text == "default" || text == "nondefault";
}

std::optional<Line> parse_line(const std::string& text) {
  std::istringstream words(text);
  Line line{};
  std::string name, api, safety, choice, version;
  words >> std::quoted(name) >> api >> safety >> choice >> std::quoted(line.library) >> version;
  if (words.fail() || name.empty() || name.front() == '#' ||
      name.size() >= sizeof line.info.ia_name)
    return std::nullopt;
  if (!parse_version(api, line.info) || !parse_safety(safety, line.info) || !is_default(choice))
    return std::nullopt;
  words >> std::quoted(line.instance_data);
  std::memcpy(line.info.ia_name, name.c_str(), name.size() + 1);
  return line;
}

}  // namespace

bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  return std::strcmp(a.ia_name, b.ia_name) == 0 && a.dapl_version_major == b.dapl_version_major &&
         a.dapl_version_minor == b.dapl_version_minor && a.is_thread_safe == b.is_thread_safe;
}

std::vector<Line> parse(std::istream& conf) {
  std::vector<Line> lines;
  for (std::string text; std::getline(conf, text);)
    if (auto line = parse_line(text)) lines.push_back(std::move(*line));
  return lines;
}

bool read_conf(std::vector<Line>& lines) {
  const auto* const override = std::getenv("DAT_OVERRIDE");
  std::ifstream conf(override != nullptr ? override : "/etc/dat.conf");
  if (!conf) return false;
  lines = parse(conf);
  return true;
}

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

// The library stays loaded, because its threads may outlive the IAs.
void load(const Line& line) {
  auto* const library = ::dlopen(line.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto* const init =
      reinterpret_cast<DAT_PROVIDER_INIT_FUNC*>(::dlsym(library, DAT_PROVIDER_INIT_FUNC_STR));
  if (init != nullptr) init(&line.info, line.instance_data.c_str());
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
  const Lock guard(mutex_);
  const auto all = known();
  number = static_cast<DAT_COUNT>(all.size());
  if (missing_ && all.empty()) return DAT_INTERNAL_ERROR;
  if (out == nullptr || most < number) return DAT_INVALID_PARAMETER;
  if (std::find(out, out + number, nullptr) != out + number) return DAT_INVALID_PARAMETER;
  for (std::size_t i = 0; i < all.size(); ++i) *out[i] = all[i];
  return DAT_SUCCESS;
}

DAT_RETURN Registry::add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  const Lock guard(mutex_);
  if (find(info) != nullptr) return DAT_PROVIDER_ALREADY_REGISTERED;
  if (!admit(provider)) return DAT_INSUFFICIENT_RESOURCES;
  entries_.push_back({&provider, info, 0});
  return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  const Lock guard(mutex_);
  auto* const entry = find(info);
  if (entry == nullptr || entry->provider != &provider) return DAT_INVALID_PARAMETER;
  if (entry->users != 0) return DAT_PROVIDER_IN_USE;
  expel(provider);
  entries_.erase(entries_.begin() + (entry - entries_.data()));
  return DAT_SUCCESS;
}

const DAT_PROVIDER* Registry::acquire(const DAT_PROVIDER_INFO& wanted) {
  const RecursiveLock one(loading_);
  Lock lock(mutex_);
  const auto all = known();
  const DAT_PROVIDER_INFO* best = nullptr;
  for (const auto& info : all)
    if (serves(info, wanted) && (best == nullptr || closer(info, *best))) best = &info;
  if (best == nullptr) return nullptr;
  if (find(*best) == nullptr) {
    const auto line = line_of(*best);
    lock.unlock();  // the library's init function registers the provider
    load(line);
    lock.lock();
  }
  auto* const entry = find(*best);
  if (entry == nullptr) return nullptr;
  ++entry->users;
  return entry->provider;
}

void Registry::release(const DAT_PROVIDER& provider) {
  const Lock guard(mutex_);
  for (auto& entry : entries_)
    if (entry.provider == &provider && entry.users != 0) --entry.users;
}

Line Registry::line_of(const DAT_PROVIDER_INFO& info) const {
  return *std::find_if(lines_.begin(), lines_.end(),
                       [&](const auto& it) { return same(it.info, info); });
}

// --- the provider of a handle: the first word of the object points to it. A handle may point
// anywhere, so the word is read only from memory that is known to be readable, and accepted only if
// it is the address of a registered provider

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
