/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the number and the types of a call's arguments against the form in struct minrpc_function.
 */
#include <string.h>

#include "rpc.h"

/*
 * Returns the two type codes that a letter of a form allows, in the halves of a byte. Error texts
 * name the upper code.
 */
static uint8_t codes_of(char letter)
{
	static const char kinds[][2] = {
		{'i', '\x0f'}, {'t', '\x77'}, {'w', '\x77'}, {'s', '\xbb'},
		{'z', '\xb4'}, {'h', '\x34'}, {'d', '\x66'}, {'y', '\x55'},
		{'m', '\x93'}, {'f', '\x22'}, {'b', '\xcc'},
	};
	uint32_t i = 0U;

	while (kinds[i][0] != letter && i < sizeof(kinds) / sizeof(kinds[0]) - 1U) {
		i++;
	}
	return (uint8_t)kinds[i][1];
}

bool minrpc_check_arguments(struct minrpc_call *call, const char *arguments)
{
	const char *name = minrpc_callee_name(call->callee);
	int count = (int)strlen(arguments);

	if (call->args.count != count) {
		return minrpc_fail(call->server, "%s: expected %d argument%s, got %d", name, count,
				   count == 1 ? "" : "s", call->args.count);
	}
	for (int i = 0; i < count; i++) {
		int either = codes_of(arguments[i]) >> 4;
		int other = codes_of(arguments[i]) & 0xf;
		int code = call->args.type_codes[i];

		if (code != either && code != other) {
			return minrpc_fail(call->server, "%s: argument %d: expected %s, got %s",
					   name, i, minrpc_type_name(either),
					   minrpc_type_name(code));
		}
	}
	return true;
}
