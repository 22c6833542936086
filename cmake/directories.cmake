# SPDX-License-Identifier: BSD-3-Clause
# Where things are installed. On Debian the loader, pkg-config and CMake look into lib/<triplet>,
# below /usr and below /usr/local.
if(NOT DEFINED CMAKE_INSTALL_LIBDIR AND CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Libraries")
endif()
include(GNUInstallDirs)
# Each component becomes a Debian package (package.cmake): "runtime" to run programs, "dev" to build
# them, "doc" to read about them, and "libfabric" for the provider if it is built.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)
file(RELATIVE_PATH STP_BIN_TO_LIB /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
# Programs find libstp.so by a path relative to their own, wherever both are installed. A package for
# /usr does not need this path and removes it.
set(CMAKE_INSTALL_RPATH "$ORIGIN/${STP_BIN_TO_LIB}")

# Installs TEMPLATE, a .in file, as part of COMPONENT (default: runtime). @NAME@ is replaced by the
# value that the CMake variable has at installation, because `cmake --install --prefix` and packages
# choose their prefix only then.
function(stp_install_template template destination)
  cmake_parse_arguments(ARG "" "COMPONENT" "" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT ${CMAKE_INSTALL_DEFAULT_COMPONENT_NAME})
  endif()
  get_filename_component(name ${template} NAME_WLE)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/installed/${name})
  string(CONFIGURE [[
    set(PROJECT_VERSION "@PROJECT_VERSION@")
    set(PROJECT_DESCRIPTION "@PROJECT_DESCRIPTION@")
    set(BINDIR "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_BINDIR@")
    set(SBINDIR "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_SBINDIR@")
    set(LIBDIR "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_LIBDIR@")
    set(INCLUDEDIR "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_INCLUDEDIR@")
    configure_file("@CMAKE_CURRENT_SOURCE_DIR@/@template@" "@made@" @ONLY)
    file(INSTALL "@made@" DESTINATION "${CMAKE_INSTALL_PREFIX}/@destination@")]] code @ONLY)
  install(CODE "${code}" COMPONENT ${ARG_COMPONENT})
endfunction()
