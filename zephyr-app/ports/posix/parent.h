/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ends this program with its parent, however the parent ends.
 */
#ifndef MINRPC_POSIX_PARENT_H_
#define MINRPC_POSIX_PARENT_H_

#include <stdbool.h>

/**
 * From now on the kernel kills this program when its parent ends.
 *
 * @param parent  the process that has started it, as a decimal number
 * @return false, with errno set, if it is not the parent: it has ended already (ESRCH), or is not a
 * number
 */
bool end_with_parent(const char *parent);

#endif /* MINRPC_POSIX_PARENT_H_ */
