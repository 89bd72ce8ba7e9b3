/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Objects that a client creates in a session and names by a handle: time evaluators and loaded
 * code. Each object is a module, so its functions are found and called like functions of the system
 * library. A handle is no pointer. It is used again only after 2^18 other objects, so the handle of
 * a freed object is an error.
 */
#ifndef MINRPC_OBJECT_H_
#define MINRPC_OBJECT_H_

#include <minrpc/function.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Largest number of functions in an object. A function's handle is the object's + 1 + its index.
 */
#define MINRPC_OBJECT_FUNCTIONS 0x0fffU

struct minrpc_object {
	struct minrpc_object *next;
	uint32_t handle;
	/**
	 * handle of the object with which this object is freed; no object's: the session's end
	 * frees it
	 */
	uint32_t owner;
	/**
	 * type of the client's handle: kTVMModuleHandle; or kTVMPackedFuncHandle, when the client
	 * names and frees the object by its function 0
	 */
	uint8_t type_code;
	struct minrpc_module module;
	/** Called before the object's memory is freed. May be NULL. */
	void (*destroy)(struct minrpc_server *server, struct minrpc_object *object);
};

/**
 * Creates an object: a module that has no functions yet.
 *
 * @param server  the owner of the arena
 * @param size    bytes, of which the first are a struct minrpc_object
 * @return the object, zero except for its handle, valid until minrpc_object_free or the session's
 *         end; NULL, with the failure's text set, when there is no memory
 */
void *minrpc_object_create(struct minrpc_server *server, uint32_t size);

/** Finds the object of a handle, which may also be a function's in it; NULL when there is none. */
struct minrpc_object *minrpc_object_find(const struct minrpc_server *server, uintptr_t handle);

/** Frees the object and the objects that it owns. */
void minrpc_object_free(struct minrpc_server *server, struct minrpc_object *object);

/** Frees all objects. */
void minrpc_objects_free(struct minrpc_server *server);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_OBJECT_H_ */
