# SPDX-License-Identifier: Apache-2.0
# Reads the machine that MINRPC_MACHINE names: machines/NAME.cmake, or any such file by its path.
# Each key is also a macro of the generated machine.h: a number under the key's name, "base size" as
# KEY_BASE and KEY_SIZE.
#
#   MACHINE_TITLE          its name in the text at the start
#   MACHINE_COMPILER       the C compiler
#   MACHINE_FLAGS          the compiler's options for the processor
#   MACHINE_CPU            cpu_NAME.c and .h: start, faults, interrupts, caches
#   MACHINE_FLASH          code and constants: base and size
#   MACHINE_RAM            at its beginning the stack, then data: base and size
#   MACHINE_NOTHING        memory that no program uses, but for the flash where that lies in it: base and size.
#                          It should reach up to the RAM, or to the flash in front of that: a stack
#                          that runs out ends there. Left out: addresses without memory must fault
#                          by themselves
#   MACHINE_ARENA          arrays: base and size; left out: the rest of the RAM
#   MACHINE_CODE_PAGE      a page of QEMU's, in bytes: loaded code and data share none, since a store takes up to 50
#                          times as long there; 0: they may. Left out: QEMU's for the processor if there is a
#                          MACHINE_ARENA, else 0
#   MACHINE_STACK_BYTES    of the stack that functions run on, a multiple of 32 (8192); -DMINRPC_STACK_BYTES=N
#                          overrides it
#   MACHINE_HANDLER_BYTES  of the stack of faults, and on a Cortex-M of interrupts (1024)
#   MACHINE_PACKET_BYTES   of the longest request, 2048 to 8192 (8192)
#   MACHINE_RING_BYTES     of received bytes that wait, a power of two (16384)
#   MACHINE_CLOCK          clock_NAME.c, and MACHINE_CLOCK_HZ, its rate
#   MACHINE_SECOND_CLOCK   second_NAME.c, with MACHINE_SECOND, its base, and MACHINE_SECOND_HZ, its rate: a clock that
#                          needs no interrupt, for the rounds that MACHINE_CLOCK loses while a function masks interrupts.
#                          Left out: such times are too short
#   MACHINE_UART           uart_NAME.h
#   MACHINE_LINK           base of the UART that carries RPC, and MACHINE_LINK_IRQ, its receive interrupt; only used
#                          if MINRPC_LINK is uart
#   MACHINE_CONSOLE        base of the UART that carries text; left out: text goes to the link, as logs
#
# The file of a processor, clock or UART describes its further keys.
set(MINRPC_LINK uart CACHE STRING "The carrier of RPC: uart, semihosting or rtt, the debugger's links")
set(_links uart semihosting rtt)
if(NOT MINRPC_LINK IN_LIST _links)
  message(FATAL_ERROR "MINRPC_LINK=${MINRPC_LINK}: there are ${_links}")
endif()

set(MACHINE_STACK_BYTES 8192)
set(MACHINE_HANDLER_BYTES 1024)
set(MACHINE_PACKET_BYTES 8192)
set(MACHINE_RING_BYTES 16384)

if(IS_ABSOLUTE "${MINRPC_MACHINE}")
  set(_machine_file "${MINRPC_MACHINE}")
else()
  set(_machine_file "${CMAKE_CURRENT_LIST_DIR}/machines/${MINRPC_MACHINE}.cmake")
endif()
if(NOT EXISTS "${_machine_file}")
  file(GLOB _known RELATIVE "${CMAKE_CURRENT_LIST_DIR}/machines" "${CMAKE_CURRENT_LIST_DIR}/machines/*.cmake")
  message(FATAL_ERROR "MINRPC_MACHINE=${MINRPC_MACHINE}: there is no ${_machine_file}; there are ${_known}")
endif()
include("${_machine_file}")
if(NOT DEFINED MACHINE_CODE_PAGE)
  set(_page_cortex_m 1024)
  set(_page_riscv 4096)
  set(MACHINE_CODE_PAGE 0)
  if(DEFINED MACHINE_ARENA)
    set(MACHINE_CODE_PAGE ${_page_${MACHINE_CPU}})
  endif()
endif()
if(DEFINED MINRPC_STACK_BYTES)
  set(MACHINE_STACK_BYTES ${MINRPC_STACK_BYTES})
endif()

set(_keys TITLE COMPILER FLAGS CPU FLASH RAM CLOCK CLOCK_HZ)
if(MINRPC_LINK STREQUAL uart)
  list(APPEND _keys UART LINK LINK_IRQ)
else()
  unset(MACHINE_LINK)
  unset(MACHINE_LINK_IRQ)
endif()
if(DEFINED MACHINE_CONSOLE)
  list(APPEND _keys UART)
endif()
foreach(_key ${_keys})
  if(NOT DEFINED MACHINE_${_key})
    message(FATAL_ERROR "${_machine_file} does not set MACHINE_${_key}; machine.cmake says what it is")
  endif()
endforeach()

# Writes machine.h to `file`, which is only written if it changes.
function(write_machine_header file)
  get_cmake_property(names VARIABLES)
  list(FILTER names INCLUDE REGEX "^MACHINE_")
  set(text "/* From ${MINRPC_MACHINE}. */\n#define MACHINE_TITLE \"${MACHINE_TITLE}\"\n")
  foreach(name ${names})
    set(value ${${name}})
    list(LENGTH value length)
    if(value MATCHES "^(0x[0-9a-fA-F]+|[0-9]+)$")
      string(APPEND text "#define ${name} ${value}U\n")
    elseif(length EQUAL 2 AND value MATCHES "^0x[0-9a-fA-F]+;0x[0-9a-fA-F]+$")
      list(GET value 0 base)
      list(GET value 1 size)
      string(APPEND text "#define ${name}_BASE ${base}U\n#define ${name}_SIZE ${size}U\n")
    endif()
  endforeach()
  string(APPEND text "#include \"cpu_${MACHINE_CPU}.h\"\n")
  if(DEFINED MACHINE_UART)
    string(APPEND text "#include \"uart_${MACHINE_UART}.h\"\n")
  endif()
  if(MINRPC_LINK STREQUAL rtt)
    string(APPEND text "#include \"link_rtt.h\"\n")
  endif()
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
endfunction()
