// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stp/base/mutex.h"
#include "stp/base/printable.h"

namespace stp::client {
namespace {

struct Hooks {
  Mutex mutex;
  Hook of[2] STP_GUARDED_BY(mutex);
};

Hooks& hooks() {
  static auto* const all = new Hooks;  // never destroyed, as HandleTable
  return *all;
}

Hook hook(HookKind kind) {
  Hooks& all = hooks();
  const Lock guard(all.mutex);
  return all.of[static_cast<std::size_t>(kind)];
}

// True while a hook runs: calls that the hook itself makes are not reported.
thread_local bool inside = false;

void tell(HookKind kind, const char* call, int result) {
  const auto to = hook(kind);
  if (to.function != nullptr) to.function(to.context, call, result, full_text(result));
}

bool expected(int result) {
  return result == -EWOULDBLOCK || result == -EINTR;
}

}  // namespace

constinit std::atomic<bool> any_hook{false};

void set_hook(HookKind kind, Hook wanted) {
  Hooks& all = hooks();
  const Lock guard(all.mutex);
  all.of[static_cast<std::size_t>(kind)] = wanted;
  any_hook = all.of[0].function != nullptr || all.of[1].function != nullptr;
}

void tell_hooks(const char* call, int result, bool per_frame) {
  if (inside) return;
  if (per_frame && (result >= 0 || expected(result))) return;
  inside = true;
  {
    const KeepFailure keep;  // the program may still ask st_strerror about this call
    tell(HookKind::kLog, call, result);
    if (result < 0) tell(HookKind::kError, call, result);
  }
  inside = false;
}

constinit thread_local int last_error = 0;

namespace {

thread_local std::string last_text;  // of that failure

}  // namespace

int fail(int error, const std::string& text) {
  last_error = std::abs(error);
  last_text = printable(text, true);
  return error;
}

int not_set(const char* argument) {
  return fail(-EINVAL, std::string("argument '") + argument + "' is NULL");
}

KeepFailure::KeepFailure() : error_(last_error), text_(last_text) {}

KeepFailure::~KeepFailure() {
  last_error = error_;
  last_text = std::move(text_);
}

namespace {

bool is_stored(int number) {
  return number != 0 && number == last_error && !last_text.empty();
}

// What an error means here where the system's text, which is about files and sockets, does not say
// it; else nullptr. Of a call as of an event.
const char* meaning_of(int number) {
  switch (number) {
    case EBADF:
      return "the handle is closed, was never one of this kind, or belongs to the parent of this "
             "process";
    case EMFILE:
      return "this process has too many files open: raise its limit (ulimit -n)";
    case ENOTCONN:
      return "the connection is not open: not yet, or the peer or its program has ended it";
    case EISCONN:
      return "it is no request that waits for an answer";
    case ECONNREFUSED:
      return "nobody listens on that port there, or the peer's program has said no";
    case ECONNRESET:
      return "the peer's program has broken the connection off";
    case ECANCELED:
      return "one of the two sides took it back, or ended what it belonged to";
    case EMSGSIZE:
      return "the message is longer than the receive that it met, or than the ring takes; or that "
             "receive's memory had been withdrawn";
    case EACCES:
      return "the peer's region is none, is closed, or does not permit this; or this side has "
             "withdrawn "
             "the memory";
    case ERANGE:
      return "it goes beyond the end of the region or of the mapped memory";
    case ENOBUFS:
      return "no receive was there in time";
    case EPROTO:
      return "the other side speaks another version, or something else";
    case ESHUTDOWN:
      return "this side has ended the connection";
    default:
      return nullptr;
  }
}

}  // namespace

const char* describe(int error) {
  const auto number = std::abs(error);
  if (is_stored(number)) return last_text.c_str();
  thread_local char text[128];
  return ::strerror_r(number, text, sizeof text);
}

const char* full_text(int error) {
  const auto number = std::abs(error);
  const auto* const meaning = is_stored(number) ? nullptr : meaning_of(number);
  if (meaning == nullptr) return describe(error);
  thread_local char text[256];
  std::snprintf(text, sizeof text, "%s: %s", describe(error), meaning);
  return text;
}

}  // namespace stp::client

void st_set_error_handler(st_hook_t* handler, void* context) {
  stp::client::set_hook(stp::client::HookKind::kError, {handler, context});
}

void st_set_log(st_hook_t* log, void* context) {
  stp::client::set_hook(stp::client::HookKind::kLog, {log, context});
}
