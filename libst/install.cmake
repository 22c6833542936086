# SPDX-License-Identifier: BSD-3-Clause
# libst for programs that are built elsewhere: library, headers, pkg-config, find_package(stp).
include(CMakePackageConfigHelpers)

install(TARGETS st EXPORT stp LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT dev)
install(DIRECTORY include/stp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# libst.pc twice: for what is installed, and for a build that is used where it stands.
stp_install_template(libst.pc.in ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
function(write_pc_of_build)
  set(CMAKE_INSTALL_PREFIX ${CMAKE_BINARY_DIR})
  set(LIBDIR ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  set(INCLUDEDIR ${CMAKE_CURRENT_SOURCE_DIR}/include)
  set(RPATH " -Wl,-rpath,\"\${libdir}\"")
  configure_file(libst.pc.in ${LIBDIR}/pkgconfig/libst.pc @ONLY)
endfunction()
write_pc_of_build()

set(PACKAGE_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stp)
configure_package_config_file(stpConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/stpConfig.cmake
                              INSTALL_DESTINATION ${PACKAGE_DESTINATION})
# Before 1.0 each minor version may change the API.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/stpConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stpConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/stpConfigVersion.cmake
        DESTINATION ${PACKAGE_DESTINATION} COMPONENT dev)
install(EXPORT stp NAMESPACE stp:: FILE stpTargets.cmake DESTINATION ${PACKAGE_DESTINATION}
        COMPONENT dev)
