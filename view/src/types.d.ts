/** The form in which `weft view` sends a look (python/src/weft/_commands/view_server.py). */
export type State =
  | 'runs' | 'due' | 'reads' | 'writes' | 'either' | 'time' | 'barrier' | 'waits' | 'io';
export type Shares = Partial<Record<State, number>>;
export interface Process {
  path: string;
  pid: number;
  kind: string;
  now: State;
  seconds: number;
  before: boolean;
  where: string;
  share: Shares;
  cpu: number | null;
  rate: number | null;
  holds: [string, boolean][];
  waits: [string, boolean][];
  host: string; // the host of a network, or the board (kind 'board'), on which it runs; or ''
}
export interface Channel {
  id: string;
  name: string;
  pid: number;
  rate: number | null; // null: no program in the look knows the rate
  depth: number;
  capacity: number;
  dropped: number;
  reading: number;
  writing: number;
}
export interface OsProcess {
  pid: number;
  program: string;
  cpu: number | null;
  memory: number;
  host: string;
  number: number; // the pid that the system of its machine knows
}
/** A host of a network. */
export interface Host {
  name: string;
  state: 'answers' | 'silent' | 'gone';
  text: string; // why the host does not answer
}
export interface Stuck {
  path: string;
  pid: number;
  waits_for: string[];
}
export interface Look {
  at: number;
  pid: number;
  since: number | null;
  seconds: number;
  interval: number;
  verdict: { kind: string; names: string[]; text: string };
  processes: Process[];
  channels: Channel[];
  os_processes: OsProcess[];
  silent: string[];
  left_out: number;
  stuck: Stuck[];
  network: string; // the server of the network whose hosts these are; '' if this is a program
  hosts: Host[];
}

/** A name in the tree of paths: a process, a group of processes, `worker[*]`, or a host. */
export interface Name {
  id: string;
  label: string;
  array: boolean;
  host: boolean;
  up: Name | null;
  below: Name[];
  rows: Process[];
  count: number;
}

/** A box of the drawing. */
export interface Box {
  id: string;
  kind: 'process' | 'folded' | 'more' | 'hub' | 'grid' | 'host'; // host: a host without a process
  label: string;
  count: number;
  rows: Process[];
  shares: Shares;
  main: State;
  text: string;
  rate: number | null;
  slow: boolean;
  tag: string; // what a slow box is called
  stuck: boolean;
  inside: number;
  frame: string;
  bundle: Bundle | null;
  cells: string[]; // the boxes of a grid
}
/** Channels that are drawn as one: those with the same boxes at both sides. */
export interface Bundle {
  id: string;
  label: string;
  channels: Channel[];
  writers: string[];
  readers: string[];
  rate: number | null;
  depth: number;
  capacity: number;
  dropped: number;
  reading: number;
  writing: number;
  stuck: boolean;
}
export interface Line {
  id: string;
  from: string;
  to: string;
  bundle: Bundle;
  label: boolean;
  stuck: boolean;
}
/** A frame around boxes: a host, an OS process, or a group that is opened. */
export interface Frame {
  id: string;
  up: string;
  label: string;
  text: string;
  opens: string | null;
}
export interface Drawing {
  boxes: Map<string, Box>;
  lines: Map<string, Line>;
  frames: Map<string, Frame>;
  left_out: string[];
  opened: Set<string>;
  shape: string;
}
