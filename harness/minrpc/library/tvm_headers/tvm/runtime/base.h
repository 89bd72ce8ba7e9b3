/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Generated code takes NULL from here.
 */
#include <stddef.h>

#include "../ffi/c_api.h"
