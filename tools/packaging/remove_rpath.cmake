# SPDX-License-Identifier: BSD-3-Clause
# cpack runs this on the files of a package: below /usr the loader finds libraries without an rpath.
file(GLOB programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/bin/*
                   ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/sbin/*
                   ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/lib/*/libfabric/*.so)
foreach(program ${programs})
  file(RPATH_REMOVE FILE ${program})
endforeach()
