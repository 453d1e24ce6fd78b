# SPDX-License-Identifier: Apache-2.0
"""What `pip install python/` calls (PEP 517): Meson builds the module, and what it made is the wheel (PEP 427). Needs nothing from the
network and no other Python package. $SCRY_BUILD is the build folder, else build-python in the tree."""
import base64
import hashlib
import os
import subprocess
import sysconfig
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SOURCES = ["__init__.py", "_warm.py", "py.typed"]
MADE = ["_scry.abi3.so", "_ops.py", "__init__.pyi"]


def build():
    folder = os.environ.get("SCRY_BUILD") or os.path.join(ROOT, "build-python")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, ROOT, "--buildtype=release", "-Dtests=false", "-Dpython=enabled"], check=True)
    subprocess.run(["ninja", "-C", folder, *(f"python/scry/{name}" for name in MADE)], check=True)
    return os.path.join(folder, "python/scry")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as f:
        project = tomllib.load(f)["project"]
    made = build()
    # One module for every Python from 3.11 on (its stable ABI).
    tag = "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"{project['name']}-{project['version']}.dist-info"
    name = f"{project['name']}-{project['version']}-{tag}.whl"
    record = []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def put(path, data):
            wheel.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for folder, files in ((os.path.join(HERE, "scry"), SOURCES), (made, MADE)):
            for file in files:
                with open(os.path.join(folder, file), "rb") as f:
                    put(f"scry/{file}", f.read())
        put(f"{info}/METADATA", (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
                                 f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n").encode())
        put(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: scry\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return name
