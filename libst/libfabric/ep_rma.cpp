// SPDX-License-Identifier: BSD-3-Clause
// FI_RMA: puts and gets. FI_ATOMIC: FetchOps.
#include "libst/libfabric/calls.h"
#include "libst/libfabric/ep.h"

namespace stp::fi {
namespace {

// A put is complete when it is in the peer's memory: FI_DELIVERY_COMPLETE asks for nothing more.
constexpr std::uint64_t kRmaFlags =
    kTxOpFlags | FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;

ssize_t write(fid_ep* ep, Request&& request, const Target& target, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).write(request, target);
  });
}

ssize_t read(fid_ep* ep, Request&& request, const Target& target, std::uint64_t flags) {
  return guarded([&] {
    request.flags = flags;
    return ep_of(ep).read(request, target);
  });
}

// 0: `request` and `target` have what the message says.
int read_message(const fi_msg_rma& msg, std::uint64_t flags, Request& request, Target& target) {
  if ((flags & ~kRmaFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1) return -FI_EINVAL;
  const auto error = read_segments(msg.msg_iov, msg.desc, msg.iov_count, request.segments);
  if (error != 0) return error;
  if (msg.rma_iov[0].len != request.segments.length) return -FI_EINVAL;
  request.context = msg.context;
  request.data = msg.data;
  target = {.address = msg.rma_iov[0].addr, .key = msg.rma_iov[0].key};
  return 0;
}

}  // namespace

fi_ops_rma ep_rma_calls{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t,
           std::uint64_t address, std::uint64_t key, void* context) {
          return read(ep, {.segments = one_segment(buffer, length, desc), .context = context},
                      {address, key}, ep_of(ep).tx_flags() & ~FI_INJECT);
        },
    .readv = [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                std::uint64_t address, std::uint64_t key, void* context) -> ssize_t {
      Request request{.segments = {}, .context = context};
      if (const auto error = read_segments(iov, desc, count, request.segments); error != 0)
        return error;
      return read(ep, std::move(request), {address, key}, ep_of(ep).tx_flags() & ~FI_INJECT);
    },
    .readmsg = [](fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) -> ssize_t {
      Request request;
      Target target;
      if (const auto error = read_message(*msg, flags, request, target); error != 0) return error;
      return read(ep, std::move(request), target, flags & ~FI_INJECT);
    },
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t,
           std::uint64_t address, std::uint64_t key, void* context) {
          return write(ep, {.segments = one_segment(buffer, length, desc), .context = context},
                       {address, key}, ep_of(ep).tx_flags());
        },
    .writev = [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                 std::uint64_t address, std::uint64_t key, void* context) -> ssize_t {
      Request request{.segments = {}, .context = context};
      if (const auto error = read_segments(iov, desc, count, request.segments); error != 0)
        return error;
      return write(ep, std::move(request), {address, key}, ep_of(ep).tx_flags());
    },
    .writemsg = [](fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) -> ssize_t {
      Request request;
      Target target;
      if (const auto error = read_message(*msg, flags, request, target); error != 0) return error;
      return write(ep, std::move(request), target, flags);
    },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t, std::uint64_t address,
           std::uint64_t key) {
          return write(ep, {.segments = one_segment(buffer, length, nullptr)}, {address, key},
                       FI_INJECT | kUntold);
        },
    .writedata =
        [](fid_ep* ep, const void* buffer, std::size_t length, void* desc, std::uint64_t data,
           fi_addr_t, std::uint64_t address, std::uint64_t key, void* context) {
          return write(
              ep, {.segments = one_segment(buffer, length, desc), .context = context, .data = data},
              {address, key}, ep_of(ep).tx_flags() | FI_REMOTE_CQ_DATA);
        },
    .injectdata =
        [](fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t,
           std::uint64_t address, std::uint64_t key) {
          return write(ep, {.segments = one_segment(buffer, length, nullptr), .data = data},
                       {address, key}, FI_INJECT | kUntold | FI_REMOTE_CQ_DATA);
        },
};

ssize_t Ep::write(const Request& request, const Target& target) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto inject = (request.flags & FI_INJECT) != 0;
  if (request.segments.length > (inject ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  auto& op = begin(request, Direction::kWrite, FI_RMA | FI_WRITE);
  auto segments = request.segments;
  if (inject) segments.desc = {};  // the bytes are copied
  auto error = link_.span_of(segments, true, op.span);
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  if (error == 0)
    error = stm_put(connection_, reinterpret_cast<std::uintptr_t>(&op),
                    static_cast<unsigned>(flags), op.span.memory, op.span.data, segments.length,
                    static_cast<std::uint32_t>(target.key), target.address);
  if (error != 0) return posted(op, error);
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    ++op.parts;
    if (const auto status = tell_written(op); status != 0) part_done(op, status);
  }
  return 0;
}

// Immediate data follows what was written, in a message that no receive is needed for.
int Ep::tell_written(Op& op) {
  if (const auto error = link_.slots().take(op.note); error != 0) return error;
  store64(op.note.data, op.length);
  store64(op.note.data + 8, op.data);
  return stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), STM_FENCE,
                  static_cast<std::uint32_t>(MessageKind::kWritten), op.note.memory, op.note.data,
                  kAnnouncement);
}

ssize_t Ep::read(const Request& request, const Target& target) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  if (request.segments.length > kMostMessage) return -FI_EMSGSIZE;
  auto& op = begin(request, Direction::kRead, FI_RMA | FI_READ);
  if (request.segments.length == 0) {  // there is nothing to get
    part_done(op, 0);
    return 0;
  }
  auto error = link_.span_of(request.segments, false, op.span);
  if (op.span.data != request.segments.iov[0].iov_base) op.landing = request.segments;
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  if (error == 0)
    error =
        stm_get(connection_, reinterpret_cast<std::uintptr_t>(&op), static_cast<unsigned>(flags),
                op.span.memory, op.span.data, request.segments.length,
                static_cast<std::uint32_t>(target.key), target.address);
  return posted(op, error);
}

ssize_t Ep::fetch(const Request& request, fi_addr_t, const Target& target,
                  const Function& function) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(request.flags); error != 0) return error;
  const auto reads = function.kind != Function::Kind::kPlain;
  auto& op = begin(request, reads ? Direction::kRead : Direction::kWrite,
                   FI_ATOMIC | (reads ? FI_READ : FI_WRITE));
  op.stm_flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  auto error = prepare_atomic(link_, op, target, function);
  if (op.atomic->repeats()) ++repeating_;
  if (error == 0) error = post_step(connection_, op);
  return posted(op, error);
}

}  // namespace stp::fi
