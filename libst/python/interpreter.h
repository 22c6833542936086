// SPDX-License-Identifier: BSD-3-Clause
// What the extension needs of the interpreter: its lock, its errors, its buffers. All objects of
// the extension are guarded by the interpreter's lock (GIL); it is let go only inside outside().
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "libst/include/stp/managed.h"

namespace stp::python {

// A call of the library that failed: becomes an exception of the package, by its errno.
struct Failed {
  int error;  // as <stp/managed.h> has it: negative
  std::string text;
  std::string remedy{};  // "": that of the exception's class
};
// The interpreter's own exception is set already.
struct Raised {};

// The text is the one that the library has for the last call of this thread.
[[noreturn]] void fail(int error, const char* what);
// The same of what the link was asked to do: one that is gone, or was given up, has one error.
[[noreturn]] void fail_at_link(int error, const char* what);
inline int checked_at_link(int result, const char* what) {
  if (result < 0) fail_at_link(result, what);
  return result;
}
inline int error_of_link(int error) {
  return error == -ETIMEDOUT || error == -ENOTCONN ? -ENODEV : error;
}
inline int checked(int result, const char* what) {
  if (result < 0) fail(result, what);
  return result;
}

// Threads that are outside of the interpreter, in calls of the library. None may be when it ends:
// a thread that wants the lock then is ended in the middle of its call.
class Outside {
 public:
  Outside() {
    if (over_) throw Failed{-ECANCELED, "the interpreter ends"};
    ++threads_;
    state_ = PyEval_SaveThread();
  }
  ~Outside() {
    PyEval_RestoreThread(state_);
    --threads_;
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

  static unsigned threads() { return threads_; }
  static void interpreter_ends() { over_ = true; }
  static void forked() { threads_ = 0; }  // a child has only the thread that forked

 private:
  static inline unsigned threads_ = 0;
  static inline bool over_ = false;
  PyThreadState* state_;
};

// The result of CALL, which is made without the interpreter's lock.
template <typename Call>
auto outside(Call&& call) {
  const Outside released;
  return call();
}

// A bytes-like object, exported for as long as this lives: it neither moves nor changes its size.
class Buffer {
 public:
  Buffer() = default;
  Buffer(PyObject* object, bool writable, const char* argument);
  Buffer(Buffer&& other) noexcept { std::swap(view_, other.view_); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Buffer() { release(); }
  void release() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  [[nodiscard]] char* data() const { return static_cast<char*>(view_.buf); }
  [[nodiscard]] bool is_writable() const { return view_.readonly == 0; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// An owned reference.
class Reference {
 public:
  Reference() = default;
  static Reference to(PyObject* object) {
    Py_XINCREF(object);
    return Reference(object);
  }
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }
  [[nodiscard]] PyObject* get() const { return object_; }

 private:
  explicit Reference(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

}  // namespace stp::python
