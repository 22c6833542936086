// SPDX-License-Identifier: BSD-3-Clause
// A fabric, which is an open link; its domains, which own queues, counters, memory and endpoints;
// and their memory regions.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/link.h"

namespace stp::fi {

class Cntr;
class Domain;

// Keys of memory that the program itself accesses for peers have more than 32 bits.
constexpr bool is_by_program(std::uint64_t key) {
  return key >> 32 != 0;
}

// A memory region. If peers may access it, its key is that of a managed API region, addressed by
// virtual address.
class Mr : public fid_mr {
 public:
  static int open(Domain& domain, const void* buffer, std::size_t length, std::uint64_t access,
                  std::uint64_t flags, void* context, fid_mr*& out);

  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  [[nodiscard]] bool covers(const void* ptr, std::size_t length) const {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(ptr) - reinterpret_cast<std::uintptr_t>(buffer_);
    return memory_ != nullptr && offset <= length_ && length <= length_ - offset;
  }
  // Counts accesses that peers tell of, and that they may make.
  int bind_cntr(fid_t other, std::uint64_t flags);
  void count_access(bool reads) const;
  // Its program accesses it for peers: `length` bytes at the address that they know. nullptr: a
  // peer may not do that, or they are not there any more.
  [[nodiscard]] std::byte* place(std::uint64_t address, std::uint64_t length,
                                 std::uint64_t access) const;
  int close();

 private:
  int serve(int error);
  [[nodiscard]] bool may_change() const {
    return (access_ & (FI_RECV | FI_READ | FI_REMOTE_WRITE)) != 0;
  }
  Mr(Domain& domain, void* buffer, std::size_t length, std::uint64_t access, void* context);
  int bind();

  Domain& domain_;
  void* const buffer_;
  const std::size_t length_;
  const std::uint64_t access_;
  stm_memory_t memory_ = nullptr;
  stm_region_t region_ = nullptr;
  std::array<Cntr*, 2> counters_{};  // of writes and of reads
};

// A fabric: a link that is open.
class Fabric : public fid_fabric {
 public:
  static int open(const fi_fabric_attr& attr, void* context, fid_fabric*& out);

  [[nodiscard]] FabricLink& link() const { return *link_; }
  void use() { ++users_; }
  void unuse() { --users_; }

  int close();
  int try_wait(fid_t* objects, int count);

 private:
  Fabric(const fi_fabric_attr& attr, std::unique_ptr<FabricLink> link, void* context);

  const std::unique_ptr<FabricLink> link_;
  std::atomic<unsigned> users_{0};
};

// An object that is not used by others ends, and `of`, to which it belongs, has one user less.
// -FI_EBUSY: something uses it.
template <class Object, class Of, class IsUsed>
int end_unless(IsUsed is_used, Object* object, FabricLink& link, Of& of) {
  {
    const LinkLock lock(link.mutex());
    if (is_used()) return -FI_EBUSY;
  }
  of.unuse();
  delete object;
  return 0;
}

class Domain : public fid_domain {
 public:
  static int open(Fabric& fabric, const fi_info& info, void* context, fid_domain*& out);

  [[nodiscard]] FabricLink& link() const { return fabric_.link(); }
  // Of the addresses in its address vectors.
  [[nodiscard]] std::uint32_t format() const { return format_; }
  [[nodiscard]] std::uint32_t api_version() const { return fabric_.api_version; }
  void use() { ++users_; }
  void unuse() { --users_; }
  int close();

  // ---- under the link's mutex ----
  // Counters are bound to that memory.
  void watch(const Mr& region);
  void unwatch(const Mr& region);
  // A peer has read or written the memory of that key.
  void count_access(std::uint32_t key, bool reads) const;
  // Memory that the program accesses for peers. A key that nobody guesses.
  std::uint64_t add_served(const Mr& memory);
  void remove_served(std::uint64_t key) { served_.erase(key); }
  [[nodiscard]] const Mr* served(std::uint64_t key) const;
  // Endpoints of this domain ask their peers for such accesses.
  [[nodiscard]] bool asks() const { return asks_; }

 private:
  Domain(Fabric& fabric, const fi_info& info, void* context);

  Fabric& fabric_;
  const std::uint32_t format_;
  const bool asks_;
  std::atomic<unsigned> users_{0};
  std::unordered_map<std::uint64_t, const Mr*> watched_, served_;  // by key
};

}  // namespace stp::fi
