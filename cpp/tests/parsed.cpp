// An empty source: what its target parses first is reused by the other targets (CMakeLists.txt,
// parsed_once).
