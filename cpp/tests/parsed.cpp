// Nothing: what its target parses first is for the others (CMakeLists.txt, parsed_once).
