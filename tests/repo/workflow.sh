# The workflow in docs/gating.md is YAML with the parts that GitHub Actions needs, and calls cudabk with options that exist.
source "$(dirname "$0")/common.sh"
cudabk=$1
if ! python3 -c 'import yaml' 2>/dev/null; then
  echo "SKIPPED repo.workflow: python3-yaml is not installed (./scripts/setup installs it)"
  exit 77
fi
python3 - "$source_dir/docs/gating.md" "$cudabk" <<'PYTHON' || fail "the workflow of docs/gating.md"
import re
import subprocess
import sys

import yaml

page = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.S | re.M)
assert len(blocks) == 1, f"{len(blocks)} YAML blocks"
workflow = yaml.safe_load(blocks[0])
# YAML 1.1 reads the key "on" as true.
assert {"name", True, "jobs"} <= set(workflow), set(workflow)
calls = 0
for name, job in workflow["jobs"].items():
    assert "runs-on" in job and job["steps"], name
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), step
        for call in re.findall(r"(?:\./scripts/run|cudabk) ([a-z]+)((?: [^\n;&|)]*)?)", step.get("run", "")):
            subcommand, rest = call
            for part, command in zip(rest.split(" -- "), (subcommand, "bench")):
                usage = subprocess.run([sys.argv[2], command, "--help"], capture_output=True, text=True, check=True).stdout
                for option in re.findall(r"(?<!\S)--[a-z-]+", part):
                    assert re.search(re.escape(option) + r"(?![a-z-])", usage), f"{command} has no {option}"
            calls += 1
assert calls >= 2, calls
print(f"{calls} calls of cudabk checked")
PYTHON
# The test of the test: a broken document is refused.
! printf 'a: [1\nb: {' | python3 -c 'import sys, yaml; yaml.safe_load(sys.stdin)' 2>/dev/null || fail "broken YAML was accepted"
finish
