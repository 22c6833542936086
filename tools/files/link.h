// SPDX-License-Identifier: BSD-3-Clause
// C++ owners of objects of the managed API: a domain on the chosen link, queues, registered memory.
#pragma once

#include <stp/managed.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace stp::files {

using Duration = std::chrono::steady_clock::duration;

// How long a program waits before it checks whether it was asked to end.
inline constexpr Duration kAttention = std::chrono::milliseconds(100);

// The buffers of a link's memory: an STU always fits into one.
inline constexpr unsigned kBufferLog2 = 16;
inline constexpr std::size_t kBuffer = std::size_t{1} << kBufferLog2;

class Link {
 public:
  Link();  // LinkFailure
  ~Link() { ::stm_domain_close(domain_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  [[nodiscard]] stm_domain_t domain() const { return domain_; }
  // Length of the longest STU of the link, in bytes.
  [[nodiscard]] std::size_t stu() const;
  // What is wrong with the link, and the remedy; "": nothing is known.
  [[nodiscard]] std::string trouble() const;

 private:
  stm_domain_t domain_ = nullptr;
};

class Queue {
 public:
  Queue(Link& link, std::size_t capacity);  // LinkFailure
  ~Queue() { ::stm_queue_destroy(queue_); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  [[nodiscard]] stm_queue_t handle() const { return queue_; }
  // nullopt: `wait` has passed. LinkFailure: the link is gone.
  std::optional<stm_event_t> next(Duration wait);

 private:
  stm_queue_t queue_ = nullptr;
};

// Zeroed memory that a link can read and write.
class Buffers {
 public:
  Buffers(Link& link, std::size_t size);  // LinkFailure
  ~Buffers() { ::stm_memory_release(memory_); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  [[nodiscard]] stm_memory_t handle() const { return memory_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unmap> mapping_;
  std::span<std::byte> bytes_;
  stm_memory_t memory_ = nullptr;
};

}  // namespace stp::files
