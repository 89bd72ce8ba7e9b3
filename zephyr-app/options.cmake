# SPDX-License-Identifier: Apache-2.0
# The options of minrpc/minrpc_config.h: CMake's are MINRPC_<name>, Kconfig's CONFIG_MINRPC_<name>.
set(MINRPC_OPTIONS NUMBERED STREAMING RANDOM_FILL FILL ERROR_TEXTS GUARDS DEVICE_INFO COUNTING ABANDON
  CONFIG_CHECKS CODE_LOADING ASK LAYOUT COUNTERS)
# This option is for this project's own application only.
list(APPEND MINRPC_OPTIONS TESTING)
