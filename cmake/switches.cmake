# SPDX-License-Identifier: BSD-3-Clause
# stp_switch(STP_X DEFAULT TEXT): a choice of the user, ON, OFF or AUTO, in the cache, and what it
# comes to now in STP_WITH_X: AUTO is DEFAULT. A default in the cache would be that of the first
# configuration for good, though a package has arrived since or the build type has changed.
function(stp_switch name default text)
  set(${name} AUTO CACHE STRING "${text}")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  set(value ${${name}})
  string(TOUPPER "${value}" upper)
  if(upper STREQUAL "AUTO")
    set(value ${default})
  elseif(NOT upper MATCHES "^(ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR "${name} is ON, OFF or AUTO, not: ${value}")
  endif()
  string(REPLACE STP_ STP_WITH_ result ${name})
  set(${result} ${value} PARENT_SCOPE)
endfunction()
