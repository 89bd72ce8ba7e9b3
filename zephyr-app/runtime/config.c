/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the configuration at the start, so that a wrong field does no damage later.
 */
#include "rpc.h"

#if MINRPC_CONFIG_CHECKS

/* True for a buffer of at least one byte that does not wrap round the end of the address space. */
static bool is_buffer(const void *buffer, uint32_t size)
{
	return buffer != NULL && size != 0U && (uintptr_t)buffer + (size - 1U) >= (uintptr_t)buffer;
}

static bool check_platform(const struct minrpc_platform *platform)
{
	return platform != NULL && platform->write != NULL && platform->clock_describe != NULL &&
	       platform->clock_sample != NULL && platform->sleep_ms != NULL &&
	       (platform->clock_begin == NULL) == (platform->clock_end == NULL);
}

static bool check_library(const struct minrpc_library *library)
{
	const struct minrpc_module *module = library->modules;

	if (library->count != 0U && module == NULL) {
		return false;
	}
	for (uint32_t left = library->count; left != 0U; left--, module++) {
		if (module->count != 0U && module->functions == NULL) {
			return false;
		}
		for (uint32_t i = 0U; i < module->count; i++) {
			if (module->functions[i].name == NULL || module->functions[i].run == NULL) {
				return false;
			}
		}
	}
	return true;
}

/* Returns the name of the first wrong field, or NULL. */
static const char *wrong_field(const struct minrpc_config *config)
{
	if (!check_platform(config->platform)) {
		return "platform";
	}
	if (!is_buffer(config->receive_buffer, config->receive_size) ||
	    (uintptr_t)config->receive_buffer % 8U != 0U ||
	    config->receive_size < MINRPC_RECEIVE_MIN || config->receive_size > MINRPC_MAX_PACKET) {
		return "receive_buffer";
	}
	if (!is_buffer(config->send_buffer, config->send_size)) {
		return "send_buffer";
	}
	if (!is_buffer(config->arena, config->arena_size)) {
		return "arena";
	}
	if (config->read_only_size != 0U && !is_buffer(config->read_only, config->read_only_size)) {
		return "read_only";
	}
#if MINRPC_LAYOUT
	if (config->more_memory_size != 0U &&
	    !is_buffer(config->more_memory, config->more_memory_size)) {
		return "more_memory";
	}
#endif
#if MINRPC_CODE_LOADING
	if (config->code != NULL && !is_buffer(config->code, config->code_size)) {
		return "code";
	}
	if ((config->code_page & (config->code_page - 1U)) != 0U) {
		return "code_page";
	}
#endif
	if (config->build_id_size > MINRPC_BUILD_ID_MAX ||
	    (config->build_id_size != 0U && config->build_id == NULL)) {
		return "build_id";
	}
	return check_library(&config->library) ? NULL : "library";
}

bool minrpc_check_config(struct minrpc_server *server, const struct minrpc_config *config)
{
	const char *wrong = wrong_field(config);

	return wrong == NULL || minrpc_fail(server, "struct minrpc_config: %s is wrong", wrong);
}

#endif
