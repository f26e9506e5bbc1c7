# weft._pure: the package for MicroPython without what is for boards alone. weft/_fallback.py says when it is used.
# The wheel is for every platform (purelib), or for the one where it was built (platlib).
set(_weft_site "${SKBUILD_PLATLIB_DIR}")
if(NOT _weft_site)
  set(_weft_site "${SKBUILD_PURELIB_DIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/micropython/weft/" DESTINATION "${_weft_site}/weft/_pure"
  FILES_MATCHING PATTERN "*.py"
  PATTERN "cores.py" EXCLUDE PATTERN "_twin" EXCLUDE PATTERN "isr.py" EXCLUDE PATTERN "watchdog.py" EXCLUDE PATTERN "link.py" EXCLUDE
  PATTERN "_far.py" EXCLUDE PATTERN "_aio.py" EXCLUDE PATTERN "_line.py" EXCLUDE PATTERN "_frames.py" EXCLUDE PATTERN "_cbor.py" EXCLUDE
  PATTERN "flight.py" EXCLUDE PATTERN "_flight.py" EXCLUDE)
