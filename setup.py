# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the extension of the package stp against the library that pkg-config finds: that of stp-dev, or of a build,
with PKG_CONFIG_PATH=build/lib/pkgconfig. pyproject.toml has the rest."""
import glob
import os
import re
import shlex
import subprocess

from setuptools import Extension, setup

BUILD = "build-python"  # build/ is CMake's


def flags_of(option):
    """What pkg-config says of libst."""
    try:
        said = subprocess.run(["pkg-config", option, "libst"], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("pkg-config is missing (Debian: pkg-config)") from None
    except subprocess.CalledProcessError:
        raise SystemExit(
            "libst is missing: install the Debian package stp-dev, or build the project and set "
            "PKG_CONFIG_PATH=build/lib/pkgconfig"
        ) from None
    return shlex.split(said.stdout)


def pybind11():
    """Debian's headers are where the compiler looks."""
    try:
        import pybind11 as package
    except ImportError:
        return []
    return [package.get_include()]


def version():
    with open("CMakeLists.txt", encoding="utf-8") as file:
        return re.search(r"project\(stp VERSION (\S+)", file.read())[1]


os.makedirs(BUILD, exist_ok=True)
setup(
    version=version(),
    ext_modules=[
        Extension(
            "stp._stp",
            sorted(glob.glob("libst/python/*.cpp")),
            depends=glob.glob("libst/python/*.h"),
            include_dirs=[".", *pybind11()],
            extra_compile_args=["-std=c++20", "-fvisibility=hidden", *flags_of("--cflags")],
            extra_link_args=flags_of("--libs"),
            language="c++",
        )
    ],
    options={"build": {"build_base": BUILD}, "egg_info": {"egg_base": BUILD}},
)
