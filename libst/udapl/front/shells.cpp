// SPDX-License-Identifier: BSD-3-Clause
#include <deque>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libst/udapl/front/front.h"
#include "stp/base/mutex.h"

namespace stp::udapl::front {
namespace {

// A freed shell is reused only after this many others were freed, so that a stale handle is
// detected for a long time.
constexpr std::size_t kResting = 1024;

struct Table {
  SharedMutex mutex;
  std::deque<Shell> shells STP_GUARDED_BY(mutex);
  std::unordered_set<const void*> known STP_GUARDED_BY(mutex);
  std::deque<Shell*> resting STP_GUARDED_BY(mutex);
};

// Never destroyed: threads of the program may still call while it exits.
Table& table() {
  static auto& made = *new Table;
  return made;
}

}  // namespace

DAT_HANDLE add_shell(const DAT_PROVIDER* provider, std::shared_ptr<Object> object) {
  auto& all = table();
  const WriteLock guard(all.mutex);
  Shell* shell = nullptr;
  if (all.resting.size() > kResting) {
    shell = all.resting.front();
    all.resting.pop_front();
  } else {
    shell = &all.shells.emplace_back();
    all.known.insert(shell);
  }
  object->set_handle(shell);
  shell->provider = provider;
  shell->object = std::move(object);
  return shell;
}

std::shared_ptr<Object> find_object(DAT_HANDLE handle) {
  auto& all = table();
  const ReadLock guard(all.mutex);
  if (!all.known.contains(handle)) return nullptr;
  const auto& object = shell_of(handle).object;
  return object && !object->freed() ? object : nullptr;
}

void drop_shell(DAT_HANDLE handle) {
  auto& all = table();
  std::shared_ptr<Object> dropped;  // destroyed after the lock is gone
  const WriteLock guard(all.mutex);
  if (!shell_of(handle).object) return;
  dropped.swap(shell_of(handle).object);
  all.resting.push_back(&shell_of(handle));
}

void drop_shells_of(const Ia& ia) {
  auto& all = table();
  std::vector<std::shared_ptr<Object>> dropped;  // destroyed after the lock is gone
  const WriteLock guard(all.mutex);
  for (auto& shell : all.shells) {
    if (!shell.object || &shell.object->ia() != &ia) continue;
    dropped.push_back(std::move(shell.object));
    all.resting.push_back(&shell);
  }
}

// ---- front

DAT_HANDLE publish(DAT_HANDLE ia, const std::shared_ptr<Object>& object) {
  return add_shell(shell_of(ia).provider, object);
}

sockaddr_in address_of(std::uint32_t ipv4, std::uint16_t udp_port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4 != 0 ? ipv4 : INADDR_LOOPBACK);
  address.sin_port = htons(udp_port);
  return address;
}

DAT_IA_ADDRESS_PTR local_address(const Ia& ia) {
  static Mutex mutex;
  const auto info = ia.info();
  const auto present = address_of(info.ipv4, info.udp_port);
  auto& shown = shell_of(ia.handle()).local;
  const Lock guard(mutex);
  if (shown.sin_addr.s_addr != present.sin_addr.s_addr || shown.sin_family != present.sin_family)
    shown = present;
  return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&shown);
}

std::span<const std::byte> bytes(const void* data, DAT_COUNT size) {
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

}  // namespace stp::udapl::front
