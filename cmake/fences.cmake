# SPDX-License-Identifier: BSD-3-Clause
# stp_may_include(FOLDER PLACE...): of the project's own headers, the files of FOLDER may include
# only those that a PLACE names or contains; a PLACE is a file or a folder. Includes are written
# with quotes and without "..". A violation stops the configuration.
function(stp_may_include folder)
  list(TRANSFORM ARGN REPLACE "\\." "[.]" OUTPUT_VARIABLE places)
  list(JOIN places "|" places)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp
                                            ${CMAKE_SOURCE_DIR}/${folder}/*.h)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes
         REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<(stp|dpdk_port|libst|tools|tests)/)")
    foreach(line IN LISTS includes)
      if(NOT line MATCHES "\"(${places})[/\"]" OR line MATCHES "[.][.]/")
        message(FATAL_ERROR "${file}: files in ${folder}/ include only headers of ${ARGN}, "
                            "not: ${line}")
      endif()
    endforeach()
  endforeach()
endfunction()

# stp_includes_no(FOLDER REGEX WHY): no file of FOLDER may include a system header whose name
# matches REGEX.
function(stp_includes_no folder regex why)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp
                                            ${CMAKE_SOURCE_DIR}/${folder}/*.h)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*<${regex}")
    if(includes)
      message(FATAL_ERROR "${file}: ${why}, not: ${includes}")
    endif()
  endforeach()
endfunction()
