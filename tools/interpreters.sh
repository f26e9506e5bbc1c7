# shellcheck shell=bash disable=SC2034
# Finds the Pythons for a task: those that its arguments name, or all there are. `pythons` and
# `wheels` source it after lib.sh.

# Prints the version of an interpreter, such as 3.13t; prints nothing if the interpreter does not
# run or is older than 3.10.
version_of() { # version_of INTERPRETER
  timeout 20 "$1" -c '
import sys, sysconfig
if sys.version_info >= (3, 10):
    print("%d.%d%s" % (*sys.version_info[:2], "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))' 2>/dev/null || true
}

# Prints every candidate; the first one of each version is taken. PATH comes before pyenv, and in
# pyenv the highest patch level comes first. A shim of pyenv for a version that is not chosen does
# not run.
candidates() {
  local minor
  for minor in {10..19}; do
    type -ap "python3.$minor" "python3.${minor}t" 2>/dev/null || true
    printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor"*/bin/python3."$minor"{,t} | sort -rV
  done
  type -ap python3 || true
}

declare -A interpreter=()
find_all() {
  local candidate version
  while IFS= read -r candidate; do
    [[ -x $candidate ]] || continue
    version=$(version_of "$candidate")
    [[ -n $version && -z ${interpreter[$version]:-} ]] && interpreter[$version]=$candidate
  done < <(candidates)
  return 0
}

# choose_interpreters TASK [VERSION|PATH…]: fills `chosen` (version: interpreter) and `order` (the
# versions, ascending). TASK is named in error messages.
declare -A chosen=()
order=()
choose_interpreters() {
  local task=$1 wanted version
  shift
  for wanted; do
    if [[ $wanted == */* ]]; then
      version=$(version_of "$wanted")
      [[ -n $version ]] || die "$task: $wanted is not a Python 3.10 or later that runs"
      chosen[$version]=$(realpath -s "$wanted")
    elif [[ $wanted =~ ^3\.[0-9]+t?$ ]]; then
      ((${#interpreter[@]})) || find_all
      [[ -n ${interpreter[$wanted]:-} ]] || die "$task: no Python $wanted on PATH or under pyenv; there are: ${!interpreter[*]}. Or give its path."
      chosen[$wanted]=${interpreter[$wanted]}
    else
      die "$task: what is $wanted? Give a version as 3.12 or 3.13t, or the path of an interpreter"
    fi
  done
  if (($# == 0)); then
    find_all
    for version in "${!interpreter[@]}"; do chosen[$version]=${interpreter[$version]}; done
  fi
  ((${#chosen[@]})) || die "$task: no Python 3.10 or later on PATH or under pyenv; give the path of one"
  mapfile -t order < <(printf '%s\n' "${!chosen[@]}" | sort -V)
}
