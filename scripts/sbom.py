#!/usr/bin/env python3
"""What packages are made of, as CycloneDX 1.5, from what `cargo metadata` says on standard input.

    cargo metadata --locked --format-version 1 --all-features | scripts/sbom.py VERSION PACKAGE...
"""

import json
import re
import sys


def reference(package):
    """The package URL of a crate."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def checksums():
    """The SHA-256 of each crate, from Cargo.lock."""
    with open("Cargo.lock", encoding="utf-8") as lock:
        entries = lock.read().split("[[package]]")[1:]
    found = {}
    for entry in entries:
        fields = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', entry, re.MULTILINE))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def component(package, sums):
    """One crate."""
    found = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        # Older manifests write a slash for "or".
        expression = re.sub(r"\s*/\s*", " OR ", package["license"])
        found["licenses"] = [{"expression": expression}]
    if package["description"]:
        found["description"] = " ".join(package["description"].split())
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def main():
    version, *names = sys.argv[1:]
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    members = set(metadata["workspace_members"])
    roots = [id for id in members if packages[id]["name"] in names]
    missing = set(names) - {packages[id]["name"] for id in roots}
    if missing:
        sys.exit(f"sbom: found no packages {', '.join(sorted(missing))}")
    # What is compiled into them: not what only their tests and build scripts need.
    wanted = {}
    for node in metadata["resolve"]["nodes"]:
        normal = [
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        wanted[node["id"]] = sorted(normal)
    reached, open_ends = set(), list(roots)
    while open_ends:
        id = open_ends.pop()
        if id not in reached:
            reached.add(id)
            open_ends.extend(wanted[id])
    sums = checksums()
    order = sorted(reached, key=lambda id: (packages[id]["name"], packages[id]["version"]))
    report = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "library", "bom-ref": f"diptych-{version}", "name": "diptych", "version": version}
        },
        "components": [component(packages[id], sums) for id in order],
        "dependencies": [
            {
                "ref": reference(packages[id]),
                "dependsOn": [reference(packages[other]) for other in wanted[id]],
            }
            for id in order
        ],
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
