# SPDX-License-Identifier: BSD-3-Clause
# Errors where GCC is the project's compiler, also in tests that clang compiles then. In builds for the sanitizers and
# fuzzers clang only warns, but of locks.
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Werror)
else()
  # Who uses what a lock guards holds the lock (stp/base/mutex.h).
  add_compile_options(-Wno-sign-conversion -Wthread-safety -Werror=thread-safety)
endif()
# In unity builds (the presets, CONTRIBUTING.md) sources are compiled together, and would shadow each
# other's names. The preset "single" has no unity builds.
if(NOT CMAKE_UNITY_BUILD)
  add_compile_options(-Wshadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND STP_SANITIZE)
  # With the sanitizers' instrumentation these warnings report paths that cannot be taken.
  add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND STP_SANITIZE MATCHES "thread")
  # -Wtsan says that fences are not instrumented. No ordering here depends on a fence alone.
  add_compile_options(-Wno-tsan)
endif()
