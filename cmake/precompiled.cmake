# SPDX-License-Identifier: BSD-3-Clause
# Most sources include the same headers of the standard library, and tests gtest's, which costs the compiler more than a
# second each time. Where unity builds are on and clang compiles, it compiles these headers once for all targets with the
# same options. GCC has no precompiled headers here: it would save less than a second in each target, but forgets what
# headers say about warnings, and reports accesses beyond strings that are none. Nor has the preset "single", so that a
# missing include is found.
set(STP_PRECOMPILED algorithm array atomic cerrno charconv chrono condition_variable cstdint cstring deque filesystem
                    fstream functional future list map memory mutex optional random set shared_mutex span sstream
                    string string_view thread unordered_map unordered_set utility variant vector)

# stp_group_by_options(FOLDER): the global property stp_groups has the names of groups of targets, in FOLDER and below,
# that can share precompiled headers. Each name is the name of a property that has the targets.
function(stp_group_by_options folder)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    stp_group_by_options(${below})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    foreach(name TYPE SOURCES COMPILE_OPTIONS LINK_LIBRARIES CXX_COMPILER_LAUNCHER CXX_STANDARD CXX_VISIBILITY_PRESET)
      get_target_property(${name} ${target} ${name})
    endforeach()
    if(NOT CXX_COMPILER_LAUNCHER)
      set(CXX_COMPILER_LAUNCHER "")
    endif()
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CXX_COMPILER_LAUNCHER MATCHES "/by_clang$")
      continue()
    endif()
    # DPDK compiles for a processor that it chooses.
    if(NOT TYPE MATCHES "EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY" OR NOT SOURCES MATCHES "[.]cpp"
       OR LINK_LIBRARIES MATCHES "DPDK" OR NOT CXX_STANDARD EQUAL 20 OR NOT CXX_VISIBILITY_PRESET STREQUAL hidden)
      continue()
    endif()
    set(group library)
    if(TYPE STREQUAL EXECUTABLE)
      set(group program)
    endif()
    # Programs that are compiled as tests, or by clang for GCC, share the headers of tests.
    if(LINK_LIBRARIES MATCHES "GTest" OR
       (TYPE STREQUAL EXECUTABLE AND (CXX_COMPILER_LAUNCHER MATCHES "/by_clang$" OR COMPILE_OPTIONS MATCHES "-O0;-g")))
      string(APPEND group _test)
    endif()
    list(FILTER COMPILE_OPTIONS EXCLUDE REGEX "-W|-fno-sanitize=function|NOTFOUND")
    string(MD5 hash "${COMPILE_OPTIONS} ${CXX_COMPILER_LAUNCHER}")
    string(SUBSTRING ${hash} 0 6 hash)
    set(group stp_precompiled_${group}_${hash})
    set_property(GLOBAL APPEND PROPERTY stp_groups ${group})
    set_property(GLOBAL APPEND PROPERTY ${group} ${target})
  endforeach()
endfunction()

# stp_precompile_for(GROUP TARGET...): a target GROUP that has the headers, which each TARGET uses.
function(stp_precompile_for group)
  list(GET ARGN 0 like)
  set(source ${CMAKE_BINARY_DIR}/precompiled/${group})
  file(CONFIGURE OUTPUT ${source}.cpp CONTENT "int main() { return 0; }\n")
  # CMake wants something of C for targets that have sources in C.
  file(CONFIGURE OUTPUT ${source}.c CONTENT "typedef int stp_nothing;\n")
  if(group MATCHES "program")
    add_executable(${group} EXCLUDE_FROM_ALL ${source}.cpp ${source}.c)
  else()
    add_library(${group} OBJECT EXCLUDE_FROM_ALL ${source}.cpp ${source}.c)
  endif()
  foreach(property COMPILE_OPTIONS CXX_COMPILER_LAUNCHER)
    get_target_property(value ${like} ${property})
    if(value)
      set_target_properties(${group} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
  # CMake says so to clang, but not where clang compiles for GCC: templates that the headers use are instantiated once.
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${group} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-instantiate-templates>")
  endif()
  # An upgrade of a package may bring a header that has another date but is older than the build. Ninja sees no reason to
  # precompile it again, and clang would refuse to compile anything.
  target_compile_options(${group} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  if(group MATCHES "_test_")
    list(APPEND STP_PRECOMPILED gtest/gtest.h)
    target_compile_definitions(${group} PRIVATE GTEST_HAS_PTHREAD=1)
  endif()
  list(TRANSFORM STP_PRECOMPILED REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${group} PRIVATE ${headers} "$<$<COMPILE_LANGUAGE:C>:<stddef.h$<ANGLE-R>>")
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${group})
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]c$")
    if(sources)
      set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

if(CMAKE_UNITY_BUILD AND NOT STP_WITH_LTO)
  stp_group_by_options(${CMAKE_SOURCE_DIR})
  get_property(groups GLOBAL PROPERTY stp_groups)
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    get_property(targets GLOBAL PROPERTY ${group})
    list(LENGTH targets count)
    if(count GREATER 2)
      stp_precompile_for(${group} ${targets})
    endif()
  endforeach()
endif()
