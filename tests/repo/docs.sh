# README and docs/ speak of what exists: every command line in them names real scripts, subcommands and options, every
# link leads to a file, every subcommand is mentioned.
source "$(dirname "$0")/common.sh"
cudabk=$1
cd "$source_dir"
pages=(README.md docs/*.md)

top_help=$("$cudabk" --help) || fail "cudabk --help failed"
declare -A help_texts
# help_for WORDS: the help of a subcommand; empty when there is none. Sets $help.
help_for() {
  if [ -z "${help_texts[$*]+x}" ]; then
    help_texts[$*]=$("$cudabk" "$@" --help 2>/dev/null || true)
  fi
  help=${help_texts[$*]}
}

# check_command PAGE SUBCOMMAND ARGUMENTS...
check_command() {
  local page=$1 sub=$2 text word
  shift 2
  if [[ $sub == -* ]]; then
    grep -qF -- "$sub" <<<"$top_help" || fail "$page: no option $sub"
    return 0
  fi
  grep -qE "^ +$sub( |$)" <<<"$top_help" || { fail "$page: no subcommand '$sub'"; return 0; }
  help_for "$sub"
  text=$help
  if [ $# -gt 0 ] && [[ $1 =~ ^[a-z]+$ ]] && grep -qE "^ +$1( |$)" <<<"$text"; then
    help_for "$sub" "$1"
    text+=$help
  fi
  for word in "$@"; do
    [[ $word != --* ]] || grep -qE -- "${word%%=*}([^a-z-]|$)" <<<"$text" || fail "$page: 'cudabk $sub' has no $word"
  done
}

commands=0
for page in "${pages[@]}"; do
  # Command lines of fenced blocks, comments and prompts taken off.
  while read -r line; do
    line=${line#\$ }
    line=${line%%  \#*}
    # shellcheck disable=SC2206  # words of a command line
    words=($line)
    while [[ ${words[0]:-} == *=* ]]; do words=("${words[@]:1}"); done  # VARIABLE=value in front
    case ${words[0]:-} in
      ./scripts/run | cudabk) [ ${#words[@]} -lt 2 ] || { check_command "$page" "${words[@]:1}"; commands=$((commands + 1)); } ;;
      ./scripts/* | ./.ci/run)
        [ -x "${words[0]}" ] || fail "$page: ${words[0]} does not exist"
        commands=$((commands + 1))
        ;;
    esac
  done < <(awk '/^```/ {inside = !inside; next} inside' "$page")

  while read -r target; do
    target=${target%%#*}
    [ -z "$target" ] || [ -e "$(dirname "$page")/$target" ] || fail "$page: link to $target leads nowhere"
  done < <(awk '/^```/ {inside = !inside; next} !inside' "$page" | grep -oE '\]\([^)]+\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^https?:' || true)
done
[ "$commands" -ge 5 ] || fail "only $commands command lines were found in the documentation"

subcommands=$(awk '/^Subcommands:/ {on = 1; next} /^$/ {on = 0} on && /^  [a-z]/ {print $1}' <<<"$top_help")
[ -n "$subcommands" ] || fail "cudabk --help lists no subcommands"
for sub in $subcommands; do
  grep -qE "cudabk $sub|scripts/run $sub|\`$sub\`" "${pages[@]}" || fail "subcommand '$sub' is not documented"
done
echo "$commands command lines checked"
finish
