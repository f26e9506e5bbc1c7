# weft._pure: the package for MicroPython without what is for boards alone. weft/_fallback.py says when it is used.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/micropython/weft/" DESTINATION "${SKBUILD_PLATLIB_DIR}/weft/_pure"
  FILES_MATCHING PATTERN "*.py"
  PATTERN "cores.py" EXCLUDE PATTERN "_twin" EXCLUDE PATTERN "isr.py" EXCLUDE PATTERN "watchdog.py" EXCLUDE PATTERN "link.py" EXCLUDE
  PATTERN "_far.py" EXCLUDE PATTERN "_aio.py" EXCLUDE PATTERN "_line.py" EXCLUDE PATTERN "_frames.py" EXCLUDE PATTERN "_cbor.py" EXCLUDE
  PATTERN "flight.py" EXCLUDE PATTERN "_flight.py" EXCLUDE)
