# SPDX-License-Identifier: BSD-3-Clause
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Werror)
# Sources that are compiled together would shadow each other's names.
if(NOT CMAKE_UNITY_BUILD)
  add_compile_options(-Wshadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND STP_SANITIZE)
  # With the sanitizers' instrumentation these warnings report paths that cannot be taken.
  add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(STP_SANITIZE MATCHES "thread")
  # -Wtsan says that fences are not instrumented. No ordering here depends on a fence alone.
  add_compile_options(-Wno-tsan)
endif()
