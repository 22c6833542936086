// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/link.h"

#include <sys/mman.h>

#include <bit>
#include <cerrno>

#include "tools/files/failure.h"

namespace stp::files {
Link::Link() {
  stm_domain_attr_t attributes{};
  attributes.size = sizeof attributes;
  attributes.buffer_log2 = kBufferLog2;
  if (const auto error = ::stm_domain_open(&attributes, &domain_); error != 0)
    throw link_failure(error);
}

std::size_t Link::stu() const {
  constexpr std::uint32_t kAround = 40 + 64;  // the Schedule Header and the appended 64 bytes
  stm_domain_info_t info{};
  info.size = sizeof info;
  const auto known = ::stm_domain_query(domain_, &info) == 0 && info.mtu > kAround;
  return known ? std::bit_floor(info.mtu - kAround) : 1;
}

std::string Link::trouble() const {
  stm_link_info_t info{};
  info.size = sizeof info;
  return ::stm_link_query(domain_, &info) == 0 ? info.trouble : "";
}

Queue::Queue(Link& link, std::size_t capacity) {
  const auto error = ::stm_queue_create(link.domain(), capacity, &queue_);
  if (error != 0) throw lost_link(error);
}

std::optional<stm_event_t> Queue::next(Duration wait) {
  stm_event_t event{};
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(wait).count();
  const auto found = wait == Duration::zero()
                         ? ::stm_queue_poll(queue_, &event, 1)
                         : ::stm_queue_wait(queue_, 1, &event, 1, microseconds);
  if (found > 0) return event;
  if (found == 0 || found == -EWOULDBLOCK || found == -EINTR) return std::nullopt;
  throw lost_link(found);
}

void Buffers::Unmap::operator()(void* memory) const {
  ::munmap(memory, size);
}

Buffers::Buffers(Link& link, std::size_t size) {
  // Aligned to a whole buffer: maps one buffer more and uses the aligned part.
  const auto all = size + kBuffer;
  auto* const memory =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw LinkFailure("no memory for buffers: " + error_text(errno));
  mapping_ = {memory, Unmap{all}};
  auto* aligned = memory;
  auto room = all;
  bytes_ = {static_cast<std::byte*>(std::align(kBuffer, size, aligned, room)), size};
  const auto error =
      ::stm_memory_register(link.domain(), bytes_.data(), size, STM_LOCAL_WRITE, &memory_);
  if (error != 0) throw lost_link(error);
}

}  // namespace stp::files
