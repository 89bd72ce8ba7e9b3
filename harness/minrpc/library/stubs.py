# SPDX-License-Identifier: Apache-2.0
"""C source of functions that Python answers.

Each function asks the client for its result by the firmware's `minrpc_ask_client`, in the form of
`minrpc.client.conversation`: the function's address, and its arguments of 8 bytes each. Structs, and other
values that are not numbers, are sent by their address; the place of such a result is an additional argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.library.thunks import TypeNames, letter
from minrpc.program.c_types import (
    AlignmentLimits,
    CType,
    Declarations,
    FunctionDeclaration,
    Pointer,
    Void,
    strip,
)

ASK: Final = "minrpc_ask_client"
"""The function of the firmware that sends a question and waits for the answer."""

_PRELUDE: Final = """\
typedef union { long long i; double f; void *p; } value;
extern const void *minrpc_ask_client(const void *question, unsigned size, unsigned *answer_size);

struct command { unsigned kind, size; value number; };

static void minrpc_copy(volatile char *to, const volatile char *from, unsigned size)
{
	while (size != 0) {
		*to++ = *from++;
		size--;
	}
}

static __attribute__((noinline)) value minrpc_asked(const void *question, unsigned size)
{
	for (;;) {
		unsigned left = 0;
		const char *at = minrpc_ask_client(question, size, &left);

		if (at == 0) {
			__builtin_trap(); /* No call is running, for instance in an interrupt. */
		}
		size = 0;
		while (left >= sizeof(struct command)) {
			struct command command;
			unsigned data;

			minrpc_copy((char *)&command, at, sizeof(command));
			at += sizeof(command);
			left -= sizeof(command);
			if (command.kind == 1) {
				return command.number;
			}
			if (command.kind == 2) {
				question = command.number.p;
				size = command.size;
				break;
			}
			minrpc_copy(command.number.p, at, command.size);
			data = (command.size + 7) & ~7u;
			at += data;
			left -= data;
		}
	}
}
"""


def stub_source(functions: Sequence[FunctionDeclaration], limits: AlignmentLimits) -> str:
    """A C file that defines the functions. Needs no header. Raises LayoutError for a type that can't be
    declared."""
    names = TypeNames(limits)
    bodies = [_stub(index, function, names) for index, function in enumerate(functions)]
    return "\n".join([_PRELUDE, *names.definitions, *bodies])


def declared_fake(declarations: Declarations, library: str, name: str) -> FunctionDeclaration:
    """The declaration of a function that Python answers. Raises ConfigurationError for a function that can't
    be a fake."""
    found = declarations.declared.get(name) or declarations.functions.get(name)
    if found is None:
        raise ConfigurationError(
            f"the type of {name} is not known: no source of {library} that was compiled with -g calls it",
            next_step="correct the name, or write this fake in C, beside the sources",
        )
    if found.unsupported and not found.type.variadic:
        raise ConfigurationError(
            f"{name} can't be a fake: {found.unsupported}",
            next_step="write this fake in C, beside the sources",
        )
    return found


def in_memory(ctype: CType) -> bool:
    """True for a value that is passed by its address: neither a number nor a pointer."""
    return letter(ctype) == "p" and not isinstance(strip(ctype), Pointer)


def _stub(index: int, function: FunctionDeclaration, names: TypeNames) -> str:
    parameters = function.type.parameters
    spelled = [names.spell(parameter.type) for parameter in parameters]
    result = names.spell(function.type.result)
    declared = [f"{ctype} a{at}" for at, ctype in enumerate(spelled)]
    declared += ["..."] if function.type.variadic else []
    listed = ", ".join(declared) or "void"
    sets = [f"q[0].i = (long long)(__UINTPTR_TYPE__)f{index};"]
    sets += [_set(at, parameter.type) for at, parameter in enumerate(parameters)]
    kind = function.type.result
    body, count = "return minrpc_asked(q, sizeof(q)).i;", len(parameters) + 1
    if isinstance(strip(kind), Void):
        body = "minrpc_asked(q, sizeof(q));"
    elif isinstance(strip(kind), Pointer):
        body = "return (void *)(__UINTPTR_TYPE__)minrpc_asked(q, sizeof(q)).i;"
    elif in_memory(kind):
        sets.append(f"q[{count}].i = (long long)(__UINTPTR_TYPE__)&result;")
        sets.insert(0, f"{result} result;")
        body, count = "minrpc_asked(q, sizeof(q));\n\treturn result;", count + 1
    elif letter(kind) == "f":
        body = "return minrpc_asked(q, sizeof(q)).f;"
    lines = "\n\t".join([f"value q[{count}];", *sets, body])
    return (
        f'\nextern {result} f{index}({listed}) __asm__("{function.symbol}");\n'
        f"{result} f{index}({listed})\n{{\n\t{lines}\n}}\n"
    )


def _set(at: int, ctype: CType) -> str:
    if in_memory(ctype):
        return f"q[{at + 1}].i = (long long)(__UINTPTR_TYPE__)&a{at};"
    if isinstance(strip(ctype), Pointer):
        return f"q[{at + 1}].i = (long long)(__UINTPTR_TYPE__)a{at};"
    return f"q[{at + 1}].{letter(ctype)} = a{at};"
