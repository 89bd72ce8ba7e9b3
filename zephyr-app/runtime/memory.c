/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server's memory: begins empty, and becomes empty again when a session ends.
 */
#include "rpc.h"

void minrpc_start_memory(struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;

	minrpc_arena_init(&server->arena, config->arena, config->arena_size);
#if MINRPC_CODE_LOADING
	minrpc_code_memory(config, &server->code);
#endif
	server->damaged = false;
}

void minrpc_forget_session(struct minrpc_server *server)
{
	minrpc_objects_free(server);
	minrpc_free_spare(server);
	minrpc_arena_release(&server->arena, MINRPC_ARENA_SESSION);
#if MINRPC_CODE_LOADING
	minrpc_arena_release(minrpc_code_arena(server), MINRPC_ARENA_SESSION);
#endif
	server->result = NULL;
	server->reply.kind = MINRPC_REPLY_NONE;
	server->numbered = false;
	server->own_client = false;
	server->sequence = 0U;
	server->dialect = MINRPC_DIALECT_UNKNOWN;
	server->random_state = 1U;
	minrpc_layout_restore(server);
	(void)minrpc_restore(server, true);
}
