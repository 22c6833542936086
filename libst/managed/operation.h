// SPDX-License-Identifier: BSD-3-Clause
// A posted operation of any kind except a receive.
#pragma once

#include "libst/include/stp/managed.h"
#include "libst/managed/memory.h"

namespace stp::managed {

struct Operation {
  enum class Kind : std::uint8_t { kSend, kRead, kServe, kPut, kGet, kFetch };
  Kind kind = Kind::kSend;
  // After the start:
  bool begun = false, cancelled = false;
  bool eager = false;
  unsigned flags = 0;  // STM_QUIET, ...
  std::uint64_t context = 0;
  Memory* memory = nullptr;  // counts this operation in `uses` while it is outstanding
  void* ptr = nullptr;
  std::size_t length = 0;
  std::uint32_t tag = 0;
  std::uint32_t request = 0;  // kServe
  std::uint32_t key = 0;      // kPut, kGet, kFetch
  wire::Function function = wire::Function::kGet;
  std::uint64_t address = 0;
  std::uint64_t operand = 0, compare = 0;
  std::uint32_t message = 0, slot = 0;  // eager
  std::uint32_t ring_end = 0;           // eager: the position behind it, see eager_place()
  std::uint64_t write = 0;              // kSend, kServe: number among all Writes; 0: none
  unsigned* remote_uses = nullptr;      // kPut, kGet, kFetch: incremented while it is under way
  std::uint64_t posted = 0;             // position among operations and receives
  std::uint64_t id = 0;                 // in its OperationList; 0: complete

  [[nodiscard]] Address source() const { return memory != nullptr ? memory->at(ptr) : Address{}; }
  // For memory that the link uses a copy of: see Memory.
  void fetch() const {
    if (memory != nullptr) memory->fetch(ptr, length);
  }
  void store() const {
    const bool lands = kind == Kind::kRead || kind == Kind::kGet || kind == Kind::kFetch;
    if (lands && memory != nullptr) memory->store(ptr, length);
  }
};

}  // namespace stp::managed
