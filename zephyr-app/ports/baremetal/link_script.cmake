# SPDX-License-Identifier: Apache-2.0
# picolibc's linker script discards notes. A copy of it keeps the linker's build id behind the start-up code:
#   keep_build_id(FILE OPTIONS)      writes FILE; OPTIONS is empty where the script is not as expected
function(keep_build_id file options)
  # The library directories that the compiler's driver gives the linker.
  separate_arguments(_flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${_flags} "-###" /dev/null ERROR_VARIABLE _said)
  string(REGEX MATCHALL " \"?-L[^ \"]+" _directories "${_said}")
  list(TRANSFORM _directories REPLACE " \"?-L" "")
  find_file(MINRPC_PICOLIBC_SCRIPT picolibc.ld PATHS ${_directories} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)

  set(_text "\t.text : {")
  set(_at -1)
  if(MINRPC_PICOLIBC_SCRIPT)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MINRPC_PICOLIBC_SCRIPT})
    file(READ ${MINRPC_PICOLIBC_SCRIPT} _script)
    string(FIND "${_script}" "${_text}" _at)
  endif()
  if(_at LESS 0)
    message(STATUS "The device can't tell its build id: picolibc's linker script is not as expected")
    set(${options} "" PARENT_SCOPE)
    return()
  endif()
  string(CONCAT _note "\t.note.gnu.build-id : {\n\t\tminrpc_build_id_note = .;\n"
    "\t\tKEEP (*(.note.gnu.build-id))\n\t} >flash AT>flash :text\n\n")
  string(REPLACE "${_text}" "${_note}${_text}" _script "${_script}")
  file(WRITE ${file} "${_script}")
  set(${options} -T${file} -Wl,--build-id=sha1 PARENT_SCOPE)
endfunction()
