// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/eq.h"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstring>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/domain.h"

namespace stp::fi {
namespace {

constexpr std::size_t kDefaultSize = 1024;
constexpr std::size_t kMostWritten = 4096;

Eq& eq_of(fid_t id) {
  return object_of<Eq, fid_eq>(id);
}
Eq& eq_of(fid_eq* eq) {
  return *static_cast<Eq*>(eq);
}

fi_ops eq_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return eq_of(id).close(); }); },
    .bind = refuse,
    .control =
        [](fid_t id, int command, void* argument) {
          return guarded([&] { return eq_of(id).control(command, argument); });
        },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_eq eq_calls{
    .size = sizeof(fi_ops_eq),
    .read =
        [](fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
           std::uint64_t flags) {
          return guarded([&] { return eq_of(eq).read(event, buffer, length, flags); });
        },
    .readerr =
        [](fid_eq* eq, fi_eq_err_entry* entry, std::uint64_t flags) {
          return guarded([&] { return eq_of(eq).read_error(*entry, flags); });
        },
    .write =
        [](fid_eq* eq, std::uint32_t event, const void* buffer, std::size_t length,
           std::uint64_t flags) {
          return guarded([&] { return eq_of(eq).write(event, buffer, length, flags); });
        },
    .sread =
        [](fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
           std::uint64_t flags) {
          return guarded(
              [&] { return eq_of(eq).wait_and_read(event, buffer, length, timeout, flags); });
        },
    .strerror = describe_error,
};

}  // namespace

Eq::Eq(Fabric& fabric, const fi_eq_attr& attr, void* context)
    : fid_eq{.fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &eq_object_calls},
             .ops = &eq_calls},
      fabric_(fabric),
      link_(fabric.link()),
      writable_((attr.flags & FI_WRITE) != 0),
      size_(attr.size != 0 ? attr.size : kDefaultSize),
      wait_(link_, attr.wait_obj) {
  fabric_.use();
}

Eq::~Eq() {
  for (const auto& news : news_)
    if (news.info != nullptr) fi_freeinfo(news.info);
}

int Eq::open(Fabric& fabric, const fi_eq_attr& attr, void* context, fid_eq*& out) {
  if (attr.flags & ~static_cast<std::uint64_t>(FI_WRITE | FI_AFFINITY)) return -FI_EBADFLAGS;
  if (!Wait::offers(attr.wait_obj)) return -FI_ENOSYS;
  out = new Eq(fabric, attr, context);
  return 0;
}

int Eq::close() {
  {
    std::lock_guard const lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
  }
  fabric_.unuse();
  delete this;
  return 0;
}

void Eq::tell(std::uint32_t event, fid_t about, fi_info* info, const std::vector<std::byte>& data) {
  News news{.event = event, .about = about, .info = info, .bytes = {}};
  news.bytes.resize(sizeof(fi_eq_cm_entry) + data.size());
  const fi_eq_cm_entry entry{.fid = about, .info = info};
  std::memcpy(news.bytes.data(), &entry, sizeof entry);
  std::ranges::copy(data, news.bytes.begin() + sizeof entry);
  news_.push_back(std::move(news));
  wait_.wake();
}

void Eq::tell_error(fid_t about, int status, std::vector<std::byte> data) {
  news_.push_back(
      {.about = about, .bytes = std::move(data), .error = error_of(status), .status = status});
  wait_.wake();
}

int Eq::bind(Eq*& place, fid_t other, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (place != nullptr) return -FI_EINVAL;
  place = &object_of<Eq, fid_eq>(other);
  ++place->users_;
  return 0;
}

bool Eq::knows_of(fid_t about) const {
  return std::ranges::find(news_, about, &News::about) != news_.end();
}

void Eq::forget(fid_t about) {
  std::erase_if(news_, [about](const News& news) {
    if (news.about != about) return false;
    if (news.info != nullptr) fi_freeinfo(news.info);
    return true;
  });
}

int Eq::control(int command, void* argument) {
  std::lock_guard const lock(link_.mutex());
  return wait_.control(command, argument, !news_.empty());
}

int Eq::try_wait() {
  if (news_.empty()) link_.progress();
  if (!news_.empty()) return -FI_EAGAIN;
  wait_.clear();
  return 0;
}

ssize_t Eq::take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (news_.empty()) return -FI_EAGAIN;
  auto& next = news_.front();
  if (next.error != 0) return -FI_EAVAIL;
  // Of what came along with a connection, as much is told as there is place for.
  const auto least = next.about != nullptr ? sizeof(fi_eq_cm_entry) : next.bytes.size();
  if (length < least) return -FI_ETOOSMALL;
  const auto told = std::min(length, next.bytes.size());
  if (event != nullptr) *event = next.event;
  if (told != 0) std::memcpy(buffer, next.bytes.data(), told);
  if ((flags & FI_PEEK) == 0) news_.pop_front();
  return static_cast<ssize_t>(told);
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const PollLock lock(link_.mutex());
  if (news_.empty()) link_.progress();
  return take(event, buffer, length, flags);
}

ssize_t Eq::read_error(fi_eq_err_entry& entry, std::uint64_t flags) {
  std::lock_guard const lock(link_.mutex());
  if (news_.empty() || news_.front().error == 0) return -FI_EAGAIN;
  auto& failed = news_.front();
  const auto room = entry.err_data_size;
  auto* const given = entry.err_data;
  entry.fid = failed.about;
  entry.context = failed.about != nullptr ? failed.about->context : nullptr;
  entry.data = 0;
  entry.err = failed.error;
  entry.prov_errno = failed.status;
  error_data_ = failed.bytes;
  if (fabric_.api_version >= FI_VERSION(1, 5) && given != nullptr && room != 0) {
    entry.err_data_size = std::min(room, error_data_.size());
    if (!error_data_.empty()) std::memcpy(given, error_data_.data(), entry.err_data_size);
  } else {
    entry.err_data = error_data_.data();
    entry.err_data_size = error_data_.size();
  }
  if ((flags & FI_PEEK) == 0) news_.pop_front();
  return sizeof entry;
}

ssize_t Eq::write(std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t) {
  if (!writable_ || length > kMostWritten || (buffer == nullptr && length != 0)) return -FI_EINVAL;
  std::lock_guard const lock(link_.mutex());
  if (news_.size() >= size_) return -FI_EAGAIN;
  const auto* const from = static_cast<const std::byte*>(buffer);
  news_.push_back({.event = event, .bytes = {from, from + length}});
  wait_.wake();
  return static_cast<ssize_t>(length);
}

ssize_t Eq::wait_and_read(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) {
  if (!wait_.possible()) return -FI_ENOSYS;
  const auto deadline = deadline_in(timeout);
  std::unique_lock lock(link_.mutex());
  if (const auto error = wait_.open(); error != 0) return error;
  for (;;) {
    if (try_wait() != 0 || Clock::now() >= deadline) return take(event, buffer, length, flags);
    if (const auto error = wait_.sleep(lock, deadline); error != 0) return error;
  }
}

}  // namespace stp::fi
