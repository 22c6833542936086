// SPDX-License-Identifier: BSD-3-Clause
// A new thread, or an error that says what to raise where none is to be had.
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace stp {

class NoThread : public std::system_error {
 public:
  explicit NoThread(std::error_code code) : std::system_error(code) {
    look_for_room();
    text_ = cause_ + ": " + remedy_;
  }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const std::string& cause() const { return cause_; }
  [[nodiscard]] const std::string& remedy() const { return remedy_; }
  // Whether this is what() of one.
  [[nodiscard]] static bool has_said(std::string_view text) { return text.starts_with(kCause); }

  static constexpr auto kRemedy = "raise ulimit -u, TasksMax or the pids limit";
  static constexpr auto kText =
      "no thread can be started: raise ulimit -u, TasksMax or the pids limit";

 private:
  static constexpr auto kCause = "no thread can be started";

  // The kernel's reason is lost: pthread_create() tells the same where there is no room for the
  // stack as where there are too many threads.
  void look_for_room() {
    const auto size = size_of_stack();
    auto* const stack =
        ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    const bool is_mapped = stack != MAP_FAILED;
    const bool fits = is_mapped && ::mprotect(stack, size, PROT_READ | PROT_WRITE) == 0;
    if (is_mapped) ::munmap(stack, size);
    if (fits) return;
    rlimit limit{};
    const bool is_limited = ::getrlimit(is_mapped ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0 &&
                            limit.rlim_cur != RLIM_INFINITY;
    const std::string name = is_mapped ? "ulimit -d" : "ulimit -v";
    cause_ += ", because its stack of " + in_kib(size) + " does not fit into " +
              (is_limited ? name + ", " + in_kib(limit.rlim_cur) + " in all" : "memory");
    remedy_ = (is_limited ? "raise " + name + ", or " : "") + "lower ulimit -s";
  }
  static std::size_t size_of_stack() {
    pthread_attr_t usual;
    std::size_t size = 0;
    if (::pthread_getattr_default_np(&usual) != 0) return 0;
    ::pthread_attr_getstacksize(&usual, &size);
    ::pthread_attr_destroy(&usual);
    return size;
  }
  static std::string in_kib(std::size_t bytes) { return std::to_string(bytes >> 10) + " KiB"; }

  std::string cause_ = kCause, remedy_ = kRemedy, text_;
};

// As std::thread(work...), but throws NoThread.
template <typename... Work>
std::thread start_thread(Work&&... work) {
  try {
    return std::thread(std::forward<Work>(work)...);
  } catch (const std::system_error& error) {
    throw NoThread(error.code());
  }
}

}  // namespace stp
