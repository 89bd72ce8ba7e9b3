/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Looks functions up by name and by number, in our tables and in TVM's registries.
 */
#include <string.h>

#include "rpc.h"

const char *minrpc_packed_names(const TVMFuncRegistry *registry, uint32_t *count)
{
	const uint8_t *names;

	*count = 0U;
	if (registry == NULL) {
		return NULL;
	}
	names = (const uint8_t *)registry->names;
	*count = names[0];
	/*
	 * The second byte shows the form. It is the count's upper byte, which is below a space, in
	 * the two-byte form, and a name's first letter in the one-byte form.
	 */
	if (names[1] >= (uint8_t)' ') {
		return registry->names + 1;
	}
	*count |= (uint32_t)names[1] << 8;
	return registry->names + 2;
}

static const char *after(const char *name)
{
	return name + strlen(name) + 1U;
}

const char *minrpc_callee_name(const struct minrpc_callee *callee)
{
	const char *name;
	uint32_t count;

	if (callee->function != NULL) {
		return callee->function->name;
	}
	name = minrpc_packed_names(callee->packed, &count);
	for (uint32_t i = 0U; i < callee->index; i++) {
		name = after(name);
	}
	return name;
}

uint32_t minrpc_library_find(const struct minrpc_library *library, const char *name)
{
	const struct minrpc_module *module = library->modules;
	uint32_t index = 0U;

	for (uint32_t left = library->count; left != 0U; left--, module++) {
		const char *packed;
		uint32_t count;

		for (uint32_t i = 0U; i < module->count; i++, index++) {
			if (strcmp(module->functions[i].name, name) == 0) {
				return index;
			}
		}
		packed = minrpc_packed_names(module->packed, &count);
		for (; count != 0U; count--, index++, packed = after(packed)) {
			if (strcmp(packed, name) == 0) {
				return index;
			}
		}
	}
	return MINRPC_NO_FUNCTION;
}

bool minrpc_library_at(const struct minrpc_library *library, uint32_t index,
		       struct minrpc_callee *callee)
{
	const struct minrpc_module *module = library->modules;

	for (uint32_t left = library->count; left != 0U; left--, module++) {
		uint32_t count;

		callee->function = NULL;
		callee->resource = module->resource;
		if (index < module->count) {
			callee->function = &module->functions[index];
			return true;
		}
		index -= module->count;
		(void)minrpc_packed_names(module->packed, &count);
		if (index < count) {
			callee->packed = module->packed;
			callee->index = index;
			return true;
		}
		index -= count;
	}
	return false;
}
