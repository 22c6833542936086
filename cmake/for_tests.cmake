# SPDX-License-Identifier: BSD-3-Clause
# How tests are compiled, and tools where there are tests. In the short form the sources of tests are without what takes
# half of the time: lines for debuggers, and, for AddressSanitizer, coverage and the checks for undefined behaviour, which
# the code under test has.
set(STP_TEST_OPTIONS -O0)
if(STP_ALL_TESTS OR (NOT STP_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Debug"))
  list(APPEND STP_TEST_OPTIONS -g1)
else()
  list(APPEND STP_TEST_OPTIONS -g0)
  if(STP_SANITIZE MATCHES "address" AND STP_FUZZ)
    list(APPEND STP_TEST_OPTIONS -fno-sanitize=undefined,fuzzer-no-link)
  endif()
endif()

# clang compiles tests in half of the time that GCC needs. GCC compiles them where there is no clang, and with all tests.
find_program(STP_CLANG clang++-14 DOC "Compiles the tests, which is faster, unless STP_ALL_TESTS is on")
set(clang_for_tests "")
if(STP_TESTS AND STP_CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STP_SANITIZE AND NOT STP_ALL_TESTS)
  # CMake puts this before the command of the compiler, which is its first argument. To precompile headers again, clang
  # would begin with those that it has precompiled before, and is about to replace.
  set(clang_for_tests ${CMAKE_BINARY_DIR}/by_clang)
  list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " launcher)
  file(CONFIGURE OUTPUT ${clang_for_tests} @ONLY CONTENT "#!/bin/sh
shift
for word; do
  case $before$word in -o*.gch) rm -f \"$word\" ;; esac
  before=$word
done
exec @launcher@ @STP_CLANG@ -Qunused-arguments \"$@\"
")
  file(CHMOD ${clang_for_tests} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
endif()
# stp_compiled_by_clang(TARGET...): optimized, as what floods, polls or measures.
function(stp_compiled_by_clang)
  if(clang_for_tests)
    foreach(target IN LISTS ARGN)
      # DAT's headers have compound literals.
      target_compile_options(
        ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-sign-conversion;-Wno-c99-extensions>")
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER ${clang_for_tests})
    endforeach()
  endif()
endfunction()
# stp_compiled_as_tests(TARGET...): by the same compiler, with the same options.
function(stp_compiled_as_tests)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${STP_TEST_OPTIONS})
  endforeach()
  stp_compiled_by_clang(${ARGN})
endfunction()

# Product that is compiled to be tested, in the preset "release": what is beside the path of frames is optimized less. The
# package has all of it optimized by GCC, and so have all tests.
set(STP_QUICK OFF)
if(STP_TESTS AND NOT STP_ALL_TESTS AND NOT STP_WITH_LTO AND NOT STP_SANITIZE
   AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(STP_QUICK ON)
  # Nor are there lines for debuggers, which take a twentieth of GCC's time. The presets "debug" and "package" have them.
  add_compile_options(-g0)
  # GCC looks for memory that it can use again from 512 MiB on instead of 128: a tenth less time, and at most 1.1 GiB.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=ggc-min-heapsize=524288)
  endif()
endif()
# stp_quick(TARGET...): a fifth to a third less time than with -O2.
function(stp_quick)
  if(STP_QUICK)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
    endforeach()
  endif()
endfunction()
# stp_quickest(TARGET...): as tests are, which takes half of the time of -O1. For what has no work for each frame.
function(stp_quickest)
  if(STP_QUICK)
    stp_compiled_as_tests(${ARGN})
  endif()
endfunction()
