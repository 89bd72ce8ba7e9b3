# SPDX-License-Identifier: Apache-2.0
# The portable sources, for every port: MINRPC_SOURCES, MINRPC_INCLUDES, MINRPC_DEFINITIONS; those of the runtime alone
# are MINRPC_RUNTIME_SOURCES and MINRPC_RUNTIME_INCLUDES.

set(MINRPC_APP ${CMAKE_CURRENT_LIST_DIR})

set(MINRPC_RUNTIME_SOURCES
  ${MINRPC_APP}/runtime/abandon.c
  ${MINRPC_APP}/runtime/arena.c
  ${MINRPC_APP}/runtime/call.c
  ${MINRPC_APP}/runtime/code.c
  ${MINRPC_APP}/runtime/config.c
  ${MINRPC_APP}/runtime/copy.c
  ${MINRPC_APP}/runtime/crc32.c
  ${MINRPC_APP}/runtime/evaluator.c
  ${MINRPC_APP}/runtime/fill.c
  ${MINRPC_APP}/runtime/frame_reader.c
  ${MINRPC_APP}/runtime/frame_writer.c
  ${MINRPC_APP}/runtime/globals.c
  ${MINRPC_APP}/runtime/guard.c
  ${MINRPC_APP}/runtime/info.c
  ${MINRPC_APP}/runtime/library.c
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

# What is built in: the options of minrpc/minrpc_config.h that were given, such as -DMINRPC_CODE_LOADING=ON. The others
# have their defaults there.
set(MINRPC_DEFINITIONS)
foreach(option IN ITEMS NUMBERED STREAMING RANDOM_FILL FILL ERROR_TEXTS TESTING CODE_LOADING)
  if(DEFINED MINRPC_${option})
    list(APPEND MINRPC_DEFINITIONS MINRPC_${option}=$<BOOL:${MINRPC_${option}}>)
  endif()
endforeach()

# More C sources of the user's, generated ones too: -DMINRPC_EXTRA_SOURCES="a.c;b.c". Their warnings are their own.
set(MINRPC_EXTRA_SOURCES "" CACHE STRING "Further C sources to link into the firmware")
set(MINRPC_EXTRA_INCLUDES "" CACHE STRING "Directories of their headers")
set(MINRPC_EXTRA_DEFINITIONS "" CACHE STRING "Definitions for them: NAME;NAME=VALUE")
set(MINRPC_EXTRA_LIBRARIES "" CACHE STRING "Further archives and object files to link")

# What the user adds to the program of a port.
function(minrpc_add_extras target)
  target_sources(${target} PRIVATE ${MINRPC_EXTRA_SOURCES})
  target_link_libraries(${target} PRIVATE ${MINRPC_EXTRA_LIBRARIES})
  if(MINRPC_EXTRA_SOURCES)
    set_property(SOURCE ${MINRPC_EXTRA_SOURCES} APPEND PROPERTY INCLUDE_DIRECTORIES ${MINRPC_EXTRA_INCLUDES})
    set_property(SOURCE ${MINRPC_EXTRA_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS ${MINRPC_EXTRA_DEFINITIONS})
  endif()
endfunction()

option(MINRPC_RAW "The link without the protocol in place of the server: the benchmarks' baseline" OFF)

set(MINRPC_WARNINGS -Wall -Wextra -Werror)

# What loaded code calls, kept though nothing else here does.
set(MINRPC_EXPORTS TVMAPISetLastError TVMBackendAllocWorkspace TVMBackendFreeWorkspace TVMBackendParallelLaunch)
set(MINRPC_LINK_OPTIONS "")
if(MINRPC_CODE_LOADING OR CONFIG_MINRPC_CODE_LOADING)
  list(TRANSFORM MINRPC_EXPORTS PREPEND "-Wl,--undefined=" OUTPUT_VARIABLE MINRPC_LINK_OPTIONS)
endif()
