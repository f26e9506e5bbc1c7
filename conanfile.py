"""Weft's C++ library as a Conan package: `weft::weft` and, for programs with the names of C++CSP,
`weft::compat`, for find_package(weft).

    conan create .                    makes the package and runs packaging/conan/test_package against it
    conan create . -tf ""             makes it only

The version is read from cpp/include/weft/version.hpp, where alone it stands.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import load


class Weft(ConanFile):
    name = "weft"
    description = "Processes and channels (CSP) in C++20: coroutines and threads, choice, poison, virtual time"
    license = "MIT"
    topics = ("csp", "channels", "coroutines", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}  # noqa: RUF012
    default_options = {"shared": False, "fPIC": True}  # noqa: RUF012
    implements = ["auto_shared_fpic"]  # noqa: RUF012
    exports = "cpp/include/weft/version.hpp"
    exports_sources = (
        "CMakeLists.txt",
        "LICENSE",
        "cpp/include/*",
        "cpp/src/*",
        "cpp/cmake/*",
        "cpp/gdb/*",
        "compat/cpp/*",
    )
    generators = "CMakeToolchain"
    no_copy_source = True
    test_package_folder = "packaging/conan/test_package"

    def set_version(self):
        text = load(self, str(Path(self.recipe_folder) / "cpp/include/weft/version.hpp"))
        self.version = ".".join(
            re.findall(r"#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
        )

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def build(self):
        cmake = CMake(self)
        cmake.configure(
            variables={"WEFT_BUILD_TESTS": "OFF", "WEFT_BUILD_PYTHON": "OFF", "WEFT_INSTALL": "ON"}
        )
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "weft")
        library = self.cpp_info.components["weft"]
        library.set_property("cmake_target_name", "weft::weft")
        library.set_property("cmake_target_aliases", ["weft::compiled"])
        library.libs = ["weft"]
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            library.system_libs = ["pthread"]
        names = self.cpp_info.components["compat"]
        names.set_property("cmake_target_name", "weft::compat")
        names.includedirs = ["include", "include/weft/compat/csp"]
        names.requires = ["weft"]
