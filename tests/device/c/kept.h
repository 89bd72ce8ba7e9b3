/* SPDX-License-Identifier: Apache-2.0 */
/* A type that one file defines and the other only declares, registers, and old kinds of prototypes.
 */
#pragma once

struct context;

int context_value(struct context *context);
