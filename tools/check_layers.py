#!/usr/bin/env python3
"""Proves that no source includes upwards.

Reads the medley_layer(...) edges of CMakeLists.txt and looks at every #include "..." of every
source: a layer may include itself and the layers it USES; tools/ may include every layer and itself;
tests/ may include everything but tools/. Headers of layers keep heavy libraries out, because
everybody who includes them would pay. Prints each offender as file:line and exits 1.
"""

import pathlib
import re
import sys
import tempfile

HEAVY = ("nlohmann/json.hpp", "CLI/", "Eigen/", "boost/iostreams", "regex", "iostream")
ONLY_IN_TOOLS = ("CLI/",)
KEYWORDS = ("DIRS", "USES", "LIBS")


def read_layers(cmake_text):
    """name -> {"DIRS": [...], "USES": [...], ...}"""
    layers = {}
    for name, body in re.findall(r"^medley_layer\((\w+)\s+([^)]*)\)", cmake_text, re.MULTILINE):
        fields = {keyword: [] for keyword in KEYWORDS}
        current = None
        for word in body.split():
            if word in KEYWORDS:
                current = word
            elif current:
                fields[current].append(word)
        layers[name] = fields
    return layers


def check_edges(layers):
    """Layers may use only layers declared before them, so that the edges hold no cycle."""
    seen = set()
    for name, fields in layers.items():
        for used in fields["USES"]:
            if used not in seen:
                yield f"CMakeLists.txt: layer {name} uses {used}, which is not declared before it"
        seen.add(name)


def layer_of(path, layers):
    """The layer whose folder holds `path` directly; "tools", "tests" or None."""
    folder = path.rpartition("/")[0]
    for name, fields in layers.items():
        if folder in fields["DIRS"]:
            return name
    top = path.split("/")[0]
    return top if top in ("tools", "tests") else None


def allowed(source, target, layers):
    if source == target:
        return True
    if source == "tests":
        return target != "tools"
    if source == "tools":
        return target != "tests"
    return target in layers.get(source, {"USES": []})["USES"]


def check_include(source, header, include, layers, root):
    """The complaint about one include line of a file of layer `source`, or None."""
    if include.startswith("<"):
        name = include[1:-1]
        if source not in ("tools", "tests"):
            if header and name.startswith(HEAVY):
                return f"header of {source} includes {include}: keep it in a .cpp"
            if name.startswith(ONLY_IN_TOOLS):
                return f"{source} includes {include}, which belongs to tools/"
        return None
    path = include[1:-1]
    if not (root / path).is_file() and not (root / f"{path}.in").is_file():
        return f"includes {include}, which is no file under the project's root"
    target = layer_of(path, layers)
    if target is None:
        return f"includes {include}, which belongs to no layer"
    if not allowed(source, target, layers):
        return f"layer {source} includes {include} of layer {target}, which it does not use"
    return None


def check_tree(root):
    layers = read_layers((root / "CMakeLists.txt").read_text())
    if not layers:
        yield "CMakeLists.txt: no medley_layer(...) found"
        return
    yield from check_edges(layers)
    pattern = re.compile(r'^\s*#\s*include\s+("[^"]+"|<[^>]+>)')
    for top in ("sim", "hwmodels", "workloads", "tools", "tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            path = file.relative_to(root).as_posix()
            source = layer_of(path, layers)
            if source is None:
                yield f"{path}: belongs to no layer of CMakeLists.txt"
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = pattern.match(line)
                if not match:
                    continue
                complaint = check_include(source, file.suffix == ".h", match[1], layers, root)
                if complaint:
                    yield f"{path}:{number}: {complaint}"


def self_test():
    """Each rule is broken once in a scratch tree and must be reported."""
    files = {
        "CMakeLists.txt": "medley_layer(core DIRS sim/core LIBS x::x)\nmedley_layer(up DIRS sim/up USES core)\n",
        "sim/core/ok.h": "#include <vector>\n",
        "sim/core/bad.cpp": '#include "sim/core/ok.h"\n#include "sim/up/ok.h"\n#include "ok.h"\n',
        "sim/up/ok.h": '#include "sim/core/ok.h"\n',
        "sim/up/bad.h": "#include <nlohmann/json.hpp>\n#include <nlohmann/json_fwd.hpp>\n",
        "sim/up/bad.cpp": "#include <nlohmann/json.hpp>\n#include <CLI/CLI.hpp>\n",
        "sim/lost/x.cpp": "",
        "tools/ok.cpp": '#include <CLI/CLI.hpp>\n#include "sim/up/ok.h"\n',
        "tests/unit/ok.cpp": '#include "sim/up/ok.h"\n',
    }
    expected = {
        'sim/core/bad.cpp:2: layer core includes "sim/up/ok.h" of layer up, which it does not use',
        'sim/core/bad.cpp:3: includes "ok.h", which is no file under the project\'s root',
        "sim/up/bad.h:1: header of up includes <nlohmann/json.hpp>: keep it in a .cpp",
        "sim/up/bad.cpp:2: up includes <CLI/CLI.hpp>, which belongs to tools/",
        "sim/lost/x.cpp: belongs to no layer of CMakeLists.txt",
    }
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = set(check_tree(root))
        (root / "CMakeLists.txt").write_text("medley_layer(a DIRS sim/core USES b)\nmedley_layer(b DIRS sim/up)\n")
        found_cycle = any("not declared before" in line for line in check_tree(root))
    if found != expected or not found_cycle:
        print("check_layers: self-test failed", *sorted(found ^ expected), sep="\n  ")
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    complaints = list(check_tree(root))
    for line in complaints:
        print(line)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
