/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The list of a session's objects. Each object is a block of the arena.
 */
#include <string.h>

#include "rpc.h"

/* A handle has 12 bits for the function and 18 bits above them for a serial number. */
#define SERIAL_STEP (MINRPC_OBJECT_FUNCTIONS + 1U)

struct minrpc_object *minrpc_object_find(const struct minrpc_server *server, uintptr_t handle)
{
	struct minrpc_object *object = server->objects;

	while (object != NULL && object->handle != (handle & ~(uintptr_t)MINRPC_OBJECT_FUNCTIONS)) {
		object = object->next;
	}
	return object;
}

void *minrpc_object_create(struct minrpc_server *server, uint32_t size)
{
	struct minrpc_object *made = minrpc_server_alloc(server, size, 1U, MINRPC_ARENA_OBJECT);

	if (made == NULL) {
		return NULL;
	}
	memset(made, 0, size);
	do {
		made->handle = MINRPC_HANDLE_OBJECT | server->object_serial;
		server->object_serial += SERIAL_STEP;
	} while (minrpc_object_find(server, made->handle) != NULL);
	made->next = server->objects;
	server->objects = made;
	return made;
}

static struct minrpc_object *find_owned(const struct minrpc_server *server, uint32_t owner)
{
	struct minrpc_object *object = server->objects;

	while (object != NULL && object->owner != owner) {
		object = object->next;
	}
	return object;
}

void minrpc_object_free(struct minrpc_server *server, struct minrpc_object *object)
{
	struct minrpc_object **link = &server->objects;
	struct minrpc_object *owned;

	while (*link != object) {
		link = &(*link)->next;
	}
	*link = object->next;
	while ((owned = find_owned(server, object->handle)) != NULL) {
		minrpc_object_free(server, owned);
	}
	if (object->destroy != NULL) {
		object->destroy(server, object);
	}
	(void)minrpc_arena_free(&server->arena, (uintptr_t)object, MINRPC_ARENA_OBJECT);
}

void minrpc_objects_free(struct minrpc_server *server)
{
	while (server->objects != NULL) {
		minrpc_object_free(server, server->objects);
	}
}
