# weft::net: what weft/net.hpp wants besides weft::weft (cpp/docs/net.md). Included by this project with WEFT_NET=ON,
# and by find_package(weft COMPONENTS net).
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(weft_nats REQUIRED IMPORTED_TARGET libnats>=3.3)
add_library(weft_net INTERFACE)
add_library(weft::net ALIAS weft_net)
target_link_libraries(weft_net INTERFACE weft::weft OpenSSL::SSL OpenSSL::Crypto nlohmann_json::nlohmann_json PkgConfig::weft_nats)
