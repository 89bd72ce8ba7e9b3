/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Objects: what a client makes in a session and names by a handle: time evaluators, loaded code.
 * Each is a module, so its functions are found and called as those of the system library are. A
 * handle is never a pointer and is not given out again for 2^18 objects, so that of one that is
 * gone is an error.
 */
#ifndef MINRPC_OBJECT_H_
#define MINRPC_OBJECT_H_

#include <minrpc/function.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The handle of a function in an object is the object's + 1 + its index. */
#define MINRPC_OBJECT_FUNCTIONS 0x0fffU

struct minrpc_object {
	struct minrpc_object *next;
	uint32_t handle;
	/**
	 * the object of this handle takes it along when it goes; 0: only the session's end does
	 */
	uint32_t owner;
	/**
	 * how the client names it, and frees it: kTVMModuleHandle, or kTVMPackedFuncHandle for one
	 * that is its function 0
	 */
	uint8_t type_code;
	struct minrpc_module module;
	/** Before its memory goes. NULL: nothing to do. */
	void (*destroy)(struct minrpc_server *server, struct minrpc_object *object);
};

/**
 * Makes an object: a module without functions, until its maker fills that in.
 *
 * @param server  whose arena it lies in
 * @param size    bytes, of which the first are a struct minrpc_object
 * @return all zero but for its handle, the session's until minrpc_object_free; NULL, and the
 * exception's text is set, when there is no room
 */
void *minrpc_object_create(struct minrpc_server *server, uint32_t size);

/** The object that a handle, or one of a function in it, is of; NULL when there is none. */
struct minrpc_object *minrpc_object_find(const struct minrpc_server *server, uintptr_t handle);

/** Frees it and what it owns. */
void minrpc_object_free(struct minrpc_server *server, struct minrpc_object *object);

/** Frees every object. */
void minrpc_objects_free(struct minrpc_server *server);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_OBJECT_H_ */
