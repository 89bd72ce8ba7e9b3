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

tvm_crt_error_t minrpc_library_find(const struct minrpc_library *library, const char *name,
				    uint32_t *index)
{
	*index = 0U;
	for (uint32_t i = 0U; i < library->count; i++) {
		uint32_t count;
		const char *at = first_name(library->registries[i], &count);

		while (count-- != 0U) {
			if (strcmp(at, name) == 0) {
				return kTvmErrorNoError;
			}
			at += strlen(at) + 1U;
			(*index)++;
		}
	}
	return kTvmErrorFunctionNameNotFound;
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
