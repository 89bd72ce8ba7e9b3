# SPDX-License-Identifier: Apache-2.0
# The machine's compiler with picolibc, as Debian has it.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MINRPC_MACHINE MINRPC_LINK)
include(${CMAKE_CURRENT_LIST_DIR}/machine.cmake)
list(JOIN MACHINE_FLAGS " " _machine_flags)

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR ${MACHINE_CPU})
set(CMAKE_C_COMPILER ${MACHINE_COMPILER})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "${_machine_flags} --specs=picolibc.specs -ffunction-sections -fdata-sections")
