# SPDX-License-Identifier: BSD-3-Clause
# stp_switch(STP_X DEFAULT TEXT): keeps the user's choice ON, OFF or AUTO in the cache as STP_X, and
# sets STP_WITH_X to its present value, where AUTO stands for DEFAULT. If the cache held the default
# itself, the default of the first configuration would stay, even when a package is installed or the
# build type changes later.
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
