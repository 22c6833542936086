# SPDX-License-Identifier: BSD-3-Clause
# `cpack` in the build directory makes Debian packages of what `cmake --install` installs: stp, to run
# programs, stp-dev, to build them, stp-doc, to read about them, and libfabric-provider-stp and python3-stp,
# if the provider and the package for Python are built.
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime dev doc)
if(STP_WITH_LIBFABRIC)
  list(APPEND CPACK_COMPONENTS_ALL libfabric)
endif()
if(STP_WITH_PYTHON_PACKAGE)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_PACKAGE_NAME stp)
set(STP_MAINTAINER "The STP authors <stp@localhost>" CACHE STRING
    "Who answers for the package: name and address")
set(CPACK_PACKAGE_CONTACT ${STP_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over Ethernet or UDP and in user space (ANSI NCITS 337-2000).
.
This package has the daemon stpd, which shares a network interface among the
programs of a machine, programs that move files and read traces, a dissector
for Wireshark, and the library libstp.
.
The library is unrelated to State Threads (package libst1).")
set(CPACK_STRIP_FILES ON)
# The package has a prefix of its own; the build itself is usually configured for /usr/local.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/tools/packaging/remove_rpath.cmake)

set(packaging ${CMAKE_SOURCE_DIR}/tools/packaging)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME stp)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
# DPDK loads its drivers by name when it starts, so no tool finds these dependencies.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "librte-meta-bus, librte-meta-mempool, librte-meta-net")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS stp-doc)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Which package has which library. CPack would find out by running `file` on each file of each package.
set(shlibs ${CMAKE_BINARY_DIR}/packaging/shlibs)
set(libraries "libstp 0")
if(TARGET daplstp1)
  list(APPEND libraries "libdaplstp1 0" "libdat 1")
endif()
if(TARGET daplstp)
  list(APPEND libraries "libdaplstp 0")
endif()
list(TRANSFORM libraries APPEND " stp (= ${PROJECT_VERSION})\n")
list(JOIN libraries "" libraries)
file(CONFIGURE OUTPUT ${shlibs} CONTENT "${libraries}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm ${packaging}/triggers ${shlibs})

set(CPACK_DEBIAN_DEV_PACKAGE_NAME stp-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "stp (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEV_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over Ethernet or UDP and in user space (ANSI NCITS 337-2000).
.
This package has the headers <stp/st.h> and <stp/managed.h>, what pkg-config
and CMake need to find the library, the manual pages of its calls, and
examples.")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME stp-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SUGGESTS "stp-dev")
set(CPACK_COMPONENT_DOC_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over Ethernet or UDP and in user space (ANSI NCITS 337-2000).
.
This package has the pages about the protocol, the programs and the library,
with their pictures, and small captures of the protocol for Wireshark and
stp-replay.")

set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_NAME libfabric-provider-stp)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_DEPENDS "stp (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_LIBFABRIC_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over Ethernet or UDP and in user space (ANSI NCITS 337-2000).
.
This package has the provider by which libfabric, and so Open MPI, sends over
STP: fi_stp(7).")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-stp)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
# The extension is for one minor version of Python.
math(EXPR python_after "${Python3_VERSION_MINOR} + 1")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "stp (= ${PROJECT_VERSION}), python3 (>= 3.${Python3_VERSION_MINOR}~), python3 (<< 3.${python_after})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
"Data goes from the memory of one program to the memory of another, to a place
agreed before, over Ethernet or UDP and in user space (ANSI NCITS 337-2000).
.
This package has the module stp for Python 3: messages, and memory that peers
read and write, with blocking calls and for asyncio.")
include(CPack)

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
execute_process(COMMAND gzip -9nc ${packaging}/changelog OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz
                COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${packaging}/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
        RENAME stp)
# Files that only packages need, beyond those of a plain installation.
foreach(part dev doc)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stp-${part}
          RENAME copyright COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stp-${part}
          COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(FILES ${packaging}/lintian-overrides-${part} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
          RENAME stp-${part} COMPONENT ${part} EXCLUDE_FROM_ALL)
endforeach()
# Packages that are there only if their part is built: COMPONENT PACKAGE.
function(package_of component package)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${packaging}/lintian-overrides-${component} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
          RENAME ${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
if(STP_WITH_LIBFABRIC)
  package_of(libfabric libfabric-provider-stp)
endif()
if(STP_WITH_PYTHON_PACKAGE)
  package_of(python python3-stp)
endif()
# The pages as they are at the time of the installation, with links that lead somewhere there.
install(CODE "execute_process(COMMAND ${packaging}/pages ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/pages
                              COMMAND_ERROR_IS_FATAL ANY)" COMPONENT doc)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tools/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        COMPONENT dev FILES_MATCHING PATTERN *.c PATTERN *.cpp PATTERN *.h PATTERN *.py PATTERN *.rs PATTERN *.go
        PATTERN README.md)
