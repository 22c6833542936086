# SPDX-License-Identifier: BSD-3-Clause
# Link-time optimization. A frame passes through code in four folders; optimized as a whole, this
# code takes an eighth fewer instructions. The objects of the libraries contain both ordinary code
# and code for link-time optimization. Only programs that carry frames for users are linked with the
# latter, which takes longer; tests are linked with the ordinary code.
set(lto_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STP_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^Rel")
  set(lto_default ON)
endif()
stp_switch(STP_LTO ${lto_default}
           "Optimize libstp, stpd and the benchmarks at link time (GCC); AUTO: in release builds")

# lld links two to three times as fast. It cannot read GCC's code for link-time optimization.
find_program(STP_LLD ld.lld)
if(STP_LLD AND NOT STP_WITH_LTO)
  add_link_options(-fuse-ld=lld)
endif()

# By default GCC uses the code for link-time optimization where it finds it, and one -fno-lto
# overrides every -flto. So each target gets one of the two options.
if(STP_WITH_LTO)
  add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:STP_LINKED_WITH_LTO>>,-flto=auto,-fno-lto>)
endif()

# TARGET is a library whose code takes part in link-time optimization.
function(stp_compile_for_lto target)
  if(STP_WITH_LTO)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
endfunction()

# TARGET is linked with link-time optimization.
function(stp_link_with_lto target)
  set_target_properties(${target} PROPERTIES STP_LINKED_WITH_LTO ON)
endfunction()
