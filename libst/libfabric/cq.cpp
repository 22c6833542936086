// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/cq.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/domain.h"

namespace stp::fi {
namespace {

Cq& cq_of(fid_t id) {
  return object_of<Cq, fid_cq>(id);
}
Cq& cq_of(fid_cq* cq) {
  return *static_cast<Cq*>(cq);
}

std::size_t size_of(fi_cq_format format) {
  constexpr std::size_t kSizes[] = {0, sizeof(fi_cq_entry), sizeof(fi_cq_msg_entry),
                                    sizeof(fi_cq_data_entry), sizeof(fi_cq_tagged_entry)};
  return kSizes[format];
}

fi_ops cq_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return cq_of(id).close(); }); },
    .bind = refuse,
    .control =
        [](fid_t id, int command, void* argument) {
          return guarded([&] { return cq_of(id).control(command, argument); });
        },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_cq cq_calls{
    .size = sizeof(fi_ops_cq),
    .read =
        [](fid_cq* cq, void* buffer, std::size_t count) {
          return guarded([&] { return cq_of(cq).read(buffer, count, nullptr); });
        },
    .readfrom =
        [](fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources) {
          return guarded([&] { return cq_of(cq).read(buffer, count, sources); });
        },
    .readerr = [](fid_cq* cq, fi_cq_err_entry* entry,
                  std::uint64_t) { return guarded([&] { return cq_of(cq).read_error(*entry); }); },
    .sread =
        [](fid_cq* cq, void* buffer, std::size_t count, const void*, int timeout) {
          return guarded([&] { return cq_of(cq).wait_and_read(buffer, count, nullptr, timeout); });
        },
    .sreadfrom =
        [](fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources, const void*,
           int timeout) {
          return guarded([&] { return cq_of(cq).wait_and_read(buffer, count, sources, timeout); });
        },
    .signal = [](fid_cq* cq) { return guarded([&] { return cq_of(cq).signal(); }); },
    .strerror = describe_error,
};

}  // namespace

Cq::Cq(Domain& domain, const fi_cq_attr& attr, void* context)
    : fid_cq{.fid = {.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_object_calls},
             .ops = &cq_calls},
      domain_(domain),
      link_(domain.link()),
      format_(attr.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr.format),
      entry_size_(size_of(format_)),
      wait_(link_, attr.wait_obj) {
  domain_.use();
}

int Cq::open(Domain& domain, const fi_cq_attr& attr, void* context, fid_cq*& out) {
  if (attr.flags & ~static_cast<std::uint64_t>(FI_AFFINITY)) return -FI_EBADFLAGS;
  if (!Wait::offers(attr.wait_obj)) return -FI_ENOSYS;
  if (attr.format > FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
  out = new Cq(domain, attr, context);
  return 0;
}

int Cq::close() {
  {
    std::lock_guard const lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
  }
  domain_.unuse();
  delete this;
  return 0;
}

int Cq::control(int command, void* argument) {
  std::lock_guard const lock(link_.mutex());
  return wait_.control(command, argument, !completions_.empty());
}

int Cq::try_wait() {
  if (completions_.empty() && !signaled_) link_.progress();
  if (!completions_.empty() || signaled_ || link_.lost() != 0) return -FI_EAGAIN;
  wait_.clear();
  return 0;
}

ssize_t Cq::take(void* buffer, std::size_t count, fi_addr_t* sources) {
  auto* to = static_cast<std::byte*>(buffer);
  ssize_t taken = 0;
  while (static_cast<std::size_t>(taken) < count && !completions_.empty()) {
    if (completions_.front().error != 0) return taken != 0 ? taken : -FI_EAVAIL;
    std::memcpy(to, &completions_.front().entry, entry_size_);
    to += entry_size_;
    if (sources != nullptr) sources[taken] = completions_.front().source;
    completions_.pop_front();
    ++taken;
  }
  if (taken != 0) return taken;
  return link_.lost() == 0 ? -FI_EAGAIN : -error_of(link_.lost());
}

ssize_t Cq::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  const PollLock lock(link_.mutex());
  // Of 0 entries: a program makes progress only.
  if (completions_.empty() || count == 0) link_.progress();
  return take(buffer, count, sources);
}

ssize_t Cq::read_error(fi_cq_err_entry& entry) {
  std::lock_guard const lock(link_.mutex());
  if (completions_.empty() || completions_.front().error == 0) return -FI_EAGAIN;
  const auto& failed = completions_.front();
  entry.op_context = failed.entry.op_context;
  entry.flags = failed.entry.flags;
  entry.len = failed.entry.len;
  entry.buf = failed.entry.buf;
  entry.data = failed.entry.data;
  entry.tag = failed.entry.tag;
  entry.olen = failed.overflow;
  entry.err = failed.error;
  entry.prov_errno = failed.status;
  if (domain_.api_version() >= FI_VERSION(1, 5))
    entry.err_data_size = 0;
  else
    entry.err_data = nullptr;
  completions_.pop_front();
  return 1;
}

ssize_t Cq::wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout) {
  if (!wait_.possible()) return -FI_ENOSYS;
  const auto deadline = deadline_in(timeout);
  std::unique_lock lock(link_.mutex());
  if (const auto error = wait_.open(); error != 0) return error;
  for (;;) {
    const auto ready = try_wait() != 0;
    if (ready || Clock::now() >= deadline) {
      signaled_ = false;
      return take(buffer, count, sources);
    }
    if (const auto error = wait_.sleep(lock, deadline); error != 0) return error;
  }
}

int Cq::signal() {
  std::lock_guard const lock(link_.mutex());
  if (!wait_.possible()) return -FI_ENOSYS;
  signaled_ = true;
  wait_.wake();
  return 0;
}

}  // namespace stp::fi
