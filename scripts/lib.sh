# SPDX-License-Identifier: Apache-2.0
# lib.sh - sourced by quickstart and test: install what is missing, build, run mpirun.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

packages="gcc make autoconf automake libtool pkg-config libopenmpi-dev openmpi-bin openssh-client
libucx-dev libconfig-dev libhwloc-dev libxxhash-dev libcjson-dev libopenblas-dev"
test_packages="g++ clang xz-utils libcmocka-dev binutils procps util-linux python3 mandoc"

say() { printf '\n== %s\n' "$*"; }

install_missing() { # install_missing PACKAGE... - ask nothing, do nothing twice
    local missing= package sudo=
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing$missing"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "run this as root, or install sudo, or install by hand:$missing" >&2
            exit 1
        }
        sudo=sudo
    fi
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

build() { # build FOLDER [CONFIGURE OPTIONS]
    local folder=$1
    shift
    [ -x "$root/configure" ] && [ "$root/configure" -nt "$root/configure.ac" ] || {
        say "preparing configure"
        "$root/autogen.sh" >/dev/null
    }
    mkdir -p "$folder"
    (
        cd "$folder"
        say "building in $folder"
        [ -e Makefile ] || "$root/configure" -q "$@"
        make -s -j"$(nproc)"
    )
}

# More ranks than cores, any core, and root too: what a trial on one machine needs.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
