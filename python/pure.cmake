# weft._pure: the package for MicroPython. weft/_fallback.py says when this Python uses it, and weft/_boards/install.py puts it on boards.
# The wheel is for every platform (purelib), or for the one where it was built (platlib).
set(_weft_site "${SKBUILD_PLATLIB_DIR}")
if(NOT _weft_site)
  set(_weft_site "${SKBUILD_PURELIB_DIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/micropython/weft/" DESTINATION "${_weft_site}/weft/_pure" FILES_MATCHING PATTERN "*.py")
