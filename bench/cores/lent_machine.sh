#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ./dev bench faults and ./dev bench cores on a machine that has no compiler and no packages, and that is lent for minutes.
#
#   bench/cores/lent_machine.sh pack [FOLDER]         here: puts programs and libraries into FOLDER (default: build/lent)
#   bench/cores/lent_machine.sh run FOLDER RESULTS    there, as root: measures for about eight minutes
#
# The folder is laid out as a build folder, and the machine needs python3 and this repository's bench/ beside it. Kernel swap
# needs mkswap, swapon and a memory control group; without them it is left out and told. MINUTES=3 makes it shorter.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

fail() { printf 'lent_machine: %s\n' "$*" >&2; exit 1; }

programs=(bench/faults/faults bench/cores/triad bench/paging/programs/lookup bench/alloc/alloc_kernels
  bench/alloc/libfarheap_plain_malloc.so tool/farheap src/preload/libfarheap-preload.so)
allocators=(libjemalloc.so.2 libmimalloc.so.2.0)

# The C library does not travel: the loader there belongs to another one.
libraries_of() {
  ldd "$@" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so'
}

pack() {
  local folder=${1:-build/lent} source=build/release program library
  ninja -C "$source" faults bench_triad bench_lookup alloc_kernels farheap_plain_malloc farheap farheap_preload
  rm -rf "$folder"
  mkdir -p "$folder/lib"
  for program in "${programs[@]}"; do
    mkdir -p "$folder/$(dirname "$program")"
    strip --strip-unneeded -o "$folder/$program" "$source/$program"
  done
  for library in $(libraries_of "${programs[@]/#/$source/}"); do cp -L "$library" "$folder/lib/"; done
  for library in "${allocators[@]}"; do
    cp -L /usr/lib/*/"$library" "$folder/lib/" || fail "no $library: apt install libjemalloc2 libmimalloc2.0"
  done
  du -sh "$folder"
}

# Kernel swap is limited by a memory control group. A bare machine may not have mounted any.
make_control_groups() {
  [[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]] && return 0
  [[ -e /sys/fs/cgroup/cgroup.controllers ]] || mount -t cgroup2 none /sys/fs/cgroup || return 0
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control ||
    echo "NOT MEASURED: kernel swap, the memory controller cannot be handed out"
}

run() {
  local folder results minutes=${MINUTES:-8}
  folder=$(readlink -f "$1")
  results=$(mkdir -p "$2" && readlink -f "$2")
  make_control_groups
  export LD_LIBRARY_PATH=$folder/lib
  faults() { # NAME, then options
    local name=$1
    shift
    python3 bench/faults/run.py --build "$folder" --seconds 1 --markdown --json "$results/$name.json" "$@" ||
      echo "FAILED: faults, $name"
  }
  {
    date -u
    uname -a
    lscpu | grep -E '^(Model name|CPU\(s\)|Thread|NUMA node)' || echo "lscpu: nothing is known of the processors"
    free -g
    cat /sys/kernel/mm/transparent_hugepage/{enabled,shmem_enabled}
    faults faults --rounds 2
    # These tell what the wall is: one userfaultfd, one mapping, or the waking of all handlers. The last tells what moves cost.
    faults faults_ranges --rounds 2 --only pager --row 16/8/1/2 --row 16/8/8/2 --flag ranges=8
    faults faults_epoll --rounds 2 --only pager --row 16/8/1/2 --row 16/8/8/2 --row 4/4/1/1 --flag wait=epoll
    faults faults_move --rounds 2 --only pager --row 1/1/1/1 --row 16/8/8/2 --row 16/8/8/4 --flag evict=move
    # As long as there is time, less the longest single run.
    left=$(awk -v all="$minutes" -v gone="$SECONDS" 'BEGIN { printf "%.2f", all - gone / 60 - 0.4 }')
    python3 bench/cores/run.py --build "$folder" --rounds 5 --minutes "$left" --timeout 60 --markdown \
      --json "$results/cores.json" || echo "FAILED: cores"
    date -u
  } 2>&1 | tee "$results/log.txt"
}

case ${1:-} in
  pack) pack "${2:-}" ;;
  run)
    (($# == 3)) || fail "run FOLDER RESULTS"
    run "$2" "$3"
    ;;
  *) fail "pack [FOLDER], or run FOLDER RESULTS" ;;
esac
