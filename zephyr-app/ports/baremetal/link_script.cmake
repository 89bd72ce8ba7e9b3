# SPDX-License-Identifier: Apache-2.0
# picolibc's linker script discards notes, and lets the heap begin behind .bss. A copy of it keeps the linker's build id
# behind the start-up code, and lets the heap begin behind zeroed sections of any name (.noinit), which the linker puts
# behind .bss:
#   adapt_link_script(FILE OPTIONS)  writes FILE; OPTIONS is empty where the script is not as expected
function(adapt_link_script file options)
  # The library directories that the compiler's driver gives the linker.
  separate_arguments(_flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${_flags} "-###" /dev/null ERROR_VARIABLE _said)
  string(REGEX MATCHALL " \"?-L[^ \"]+" _directories "${_said}")
  list(TRANSFORM _directories REPLACE " \"?-L" "")
  find_file(MINRPC_PICOLIBC_SCRIPT picolibc.ld PATHS ${_directories} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)

  set(_text "\t.text : {")
  # picolibc 1.8.12 gives the stack an address.
  set(_stack "\t\\.stack ([^\n]*)\\(NOLOAD\\) : {")
  set(_at -1)
  if(MINRPC_PICOLIBC_SCRIPT)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MINRPC_PICOLIBC_SCRIPT})
    file(READ ${MINRPC_PICOLIBC_SCRIPT} _script)
    string(FIND "${_script}" "${_text}" _at)
    string(REGEX MATCH "${_stack}" _begin "${_script}")
  endif()
  if(_at LESS 0 OR NOT _begin)
    message(WARNING "picolibc's linker script is not as expected: the device can't tell its build id, and zeroed sections "
      "other than .bss (.noinit) lie in the heap")
    set(${options} "" PARENT_SCOPE)
    return()
  endif()
  string(CONCAT _note "\t.note.gnu.build-id : {\n\t\tminrpc_build_id_note = .;\n"
    "\t\tKEEP (*(.note.gnu.build-id))\n\t} >flash AT>flash :text\n\n")
  string(REPLACE "${_text}" "${_note}${_text}" _script "${_script}")
  string(CONCAT _heap "\t.minrpc_heap (NOLOAD) : {\n\t\t. = ALIGN(8);\n\t\t__heap_start = .;\n"
    "\t} >ram AT>ram :ram\n\n")
  string(REPLACE "${_begin}" "${_heap}${_begin}" _script "${_script}")
  file(WRITE ${file} "${_script}")
  set(${options} -T${file} -Wl,--build-id=sha1 PARENT_SCOPE)
endfunction()
