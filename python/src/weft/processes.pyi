"""Types of weft.processes: those of weft.threads. Written by tools/names.py: do not edit."""

from weft._hosts.executor import Executor as Executor
from weft._hosts.hosts import Hosts as Hosts
from weft._hosts.shared_arrays import arrays_in_shared_memory as arrays_in_shared_memory
from weft._hosts.shared_arrays import empty as empty
from weft._hosts.start import freeze_support as freeze_support
from weft._hosts.supervisor import Supervisor as Supervisor
from weft._native import Shared as Shared
from weft.threads import Alternative as Alternative
from weft.threads import BadUse as BadUse
from weft.threads import Barrier as Barrier
from weft.threads import BlockedProcess as BlockedProcess
from weft.threads import Cancelled as Cancelled
from weft.threads import Channel as Channel
from weft.threads import ChannelArray as ChannelArray
from weft.threads import ChannelEnd as ChannelEnd
from weft.threads import ChannelStats as ChannelStats
from weft.threads import Deadlock as Deadlock
from weft.threads import Ended as Ended
from weft.threads import Group as Group
from weft.threads import Guard as Guard
from weft.threads import Input as Input
from weft.threads import Listener as Listener
from weft.threads import NoResult as NoResult
from weft.threads import Output as Output
from weft.threads import Outside as Outside
from weft.threads import Parallel as Parallel
from weft.threads import PeerDied as PeerDied
from weft.threads import Poisoned as Poisoned
from weft.threads import Process as Process
from weft.threads import ProcessDied as ProcessDied
from weft.threads import ProcessEnd as ProcessEnd
from weft.threads import Reader as Reader
from weft.threads import Ready as Ready
from weft.threads import Retired as Retired
from weft.threads import Sequence as Sequence
from weft.threads import Spawn as Spawn
from weft.threads import Stream as Stream
from weft.threads import Timeout as Timeout
from weft.threads import Timer as Timer
from weft.threads import WeftError as WeftError
from weft.threads import WeftWarning as WeftWarning
from weft.threads import Writer as Writer
from weft.threads import after as after
from weft.threads import at as at
from weft.threads import connect as connect
from weft.threads import current_process as current_process
from weft.threads import deadline as deadline
from weft.threads import deadlocks as deadlocks
from weft.threads import debug as debug
from weft.threads import io as io
from weft.threads import listen as listen
from weft.threads import measure as measure
from weft.threads import measuring as measuring
from weft.threads import move_on_after as move_on_after
from weft.threads import now as now
from weft.threads import poison as poison
from weft.threads import process as process
from weft.threads import readable as readable
from weft.threads import retire as retire
from weft.threads import run as run
from weft.threads import run_async as run_async
from weft.threads import select as select
from weft.threads import skip as skip
from weft.threads import sleep as sleep
from weft.threads import statistics as statistics
from weft.threads import timeout as timeout
from weft.threads import tracing as tracing
from weft.threads import watchdog as watchdog
from weft.threads import watched as watched
from weft.threads import watching_deadlocks as watching_deadlocks
from weft.threads import writable as writable
from weft.threads import yield_ as yield_

__all__ = [
    "Alternative",
    "BadUse",
    "Barrier",
    "BlockedProcess",
    "Cancelled",
    "Channel",
    "ChannelArray",
    "ChannelEnd",
    "ChannelStats",
    "Deadlock",
    "Ended",
    "Executor",
    "Group",
    "Guard",
    "Hosts",
    "Input",
    "Listener",
    "NoResult",
    "Output",
    "Outside",
    "Parallel",
    "PeerDied",
    "Poisoned",
    "Process",
    "ProcessDied",
    "ProcessEnd",
    "Reader",
    "Ready",
    "Retired",
    "Sequence",
    "Shared",
    "Spawn",
    "Stream",
    "Supervisor",
    "Timeout",
    "Timer",
    "WeftError",
    "WeftWarning",
    "Writer",
    "after",
    "arrays_in_shared_memory",
    "at",
    "connect",
    "current_process",
    "deadline",
    "deadlocks",
    "debug",
    "empty",
    "freeze_support",
    "io",
    "listen",
    "measure",
    "measuring",
    "move_on_after",
    "now",
    "poison",
    "process",
    "readable",
    "retire",
    "run",
    "run_async",
    "select",
    "skip",
    "sleep",
    "statistics",
    "timeout",
    "tracing",
    "watchdog",
    "watched",
    "watching_deadlocks",
    "writable",
    "yield_",
]
