# SPDX-License-Identifier: Apache-2.0
# This port's parts of a program for the machine MINRPC_MACHINE: PORT_SOURCES, PORT_INCLUDES,
# PORT_LINK_OPTIONS.
include(${CMAKE_CURRENT_LIST_DIR}/machine.cmake)
set(_machine_include ${CMAKE_CURRENT_BINARY_DIR}/machine)
write_machine_header(${_machine_include}/machine.h)

set(PORT_SOURCES device.c server.c fault.c c_library.c stdio.c heap.c stack.c console.c link_${MINRPC_LINK}.c
  cpu_${MACHINE_CPU}.c clock_${MACHINE_CLOCK}.c counters_${MACHINE_CPU}.c)
if(DEFINED MACHINE_SECOND_CLOCK)
  list(APPEND PORT_SOURCES second_${MACHINE_SECOND_CLOCK}.c)
endif()
list(TRANSFORM PORT_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND PORT_SOURCES ${CMAKE_CURRENT_LIST_DIR}/../callers.c)
set(PORT_INCLUDES ${CMAKE_CURRENT_LIST_DIR}/include)
set(PORT_PRIVATE_INCLUDES ${CMAKE_CURRENT_LIST_DIR} ${_machine_include})

# picolibc's linker script takes the memory map as symbols.
include(${CMAKE_CURRENT_LIST_DIR}/link_script.cmake)
adapt_link_script(${CMAKE_CURRENT_BINARY_DIR}/picolibc.ld _script_options)
list(GET MACHINE_FLASH 0 _flash)
list(GET MACHINE_FLASH 1 _flash_size)
list(GET MACHINE_RAM 0 _ram)
list(GET MACHINE_RAM 1 _ram_size)
# The script's stack is for handlers, at the end of RAM; stack.c puts the other stack at the beginning of RAM.
set(PORT_LINK_OPTIONS
  ${_script_options}
  -Wl,--defsym=__flash=${_flash} -Wl,--defsym=__flash_size=${_flash_size}
  -Wl,--defsym=__ram=${_ram} -Wl,--defsym=__ram_size=${_ram_size}
  -Wl,--defsym=__stack_size=${MACHINE_HANDLER_BYTES} -Wl,--defsym=__stack=${_ram}+${MACHINE_STACK_BYTES}
  -Wl,--defsym=minrpc_handler_stack_end=${_ram}+${_ram_size}
  -Wl,--defsym=minrpc_handler_stack=${_ram}+${_ram_size}-${MACHINE_HANDLER_BYTES}
  -Wl,--defsym=__heap_end=${_ram}+${_ram_size}-${MACHINE_HANDLER_BYTES})

# Loaded code uses these functions of the firmware: there is one heap, and one console.
if(MINRPC_CODE_LOADING)
  list(APPEND PORT_LINK_OPTIONS -Wl,--defsym=minrpc_code_page=${MACHINE_CODE_PAGE})
  foreach(symbol IN ITEMS malloc calloc realloc free aligned_alloc malloc_usable_size stdin stdout stderr
      __assert_func __stack_chk_guard __stack_chk_fail abort exit _exit gettimeofday clock)
    list(APPEND PORT_LINK_OPTIONS -Wl,-u,${symbol})
  endforeach()
endif()
