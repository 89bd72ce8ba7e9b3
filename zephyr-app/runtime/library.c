/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/library.h>

#include <string.h>

/* The count's second byte is below a space in the two-byte form, and a name's first letter in the one-byte form. */
static const char *first_name(const TVMFuncRegistry *registry, uint32_t *count)
{
	const uint8_t *names = (const uint8_t *)registry->names;

	if (names[1] < (uint8_t)' ') {
		*count = names[0] | ((uint32_t)names[1] << 8);
		return registry->names + 2;
	}
	*count = names[0];
	return registry->names + 1;
}

uint32_t minrpc_names_find(const char *names, uint32_t count, const char *name)
{
	uint32_t index = 0U;

	while (index < count && strcmp(names, name) != 0) {
		names += strlen(names) + 1U;
		index++;
	}
	return index;
}

uint32_t minrpc_library_find(const struct minrpc_library *library, const char *name)
{
	uint32_t before = 0U;

	for (uint32_t i = 0U; i < library->count; i++) {
		uint32_t count;
		const char *names = first_name(library->registries[i], &count);
		uint32_t found = minrpc_names_find(names, count, name);

		if (found != count) {
			return before + found;
		}
		before += count;
	}
	return MINRPC_NO_FUNCTION;
}

TVMBackendPackedCFunc minrpc_library_at(const struct minrpc_library *library, uint32_t index)
{
	for (uint32_t i = 0U; i < library->count; i++) {
		uint32_t count;

		(void)first_name(library->registries[i], &count);
		if (index < count) {
			return library->registries[i]->funcs[index];
		}
		index -= count;
	}
	return NULL;
}
