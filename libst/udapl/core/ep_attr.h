// SPDX-License-Identifier: BSD-3-Clause
// Attributes of Endpoints, and the limits of an IA.
#pragma once

#include <cstdint>

#include "libst/udapl/core/flags.h"

namespace stp::udapl {

inline constexpr int kMaxDtos = 65'536;  // of one kind on an EP
inline constexpr int kMaxReads = 256;
inline constexpr int kMaxEps = 65535;  // of an IA: a connection each, and each has a Port
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 30;

struct EpAttr {
  std::uint64_t max_message_size = kMaxMessage, max_rdma_size = kMaxMessage;
  Flags recv_flags = 0, request_flags = 0;
  int max_recv_dtos = 256, max_request_dtos = 256;
  int max_recv_iov = 16, max_request_iov = 16;
  int max_rdma_read_in = 16, max_rdma_read_out = 16;
  int max_rdma_read_iov = 16, max_rdma_write_iov = 16;
  int soft_watermark = -1;  // of buffers from the SRQ; negative: none
  // How long a message of the peer may wait for a receive, in microseconds.
  std::int64_t receive_wait = 30'000'000;
};

// False: beyond a limit, or an invalid combination.
[[nodiscard]] bool is_valid(const EpAttr& attr);

}  // namespace stp::udapl
