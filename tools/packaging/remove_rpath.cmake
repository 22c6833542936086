# SPDX-License-Identifier: BSD-3-Clause
# Run by cpack over the files of a package: below /usr the loader finds libraries by itself.
file(GLOB programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/bin/*
                   ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/sbin/*
                   ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/lib/*/libfabric/*.so)
foreach(program ${programs})
  file(RPATH_REMOVE FILE ${program})
endforeach()
