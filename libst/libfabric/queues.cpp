// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/queues.h"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

Cntr& cntr_of(fid_t id) {
  return object_of<Cntr, fid_cntr>(id);
}
Cntr& cntr_of(fid_cntr* cntr) {
  return *static_cast<Cntr*>(cntr);
}

fi_ops cntr_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return cntr_of(id).close(); }); },
    .bind = refuse,
    .control =
        [](fid_t id, int command, void* argument) {
          return guarded([&] { return cntr_of(id).control(command, argument); });
        },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_cntr cntr_calls{
    .size = sizeof(fi_ops_cntr),
    .read = [](fid_cntr* cntr) { return cntr_of(cntr).read(false); },
    .readerr = [](fid_cntr* cntr) { return cntr_of(cntr).read(true); },
    .add = [](fid_cntr* cntr,
              std::uint64_t value) { return cntr_of(cntr).set(false, value, true); },
    .set = [](fid_cntr* cntr,
              std::uint64_t value) { return cntr_of(cntr).set(false, value, false); },
    .wait =
        [](fid_cntr* cntr, std::uint64_t threshold, int timeout) {
          return guarded([&] { return cntr_of(cntr).wait(threshold, timeout); });
        },
    .adderr = [](fid_cntr* cntr,
                 std::uint64_t value) { return cntr_of(cntr).set(true, value, true); },
    .seterr = [](fid_cntr* cntr,
                 std::uint64_t value) { return cntr_of(cntr).set(true, value, false); },
};

}  // namespace

Cntr::Cntr(Domain& domain, const fi_cntr_attr& attr, void* context)
    : fid_cntr{.fid = {.fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_object_calls},
               .ops = &cntr_calls},
      domain_(domain),
      link_(domain.link()),
      wait_(link_, attr.wait_obj) {
  domain_.use();
}

int Cntr::open(Domain& domain, const fi_cntr_attr& attr, void* context, fid_cntr*& out) {
  if (attr.flags != 0) return -FI_EBADFLAGS;
  if (attr.events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
  if (!Wait::offers(attr.wait_obj)) return -FI_ENOSYS;
  out = new Cntr(domain, attr, context);
  return 0;
}

int Cntr::close() {
  return end_unless([this] { return users_ != 0; }, this, link_, domain_);
}

[[gnu::noinline]] void Cntr::count(bool failed) {
  ++(failed ? errors_ : value_);
  wait_.wake();
}

int Cntr::control(int command, void* argument) {
  const LinkLock lock(link_.mutex());
  // What has been counted before wakes nobody: a program compares first.
  return wait_.control(command, argument, false);
}

// What has been counted may be slept on: a program compares first.
int Cntr::try_wait() {
  const auto before = value_ + errors_;
  link_.progress();
  if (value_ + errors_ != before || link_.rest_to_look_again()) return -FI_EAGAIN;
  wait_.clear();
  return 0;
}

std::uint64_t Cntr::read(bool errors) {
  const PollLock lock(link_.mutex());
  link_.poll();
  return errors ? errors_ : value_;
}

int Cntr::set(bool errors, std::uint64_t value, bool add) {
  const LinkLock lock(link_.mutex());
  auto& counted = errors ? errors_ : value_;
  counted = add ? counted + value : value;
  wait_.wake();
  return 0;
}

int Cntr::wait(std::uint64_t threshold, int timeout) {
  const auto deadline = deadline_in(timeout);
  LinkLock lock(link_.mutex());
  if (!wait_.possible()) return -FI_ENOSYS;
  if (const auto error = wait_.open(); error != 0) return error;
  const auto errors = errors_;
  for (;;) {
    wait_.clear();
    link_.progress();
    if (value_ >= threshold) return 0;
    if (errors_ != errors) return -FI_EAVAIL;
    if (Clock::now() >= deadline) return -FI_ETIMEDOUT;
    if (const auto error = wait_.sleep(lock, deadline); error != 0) return error;
  }
}

namespace {

Cq& cq_of(fid_t id) {
  return object_of<Cq, fid_cq>(id);
}
Cq& cq_of(fid_cq* cq) {
  return static_cast<Cq&>(*cq);
}

// Of a completion queue, which a program may want longer.
constexpr std::size_t kLeastSize = 16'384;

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

// Run once per poll, so each is one function.
[[gnu::flatten]] ssize_t call_read(fid_cq* cq, void* buffer, std::size_t count) {
  return guarded([&] { return cq_of(cq).read(buffer, count, nullptr); });
}
[[gnu::flatten]] ssize_t call_readfrom(fid_cq* cq, void* buffer, std::size_t count,
                                       fi_addr_t* sources) {
  return guarded([&] { return cq_of(cq).read(buffer, count, sources); });
}

fi_ops_cq cq_calls{
    .size = sizeof(fi_ops_cq),
    .read = call_read,
    .readfrom = call_readfrom,
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
      size_(std::max(attr.size, kLeastSize)),
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
  return end_unless([this] { return users_ != 0; }, this, link_, domain_);
}

void Cq::forget_receives(const void* mark) {
  for (auto rest = completions_.size(); rest != 0; --rest) {
    const auto told = completions_.front();
    completions_.pop_front();
    const auto receives = (told.entry.flags & FI_RECV) != 0;
    if (!receives || told.error != 0 || told.own != mark) completions_.place() = told;
  }
}

int Cq::control(int command, void* argument) {
  const LinkLock lock(link_.mutex());
  return wait_.control(command, argument, !completions_.empty());
}

bool Cq::is_ready() {
  if (completions_.empty() && !signaled_) link_.progress();
  if (!completions_.empty() || signaled_ || link_.lost() != 0) return true;
  wait_.clear();
  return false;
}

ssize_t Cq::take_some(void* buffer, std::size_t count, fi_addr_t* sources) {
  auto* to = static_cast<std::byte*>(buffer);
  std::size_t taken = 0;
  do {
    if (completions_.front().error != 0) [[unlikely]]
      return taken != 0 ? static_cast<ssize_t>(taken) : -FI_EAVAIL;
    std::memcpy(to, &completions_.front().entry, entry_size_);
    to += entry_size_;
    if (sources != nullptr) sources[taken] = completions_.front().source;
    completions_.pop_front();
    ++taken;
  } while (taken < count && !completions_.empty());
  return static_cast<ssize_t>(taken);
}

ssize_t Cq::nothing() const {
  return link_.lost() == 0 ? -FI_EAGAIN : -error_of(link_.lost());
}

ssize_t Cq::take(void* buffer, std::size_t count, fi_addr_t* sources) {
  return count != 0 && !completions_.empty() ? take_some(buffer, count, sources) : nothing();
}

ssize_t Cq::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  const PollLock lock(link_.mutex());
  if (count == 0) [[unlikely]] {  // a program makes progress only
    link_.progress();
    return nothing();
  }
  if (completions_.empty()) {
    link_.poll();
    if (completions_.empty()) return nothing();
  }
  link_.has_told();
  return take_some(buffer, count, sources);
}

ssize_t Cq::read_error(fi_cq_err_entry& entry) {
  const LinkLock lock(link_.mutex());
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
  LinkLock lock(link_.mutex());
  if (const auto error = wait_.open(); error != 0) return error;
  for (;;) {
    const auto ready = is_ready();
    if (ready || Clock::now() >= deadline) {
      signaled_ = false;
      return take(buffer, count, sources);
    }
    if (const auto error = wait_.sleep(lock, deadline); error != 0) return error;
  }
}

int Cq::signal() {
  const LinkLock lock(link_.mutex());
  if (!wait_.possible()) return -FI_ENOSYS;
  signaled_ = true;
  wait_.wake();
  return 0;
}

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
  return end_unless([this] { return users_ != 0; }, this, link_, fabric_);
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
  news_.push_back({.about = about,
                   .bytes = std::move(data),
                   .error = error_of(status),
                   .status = status,
                   .context = about->context});
  wait_.wake();
}

void Eq::tell_inserted(fid_t av, void* context, std::uint64_t count) {
  News news{.event = FI_AV_COMPLETE, .about = av, .bytes = {}};
  const fi_eq_entry entry{.fid = av, .context = context, .data = count};
  news.bytes.resize(sizeof entry);
  std::memcpy(news.bytes.data(), &entry, sizeof entry);
  news_.push_back(std::move(news));
  wait_.wake();
}

bool Eq::tell_not_inserted(fid_t av, void* context, std::uint64_t which) {
  if (news_.size() >= size_) return false;
  news_.push_back({.event = FI_AV_COMPLETE,
                   .about = av,
                   .bytes = {},
                   .error = FI_EINVAL,
                   .status = -FI_EINVAL,
                   .context = context,
                   .data = which});
  wait_.wake();
  return true;
}

int Eq::bind(Eq*& place, fid_t other, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (place != nullptr) return -FI_EINVAL;
  place = &object_of<Eq, fid_eq>(other);
  ++place->users_;
  return 0;
}

void Eq::unbind(Eq* from, fid_t object) {
  if (from == nullptr) return;
  from->forget(object);
  --from->users_;
}

bool Eq::knows_of(fid_t about) const {
  return std::ranges::find(news_, about, &News::about) != news_.end();
}

bool Eq::take_back(fid_t handle) {
  const auto found = std::ranges::find_if(news_, [handle](const News& news) {
    return !news.seen && news.info != nullptr && news.info->handle == handle;
  });
  if (found == news_.end()) return false;
  fi_freeinfo(found->info);
  news_.erase(found);
  return true;
}

void Eq::forget(fid_t about) {
  std::erase_if(news_, [about](const News& news) {
    if (news.about != about) return false;
    if (news.info != nullptr) fi_freeinfo(news.info);
    return true;
  });
}

int Eq::control(int command, void* argument) {
  const LinkLock lock(link_.mutex());
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
  const auto connects = next.about != nullptr && next.event != FI_AV_COMPLETE;
  const auto least = connects ? sizeof(fi_eq_cm_entry) : next.bytes.size();
  if (length < least) return -FI_ETOOSMALL;
  const auto told = std::min(length, next.bytes.size());
  if (event != nullptr) *event = next.event;
  if (told != 0) std::memcpy(buffer, next.bytes.data(), told);
  next.seen = true;
  if ((flags & FI_PEEK) == 0) news_.pop_front();
  return static_cast<ssize_t>(told);
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const PollLock lock(link_.mutex());
  if (news_.empty()) link_.progress();
  return take(event, buffer, length, flags);
}

ssize_t Eq::read_error(fi_eq_err_entry& entry, std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  if (news_.empty() || news_.front().error == 0) return -FI_EAGAIN;
  auto& failed = news_.front();
  const auto room = entry.err_data_size;
  auto* const given = entry.err_data;
  entry.fid = failed.about;
  entry.context = failed.context;
  entry.data = failed.data;
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
  const LinkLock lock(link_.mutex());
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
  LinkLock lock(link_.mutex());
  if (const auto error = wait_.open(); error != 0) return error;
  for (;;) {
    if (try_wait() != 0 || Clock::now() >= deadline) return take(event, buffer, length, flags);
    if (const auto error = wait_.sleep(lock, deadline); error != 0) return error;
  }
}

// ---- of an endpoint ----

int Reports::bind_cq(fid_t other, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  if ((flags & ~kKnown) != 0) return -FI_EBADFLAGS;
  auto& cq = object_of<Cq, fid_cq>(other);
  const auto asks = (flags & FI_SELECTIVE_COMPLETION) != 0 ? FI_COMPLETION : 0;
  if (((flags & FI_TRANSMIT) != 0 && tx_cq_ != nullptr) ||
      ((flags & FI_RECV) != 0 && rx_cq_ != nullptr))
    return -FI_EINVAL;
  if ((flags & FI_TRANSMIT) != 0) {
    tx_cq_ = &cq;
    tx_asks_ = asks;
    cq.use();
  }
  if ((flags & FI_RECV) != 0) {
    rx_cq_ = &cq;
    rx_asks_ = asks;
    cq.use();
  }
  return 0;
}

int Reports::bind_cntr(fid_t other, std::uint64_t flags, bool accesses) {
  constexpr std::array<std::uint64_t, 6> kFlags{FI_SEND,  FI_RECV,        FI_READ,
                                                FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  constexpr std::uint64_t kAccesses = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | kAccesses)) != 0) return -FI_EBADFLAGS;
  if ((flags & kAccesses) != 0 && !accesses) {
    inform(FI_LOG_EP_CTRL,
           "counters count accesses of peers (FI_REMOTE_READ, _WRITE) of FI_EP_RDM with "
           "FI_RMA_EVENT alone");
    return -FI_ENOSYS;
  }
  auto& counter = object_of<Cntr, fid_cntr>(other);
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    if ((flags & kFlags[i]) == 0) continue;
    if (counters_[i] != nullptr) return -FI_EINVAL;
    counters_[i] = &counter;
    counter.use();
  }
  return 0;
}

void Reports::count_access(bool reads) {
  if (auto* const counter = counters_[reads ? 4 : 5]; counter != nullptr) counter->count(false);
}

bool Reports::has_counter() const {
  return std::ranges::any_of(counters_, [](const Cntr* counter) { return counter != nullptr; });
}

void Reports::release() {
  if (own_ != nullptr && rx_cq_ != nullptr) rx_cq_->forget_receives(own_);
  if (tx_cq_ != nullptr) tx_cq_->unuse();
  if (rx_cq_ != nullptr) rx_cq_->unuse();
  for (auto* const counter : counters_)
    if (counter != nullptr) counter->unuse();
  *this = {};
}

bool Reports::are_full() const {
  return rx_cq_ != nullptr && rx_cq_->is_full();
}

void Reports::tell_written(std::uint64_t length, std::uint64_t data, fi_addr_t source) {
  if (rx_cq_ == nullptr) return;
  auto& told = rx_cq_->add();
  told = {};
  told.entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  told.entry.len = static_cast<std::size_t>(length);
  told.entry.data = data;
  told.source = source;
  rx_cq_->wake();
}

void Reports::sent(void* context, std::uint64_t kind, std::uint64_t flags) {
  if (auto* const counter = counters_[static_cast<std::size_t>(Direction::kSend)];
      counter != nullptr)
    counter->count(false);
  if (tx_cq_ == nullptr || !tells(Direction::kSend, flags)) return;
  tx_cq_->add().succeed(
      {.op_context = context, .flags = kind, .len = 0, .buf = nullptr, .data = 0, .tag = 0},
      FI_ADDR_NOTAVAIL);
  tx_cq_->wake();
}

void Reports::complete(const Outcome& op) {
  const auto error = op.status != 0 || op.overflow != 0;
  if (auto* const counter = counters_[static_cast<std::size_t>(op.direction)]; counter != nullptr)
    counter->count(error);
  if (op.injected && error) inform(FI_LOG_EP_DATA, "what was injected has not arrived");
  tell(op);
}

void Reports::tell(const Outcome& op) {
  const auto receives = op.direction == Direction::kReceive;
  const auto error = op.status != 0 ? error_of(op.status) : (op.overflow != 0 ? FI_ETRUNC : 0);
  auto* const cq = receives ? rx_cq_ : tx_cq_;
  if (cq == nullptr || op.injected || (error == 0 && !op.told)) return;
  auto& told = cq->add();
  told.entry = {
      .op_context = op.context,
      .flags = op.flags,
      .len = receives && op.status == 0 ? op.length : 0,  // of what failed none is certain
      .buf = op.buffer,
      .data = receives ? op.data : 0,
      .tag = op.tag};
  told.source = op.source;
  told.error = error;
  told.status = op.status != 0 ? op.status : -error;
  told.overflow = op.overflow;
  told.own = own_;
  cq->wake();
}

}  // namespace stp::fi
