/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Failures: sets the text of the exception that ends a request; allocates, or fails with a text.
 */
#include <stdarg.h>

#include <minrpc/text.h>

#include "rpc.h"

bool minrpc_set_error(struct minrpc_server *server, const char *text)
{
	uint32_t i = 0U;

	/* `text` may be server->error itself: each character is then copied onto itself. */
	for (; text[i] != '\0' && i < sizeof(server->error) - 1U; i++) {
		server->error[i] = text[i];
	}
	server->error[i] = '\0';
	return false;
}

#if MINRPC_ERROR_TEXTS
bool minrpc_fail(struct minrpc_server *server, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	minrpc_text_list(server->error, sizeof(server->error), format, list);
	va_end(list);
	return false;
}
#endif

bool minrpc_fail_handle(struct minrpc_server *server, int type_code, uintptr_t handle)
{
	return minrpc_fail(server, "no live %s 0x%lx", minrpc_type_name(type_code),
			   (unsigned long)handle);
}

bool minrpc_fail_type(struct minrpc_server *server, uint32_t type_code)
{
	return minrpc_fail(server, "bad type code %u", (unsigned int)type_code);
}

bool minrpc_fail_shape(struct minrpc_server *server)
{
	return minrpc_fail(server, "bad dtype or shape, or over 4 GiB");
}

bool minrpc_fail_memory(struct minrpc_server *server, const struct minrpc_arena *arena,
			uint32_t size)
{
	(void)arena; /* unused without error texts */
	(void)size;
	return minrpc_fail(server,
			   "out of device memory: asked for %u bytes, largest free %u of %u; "
			   "enlarge the arena",
			   (unsigned int)size, (unsigned int)minrpc_arena_largest_free(arena),
			   (unsigned int)arena->size);
}

void *minrpc_server_alloc(struct minrpc_server *server, uint32_t size, uint32_t alignment,
			  enum minrpc_arena_kind kind)
{
	void *block = minrpc_arena_alloc(&server->arena, size, alignment, kind);

	if (block == NULL) {
		(void)minrpc_fail_memory(server, &server->arena, size);
	}
	return block;
}
