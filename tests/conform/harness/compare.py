"""Normalisation of observations, their comparison, and the table of expected differences."""

import fnmatch
import json
import re

MISSING = "absent"
REASON = re.compile(r"(failed to parse (?:websocket )?JSON-RPC message from exec-server "
                    r"(?:websocket <peer>|stdio): ).*", re.DOTALL)


def normalise(value, replacements):
    """Replaces what differs from run to run: paths, session ids, peer addresses, the reference's
    helper directory, the parser's reason after its fixed prefix."""
    if isinstance(value, dict):
        return {k: normalise(v, replacements) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [normalise(v, replacements) for v in value]
    if not isinstance(value, str):
        return value
    for old, new in replacements:
        value = value.replace(old, new)
    value = re.sub(r"127\.0\.0\.1:\d+", "<peer>", value)
    value = re.sub(r"codex-arg0\w+", "codex-arg0", value)
    return REASON.sub(r"\1<reason>", value)


def differences(ref, ours, path=""):
    """Pairs of leaves that differ, as (path, reference, ours)."""
    if isinstance(ref, dict) and isinstance(ours, dict):
        out = []
        for key in list(ref) + [k for k in ours if k not in ref]:
            out += differences(ref.get(key, MISSING), ours.get(key, MISSING), f"{path}/{key}")
        return out
    if isinstance(ref, list) and isinstance(ours, list) and len(ref) == len(ours):
        out = []
        for i, (a, b) in enumerate(zip(ref, ours)):
            out += differences(a, b, f"{path}/{i}")
        return out
    if json.dumps(ref, sort_keys=True) == json.dumps(ours, sort_keys=True):
        return []
    return [(path, ref, ours)]


def shown(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Expected:
    """The table of differences that were decided on."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.rows = json.load(f)
        for row in self.rows:
            row["hits"] = 0

    def explain(self, case, path, ref, ours):
        """The row that allows this difference, or None."""
        for row in self.rows:
            for m in row["match"]:
                if any(fnmatch.fnmatchcase(case, p) for p in m["cases"]) \
                        and re.search(m.get("path", ""), path) \
                        and re.search(m.get("reference", ""), shown(ref), re.DOTALL) \
                        and re.search(m.get("ours", ""), shown(ours), re.DOTALL):
                    row["hits"] += 1
                    return row
        return None

    def unstable(self):
        """Only the rows about what the reference does one way or the other by chance."""
        self.rows = [r for r in self.rows if r.get("sometimes")]
        for row in self.rows:
            row["match"] += [{**m, "reference": m.get("ours", ""), "ours": m.get("reference", "")}
                             for m in row["match"]]
        return self

    def stale(self, slow):
        """Rows that explained nothing in a complete run."""
        return [r for r in self.rows if not r["hits"] and not r.get("sometimes")
                and (slow or not r.get("slow"))]

    def markdown(self):
        lines = ["| id | what | reference | ours | reason |", "|---|---|---|---|---|"]
        for r in self.rows:
            cells = [r["id"], r["what"], r["reference"], r["ours"], r["reason"]]
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        return "\n".join(lines) + "\n"
