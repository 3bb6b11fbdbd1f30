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

SUCCESS, GENERIC, ARGUMENTS, UNIMPLEMENTED = 0, 1, 2, 3
PERMISSION, INSTALLED, CONFIGURED, NOT_RUNNING = 4, 5, 6, 7

MARK = "HOLDFAST_COMMAND"
PAUSE = 0.02
SETTLE = 0.1
"""Seconds in which a command that cannot work usually ends."""

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


def show_metadata():
    """Print the metadata; this needs nothing and cannot fail."""
    sys.stdout.write(METADATA)
    return SUCCESS


def show_usage():
    """Print how the agent is called."""
    sys.stderr.write("usage: command {start|stop|monitor|validate-all|meta-data}\n")
    return SUCCESS


def monitor():
    """Running, and answering if it has a port: 0; gone with all it started: 7; else 1."""
    state = read_state()
    if state is None or not leads(state):
        left = members(state)
        if not left:
            return NOT_RUNNING
        raise Problem(GENERIC, f"its main process is gone but these are left: {numbers(left)}")
    port = port_number()
    if port is not None and not answers(port, min(5.0, time_limit() / 2)):
        raise Problem(
            GENERIC, f"process {state[0]} runs but does not answer on {address()} port {port}"
        )
    return SUCCESS


def start():
    """Start the command and wait until it runs, or until it answers if it has a port."""
    until = time.monotonic() + time_limit() * 0.9
    words, directory, variables = command_line()
    port = port_number()
    with_lock(until)
    state = read_state()
    if state is not None and leads(state):
        wait_until_it_answers(state, port, until, ours=None)
        return SUCCESS
    left = members(state)
    if left:
        raise Problem(GENERIC, f"of an earlier run these are left: {numbers(left)}; stop it first")
    if port is not None and is_taken(port):
        raise Problem(GENERIC, f"another program already listens on {address()} port {port}")
    state = launch(words, directory, variables)
    try:
        wait_until_it_answers(state, port, until, ours=state[0])
    except Problem:
        end_all(state, signal.SIGKILL, 0.0, time.monotonic() + 5.0)
        remove_state()
        raise
    return SUCCESS


def stop():
    """End the command and all that it started; done when none of them is left."""
    limit = time_limit()
    began = time.monotonic()
    with_lock(began + limit * 0.9)
    state = read_state()
    patience = min(whole_number("stop_timeout", 10), limit * 0.8)
    left = end_all(state, stop_signal(), patience, began + limit * 0.95)
    if left:
        raise Problem(GENERIC, f"these would not end: {numbers(left)}")
    remove_state()
    return SUCCESS


def validate():
    """Check the parameters, and that the command can be run here."""
    command_line()
    port_number()
    stop_signal()
    whole_number("stop_timeout", 10)
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


def stop_signal():
    """Return the signal that asks the command to end."""
    name = parameter("stop_signal", "TERM").upper()
    name = name if name.startswith("SIG") else "SIG" + name
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals):
        raise Problem(CONFIGURED, f"stop_signal must be a signal's name, not {name!r}")
    return found


def command_line():
    """Return the command's words, its directory and its variables, all of them checked."""
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
    directory = parameter("directory", "/")
    if not os.path.isdir(directory):
        raise Problem(INSTALLED, f"the directory {directory} does not exist")
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OCF_", "HA_", "LC_ALL")) and name != MARK
    }
    variables.update((name, value) for name, _equals, value in pairs)
    if not is_program(words[0], directory, variables.get("PATH", os.defpath)):
        raise Problem(INSTALLED, f"the command {words[0]} is not installed or not executable")
    variables[MARK] = state_file()
    return words, directory, variables


def is_program(word, directory, search_path):
    """Say whether *word* names a program, as execvpe will look for it."""
    if "/" in word:
        candidates = [os.path.join(directory, word)]
    else:
        candidates = [os.path.join(one, word) for one in search_path.split(":")]
    return any(os.path.isfile(one) and os.access(one, os.X_OK) for one in candidates)


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
    """Return the main process's number and start time, or None when nothing was started.

    A state file of an earlier boot says nothing any more.
    """
    try:
        with open(state_file(), encoding="ascii") as file:
            pid, started, boot = file.read().split()
        return (int(pid), int(started)) if boot == boot_id() else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Problem(GENERIC, f"the state file {state_file()} cannot be read: {error}") from None


def write_state(state):
    """Write the state file whole or not at all."""
    path = state_file()
    try:
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{state[0]} {state[1]} {boot_id()}\n")
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


def entry(pid):
    """Return (state, parent, session, start time) of a process, or None (proc.5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19])


def leads(state):
    """Say whether the main process runs; a zombie does not."""
    found = entry(state[0])
    return found is not None and found[3] == state[1] and found[0] not in "ZX"


def members(state):
    """Return the numbers of all processes that belong to the service and are not zombies.

    A process belongs by its session, by the mark in its environment, or by its parent.
    While a session has members its number is not given out again.
    """
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = entry(name)
            if found is not None:
                table[int(name)] = found
    ours = set()
    for pid, (_state, _parent, session, started) in table.items():
        if pid == os.getpid():
            continue
        if state is not None and session == state[0] and started >= state[1]:
            ours.add(pid)
        elif state is not None and started < state[1]:
            continue
        elif is_marked(pid):
            ours.add(pid)
    if state is not None and is_another(table.get(state[0]), state):
        # The number names another program by now: whoever has its session is not ours.
        ours = {pid for pid in ours if is_marked(pid)}
    while True:
        more = {pid for pid, one in table.items() if one[1] in ours and pid not in ours}
        if not more:
            break
        ours |= more
    return {pid: table[pid] for pid in ours if table[pid][0] not in "ZX"}


def is_another(found, state):
    """Say whether *found* is a process that merely has the number of our main one."""
    return found is not None and found[3] != state[1]


def is_marked(pid):
    """Say whether a process carries our mark in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={state_file()}".encode() in variables


def numbers(found):
    """Return process numbers as text for an operator."""
    return ", ".join(str(pid) for pid in sorted(found)[:10])


def launch(words, directory, variables):
    """Start the command in a session of its own and return its number and start time.

    The child waits for a word before it becomes the command, and that is given only
    once the state file is written: no command ever runs without one, even if this
    process is killed in between.
    """
    output = open_output()
    go, failed = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        become(words, directory, variables, output, go, failed)
    for unused in (go[0], failed[1], output):
        os.close(unused)
    state = (pid, entry(pid)[3])
    write_state(state)
    os.write(go[1], b"!")
    os.close(go[1])
    # Becoming the command closes the other end; only a failure writes to it.
    reason = os.read(failed[0], 4096).decode("utf-8", "replace")
    os.close(failed[0])
    if reason:
        os.waitpid(pid, 0)
        remove_state()
        raise Problem(INSTALLED, f"the command {words[0]} cannot be run: {reason}")
    return state


def open_output():
    """Open the file for the command's output."""
    path = parameter("output", "/dev/null")
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as error:
        raise Problem(ARGUMENTS, f"the output {path} cannot be opened: {error.strerror}") from None


def become(words, directory, variables, output, go, failed):
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
        os.chdir(directory)
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


def wait_until_it_answers(state, port, until, ours):
    """Return once the command runs, or answers on *port*; *ours* is our child to collect."""
    settled = time.monotonic() + SETTLE
    while True:
        status = collected(ours)
        if status is not None or not leads(state):
            raise Problem(GENERIC, f"the command ended at once{status or ''}; see its output")
        if port is None and (ours is None or time.monotonic() >= settled):
            return
        if port is not None and answers(port, 1.0):
            if not leads(state):
                continue
            return
        if time.monotonic() >= until:
            raise Problem(GENERIC, f"it did not answer on {address()} port {port} in time")
        time.sleep(PAUSE)


def collected(pid):
    """Return how our child ended, as text, or None while it runs."""
    if pid is None:
        return None
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return ""
    if found == 0:
        return None
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


def is_taken(port):
    """Say whether another program listens on the address and *port*."""
    import errno
    import socket

    try:
        families = socket.getaddrinfo(address(), port, type=socket.SOCK_STREAM)
    except OSError:
        raise Problem(ARGUMENTS, f"the address {address()} is not known here") from None
    family, kind, protocol, _name, where = families[0]
    try:
        with socket.socket(family, kind, protocol) as trial:
            # Without this, connections of an earlier run that linger would look like a listener.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(where)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return True
        return answers(port, 1.0)
    return False


def end_all(state, first_signal, patience, until):
    """End all processes of the service; return those that are left at *until*.

    The main process is asked first, because many end their children themselves; those
    that outlive it are asked as well, and all are killed once *patience* is used up.
    """
    kill_at = time.monotonic() + patience
    asked = set()
    while True:
        left = members(state)
        if not left or time.monotonic() >= until:
            return left
        if time.monotonic() >= kill_at:
            for pid, one in left.items():
                send(pid, one, signal.SIGKILL)
        else:
            main_one = state[0] if state is not None and state[0] in left else None
            for pid, one in left.items():
                if pid not in asked and main_one in (None, pid):
                    asked.add(pid)
                    send(pid, one, first_signal)
        time.sleep(PAUSE)


def send(pid, one, which):
    """Send a signal to a process, unless its number belongs to another by now."""
    found = entry(pid)
    if found is None or found[3] != one[3]:
        return
    try:
        os.kill(pid, which)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise Problem(PERMISSION, f"process {pid} may not be stopped by this user") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
