# SPDX-License-Identifier: Apache-2.0
"""The client: the Python objects by which tests use a device."""

from minrpc.client.array import RemoteArray
from minrpc.client.counting import Measurer
from minrpc.client.cpu_time_meter import CpuTimeMeter
from minrpc.client.function import RemoteFunction, RemoteModule, SystemLibrary
from minrpc.client.info import DeviceCounter, DeviceInfo, MemoryRegion
from minrpc.client.lent_transport import LentTransport
from minrpc.client.link import RandomNonces, SessionLink
from minrpc.client.metering import Meter
from minrpc.client.owner import Owner, Unowned
from minrpc.client.rpc import RpcClient
from minrpc.client.session import Session
from minrpc.client.stats import DeviceStats
from minrpc.client.time_evaluator import EvaluatorOptions, TimeEvaluator, TimingResult

__all__ = [
    "CpuTimeMeter",
    "DeviceCounter",
    "DeviceInfo",
    "DeviceStats",
    "EvaluatorOptions",
    "LentTransport",
    "Measurer",
    "MemoryRegion",
    "Meter",
    "Owner",
    "RandomNonces",
    "RemoteArray",
    "RemoteFunction",
    "RemoteModule",
    "RpcClient",
    "Session",
    "SessionLink",
    "SystemLibrary",
    "TimeEvaluator",
    "TimingResult",
    "Unowned",
]
