/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ibex's bus: OBI, and errors as part of an answer.
 */
#define BUS_HAS_ERRORS 1
#include "bus_obi.hpp"
