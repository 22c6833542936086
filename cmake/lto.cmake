# SPDX-License-Identifier: BSD-3-Clause
# Link-time optimization: the way of a frame leads through files of four folders, and compiled as
# one it takes an eighth fewer instructions. The libraries' objects hold both kinds of code, so that
# only what carries frames for users pays for it with time to link; tests take the ordinary kind.
set(lto_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STP_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^Rel")
  set(lto_default ON)
endif()
stp_switch(STP_LTO ${lto_default}
           "Optimize libstp, stpd and the benchmarks at link time (GCC); AUTO: in release builds")

# GCC takes what it finds, and one -fno-lto outweighs any -flto: so it stands for the others only.
if(STP_WITH_LTO)
  add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:STP_LINKED_WITH_LTO>>,-flto=auto,-fno-lto>)
endif()

# A library whose code takes part.
function(stp_compile_for_lto target)
  if(STP_WITH_LTO)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
endfunction()

# What is linked that way.
function(stp_link_with_lto target)
  set_target_properties(${target} PROPERTIES STP_LINKED_WITH_LTO ON)
endfunction()
