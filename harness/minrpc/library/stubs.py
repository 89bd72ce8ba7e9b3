# SPDX-License-Identifier: Apache-2.0
"""C source of functions that Python answers.

Each function asks the client for its result by the firmware's `minrpc_ask_client`, in the form of
`minrpc.client.conversation`: the function's address, and its arguments of 8 bytes each. Structs, and other
values that are not numbers, are sent by their address; the place of such a result is an additional argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from minrpc.client.conversation import MOST_ARGUMENTS
from minrpc.errors import ConfigurationError
from minrpc.library.thunks import LayoutError, TypeNames, letter
from minrpc.program.c_types import (
    VOID,
    AlignmentLimits,
    ArrayType,
    CType,
    Declarations,
    FunctionDeclaration,
    FunctionType,
    Pointer,
    RecordType,
    Void,
    declaration,
    is_const,
    strip,
)

ASK: Final = "minrpc_ask_client"
"""The function of the firmware that sends a question and waits for the answer."""

SPARE: Final = "minrpc_spare_"
"""Begins the symbols of functions that wait for a function in Python."""

SPARE_SECTION: Final = ".text.minrpc_spare"
"""Their section, which the linker keeps."""

# Handlers that -fsanitize=undefined calls; without optimization no debug information has them.
_UNDEFINED_BEHAVIOUR: Final = "__ubsan_handle_"

# Spare functions of each type, and of all types.
_SPARES: Final = 4
_MOST_SPARES: Final = 16

ASKING: Final = """\
typedef union { long long i; double f; void *p; } value;
extern const void *minrpc_ask_client(const void *question, unsigned size, unsigned *answer_size);

struct command { unsigned kind, size; value number; };
struct further { __builtin_va_list list; };

/* The next argument behind the named ones, of the type that a letter names. */
static value minrpc_next(struct further *further, long long type)
{
	value next = {0};

	switch (type) {
	case 'i':
		next.i = __builtin_va_arg(further->list, int);
		break;
	case 'l':
		next.i = __builtin_va_arg(further->list, long);
		break;
	case 'q':
		next.i = __builtin_va_arg(further->list, long long);
		break;
	case 'f':
		next.f = __builtin_va_arg(further->list, double);
		break;
	case 'F':
		next.f = (double)__builtin_va_arg(further->list, long double);
		break;
	default:
		next.i = (long long)(__UINTPTR_TYPE__)__builtin_va_arg(further->list, void *);
	}
	return next;
}

static void minrpc_copy(volatile char *to, const volatile char *from, unsigned size)
{
	while (size != 0) {
		*to++ = *from++;
		size--;
	}
}

typedef int packed(value *a, int *c, int n, value *r, int *rc, void *resource);

/* The report of a called function; no stub has the address 0. */
struct done { long long none; int status, code; value result; };

static __attribute__((noinline)) void minrpc_call(packed *function, const char *data, unsigned size,
							struct done *done)
{
	struct { value number; long long code; } argument;
	value numbers[@MOST@];
	int codes[@MOST@], count = 0;

	for (; size >= sizeof(argument); size -= sizeof(argument), data += sizeof(argument)) {
		minrpc_copy((char *)&argument, data, sizeof(argument));
		numbers[count] = argument.number;
		codes[count++] = (int)argument.code;
	}
	done->none = 0;
	done->code = 4;
	done->result.i = 0;
	done->status = function(numbers, codes, count, &done->result, &done->code, 0);
}

static __attribute__((noinline)) value minrpc_asked(const void *question, unsigned size,
							struct further *further)
{
	struct done done;
	value next;

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
			if (command.kind == 4) {
				next = minrpc_next(further, command.number.i);
				question = &next;
				size = sizeof(next);
				break;
			}
			if (command.kind == 5) { /* Stays until this function returns. */
				next.i = (long long)(__UINTPTR_TYPE__)__builtin_alloca(command.size);
				question = &next;
				size = sizeof(next);
				break;
			}
			if (command.kind == 6) {
				minrpc_call((packed *)command.number.p, at, command.size, &done);
				question = &done;
				size = sizeof(done);
				break;
			}
			minrpc_copy(command.number.p, at, command.size);
			data = (command.size + 7) & ~7u;
			at += data;
			left -= data;
		}
	}
}
""".replace("@MOST@", str(MOST_ARGUMENTS))


def stub_source(functions: Sequence[FunctionDeclaration], limits: AlignmentLimits) -> str:
    """A C file that defines the functions. Needs no header. Raises LayoutError for a type that can't be
    declared."""
    names = TypeNames(limits)
    bodies = [_stub(index, function, names) for index, function in enumerate(functions)]
    return "\n".join([ASKING, *names.definitions, *bodies])


def spares(
    asking: Iterable[FunctionDeclaration],
    called: Iterable[FunctionDeclaration],
    limits: AlignmentLimits,
) -> list[FunctionDeclaration]:
    """Functions that Python answers, for functions in Python that it gives to C while C waits: no code is
    loaded meanwhile.

    asking: functions in Python. They assign to pointers behind their parameters, and return some. called:
    functions of C, which get some as arguments. The types that these types reach count, too.
    """
    types: dict[str, FunctionType] = {}
    assigned: list[RecordType] = []
    passed: list[RecordType] = []
    for function in asking:
        types |= _given_by(function.type, assigned)
    for function in called:
        for parameter in function.type.parameters:
            types |= _behind(parameter.type, passed, const=True)
    waiting = list(types.values())
    while waiting:
        new = {text: kind for text, kind in _given_by(waiting.pop(), assigned).items() if text not in types}
        types |= new
        waiting += new.values()
    made = [FunctionDeclaration(text, "", kind) for text, kind in types.items()]
    declarable = [item for item in made if _is_declarable(item, limits)][:_MOST_SPARES]
    each = min(_SPARES, _MOST_SPARES // max(len(declarable), 1))
    names = (f"{SPARE}{number}" for number in count())
    return [replace(item, symbol=next(names)) for item in declarable for _ in range(each)]


def _given_by(function: FunctionType, seen: list[RecordType]) -> dict[str, FunctionType]:
    """The types of the functions that a function in Python of this type can assign and return. seen: as for
    `_behind`."""
    types: dict[str, FunctionType] = {}
    for parameter in function.parameters:
        target = strip(parameter.type)
        if isinstance(target, Pointer) and not isinstance(strip(target.target), FunctionType):
            types |= _behind(target, seen)
    return types | _behind(function.result, seen)


def _behind(ctype: CType, seen: list[RecordType], *, const: bool = False) -> dict[str, FunctionType]:
    """The types of the functions to which pointers in a value point, also behind its pointers.

    seen: structs that are known already; gets further ones. const: also behind pointers to const.
    """
    types: dict[str, FunctionType] = {}
    match strip(ctype):
        case Pointer(target):
            function = strip(target)
            if isinstance(function, FunctionType):
                types[declaration(function)] = function
            elif const or not is_const(target):
                types |= _behind(target, seen, const=const)
        case ArrayType(element, _):
            types |= _behind(element, seen, const=const)
        case RecordType() as record if all(record is not other for other in seen):
            seen.append(record)
            for field in record.fields:
                types |= _behind(field.type, seen, const=const)
    return types


def _is_declarable(function: FunctionDeclaration, limits: AlignmentLimits) -> bool:
    try:
        _stub(0, function, TypeNames(limits))
    except (LayoutError, ConfigurationError):
        return False
    return not function.type.variadic


def declared_fake(declarations: Declarations, library: str, name: str) -> FunctionDeclaration:
    """The declaration of a function that Python answers. Raises ConfigurationError for a function that can't
    be a fake."""
    function = declarations.declared.get(name) or declarations.functions.get(name)
    if function is None and name.startswith(_UNDEFINED_BEHAVIOUR):
        return FunctionDeclaration(name, name, FunctionType(VOID, (), variadic=True))
    if function is None:
        raise ConfigurationError(
            f"the type of {name} is not known: no source of {library} that was compiled with -g calls it",
            next_step="correct the name, or define it in C, beside the sources, as each variable must be",
        )
    if function.unsupported and not function.type.variadic:
        raise ConfigurationError(
            f"{name} can't be a fake: {function.unsupported}",
            next_step="write this fake in C, beside the sources",
        )
    return function


def in_memory(ctype: CType) -> bool:
    """True for a value that is passed by its address: neither a number nor a pointer, nor void."""
    return letter(ctype) == "p" and not isinstance(strip(ctype), Pointer | Void)


def _stub(index: int, function: FunctionDeclaration, names: TypeNames) -> str:
    parameters = function.type.parameters
    spelled = [names.parameter(parameter.type) for parameter in parameters]
    result = names.spell(function.type.result)
    declared = [f"{ctype} a{at}" for at, ctype in enumerate(spelled)]
    # Without a prototype, as in `void f();`, C tells no types: such a function gets no arguments.
    prototyped = function.type.has_prototype
    is_variadic = function.type.variadic and prototyped
    declared += ["..."] if is_variadic else []
    listed = ", ".join(declared) or ("void" if prototyped else "")
    sets = [f"q[0].i = (long long)(__UINTPTR_TYPE__)f{index};"]
    sets += [_set(at, parameter.type) for at, parameter in enumerate(parameters)]
    kind = function.type.result
    asked = f"minrpc_asked(q, sizeof(q), {'&further' if is_variadic else '0'})"
    if is_variadic:
        sets.insert(0, "struct further further;")
        sets.append(f"__builtin_va_start(further.list, a{len(parameters) - 1});")
    body, count = f"return {asked}.i;", len(parameters) + 1
    if isinstance(strip(kind), Void):
        body = f"{asked};"
    elif isinstance(strip(kind), Pointer):
        body = f"return (void *)(__UINTPTR_TYPE__){asked}.i;"
    elif in_memory(kind):
        sets.append(f"q[{count}].i = (long long)(__UINTPTR_TYPE__)&result;")
        sets.insert(0, f"{result} result;")
        body, count = f"{asked};\n\treturn result;", count + 1
    elif letter(kind) == "f":
        body = f"return {asked}.f;"
    sets.append(f"q[{count}].i = (long long)(__UINTPTR_TYPE__)__builtin_return_address(0);")
    lines = "\n\t".join([f"value q[{count + 1}];", *sets, body])
    kept = f'__attribute__((section("{SPARE_SECTION}"))) ' if function.symbol.startswith(SPARE) else ""
    return (
        f'\nextern {kept}{result} f{index}({listed}) __asm__("{function.symbol}");\n'
        f"{result} f{index}({listed})\n{{\n\t{lines}\n}}\n"
    )


def _set(at: int, ctype: CType) -> str:
    if in_memory(ctype):
        return f"q[{at + 1}].i = (long long)(__UINTPTR_TYPE__)&a{at};"
    if isinstance(strip(ctype), Pointer):
        return f"q[{at + 1}].i = (long long)(__UINTPTR_TYPE__)a{at};"
    return f"q[{at + 1}].{letter(ctype)} = a{at};"
