# SPDX-License-Identifier: Apache-2.0
"""Requests and replies in the words of `wire.txt`."""

from __future__ import annotations

from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import CopyAck, Question, RemoteException, Reply, Result, Return, ReturnedArray
from minrpc.wire.requests import (
    Answer,
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    InitServer,
    Request,
    Shutdown,
    Syscall,
)
from minrpc.wire.values import Argument, Bool, DLDevice, DLTensor, Function, Handle, Module, Object, UInt


def describe_value(value: Argument | ReturnedArray) -> str:
    match value:
        case None:
            return "null"
        case str():
            return f'"{value}"'
        case bytes():
            return f"bytes:{value.hex() or '-'}"
        case UInt(number):
            return f"uint:{number}"
        case Bool(truth):
            return f"bool:{int(truth)}"
        case Handle(handle):
            return f"handle:{handle:#x}"
        case Module(handle):
            return f"module:{handle:#x}"
        case Function(handle):
            return f"function:{handle:#x}"
        case Object(type_index, handle):
            return f"object:{type_index}:{handle:#x}"
        case DLDevice(device_type, device_id):
            return f"device:{device_type}:{device_id}"
        case DataType():
            return f"dtype:{value}"
        case ReturnedArray(tensor, handle):
            return f"array:{describe_value(tensor)}:{handle:#x}"
        case DLTensor(data, dtype, shape, byte_offset, _):
            return f"tensor:{data:#x}:{dtype}:{'x'.join(map(str, shape)) or '-'}:{byte_offset}"
    return str(value)


def describe_request(request: Request) -> str:
    match request:
        case Shutdown():
            return "Shutdown()"
        case InitServer(version, args):
            fields = [f'"{version}"', *map(describe_value, args)]
        case CallFunc(handle, args):
            fields = [f"{handle:#x}", *map(describe_value, args)]
        case Answer(data):
            fields = [bytes(data).hex() or "-"]
        case CopyFromRemote(tensor, nbytes):
            fields = [describe_value(tensor), str(nbytes)]
        case CopyToRemote(tensor, data):
            fields = [describe_value(tensor), bytes(data).hex() or "-"]
        case Syscall(code, args):
            return f"{code.name}({','.join(map(describe_value, args))})"
    return f"{type(request).__name__}({','.join(fields)})"


def describe_reply(reply: Reply) -> str:
    match reply:
        case Return(values):
            return f"Return({','.join(map(describe_value, values))})"
        case RemoteException(text):
            return f'Exception("{text}")'
        case CopyAck(data):
            return f"CopyAck({bytes(data).hex() or '-'})"
        case Question(room, data):
            return f"Question({room},{bytes(data).hex() or '-'})"


def describe_result(result: Result) -> str:
    return f"Result({describe_value(result)})"
