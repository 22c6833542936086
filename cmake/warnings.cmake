# SPDX-License-Identifier: BSD-3-Clause
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND STP_SANITIZE)
  # The sanitizers' instrumentation makes these see paths that do not exist.
  add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(STP_SANITIZE MATCHES "thread")
  # GCC says that it does not instrument fences; no ordering here depends on one alone.
  add_compile_options(-Wno-tsan)
endif()
