# SPDX-License-Identifier: BSD-3-Clause
# `cpack` in the build directory makes a Debian package of what `cmake --install` installs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stp)
set(STP_MAINTAINER "The STP authors <stp@localhost>" CACHE STRING
    "Who answers for the package: name and address")
set(CPACK_PACKAGE_CONTACT ${STP_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over one Ethernet and in user space (ANSI NCITS 337-2000).
.
This package has the daemon stpd, which shares a network interface among the
programs of a machine, programs that move files, and the library libstp with
its headers (<stp/st.h>) and manual.
.
The library is unrelated to State Threads (package libst1).")
set(CPACK_STRIP_FILES ON)
# A prefix of its own: the build is most often configured for /usr/local.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/tools/packaging/remove_rpath.cmake)

set(packaging ${CMAKE_SOURCE_DIR}/tools/packaging)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
# DPDK loads its drivers by name when it starts, where no tool sees that they are needed.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "librte-meta-bus, librte-meta-mempool, librte-meta-net")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm ${packaging}/triggers)
include(CPack)

install(FILES ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
execute_process(COMMAND gzip -9nc ${packaging}/changelog OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz
                COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${packaging}/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
        RENAME stp)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
        FILES_MATCHING PATTERN *.md PATTERN *.svg PATTERN man EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tools/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        FILES_MATCHING PATTERN *.c PATTERN *.cpp)
