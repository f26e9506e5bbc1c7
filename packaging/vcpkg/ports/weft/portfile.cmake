# Weft's C++ library for vcpkg, from the checkout that this port lies in:
#
#   vcpkg install weft --overlay-ports=CHECKOUT/packaging/vcpkg/ports
#
# weft::weft is a library of the triplet's linkage.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_PYTHON=OFF -DWEFT_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME weft CONFIG_PATH share/cmake/weft)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
