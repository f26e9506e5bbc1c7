// An empty source. The headers that its target parses first are reused by the other targets
// (CMakeLists.txt, parsed_once).
