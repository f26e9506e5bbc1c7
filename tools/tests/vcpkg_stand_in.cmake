# Runs a vcpkg port without vcpkg: defines the four functions that Weft's port calls, as their
# documentation describes them. test_packaging.py uses it:
#
#   cmake -DPORT=portfile.cmake -DCURRENT_PACKAGES_DIR=… -DWORK=… -P vcpkg_stand_in.cmake
cmake_minimum_required(VERSION 3.21)
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure was passed extra arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  run("${CMAKE_COMMAND}" -G Ninja -S "${arg_SOURCE_PATH}" -B "${WORK}" -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${WORK}" --target install)
endfunction()
# Moves the files in CONFIG_PATH to share/PACKAGE_NAME, from where they must find their prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  set(from "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
  set(to "${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}")
  if(NOT IS_DIRECTORY "${from}")
    message(FATAL_ERROR "CONFIG_PATH ${arg_CONFIG_PATH} does not exist")
  endif()
  file(GLOB files "${from}/*")
  file(COPY ${files} DESTINATION "${to}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
  file(GLOB targets "${to}/*-targets.cmake")
  foreach(file IN LISTS targets)
    file(READ "${file}" text)
    string(REGEX REPLACE
      "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))*"
      "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)"
      text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/weft")
endfunction()
include("${PORT}")
