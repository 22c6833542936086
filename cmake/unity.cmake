# SPDX-License-Identifier: BSD-3-Clause
# Unity builds: one compilation for several sources, which parses the headers that they share once.
# The presets use them (CMAKE_UNITY_BUILD); that takes a third of the time. With
# -DCMAKE_UNITY_BUILD=OFF each source is compiled alone, which finds includes that are missing and
# names that shadow others; tools/test --long builds the product so (install.alone).

# stp_compile_alone(SOURCE...): sources that define a name of another source of their folder, or a
# macro that changes the headers they include, are compiled alone always. In the CMakeLists.txt of their target.
function(stp_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
