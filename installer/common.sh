# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share. To be sourced; `top` is the repository.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Processor cores that this shell may use.
cores() { nproc 2>/dev/null || echo 1; }

# Jobs for a build: one for each core, but no more than 2 GiB of memory each allow.
jobs_for_build() {
    local memory count
    memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null || echo 1)
    count=$(cores)
    [ "${memory:-1}" -ge "$count" ] || count=${memory:-1}
    [ "$count" -ge 1 ] || count=1
    echo "$count"
}

# Configures a preset when that has not been done, and builds the given targets, or all.
configure_and_build() {
    local preset=$1
    shift
    local -a extra=()
    local venv
    venv=$("$top/installer/bootstrap" --print-venv)
    [ ! -d "$venv" ] || extra+=("-DMUSTER_TORCH_VENV=$venv")
    if command -v ccache >/dev/null; then
        extra+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
    fi
    if [ -n "${MUSTER_SHARED:-}" ]; then
        extra+=("-DMUSTER_SHARED_DIR=$MUSTER_SHARED")
    fi
    (cd "$top" && cmake --preset "$preset" "${extra[@]}" ${MUSTER_CMAKE_ARGS:-}) || return 1
    local -a targets=()
    [ $# = 0 ] || targets=(--target "$@")
    cmake --build "$top/build/$preset" -j "$(jobs_for_build)" "${targets[@]}"
}
