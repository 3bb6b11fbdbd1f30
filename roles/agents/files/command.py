# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""OCF 1.1 resource agent: run any command that stays in the foreground as a service.

The command gets a session of its own.  A state file under HA_RSCTMP names its
process by number and start time, so that a number in use again is never taken for
ours; all that it starts carries a mark in its environment, so that children are found
when their parent is gone.  A stop is done when none of them is left.

Standalone on purpose, and with few imports: a monitor runs every few seconds.
"""

import fcntl
import os
import signal
import sys
import time
from collections import namedtuple

SUCCESS, GENERIC, ARGUMENTS, UNIMPLEMENTED = 0, 1, 2, 3
PERMISSION, INSTALLED, CONFIGURED, NOT_RUNNING = 4, 5, 6, 7

MARK = "HOLDFAST_COMMAND"
PAUSE = 0.02
LONGEST_PAUSE = 0.2
SETTLE = 0.1
"""Seconds in which a command that cannot work usually ends."""
WHOLE_CHECK = 10
"""From this OCF_CHECK_LEVEL on validate-all looks at this machine too (OCF 1.1, validate-all)."""

Identity = namedtuple("Identity", "pid started")
"""One process for good: its number alone may be another's later."""

Process = namedtuple("Process", "state parent session started")
"""What /proc/PID/stat says of a process (proc.5); times are in ticks since boot."""

METADATA = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">
<resource-agent name="command" version="1.1">
<version>1.1</version>
<longdesc lang="en">
Runs any command that stays in the foreground as a service. It is stopped together
with everything that it started. With a port it counts as started once it answers
there, and as failed when it no longer does.
</longdesc>
<shortdesc lang="en">Runs a command as a service</shortdesc>
<parameters>
<parameter name="command" required="1">
<longdesc lang="en">
The command with its arguments, split as a shell would split words, but run without
a shell. Write "sh -c '...'" for one. It must stay in the foreground.
</longdesc>
<shortdesc lang="en">Command line</shortdesc>
<content type="string"/>
</parameter>
<parameter name="directory">
<longdesc lang="en">The directory to run the command in.</longdesc>
<shortdesc lang="en">Working directory</shortdesc>
<content type="string" default="/"/>
</parameter>
<parameter name="environment">
<longdesc lang="en">
Variables for the command, such as: A=1 B="two words".
</longdesc>
<shortdesc lang="en">Environment variables</shortdesc>
<content type="string" default=""/>
</parameter>
<parameter name="address">
<longdesc lang="en">The address on which the command answers, if it has a port.</longdesc>
<shortdesc lang="en">Address that is checked</shortdesc>
<content type="string" default="127.0.0.1"/>
</parameter>
<parameter name="port">
<longdesc lang="en">
The TCP port on which the command answers. A start is refused while another program
listens there, and is done once the command answers.
</longdesc>
<shortdesc lang="en">TCP port that is checked</shortdesc>
<content type="integer"/>
</parameter>
<parameter name="stop_signal">
<longdesc lang="en">The signal that asks the command to end, such as TERM or INT.</longdesc>
<shortdesc lang="en">Signal to stop it</shortdesc>
<content type="string" default="TERM"/>
</parameter>
<parameter name="stop_timeout">
<longdesc lang="en">
Seconds that the command gets to end after the stop signal, before all that is left
of it is killed. Never more than four fifths of the timeout of the stop action.
</longdesc>
<shortdesc lang="en">Seconds before it is killed</shortdesc>
<content type="integer" default="10"/>
</parameter>
<parameter name="reload_signal">
<longdesc lang="en">
The signal that makes the command read its configuration again, such as HUP. Without
one the action reload is not there: many commands end when they get an unexpected signal.
</longdesc>
<shortdesc lang="en">Signal to reload it</shortdesc>
<content type="string" default=""/>
</parameter>
<parameter name="output">
<longdesc lang="en">A file to which the output of the command is added.</longdesc>
<shortdesc lang="en">Log file</shortdesc>
<content type="string" default="/dev/null"/>
</parameter>
</parameters>
<actions>
<action name="start" timeout="30s"/>
<action name="stop" timeout="30s"/>
<action name="monitor" timeout="10s" interval="10s" depth="0"/>
<action name="reload" timeout="20s"/>
<action name="validate-all" timeout="10s"/>
<action name="meta-data" timeout="5s"/>
</actions>
</resource-agent>
"""


class Problem(Exception):
    """Ends the action with an OCF code and the reason for an operator."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code
        self.reason = reason


def main(arguments):
    """Carry out the action named in *arguments* and return its OCF code."""
    actions = {
        "start": start,
        "stop": stop,
        "monitor": monitor,
        "reload": reload,
        "validate-all": validate,
        "meta-data": show_metadata,
        "usage": show_usage,
        "help": show_usage,
    }
    action = actions.get(arguments[0]) if len(arguments) == 1 else None
    if action is None:
        show_usage()
        return UNIMPLEMENTED
    try:
        return action()
    except Problem as problem:
        tell(problem.reason)
        return problem.code
    except OSError as error:
        tell(f"this machine does not let the agent work: {error}")
        return GENERIC


def show_metadata():
    """Print the metadata; this needs nothing and cannot fail."""
    sys.stdout.write(METADATA)
    return SUCCESS


def show_usage():
    """Print how the agent is called."""
    sys.stderr.write("usage: command {start|stop|monitor|reload|validate-all|meta-data}\n")
    return SUCCESS


def monitor():
    """Running, and answering if it has a port: 0; gone with all it started: 7; else 1."""
    main_process = read_state()
    if not runs(main_process):
        left = members(main_process)
        if not left:
            return NOT_RUNNING
        raise Problem(GENERIC, f"its main process is gone but these are left: {numbers(left)}")
    port = port_number()
    if port is not None and not answers(port, min(5.0, time_limit() / 2)):
        raise Problem(
            GENERIC,
            f"process {main_process.pid} runs but does not answer on {address()} port {port}",
        )
    return SUCCESS


def start():
    """Start the command and wait until it runs, or until it answers if it has a port."""
    until = time.monotonic() + time_limit() * 0.9
    words, variables = command_line()
    port = port_number()
    check_machine(words, variables)
    with_lock(until)
    main_process = read_state()
    if runs(main_process):
        wait_until_ready(main_process, port, until)
        return SUCCESS
    left = members(main_process)
    if left:
        raise Problem(GENERIC, f"of an earlier run these are left: {numbers(left)}; stop it first")
    if port is not None and answers(port, 1.0):
        raise Problem(GENERIC, f"another program already listens on {address()} port {port}")
    main_process = launch(words, variables)
    try:
        wait_until_ready(main_process, port, until, settle=SETTLE)
    except Problem:
        end_all(main_process, signal.SIGKILL, 0.0, time.monotonic() + 5.0)
        remove_state()
        raise
    return SUCCESS


def stop():
    """End the command and all that it started; done when none of them is left."""
    limit = time_limit()
    began = time.monotonic()
    which = signal_parameter("stop_signal", "TERM")
    patience = min(whole_number("stop_timeout", 10), limit * 0.8)
    with_lock(began + limit * 0.9)
    left = end_all(read_state(), which, patience, began + limit * 0.95)
    if left:
        raise Problem(GENERIC, f"these would not end: {numbers(left)}")
    remove_state()
    return SUCCESS


def reload():
    """Make the running command read its configuration again; one that is stopped stays so."""
    which = signal_parameter("reload_signal")
    if which is None:
        raise Problem(UNIMPLEMENTED, "without reload_signal this command cannot be reloaded")
    with_lock(time.monotonic() + time_limit() * 0.9)
    code = monitor()
    if code == SUCCESS:
        send(read_state(), which)
    return code


def validate():
    """Check the parameters, and at the whole check that the command can be run here."""
    words, variables = command_line()
    port_number()
    signal_parameter("stop_signal", "TERM")
    signal_parameter("reload_signal")
    whole_number("stop_timeout", 10)
    level = os.environ.get("OCF_CHECK_LEVEL", "")
    if level.isdigit() and int(level) >= WHOLE_CHECK:
        check_machine(words, variables)
    return SUCCESS


def tell(reason):
    """Write *reason* where cluster managers look for it (OCF 1.1, exit reason)."""
    prefix = os.environ.get("OCF_EXIT_REASON_PREFIX", "ocf-exit-reason:")
    sys.stderr.write(f"{prefix}{reason}\n")


def parameter(name, default=""):
    """Return a parameter's text; an empty one counts as not given."""
    return os.environ.get(f"OCF_RESKEY_{name}", "") or default


def whole_number(name, default):
    """Return a parameter as a number that is not negative."""
    text = parameter(name, str(default))
    if not text.isdigit():
        raise Problem(CONFIGURED, f"{name} must be a whole number, not {text!r}")
    return int(text)


def time_limit():
    """Return the seconds that this action has, from the caller's timeout in milliseconds."""
    text = os.environ.get("OCF_RESKEY_CRM_meta_timeout", "")
    return max(1.0, int(text) / 1000.0) if text.isdigit() else 20.0


def address():
    """Return the address that is checked."""
    return parameter("address", "127.0.0.1")


def port_number():
    """Return the port that is checked, or None."""
    if not parameter("port"):
        return None
    port = whole_number("port", 0)
    if not 1 <= port <= 65535:
        raise Problem(CONFIGURED, f"port must be from 1 to 65535, not {port}")
    return port


def signal_parameter(name, default=""):
    """Return the signal that a parameter names, or None when it names none."""
    word = parameter(name, default).upper()
    if not word:
        return None
    found = getattr(signal, word if word.startswith("SIG") else "SIG" + word, None)
    if not isinstance(found, signal.Signals):
        raise Problem(CONFIGURED, f"{name} must be a signal's name, not {word!r}")
    return found


def command_line():
    """Return the command's words and all its variables; neither depends on this machine."""
    import shlex

    try:
        words = shlex.split(parameter("command"))
        pairs = [item.partition("=") for item in shlex.split(parameter("environment"))]
    except ValueError as error:
        raise Problem(
            CONFIGURED, f"command or environment has a quoting mistake: {error}"
        ) from None
    if not words:
        raise Problem(CONFIGURED, "command is required")
    if any(not equals or not name for name, equals, _value in pairs):
        raise Problem(CONFIGURED, "environment must be words such as NAME=VALUE")
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OCF_", "HA_", "LC_ALL"))
    }
    variables.update((name, value) for name, _equals, value in pairs)
    variables[MARK] = state_file()
    return words, variables


def check_machine(words, variables):
    """See that the directory and the command are here, as execvpe will look for it."""
    directory = parameter("directory", "/")
    if not os.path.isdir(directory):
        raise Problem(INSTALLED, f"the directory {directory} does not exist")
    folders = [""] if "/" in words[0] else variables.get("PATH", os.defpath).split(":")
    candidates = [os.path.join(directory, folder, words[0]) for folder in folders]
    if not any(os.path.isfile(one) and os.access(one, os.X_OK) for one in candidates):
        raise Problem(INSTALLED, f"the command {words[0]} is not installed or not executable")


def state_file():
    """Return the state file's path, in which the resource's name has only plain characters."""
    instance = os.environ.get("OCF_RESOURCE_INSTANCE", "") or "default"
    plain = "".join(
        one if (one.isascii() and one.isalnum()) or one in "._:-" else f"%{ord(one):x}"
        for one in instance
    )
    directory = os.environ.get("HA_RSCTMP", "") or "/run/resource-agents"
    return os.path.join(os.path.abspath(directory), f"holdfast-command-{plain}.state")


def read_state():
    """Return the main process, or None when nothing was started.

    A state file of an earlier boot says nothing any more.
    """
    try:
        with open(state_file(), encoding="ascii") as file:
            pid, started, boot = file.read().split()
        main_process = Identity(int(pid), int(started))
        return main_process if boot == boot_id() else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Problem(GENERIC, f"the state file {state_file()} cannot be read: {error}") from None


def write_state(main_process):
    """Write the state file whole or not at all."""
    path = state_file()
    try:
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{main_process.pid} {main_process.started} {boot_id()}\n")
        os.replace(path + ".new", path)
    except OSError as error:
        raise Problem(
            PERMISSION, f"the state file {path} cannot be written: {error.strerror}"
        ) from None


def remove_state():
    """Forget what was started."""
    try:
        os.unlink(state_file())
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Problem(GENERIC, f"the state file cannot be removed: {error.strerror}") from None


def boot_id():
    """Return what tells this boot from others: process numbers mean nothing beyond it."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def with_lock(until):
    """Take the resource's lock until this process ends; two starts at once must not both run."""
    path = state_file()[: -len("state")] + "lock"
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise Problem(PERMISSION, f"{path} cannot be opened: {error.strerror}") from None
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= until:
                raise Problem(
                    GENERIC, "another start or stop of this resource is under way"
                ) from None
            time.sleep(PAUSE)


def look_up(pid):
    """Return what /proc says of a process, or None when there is no such one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The program's name before this is in brackets and may hold anything.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Process(fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def runs(identity):
    """Say whether that very process runs; a zombie does not, nor does None."""
    found = None if identity is None else look_up(identity.pid)
    return found is not None and found.started == identity.started and found.state not in "ZX"


def members(main_process):
    """Return the identities of all processes of the service, without zombies.

    A process belongs by its session, by the mark in its environment, or by its parent.
    While a session has members its number is not given out again; so when another
    program has the main process's number, nobody is in that session any more.
    """
    table = {int(name): look_up(name) for name in os.listdir("/proc") if name.isdigit()}
    table = {pid: one for pid, one in table.items() if one is not None}
    session = since = 0
    if main_process is not None:
        since = main_process.started
        namesake = table.get(main_process.pid)
        if namesake is None or namesake.started == since:
            session = main_process.pid
    ours = set()
    for pid, one in table.items():
        # What is older than the main process is not of it, and need not be looked into.
        if one.started >= since and ((session and one.session == session) or is_marked(pid)):
            ours.add(pid)
    while True:
        more = {pid for pid, one in table.items() if one.parent in ours and pid not in ours}
        if not more:
            break
        ours |= more
    ours.discard(os.getpid())
    return {Identity(pid, table[pid].started) for pid in ours if table[pid].state not in "ZX"}


def is_marked(pid):
    """Say whether a process carries our mark in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return os.fsencode(f"{MARK}={state_file()}") in variables


def numbers(found):
    """Return the numbers of processes as text for an operator."""
    return ", ".join(str(one.pid) for one in sorted(found)[:10])


def launch(words, variables):
    """Start the command in a session of its own and return its process.

    The child waits for a word before it becomes the command, and that is given only
    once the state file is written: no command ever runs without one, even if this
    process is killed in between.
    """
    output = open_output()
    go, failed = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        become(words, variables, output, go, failed)
    for unused in (go[0], failed[1], output):
        os.close(unused)
    main_process = Identity(pid, look_up(pid).started)
    write_state(main_process)
    os.write(go[1], b"!")
    os.close(go[1])
    # Becoming the command closes the other end; only a failure writes to it.
    reason = os.read(failed[0], 4096).decode("utf-8", "replace")
    os.close(failed[0])
    if reason:
        os.waitpid(pid, 0)
        remove_state()
        raise Problem(INSTALLED, f"the command {words[0]} cannot be run: {reason}")
    return main_process


def open_output():
    """Open the file for the command's output."""
    path = parameter("output", "/dev/null")
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as error:
        raise Problem(ARGUMENTS, f"the output {path} cannot be opened: {error.strerror}") from None


def where_output():
    """Return where to read what the command said of itself."""
    path = parameter("output", "/dev/null")
    if path == "/dev/null":
        return "its output is lost: give the parameter output a file"
    return f"see what it wrote to {path}"


def become(words, variables, output, go, failed):
    """Turn the forked child into the command; never returns."""
    try:
        # Only with this end closed does the read below see that our parent was killed.
        os.close(go[1])
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for one in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)
        if os.read(go[0], 1) != b"!":
            os._exit(1)
        os.chdir(parameter("directory", "/"))
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # The lock above all: whoever holds its descriptor holds the lock.
        os.closerange(3, failed[1])
        os.closerange(failed[1] + 1, 4096)
        os.execvpe(words[0], words, variables)
    except BaseException as error:
        os.write(failed[1], str(getattr(error, "strerror", None) or error).encode() or b"unknown")
    os._exit(127)


def wait_until_ready(main_process, port, until, settle=0.0):
    """Return once the command answers on *port*, or without one has run for *settle* seconds."""
    settled = time.monotonic() + settle
    while True:
        # Asked before the main process: another program may have come to answer there.
        ready = time.monotonic() >= settled if port is None else answers(port, 1.0)
        if not runs(main_process):
            how = how_it_ended(main_process.pid)
            raise Problem(GENERIC, f"the command ended at once{how}; {where_output()}")
        if ready:
            return
        if time.monotonic() >= until:
            raise Problem(GENERIC, f"it did not answer on {address()} port {port} in time")
        time.sleep(PAUSE)


def how_it_ended(pid):
    """Return how the process *pid* ended, as text, if it was our child."""
    try:
        _pid, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return ""
    if os.WIFSIGNALED(status):
        return f" by signal {os.WTERMSIG(status)}"
    return f" with exit status {os.WEXITSTATUS(status)}"


def answers(port, seconds):
    """Say whether something accepts a connection on the address and *port*."""
    import socket

    try:
        socket.create_connection((address(), port), seconds).close()
    except OSError:
        return False
    return True


def end_all(main_process, first_signal, patience, until):
    """End all processes of the service; return the identities of those left at *until*.

    The main process is asked first, because many end their children themselves; those
    that outlive it are asked as well, and all are killed once *patience* is used up.
    """
    kill_at = time.monotonic() + patience
    seen = set()
    asked = set()
    pause = PAUSE
    while True:
        # Who was seen once is ours, also when parent, session and mark no longer say so.
        seen |= members(main_process)
        left = {one for one in seen if runs(one)}
        now = time.monotonic()
        if not left or now >= until:
            return left
        for one in left:
            if now >= kill_at:
                send(one, signal.SIGKILL)
            elif one not in asked and (one == main_process or main_process not in left):
                asked.add(one)
                send(one, first_signal)
        time.sleep(pause)
        # Looking through all processes is work: not fifty times in each second of a long stop.
        pause = min(pause * 1.5, LONGEST_PAUSE, max(PAUSE, kill_at - now))


def send(identity, which):
    """Send a signal to that very process, if it still runs."""
    if not runs(identity):
        return
    try:
        os.kill(identity.pid, which)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise Problem(
            PERMISSION, f"process {identity.pid} may not be signalled by this user"
        ) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
