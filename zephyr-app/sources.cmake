# SPDX-License-Identifier: Apache-2.0
# The portable sources, for every port: MINRPC_SOURCES, MINRPC_INCLUDES, MINRPC_DEFINITIONS;
# MINRPC_RUNTIME_SOURCES and MINRPC_RUNTIME_INCLUDES are for the runtime alone.

set(MINRPC_APP ${CMAKE_CURRENT_LIST_DIR})

set(MINRPC_RUNTIME_SOURCES
  ${MINRPC_APP}/runtime/abandon.c
  ${MINRPC_APP}/runtime/arena.c
  ${MINRPC_APP}/runtime/arguments.c
  ${MINRPC_APP}/runtime/ask.c
  ${MINRPC_APP}/runtime/call.c
  ${MINRPC_APP}/runtime/code.c
  ${MINRPC_APP}/runtime/config.c
  ${MINRPC_APP}/runtime/copy.c
  ${MINRPC_APP}/runtime/counters.c
  ${MINRPC_APP}/runtime/crc32.c
  ${MINRPC_APP}/runtime/evaluator.c
  ${MINRPC_APP}/runtime/failure.c
  ${MINRPC_APP}/runtime/fill.c
  ${MINRPC_APP}/runtime/frame_reader.c
  ${MINRPC_APP}/runtime/frame_writer.c
  ${MINRPC_APP}/runtime/globals.c
  ${MINRPC_APP}/runtime/guard.c
  ${MINRPC_APP}/runtime/info.c
  ${MINRPC_APP}/runtime/layout.c
  ${MINRPC_APP}/runtime/library.c
  ${MINRPC_APP}/runtime/memory.c
  ${MINRPC_APP}/runtime/object.c
  ${MINRPC_APP}/runtime/packed.c
  ${MINRPC_APP}/runtime/random.c
  ${MINRPC_APP}/runtime/reply.c
  ${MINRPC_APP}/runtime/request.c
  ${MINRPC_APP}/runtime/resend.c
  ${MINRPC_APP}/runtime/server.c
  ${MINRPC_APP}/runtime/session.c
  ${MINRPC_APP}/runtime/stream.c
  ${MINRPC_APP}/runtime/text.c
  ${MINRPC_APP}/runtime/timer.c
)

set(MINRPC_OPERATOR_SOURCES
  ${MINRPC_APP}/operators/backend.c
  ${MINRPC_APP}/operators/check.c
  ${MINRPC_APP}/operators/operators.c
  ${MINRPC_APP}/operators/testing.c
)

set(MINRPC_RUNTIME_INCLUDES ${MINRPC_APP}/runtime/include)

set(MINRPC_SOURCES ${MINRPC_RUNTIME_SOURCES} ${MINRPC_OPERATOR_SOURCES})
set(MINRPC_INCLUDES ${MINRPC_RUNTIME_INCLUDES} ${MINRPC_APP}/operators)

# Built-in parts: the options of minrpc/minrpc_config.h that were given, such as
# -DMINRPC_CODE_LOADING=ON. The other options have their defaults there.
set(MINRPC_DEFINITIONS)
include(${CMAKE_CURRENT_LIST_DIR}/options.cmake)
foreach(option IN LISTS MINRPC_OPTIONS)
  if(DEFINED MINRPC_${option})
    list(APPEND MINRPC_DEFINITIONS MINRPC_${option}=$<BOOL:${MINRPC_${option}}>)
  endif()
endforeach()

# Further C sources of the user's, also generated ones: -DMINRPC_EXTRA_SOURCES="a.c;b.c". They are compiled
# without this project's warnings.
set(MINRPC_EXTRA_SOURCES "" CACHE STRING "Further C sources to link into the firmware")
set(MINRPC_EXTRA_INCLUDES "" CACHE STRING "Directories of their headers")
set(MINRPC_EXTRA_DEFINITIONS "" CACHE STRING "Definitions for them: NAME;NAME=VALUE")
set(MINRPC_EXTRA_LIBRARIES "" CACHE STRING "Further archives and object files to link")

# The user's additions to the program of a port.
function(minrpc_add_extras target)
  minrpc_add_libraries(${target})
  target_sources(${target} PRIVATE ${MINRPC_EXTRA_SOURCES})
  target_link_libraries(${target} PRIVATE ${MINRPC_EXTRA_LIBRARIES})
  if(MINRPC_EXTRA_SOURCES)
    set_property(SOURCE ${MINRPC_EXTRA_SOURCES} APPEND PROPERTY INCLUDE_DIRECTORIES ${MINRPC_EXTRA_INCLUDES})
    set_property(SOURCE ${MINRPC_EXTRA_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS ${MINRPC_EXTRA_DEFINITIONS})
  endif()
endfunction()

option(MINRPC_RAW "The link without the protocol in place of the server: the benchmarks' baseline" OFF)

# Libraries of C functions that are linked in and can be called with their own types, MINRPC_LIBRARIES="dsp;lut".
# Each has MINRPC_LIBRARY_dsp_SOURCES (C, C++, assembler, objects, archives), _INCLUDE, _FLAGS, _DEFINES, _HEADERS,
# _LIBRARIES, and _FAKES: functions that Python answers. MINRPC_PYTHON, which has this project's package, makes their
# thunks from their debug information; MINRPC_PACKAGE is the package's directory.
set(MINRPC_LIBRARIES "" CACHE STRING "Libraries of C functions to link in")
if(MINRPC_LIBRARIES AND NOT MINRPC_RAW)
  list(APPEND MINRPC_DEFINITIONS MINRPC_LIBRARIES=1)
endif()
foreach(library IN LISTS MINRPC_LIBRARIES)
  if(MINRPC_LIBRARY_${library}_SOURCES MATCHES "\\.(cc|cpp|cxx|C)(;|$)")
    enable_language(CXX)
  endif()
  if(MINRPC_LIBRARY_${library}_SOURCES MATCHES "\\.[sS](;|$)")
    enable_language(ASM)
  endif()
endforeach()

# Adds a library to the program `target`, compiled with its options. Sets `files`: its objects and archives.
function(minrpc_add_library target library files)
  set(prefix MINRPC_LIBRARY_${library})
  set(name minrpc_library_${library})
  set(sources ${${prefix}_SOURCES})
  set(made ${sources})
  list(FILTER made INCLUDE REGEX "\\.[oa]$")
  list(FILTER sources EXCLUDE REGEX "\\.[oa]$")
  if(sources)
    # The language is the compiler's own, as for loaded code, or that of Zephyr's Kconfig.
    unset(CMAKE_C_STANDARD)
    unset(CMAKE_C_EXTENSIONS)
    add_library(${name} OBJECT ${sources})
    target_include_directories(${name} PRIVATE ${${prefix}_INCLUDE})
    target_compile_definitions(${name} PRIVATE ${${prefix}_DEFINES})
    target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS>
      -g -ffunction-sections -fdata-sections
      $<$<C_COMPILER_ID:GNU>:-fno-ipa-icf$<SEMICOLON>-fcallgraph-info=su>
      $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions$<SEMICOLON>-fno-rtti$<SEMICOLON>-fno-threadsafe-statics>)
    foreach(header IN LISTS ${prefix}_HEADERS)
      target_compile_options(${name} PRIVATE "$<$<NOT:$<COMPILE_LANGUAGE:ASM>>:SHELL:-include ${header}>")
    endforeach()
    target_compile_options(${name} PRIVATE ${${prefix}_FLAGS})
    if(TARGET zephyr_interface)
      target_link_libraries(${name} PRIVATE zephyr_interface)
      add_dependencies(${name} zephyr_generated_headers)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${name}>)
    list(PREPEND made $<TARGET_OBJECTS:${name}>)
    list(FILTER ${prefix}_SOURCES INCLUDE REGEX "\\.[oa]$")
  endif()
  target_link_libraries(${target} PRIVATE ${${prefix}_SOURCES} ${${prefix}_LIBRARIES})
  set(${files} ${made} PARENT_SCOPE)
endfunction()

# Adds all libraries, and the thunks that make their functions packed functions of the system library:
# "dsp.fir".
function(minrpc_add_libraries target)
  if(NOT MINRPC_LIBRARIES OR MINRPC_RAW)
    return()
  endif()
  set(directory ${CMAKE_BINARY_DIR}/minrpc-libraries)
  foreach(library IN LISTS MINRPC_LIBRARIES)
    minrpc_add_library(${target} ${library} files)
    list(APPEND words --library ${library} ${files})
    if(MINRPC_LIBRARY_${library}_FAKES)
      list(APPEND words --fakes ${library} ${MINRPC_LIBRARY_${library}_FAKES})
      set(stubs ${directory}/stubs.c)
    endif()
    list(APPEND all ${files})
  endforeach()
  foreach(module IN ITEMS library/linked_in library/stubs library/thunks program/c_types program/debug_info program/elf
      program/objects)
    list(APPEND all ${MINRPC_PACKAGE}/${module}.py)
  endforeach()
  add_custom_command(OUTPUT ${directory}/thunks.c ${stubs}
    COMMAND ${MINRPC_PYTHON} -m minrpc.library.linked_in --output ${directory} ${words}
    DEPENDS ${all} COMMAND_EXPAND_LISTS VERBATIM COMMENT "Thunks of ${MINRPC_LIBRARIES}")
  target_sources(${target} PRIVATE ${directory}/thunks.c ${stubs})
  # The compiler's report tells the host the thunks' share of a function's stack.
  set_source_files_properties(${directory}/thunks.c ${stubs} PROPERTIES
    COMPILE_OPTIONS "-w;$<$<C_COMPILER_ID:GNU,Clang>:-fstack-usage>")
  # Objects of C++ need no C++ library.
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
endfunction()

# A user's assert is active in each build; this project's sources have no assert.
foreach(language IN ITEMS C CXX)
  foreach(build IN ITEMS MINSIZEREL RELEASE RELWITHDEBINFO)
    string(REPLACE "-DNDEBUG" "" CMAKE_${language}_FLAGS_${build} "${CMAKE_${language}_FLAGS_${build}}")
  endforeach()
endforeach()

set(MINRPC_WARNINGS -Wall -Wextra -Werror)
