// SPDX-License-Identifier: BSD-3-Clause
#include "libst/python/operation.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "libst/python/connection.h"
#include "libst/python/domain.h"

namespace stp::python {
namespace {

// Up to here a copy costs less than registering memory.
constexpr std::size_t kCopied = 32768;
// How long an operation that was taken back may take to end before it is left alone: microseconds.
constexpr std::int64_t kGrace = 50'000;

}  // namespace

Staging::~Staging() {
  for (const auto& chunk : chunks_) ::munmap(chunk.at, chunk.size);
}

Place Staging::take(stm_domain_t domain, std::size_t size) {
  const auto log2 =
      std::max(kLeast, static_cast<unsigned>(std::bit_width(std::max<std::size_t>(size, 1) - 1)));
  auto& free = free_[log2];
  if (free.empty()) {
    // Short pieces come many at a time: a registration costs more than they do.
    const auto whole = std::size_t{1} << (log2 < 14 ? 18U : std::max(log2, kPiecesOfChunk));
    auto* const at = static_cast<char*>(
        ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED) throw Failed{-ENOMEM, "no memory for messages"};
    stm_memory_t memory = nullptr;
    try {
      checked_at_link(
          outside([&] { return stm_memory_register(domain, at, whole, STM_LOCAL_WRITE, &memory); }),
          "registering memory for messages");
    } catch (...) {
      ::munmap(at, whole);
      throw;
    }
    chunks_.push_back({at, whole});
    for (auto offset = whole; offset > 0; offset -= std::size_t{1} << log2)
      free.push_back({memory, at + offset - (std::size_t{1} << log2), log2});
  }
  const auto place = free.back();
  free.pop_back();
  return place;
}

Operation::~Operation() {
  if (own_ != nullptr) stm_memory_release(own_);  // it was never posted
  if (place_.memory != nullptr) domain_->staging().give(place_);
}

bool Operation::wait(std::int64_t timeout) {
  return domain_->wait(*this, timeout);
}

std::string Operation::why_it_may_wait(const char* otherwise) const {
  if (what != "sending" || !connection || connection->is_closed() ||
      connection->info().receives != 0)
    return {};
  return std::string(
             ": the peer has not received it; if it sends first, too, let one of the two ") +
         "receive first, or " + otherwise;
}

bool Operation::wait_and_warn() {
  if (wait(warn_after)) return true;
  const auto why = why_it_may_wait("use begin_send");
  constexpr Py_ssize_t kCaller = 2;  // of the package's function
  if (!why.empty() &&
      PyErr_WarnEx(PyExc_RuntimeWarning, (what + " takes long" + why).c_str(), kCaller) != 0)
    throw Raised{};
  return wait(-1);
}

PyObject* Operation::finish(std::int64_t timeout) {
  const auto self = shared_from_this();
  bool over = false;
  try {
    over = timeout < 0 ? wait_and_warn() : wait(timeout);
  } catch (...) {
    abandon();
    throw;
  }
  if (over) return result();
  auto trouble = why_it_may_wait("use begin_send");
  if (by == By::kOpening)
    trouble = outside([peer = connection->handle] { return trouble_with(peer); });
  cancel();
  if (!wait(kGrace) || status_ == -ECANCELED)
    throw Failed{-ETIMEDOUT, what + ": not done in the time given" + trouble};
  return result();
}

PyObject* Operation::result() {
  if (!done_) throw Failed{-EINPROGRESS, "the operation is not done"};
  if (status_ < 0) throw Failed{status_, what.empty() ? text_ : what + ": " + text_};
  taken_ = true;
  switch (gives_) {
    case Gives::kBytes:
      return bytes();
    case Gives::kLength:
      return PyLong_FromUnsignedLongLong(length);
    case Gives::kNumber: {
      std::uint64_t number;
      std::memcpy(&number, at, sizeof number);
      return PyLong_FromUnsignedLongLong(number);
    }
    default:
      Py_RETURN_NONE;
  }
}

PyObject* Operation::bytes() const {
  auto* const bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length));
  if (bytes == nullptr) throw Raised{};
  if (length <= kCopied)
    std::memcpy(PyBytes_AS_STRING(bytes), at, length);
  else
    outside([&] { return std::memcpy(PyBytes_AS_STRING(bytes), at, length); });
  return bytes;
}

bool Operation::cancel() {
  if (ended_) return false;
  const auto self = shared_from_this();
  switch (by) {
    case By::kRequest:
      listener->withdraw(self);
      break;
    case By::kLink:
      connection->cancel(self);
      return true;
    default:
      connection->withdraw(self);
  }
  domain_->tell();
  return true;
}

void Operation::abandon() {
  const auto self = shared_from_this();
  if (cancel() || taken_ || status_ < 0) return;
  taken_ = true;
  if (by == By::kRequest)
    listener->put_back(connection);
  else if (is_receive && place_.memory != nullptr)
    connection->put_back({at, length}, tag);
  domain_->tell();
}

void Operation::on_done(PyObject* call) {
  if (!done_) {
    call_ = Reference::to(call);
    return;
  }
  auto* const result = PyObject_CallNoArgs(call);
  if (result == nullptr) throw Raised{};
  Py_DECREF(result);
}

void Operation::use_place(std::size_t wanted) {
  if (wanted > Staging::kMost)
    throw Failed{-EINVAL, "size: at most 1 GiB is received as bytes; receive_into() takes more"};
  place_ = domain_->staging().take(domain_->handle(), wanted);
  memory = place_.memory;
  at = place_.at;
  size = wanted;
}

void Operation::use_buffer(Buffer buffer, bool is_written) {
  size = buffer.size();
  at = buffer.data();
  buffer_ = std::move(buffer);
  if (size == 0) return;
  memory = domain_->registered(at, size);
  if (memory != nullptr) return;
  if (size > kCopied) {
    const auto domain = domain_->handle();
    const auto error = outside([&] {
      return stm_memory_register(domain, at, size, is_written ? STM_LOCAL_WRITE : STM_LOCAL_READ,
                                 &own_);
    });
    memory = own_;
    if (error == 0) return;
    // Memory that cannot be shared with stpd.
    if (error != -EOPNOTSUPP) fail(error, "registering the buffer");
  }
  use_place(size);
  if (!is_written) std::memcpy(at, buffer_.data(), size);
  copies_back_ = is_written;
}

void Operation::end(int status, std::string text) {
  if (ended_) return;
  ended_ = true;
  status_ = status;
  text_ = std::move(text);
  domain_->has_ended(shared_from_this());
}

void Operation::end(int status) {
  end(status, status < 0 ? st_strerror(status) : "");
}

void Operation::let_go() {
  if (copies_back_ && status_ == 0) std::memcpy(buffer_.data(), at, length);
  buffer_.release();
}

}  // namespace stp::python
