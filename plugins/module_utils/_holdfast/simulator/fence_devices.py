# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence devices: what they do to machines, and what they say of it."""

from __future__ import annotations

from collections.abc import Callable

from .machine import Device, Machine
from .world import World

GIVES_UP = 10.0
"""Seconds after which a device that does not answer counts as failed."""

COMES_BACK = 15.0
FOUND_OUT = 8.0
"""A device's lie can be found out while its machine goes on writing for so long."""

Answer = Callable[[bool, str], None]


class Fencing:
    """Switches machines off and on by their devices."""

    def __init__(self, world: World) -> None:
        """Drive the devices of *world*."""
        self._world = world
        self.sent: dict[str, int] = {}

    def off(self, machine: Machine, by: str, done: Answer) -> None:
        """Let a machine's device switch it off, as well as it does at the moment.

        *done* hears later whether it is proved to be off; never if that takes too long.
        """
        world, device = self._world, machine.device
        self.sent[machine.name] = self.sent.get(machine.name, 0) + 1
        mode = device.mode
        if device.with_node and not machine.on:
            mode = "hangs"
        if mode in ("lies", "wrong") and not self._found_out(machine, by):
            mode = "fails"
        took = device.seconds or world.random.uniform(*world.settings.fence)
        world.say(f"{by} fences {machine.name} (its device {mode})")
        if mode in ("works", "hides", "back"):
            world.later(took * 0.9, world.power_off, machine, f"fenced by {by}")
        if mode == "wrong" and device.other in world.machines:
            other = world.machines[device.other]
            world.later(took * 0.9, self._wrong_one, other, by)
        if mode == "back":
            world.later(took + COMES_BACK, world.power_on, machine)
        if mode == "hangs":
            took = GIVES_UP
        confirmed = mode in ("works", "back", "lies", "wrong")
        text = "its device reports off" if confirmed else f"its device {mode}"
        world.later(took, done, confirmed, text)

    def on(self, machine: Machine) -> bool:
        """Switch a machine on; False if its device cannot."""
        device: Device = machine.device
        works = device.mode not in ("fails", "hangs", "lies", "wrong")
        if device.stays_off or (device.with_node and machine.cut):
            works = False
        most = self._world.settings.power_on_works
        drawn = self._world.random.random() if works and most < 1.0 else 0.0
        # Who says that it could not may have done so all the same, too late.
        if works and drawn < most + (1.0 - most) / 4:
            self._world.power_on(machine)
        return works and drawn < most

    def _wrong_one(self, other: Machine, by: str) -> None:
        self._world.power_off(other, f"{by} switched the wrong one off")
        self._world.power_on(other)

    def _found_out(self, machine: Machine, by: str) -> bool:
        """Whether a machine goes on writing or answers, so that the lie of its device is found out.

        A device that says "off" of a machine that is on and silent, or that who fences does
        not see to write nor hear, is beyond any proof.
        """
        if by in self._world.stale:
            return False
        now = self._world.now
        writes = machine.beats.goes and machine.writes_since < now - 2.5
        answers = self._world.machines[by].hears(machine)
        if writes:
            machine.lies_until = now + FOUND_OUT
        if answers:
            machine.answers_until = now + FOUND_OUT
        return writes or answers
