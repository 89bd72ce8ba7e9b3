# SPDX-License-Identifier: Apache-2.0
"""The client: the Python objects by which tests use a device."""

from minrpc.client.array import RemoteArray
from minrpc.client.counting import Measurer
from minrpc.client.function import RemoteFunction, RemoteModule, SystemLibrary
from minrpc.client.info import DeviceInfo
from minrpc.client.owner import Owner, Unowned
from minrpc.client.session import Session
from minrpc.client.stats import DeviceStats
from minrpc.client.timing import TimeEvaluator, TimingResult

__all__ = [
    "DeviceInfo",
    "DeviceStats",
    "Measurer",
    "Owner",
    "RemoteArray",
    "RemoteFunction",
    "RemoteModule",
    "Session",
    "SystemLibrary",
    "TimeEvaluator",
    "TimingResult",
    "Unowned",
]
