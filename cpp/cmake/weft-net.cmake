# What weft::net needs besides weft::weft (cpp/docs/net.md), as the list weft_net_needs. Included by this project with
# WEFT_NET=ON, and by find_package(weft COMPONENTS net).
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(weft_nats REQUIRED IMPORTED_TARGET libnats>=3.3)
set(weft_net_needs OpenSSL::SSL OpenSSL::Crypto nlohmann_json::nlohmann_json PkgConfig::weft_nats)
