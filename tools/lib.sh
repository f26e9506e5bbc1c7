# shellcheck shell=bash
# Functions that the tasks share: messages, steps with progress, retries, stamps, and installing
# packages that are missing.
#
# Invariants
# - Nothing here writes to stdout, which belongs to the task (a program may read its last line).
# - Every function may be called twice; the second call finds the work done and is quick.
# - Only missing packages are installed, and they are named before they are installed.
# - A stamp is written after its work succeeded, never before; it holds a hash of the key for which
#   the work was done.
# - `step`, `retry` and `stamped` run their command in a tested context, where bash ignores `set
#   -e`: give them one command, or a function joined by && throughout.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STAMPS=$ROOT/.build/stamps
LOGS=$ROOT/.build/logs
VENV=$ROOT/.venv
export ROOT VENV
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

trap 'exit 130' INT # a program that catches Ctrl-C and ends with its own status must not look like a failure to retry

say() { printf 'weft: %s\n' "$*" >&2; }
die() {
  printf 'weft: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
hash_of() { sha256sum | cut -d' ' -f1; }

# --- steps ----------------------------------------------------------------------------------------

# Shows that a step is alive: on a terminal by one line that changes, elsewhere by a line now and
# then.
_ticker() { # _ticker WHAT LOG
  local seconds=0 last width
  while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    seconds=$((seconds + 1))
    if [[ -t 2 ]]; then
      width=$(($(tput cols 2>/dev/null || echo 80) - 1))
      last=$(tail -n 1 "$2" 2>/dev/null | tr -d '\r\033' || true)
      printf '\r\033[K%.*s' "$width" "weft: $1 … ${seconds} s  $last" >&2
    elif ((seconds % 20 == 0)); then
      say "$1 … $seconds s"
    fi
  done
}

# step WHAT COMMAND…: runs the command with its output in a log, and shows progress; if the command
# fails, shows the end of the log.
step() {
  local what=$1 status=0 start=$SECONDS log ticker
  shift
  mkdir -p "$LOGS"
  log=$LOGS/$(printf '%s' "$what" | tr -cs '[:alnum:]' - | cut -c1-60).log
  : >"$log"
  [[ -t 2 ]] || say "$what"
  _ticker "$what" "$log" 9>&- &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  [[ -t 2 ]] && printf '\r\033[K' >&2
  if ((status)); then
    say "$what: failed (status $status); the end of ${log#"$ROOT"/}:"
    tail -n 15 "$log" | sed 's/^/    /' >&2
    return "$status"
  fi
  say "$what: done ($((SECONDS - start)) s)"
}

# retry COMMAND…: tries up to three times, and waits longer before each try. It is for commands that
# depend on the network.
retry() {
  local try status=0 wait=${WEFT_RETRY_DELAY:-2}
  for try in 1 2 3; do
    status=0
    "$@" || status=$?
    ((status == 0)) && return 0
    ((try == 3)) && break
    say "trying again in $wait s (try $((try + 1)) of 3)"
    sleep "$wait"
    wait=$((wait * 3))
  done
  return "$status"
}

# stamped NAME KEY COMMAND…: runs the command unless it has succeeded before for the same key.
stamped() {
  local stamp=$STAMPS/$1 key
  key=$(printf '%s' "$2" | hash_of)
  shift 2
  [[ -f $stamp && $(<"$stamp") == "$key" ]] && return 0
  rm -f "$stamp"
  "$@" || return
  mkdir -p "$STAMPS"
  printf '%s\n' "$key" >"$stamp"
}

# tree_hash PATH…: prints one hash over the names and contents of the files below the paths (missing
# paths count as empty).
tree_hash() {
  local path paths=()
  for path; do [[ -e $path ]] && paths+=("$path"); done
  ((${#paths[@]})) || { hash_of </dev/null && return; }
  find "${paths[@]}" -type f ! -name '*.pyc' ! -path '*/.*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | hash_of
}

# take_lock: allows one set-up or build of this checkout at a time. The lock is held until the task
# ends, and is shared with the programs that the task calls.
take_lock() {
  [[ -n ${WEFT_LOCKED:-} ]] && return 0
  mkdir -p "$ROOT/.build"
  exec 9>"$ROOT/.build/lock"
  flock -n 9 || { say 'another set-up or build is at work: waiting for it' && flock 9; }
  export WEFT_LOCKED=1
}

# --- system packages ------------------------------------------------------------------------------

as_root() {
  if ((EUID == 0)); then "$@"; else sudo --preserve-env=DEBIAN_FRONTEND -- "$@"; fi
}

_apt_missing() {
  local pkg installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p' || true)
  for pkg; do grep -qxF -- "$pkg" <<<"$installed" || printf '%s\n' "$pkg"; done
}

_apt_update() {
  # Lists fetched in the last hours are new enough. A failed install removes the stamp, so that the
  # next try fetches them again.
  [[ -n $(find "$STAMPS/apt-update" -mmin -360 2>/dev/null) ]] && return 0
  retry step 'fetching the package lists' as_root apt-get -o DPkg::Lock::Timeout=300 update || return
  mkdir -p "$STAMPS" && touch "$STAMPS/apt-update"
}

_apt_install() {
  _apt_update || return
  step "installing system packages: $*" as_root apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" || {
    local status=$?
    rm -f "$STAMPS/apt-update"
    return "$status"
  }
}

# need_apt PACKAGE…: installs those packages that are missing.
need_apt() {
  if ! have apt-get || ! have dpkg-query; then
    say "no apt here: see to it yourself that these are installed: $*"
    return 0
  fi
  local missing
  mapfile -t missing < <(_apt_missing "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    have sudo || die "not root and no sudo; as root: apt-get install ${missing[*]}"
    sudo -n true 2>/dev/null || sudo -v || die "could not become root; as root: apt-get install ${missing[*]}"
  fi
  retry _apt_install "${missing[@]}" || die "could not install ${missing[*]}; is the network there? Then run the same again."
}

# need_command COMMAND PACKAGE…: installs the packages unless the command exists, whatever its
# origin.
need_command() {
  have "$1" || need_apt "${@:2}"
}

# _suite KIND SUITE WORK: sets up an apt of its own in the folder WORK, for that suite of Debian at
# this machine's own mirror. It fetches the suite's lists (KIND: deb or deb-src), and leaves the
# options for apt-get in `options`. Packages are those of DEB_ARCHITECTURE, or of this machine.
_suite() {
  local kind=$1 suite=$2 work=$3 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016 # for apt-get to expand
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sed -n 1p || true)
  options=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
  [[ -z ${DEB_ARCHITECTURE:-} ]] || options+=(-o "APT::Architecture=$DEB_ARCHITECTURE" -o "APT::Architectures=$DEB_ARCHITECTURE")
  [[ -n $mirror ]] || { say "apt knows no Debian mirror: fetch what is missing of Debian $suite yourself, as ${work%.fetch}" && return 1; }
  rm -rf "$work" &&
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/tree" &&
    echo "$kind [signed-by=$keyring] $mirror $suite main" >"$work/sources.list" &&
    apt-get "${options[@]}" update
}

# The functions below work in a folder beside DIR, which replaces DIR at the end.
_fetch_deb() { # _fetch_deb SUITE PACKAGE TREE DIR
  local work=$4.fetch options
  _suite deb "$1" "$work" &&
    (cd "$work" && apt-get "${options[@]}" download "$2") &&
    dpkg-deb --fsys-tarfile "$work/$2"_*.deb | tar -x -C "$work/tree" "./$3" &&
    rm -rf "$4" &&
    mv "$work/tree/$3" "$4" &&
    rm -rf "$work"
}

_fetch_debs() { # _fetch_debs SUITE DIR PACKAGE…
  local work=$2.fetch options deb
  _suite deb "$1" "$work" && (cd "$work" && apt-get "${options[@]}" download "${@:3}") || return
  for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/tree" || return; done
  rm -rf "$2" &&
    mv "$work/tree" "$2" &&
    rm -rf "$work"
}

_fetch_source() { # _fetch_source SUITE PACKAGE DIR
  local work=$3.fetch options
  _suite deb-src "$1" "$work" &&
    (cd "$work" && apt-get "${options[@]}" --download-only source "$2") &&
    dpkg-source -x "$work/$2"_*.dsc "$work/source" &&
    rm -rf "$3" &&
    mv "$work/source" "$3" &&
    rm -rf "$work"
}

_need_other() { # _need_other STAMP KEY DIR WHAT COMMAND…
  if ! have apt-get || ! have dpkg-deb; then
    say "no apt here: see to it yourself that $3 is $4"
    return 0
  fi
  [[ -f /usr/share/keyrings/debian-archive-keyring.gpg ]] || need_apt debian-archive-keyring
  [[ -d $3 ]] || rm -f "$STAMPS/$1"
  stamped "$1" "$2" retry step "fetching $4" "${@:5}" ||
    die "could not fetch $4; is the network there? Then run the same again."
}

# need_deb SUITE PACKAGE TREE DIR: puts a folder of a package from another suite of Debian than this
# machine's into DIR. The package is only unpacked: nothing on the machine changes. need_debs does
# the same for whole packages, need_deb_source for a package's source, with Debian's patches.
need_deb() { _need_other "deb-$2" "$1 $2 $3 $4" "$4" "$2 of Debian $1" _fetch_deb "$@"; }
need_debs() { _need_other "debs-$3" "$*" "$2" "${*:3} of Debian $1" _fetch_debs "$@"; } # SUITE DIR PACKAGE…
need_deb_source() {                                                                    # SUITE PACKAGE DIR
  have dpkg-source || need_apt dpkg-dev
  _need_other "source-$2" "$*" "$3" "the source of $2 of Debian $1" _fetch_source "$@"
}

# need_sdist PACKAGE VERSION TREE DIR: puts a folder of the source of a package from Python's index
# into DIR. The package is only unpacked.
_fetch_sdist() {
  local work=$4.fetch
  rm -rf "$work" &&
    mkdir -p "$work/tree" &&
    "$VENV/bin/pip" download --progress-bar off --no-deps --no-binary "$1" --dest "$work" "$1==$2" &&
    tar -xz -C "$work/tree" --strip-components 1 -f "$work"/*.tar.gz &&
    rm -rf "$4" &&
    mv "$work/tree/$3" "$4" &&
    rm -rf "$work"
}
need_sdist() {
  need_venv
  [[ -d $4 ]] || rm -f "$STAMPS/sdist-$1"
  stamped "sdist-$1" "$*" retry step "fetching the source of $1 $2" _fetch_sdist "$@" ||
    die "could not fetch the source of $1 $2; is the network there? Then run the same again."
}

# --- Python, node, Go -----------------------------------------------------------------------------

# Starting an interpreter takes far longer than everything else here, so the answers of python3 are
# cached: its version, and where its Python.h is or should be. It is started again when another
# python3 comes first on PATH, or when Python.h is a new file.
_ask_python() {
  local python kept=$STAMPS/python
  python=$(command -v python3)
  if [[ ! -f $kept || $kept -ot $python || $(head -n 1 "$kept") != "$python" ]]; then
    mkdir -p "$STAMPS"
    {
      echo "$python"
      python3 -c 'import sys, sysconfig; print(*sys.version_info[:2]); print(sysconfig.get_path("include") + "/Python.h")'
    } >"$kept.new" || die "$python does not run"
    mv "$kept.new" "$kept"
  fi
  { read -r _ && read -r PYTHON_MAJOR PYTHON_MINOR && read -r PYTHON_HEADER; } <"$kept"
}

# need_python [MINOR]: makes sure that python3 is 3.10 (or that minor version) or later.
need_python() {
  local minor=${1:-10}
  need_command python3 python3
  _ask_python
  ((PYTHON_MAJOR == 3 && PYTHON_MINOR >= minor)) ||
    die "$(command -v python3) is Python $PYTHON_MAJOR.$PYTHON_MINOR; this needs Python 3.$minor or later"
}

# need_python_headers: makes sure that the python3 in use has a Python.h.
need_python_headers() {
  need_python 10
  [[ -f $PYTHON_HEADER ]] && return 0
  need_apt python3-dev
  [[ -f $PYTHON_HEADER ]] || die "$PYTHON_HEADER is missing: install the development files of $(command -v python3)"
}

# need_venv: makes the virtual environment .venv/, and makes it again if its Python is gone (its
# link leads nowhere).
need_venv() {
  need_python 10
  [[ -x $VENV/bin/python && -x $VENV/bin/pip ]] && return 0
  rm -f "$STAMPS"/pip-* "$STAMPS/weft"
  python3 -c 'import ensurepip, venv' 2>/dev/null || need_apt python3-venv
  step 'making the virtual environment .venv' python3 -m venv --clear "$VENV" ||
    die "could not make .venv; is the venv module of $(command -v python3) installed?"
}

# need_pip NAME REQUIREMENTS-FILE: installs the file's packages into .venv.
need_pip() {
  need_venv
  local versions
  versions=$(sed 's/ *#.*//; /^$/d' "$2" | tr '\n' ' ')
  stamped "pip-$1" "$versions $(<"$VENV/pyvenv.cfg")" \
    retry step "installing Python packages: ${versions% }" "$VENV/bin/pip" install --progress-bar off -r "$2" ||
    die "could not install the Python packages of ${2#"$ROOT"/}; is the network there? Then run the same again."
}

# need_npm DIR: installs exactly the node packages of DIR/package-lock.json.
need_npm() {
  need_command node nodejs
  need_command npm npm
  [[ -f $1/package-lock.json ]] || die "$1/package-lock.json is missing: npm ci needs it"
  local name=npm-${1//\//-}
  [[ -d $1/node_modules ]] || rm -f "$STAMPS/$name"
  stamped "$name" "$(tree_hash "$1/package.json" "$1/package-lock.json") $(node --version)" \
    retry step "installing node packages in $1" npm --prefix "$1" ci --no-audit --no-fund ||
    die "could not install the node packages of $1; is the network there? Then run the same again."
}

# need_go: makes sure that there is Go, for the benches' peers. If Go is not available, prints a
# message and returns 1, but does not end the task.
need_go() {
  [[ -x /usr/local/go/bin/go ]] && ! have go && PATH=$PATH:/usr/local/go/bin
  have go && return 0
  (need_apt golang-go ca-certificates) && hash -r && have go && return 0
  say 'no Go here: benches against Go are skipped'
  return 1
}

# --- sources --------------------------------------------------------------------------------------

# Prints the names of the C and C++ files of the checkout, tracked or new and not ignored, each
# followed by a zero byte.
native_files() {
  local file
  git -C "$ROOT" ls-files -z --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.h' '*.c' |
    while IFS= read -r -d '' file; do
      # Git still lists files that were removed.
      if [[ -f $ROOT/$file ]]; then printf '%s\0' "$file"; fi
    done
}
