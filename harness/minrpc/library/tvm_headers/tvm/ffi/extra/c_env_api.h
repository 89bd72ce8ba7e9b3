/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Generated code includes this and uses nothing of it on a device.
 */
#include "../c_api.h"
