# Sourced by scripts that run several checks.
#   phase NAME COMMAND...   runs the command, prints its time, and records whether it failed
#   phases_end              prints all phases and exits with 0 if all passed

phase_lines=()
phase_failed=0

phase() {
  local name=$1 start=$SECONDS result=ok
  shift
  printf '\n== %s\n' "$name"
  "$@" </dev/null || result=FAILED
  [ "$result" = ok ] || phase_failed=1
  phase_lines+=("$(printf '%-6s %5d s  %s' "$result" $((SECONDS - start)) "$name")")
  printf '== %s: %s, %d s\n' "$name" "$result" $((SECONDS - start))
}

phases_end() {
  printf '\n== %s\n' "$(basename "$0")"
  printf '%s\n' "${phase_lines[@]}"
  exit "$phase_failed"
}
