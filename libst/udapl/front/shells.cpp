// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <bit>
#include <deque>
#include <utility>
#include <vector>

#include "libst/udapl/front/front.h"
#include "stp/base/mutex.h"

namespace stp::udapl::front {
namespace {

// A freed shell is reused only after this many others were freed, so that a stale handle is
// detected for a long time.
constexpr std::size_t kResting = 1024;

// All shells, in pieces that only grow in number, so that who looks for one takes no lock.
class Shells {
 public:
  // Whether it points to a shell, which is perhaps in use no more.
  [[nodiscard]] bool contain(DAT_HANDLE handle) const {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    if (address % sizeof(Shell) != 0) return false;
    for (unsigned i = 0; i < pieces_.size(); ++i) {
      const auto begin =
          reinterpret_cast<std::uintptr_t>(pieces_[i].load(std::memory_order_acquire));
      if (begin == 0) return false;
      if (address - begin < length_of(i) * sizeof(Shell)) return true;
    }
    return false;
  }
  // One that has not been used yet. By one thread at a time, as is what follows.
  Shell& add() {
    if (used_ == room_) {
      pieces_[count_].store(new Shell[length_of(count_)], std::memory_order_release);
      room_ += length_of(count_++);
    }
    const auto before = room_ - length_of(count_ - 1);
    return pieces_[count_ - 1].load(std::memory_order_relaxed)[used_++ - before];
  }
  template <typename Visit>
  void visit_all(Visit&& visit) {
    std::size_t left = used_;
    for (unsigned i = 0; i < count_; ++i)
      for (std::size_t k = 0; k < length_of(i) && left != 0; ++k, --left)
        visit(pieces_[i].load(std::memory_order_relaxed)[k]);
  }

 private:
  // Each as long as all before it together, so few are looked at.
  static constexpr std::size_t length_of(unsigned piece) {
    constexpr std::size_t kFirst = 1024;
    return kFirst << (piece == 0 ? 0 : piece - 1);
  }

  std::array<std::atomic<Shell*>, 32> pieces_{};
  unsigned count_ = 0;
  std::size_t used_ = 0, room_ = 0;
};

static_assert(std::has_single_bit(sizeof(Shell)) && alignof(Shell) == sizeof(Shell),
              "the address of a shell tells that it begins there");

struct Table {
  SharedMutex mutex;
  Shells shells;  // changed under the mutex
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
    shell = &all.shells.add();
  }
  object->set_handle(shell);
  shell->provider = provider;
  auto& mutex = object->ia().mutex();
  shell->object = std::move(object);
  shell->mutex.store(&mutex, std::memory_order_release);
  return shell;
}

std::shared_ptr<Object> find_object(DAT_HANDLE handle) {
  auto& all = table();
  if (!all.shells.contain(handle)) return nullptr;
  const ReadLock guard(all.mutex);
  const auto& object = shell_of(handle).object;
  return object && !object->freed() ? object : nullptr;
}

Mutex* lock_object(DAT_HANDLE handle) {
  if (!table().shells.contain(handle)) return nullptr;
  auto& shell = shell_of(handle);
  auto* const mutex = shell.mutex.load(std::memory_order_acquire);
  if (mutex == nullptr) return nullptr;
  mutex->lock();
  if (shell.mutex.load(std::memory_order_acquire) == mutex && !shell.object->freed()) return mutex;
  mutex->unlock();
  return nullptr;
}

namespace {

// What it leaves is destroyed when no lock is held. Under the table's mutex and the IA's.
std::shared_ptr<Object> empty(Shell& shell, std::deque<Shell*>& resting) {
  shell.mutex.store(nullptr, std::memory_order_relaxed);
  resting.push_back(&shell);
  return std::exchange(shell.object, nullptr);
}

}  // namespace

void drop_shell(DAT_HANDLE handle) {
  auto& all = table();
  auto& shell = shell_of(handle);
  auto* const mutex = shell.mutex.load(std::memory_order_acquire);
  if (mutex == nullptr) return;
  std::shared_ptr<Object> dropped;
  const Lock calls(*mutex);
  const WriteLock guard(all.mutex);
  if (shell.mutex.load(std::memory_order_relaxed) == mutex) dropped = empty(shell, all.resting);
}

void drop_shells_of(Ia& ia) {
  auto& all = table();
  std::vector<std::shared_ptr<Object>> dropped;
  const Lock calls(ia.mutex());
  const WriteLock guard(all.mutex);
  std::vector<Shell*> shells;
  all.shells.visit_all([&](Shell& shell) {
    if (shell.object && &shell.object->ia() == &ia) shells.push_back(&shell);
  });
  for (auto* const shell : shells) dropped.push_back(empty(*shell, all.resting));
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
