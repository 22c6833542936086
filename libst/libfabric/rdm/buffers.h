// SPDX-License-Identifier: BSD-3-Clause
// Where the messages of peers land: memory of an endpoint of FI_EP_RDM, of which each connection
// has a part. So many peers that send little do not cost what few cost that send much.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "libst/libfabric/limits.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/rdm/lane.h"

namespace stp::fi::rdm {

struct BufferBlock;

struct Buffer : RxBuffer {
  BufferBlock* block = nullptr;
};

// Buffers that are registered together.
struct BufferBlock {
  static constexpr std::size_t kBuffers = 16;

  std::unique_ptr<std::byte, FreeBlock> bytes;
  stm_memory_t memory = nullptr;
  std::array<Buffer, kBuffers> buffers;
  std::vector<Buffer*> free;

  BufferBlock() = default;
  BufferBlock(const BufferBlock&) = delete;
  BufferBlock& operator=(const BufferBlock&) = delete;
  ~BufferBlock();
};

// Connections of an endpoint in each direction.
inline constexpr std::size_t kMostConnections = 1024;

// Owns the buffers of an endpoint, each of kBuffer bytes. Its memory is bounded: kFirst for each
// connection, and kShared for those that have more.
class Buffers {
 public:
  static constexpr std::size_t kFirst = 1;
  static constexpr std::size_t kMost = 16;  // of a connection
  static constexpr std::size_t kShared = 1024;

  explicit Buffers(stm_domain_t domain) : domain_(domain) {}

  // `further`: it is not one of the first of its connection. 0 or a status: -ENOBUFS, all that are
  // shared are taken.
  int take(bool further, Buffer*& out);
  // No link writes into it any more.
  void give_back(Buffer& buffer, bool further);
  void clear() { blocks_.clear(); }

 private:
  int add_block();

  const stm_domain_t domain_;
  std::list<BufferBlock> blocks_;
  std::size_t shared_ = 0;  // taken
};

static_assert((kMostConnections * Buffers::kFirst + Buffers::kShared + BufferBlock::kBuffers) *
                          kBuffer +
                      Lanes::kBytes <
                  (std::size_t{48} << 20),
              "1024 peers cost below 48 MiB");

}  // namespace stp::fi::rdm
