// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/cntr.h"

#include "libst/libfabric/calls.h"
#include "libst/libfabric/domain.h"

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
  {
    std::lock_guard const lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
  }
  domain_.unuse();
  delete this;
  return 0;
}

void Cntr::count(bool failed) {
  ++(failed ? errors_ : value_);
  wait_.wake();
}

int Cntr::control(int command, void* argument) {
  std::lock_guard const lock(link_.mutex());
  // What has been counted before wakes nobody: a program compares first.
  return wait_.control(command, argument, false);
}

// What has been counted may be slept on: a program compares first.
int Cntr::try_wait() {
  const auto before = value_ + errors_;
  link_.progress();
  if (value_ + errors_ != before) return -FI_EAGAIN;
  wait_.clear();
  return 0;
}

std::uint64_t Cntr::read(bool errors) {
  const PollLock lock(link_.mutex());
  link_.progress();
  return errors ? errors_ : value_;
}

int Cntr::set(bool errors, std::uint64_t value, bool add) {
  std::lock_guard const lock(link_.mutex());
  auto& counted = errors ? errors_ : value_;
  counted = add ? counted + value : value;
  wait_.wake();
  return 0;
}

int Cntr::wait(std::uint64_t threshold, int timeout) {
  const auto deadline = deadline_in(timeout);
  std::unique_lock lock(link_.mutex());
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

}  // namespace stp::fi
